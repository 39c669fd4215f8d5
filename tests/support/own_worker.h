/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_OWN_WORKER_H
#define TESTS_SUPPORT_OWN_WORKER_H

/* A real worker, thread 1, without a thread: the test takes its turns one by one, so that every
 * order of messages and packets can be had, again and again. The test is also the acceptor (thread
 * 0), worker 2, the clients, and the kernel behind the tun queue. */

#include "tests/support/far_end.h"
#include "workers/orders.h"
#include "workers/udp.h"
#include "workers/worker.h"

#define OWN_ID	 1u   /* a peer-id of the worker's slot */
#define OTHER_ID 129u /* one of worker 2's */

struct own_worker {
	struct config config;
	struct worker_shared shared;
	struct slot_table slots;
	struct udp_group group;
	struct worker *worker;
	struct datapath *dp;	      /* the worker's own */
	struct orders *orders;	      /* likewise */
	int tun, tun_theirs;	      /* the kernel's end of the tun queue, and the worker's */
	int client;		      /* a client's socket, not connected */
	struct aead *aead;	      /* the acceptor's and the clients' */
	struct buffer_pool *pools[3]; /* of threads 0 and 2; [1] stays empty */
};

/* What is set in `config` beside the engines is taken over; NULL: nothing. */
struct own_worker *own_worker_new(enum io_engine_choice io, enum aead_choice aead,
				  const struct config *config);
void own_worker_free(struct own_worker *o);

/* One turn of the loop; waits a millisecond at most. */
void own_worker_turn(struct own_worker *o);
/* Turns until `fd` has something to read; fails after a while without. */
void own_worker_turn_until(struct own_worker *o, int fd);
/* Drops of both directions for this reason. */
uint64_t own_worker_drops(const struct own_worker *o, enum drop why);

/* Put a message into the ring from the thread `from` to the worker. */
void own_worker_tell(struct own_worker *o, unsigned from, struct message m);
/* The next message for thread `to`, which must be there; buffers of that thread which come home are
 * taken on the way. */
struct message own_worker_answer(struct own_worker *o, unsigned to);
/* Take all that waits for thread `to`; returns how many were of `kind`. */
unsigned own_worker_take_all(struct own_worker *o, unsigned to, enum message_kind kind);
/* Fill the ring from the worker to thread `to`. */
void own_worker_fill_ring(struct own_worker *o, unsigned to);

/* A peer that is reached at `client`, with a route to its inner address; not told to the worker. */
struct peer *own_worker_peer(struct own_worker *o, uint32_t id, uint32_t generation);
/* A key for peer `id`, as an install message points to it; the caller frees it when answered. */
struct client_key *own_worker_key(struct own_worker *o, uint32_t id,
				  const struct data_key_material *m);
/* Some key material; keys differ by `seed`. */
struct data_key_material own_worker_material(uint8_t key_id, uint8_t seed);
/* An inner packet of `from` in a buffer of thread 0 or 2. */
struct buffer *own_worker_inner(struct own_worker *o, unsigned home, uint32_t from, uint32_t to,
				uint8_t mark);

#endif
