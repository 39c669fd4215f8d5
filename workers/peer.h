/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_PEER_H
#define WORKERS_PEER_H

/* A client's data state. Made by the acceptor, owned by one worker from MESSAGE_PEER_ADD to
 * MESSAGE_PEER_REMOVED, then freed by the acceptor. All fields are the owner's, except those
 * marked as shared. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"
#include "crypto/data_key.h"
#include "workers/bucket.h"
#include "workers/path_mtu.h"
#include "workers/timers.h"

#define PEER_KEYS 8 /* by key-id */

/* What the owner has to tell the acceptor; announced again until the ring takes it. */
enum peer_fact {
	PEER_FACT_SILENT = 1 << 0,
	PEER_FACT_EXIT = 1 << 1,
	PEER_FACT_EXHAUSTED = 1 << 2,
	PEER_FACT_PATH_MTU = 1 << 3, /* what its path takes is to be looked up */
};

/* What the acceptor decides when it adds a peer. */
struct peer_setup {
	uint32_t id;	     /* 0..PEER_ID_NONE-1; slot = id & 255 */
	uint32_t generation; /* differs from the last holder of the id */
	bool is_v2;	     /* send P_DATA_V2 (the client knows its peer-id) */
	struct link_addr link;
	uint32_t ping_s, ping_restart_s; /* 0: off */
	uint16_t mss4, mss6;		 /* clamp by configuration; 0: off */
	uint32_t path_mtu;		 /* of the route to it; 0: unknown */
	uint32_t tun_mtu;		 /* largest inner packet sent to it */
};

/* Inner packets that wait to be sealed for a peer, oldest first. */
struct peer_queue {
	struct buffer *first, *last; /* by ->next */
	uint32_t bytes;
	int32_t deficit;	/* bytes that it may still send in its round */
	struct peer *next_peer; /* in the ring of peers that have something */
	bool is_active;		/* in that ring */
	bool is_kept;		/* left over by an earlier turn */
	bool is_held;		/* its rate does not allow the next packet yet */
};

struct peer {
	struct peer_setup setup;
	struct link_addr link;
	struct data_key *keys[PEER_KEYS]; /* NULL: none; objects are the owner's */
	struct data_key *seal_key;	  /* what is sealed with now, NULL before the first key */
	uint64_t last_received_ms;	  /* any authenticated packet */
	uint64_t last_sent_ms;
	struct timer keepalive;
	struct peer *next_by_addr; /* table by source address */
	uint32_t facts;		   /* enum peer_fact, not yet taken by the acceptor's ring */
	uint8_t exhausted_keys;	   /* bit per key-id: announced as nearly used up, each once */
	uint8_t exhausted_key_id;  /* the latest of them, for PEER_FACT_EXHAUSTED */
	uint64_t float_asked_ms;   /* when a move was last asked for; 0: never */
	struct path_mtu path;	   /* what to clamp to, and largest datagram */
	bool is_path_doubted;	   /* to be asked for when that is permitted */
	uint64_t silence_said_ms;  /* when silence was last announced */
	struct peer_queue queue;
	struct bucket up, down; /* rates of inner bytes, full when the peer was added */
	uint64_t gso_rest_ms;	/* until then no bursts of more than gso_max bytes a datagram */
	uint16_t gso_max;	/* 0: no limit was met */
	/* Shared: written by the owner, relaxed; read by the acceptor for status and by the
	 * observer. */
	_Atomic uint64_t received_bytes, sent_bytes;
	_Atomic uint64_t received_packets, sent_packets;
	_Atomic uint64_t seen_ms; /* CLOCK_BOOTTIME of the last authenticated packet, housekeeping
				     precision */
};

/* Thread: acceptor. NULL without memory. */
struct peer *peer_new(const struct peer_setup *s);
/* After MESSAGE_PEER_REMOVED (or if the peer was never added). */
void peer_free(struct peer *p);

/* The key to seal with at now_ms: among the keys whose seal_from has passed the newest, else any
 * that is not there only to open (UINT64_MAX); updates seal_key (wire.md, section 12.3). NULL if
 * there is none. Thread: owner. */
/* The route says what the path takes (0: nothing). Thread: owner. */
void peer_learn_path(struct peer *p, uint32_t path_mtu, uint64_t now_ms);
/* Forget what was learned too long ago. Returns whether it did. Thread: owner. */
bool peer_expire_path(struct peer *p, uint64_t now_ms);

/* The key to seal with at now_ms: among the keys whose seal_from has passed the newest, else any;
 * updates seal_key (wire.md, section 12.3). NULL if there is none. Thread: owner. */
struct data_key *peer_seal_key(struct peer *p, uint64_t now_ms);

/* A worker's peers, by id and by source address (a client that knows its peer-id may still send
 * P_DATA_V1). */
struct peer_table;
__attribute__((warn_unused_result)) int peer_table_new(uint32_t id_limit, struct peer_table **out);
void peer_table_free(struct peer_table *t);
/* -EEXIST, -ERANGE. */
__attribute__((warn_unused_result)) int peer_table_add(struct peer_table *t, struct peer *p);
void peer_table_remove(struct peer_table *t, struct peer *p);
struct peer *peer_find_by_id(const struct peer_table *t, uint32_t id);
struct peer *peer_find_by_addr(const struct peer_table *t, const struct link_addr *l);
/* The peer's address is `l` from now on. */
void peer_table_move(struct peer_table *t, struct peer *p, const struct link_addr *l);
/* The peer with the lowest id >= *id, which becomes its id; NULL if there is none. For walking the
 * table: start with 0, go on with *id + 1. */
struct peer *peer_next(const struct peer_table *t, uint32_t *id);
uint32_t peer_table_count(const struct peer_table *t);

#endif
