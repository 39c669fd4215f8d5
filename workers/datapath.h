/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_DATAPATH_H
#define WORKERS_DATAPATH_H

/* What a worker's packet path works with. Owned by one worker; inbound, outbound and the loop share
 * it. Also the ways out of the path: drop a packet, send a buffer home, hand one to its owner. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "crypto/aead.h"
#include "crypto/bytes.h"
#include "workers/buffer.h"
#include "workers/counters.h"
#include "workers/io.h"
#include "workers/key_slab.h"
#include "workers/mailbox.h"
#include "workers/peer.h"
#include "workers/route_table.h"
#include "workers/steering.h"
#include "workers/timers.h"

struct datapath {
	unsigned index; /* thread index of this worker, 1..N */
	unsigned worker_count;
	uint64_t now_ms, now_ns; /* CLOCK_BOOTTIME, read once a turn */
	struct counters count;
	struct aead *aead;
	struct io *io;
	struct buffer_pool *large; /* what the engine receives into; split super-packets */
	struct buffer_pool *small; /* copies, messages of our own */
	struct peer_table *peers;
	struct key_slab *keys;
	struct route_reader *routes;
	struct timers timers;
	const struct slot_table *slots;
	struct mailboxes *mailboxes;
	/* By home: consumed buffers of other threads, sent once a turn. */
	struct buffer *homeward[WORKERS_MAX + 1];
	uint32_t tun_offloads;	/* enum tun_offload: what frames for the tun queue may be */
	bool has_gso;		/* UDP_SEGMENT may be used */
	struct buffer *refused; /* chains that could not be sent as bursts, to be sent singly */
	bool is_client_to_client;
	struct client_rate rate;	  /* of each peer */
	uint64_t reneg_bytes, reneg_pkts; /* 0: off */
	struct view occ_reply;
};

/* Count a drop and send the buffer home. */
void datapath_drop(struct datapath *dp, enum counter_direction d, enum drop why, struct buffer *b);
/* A consumed buffer: to its pool, or to the chain of its home. */
void datapath_release(struct datapath *dp, struct buffer *b);
/* The same for each buffer of a chain. */
void datapath_release_chain(struct datapath *dp, struct buffer *chain);
/* A buffer of our own, small if that will do, with `len` bytes of `data` and the link of `from`.
 * NULL, counted as a drop in direction `d`, if there is none. */
struct buffer *datapath_copy(struct datapath *dp, enum counter_direction d,
			     const struct buffer *from);
/* A buffer that may stay with somebody: `b`, or a small copy of it if it is a slice or ties down
 * much more than it holds (`b` is released then). NULL, counted as a drop, if there is none. */
struct buffer *datapath_detach(struct datapath *dp, enum counter_direction d, struct buffer *b);
/* A chain that was sent or written came back from the engine. */
void datapath_done(struct datapath *dp, struct buffer *chain, bool is_tun, int result);
/* Once a turn: send the chains. False if some stay for the next turn because a ring is full. */
bool datapath_send_home(struct datapath *dp);
/* Give a buffer to thread `to`; a full ring drops it. `m` has kind, peer_id and buffer, which is
 * detached first. */
void datapath_hand_over(struct datapath *dp, unsigned to, enum counter_direction d,
			const struct message *m);
/* Tell the acceptor a fact about a peer, now or, if its ring is full, at the peer's next timer. */
void datapath_announce(struct datapath *dp, struct peer *p, enum peer_fact fact);
/* Facts that are still to be told. */
void datapath_announce_pending(struct datapath *dp, struct peer *p);
/* Have the acceptor look up what the path of `p` takes; as often as path_mtu.h
 * permits: else at the peer's next timer. */
void datapath_ask_path(struct datapath *dp, struct peer *p);
/* Announce a key of `p` that is nearly used up, once. */
void datapath_check_usage(struct datapath *dp, struct peer *p, const struct data_key *k);

/* An owner's shared counter: load and store, no read-modify-write. */
static inline void shared_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

#endif
