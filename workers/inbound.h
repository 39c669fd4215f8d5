/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_INBOUND_H
#define WORKERS_INBOUND_H

/* Datagrams -> open in batch -> inner packets. Thread: the worker. */

#include "workers/datapath.h"
#include "workers/outbound.h"

#define INBOUND_BATCH	64
#define INBOUND_FOREIGN 16 /* a turn: enough for a peer that has just moved */

/* Data packets of our own peers, gathered over a turn and opened together, sorted by key. */
struct inbound {
	struct datapath *dp;
	struct outbound *out; /* for answers, and between clients */
	unsigned count;
	struct {
		struct data_key *key;
		struct peer *peer;
		struct buffer *buffer;
	} items[INBOUND_BATCH];
	/* From another source than the peer's: anybody can name a peer-id, so they come last. */
	struct buffer *foreign[INBOUND_FOREIGN];
	unsigned foreign_count;
	struct {
		const struct peer *peer; /* NULL: none */
		struct ip_addr source;
	} known; /* the last source that was looked up, and found to be the peer's */
	struct buffer *packets[INBOUND_BATCH]; /* opened, for the tun queue */
	unsigned packet_count;
};

/* Nothing gathered yet; `dp` and `out` outlive it. */
void inbound_init(struct inbound *in, struct datapath *dp, struct outbound *out);
/* Datagrams, super-datagrams among them, from our sockets; all buffers are taken. What is not ours
 * goes to its owner, control packets to the acceptor. */
void inbound_datagrams(struct inbound *in, struct buffer *const *datagrams, unsigned n);
/* A data packet that another thread handed over. */
void inbound_handed_over(struct inbound *in, struct buffer *b);
/* Open what was gathered and pass it on. At the end of a turn, and before a peer or key goes. */
void inbound_flush(struct inbound *in);

#endif
