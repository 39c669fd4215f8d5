/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_OUTBOUND_H
#define WORKERS_OUTBOUND_H

/* Inner packets -> destination -> seal in batch -> datagrams. Thread: the worker. */

#include "workers/datapath.h"

#define OUTBOUND_BATCH 64

/* Packets for our own peers, gathered over a turn and sealed together, sorted by peer. */
struct outbound {
	struct datapath *dp;
	unsigned count;
	struct {
		struct peer *peer;
		struct buffer *buffer;
	} items[OUTBOUND_BATCH];
};

/* Nothing gathered yet; `dp` outlives it. */
void outbound_init(struct outbound *o, struct datapath *dp);
/* Packets from our tun queue; all buffers are taken. */
void outbound_packets(struct outbound *o, struct buffer *const *packets, unsigned n);
/* An inner packet for whoever has destination `d`: sealed here, or handed to the owner. */
void outbound_route(struct outbound *o, struct destination d, struct buffer *b);
/* A multicast packet for every client but `except_id` (PEER_ID_NONE: for all): copies for our own
 * peers, one for each other worker. The buffer stays the caller's. */
void outbound_broadcast(struct outbound *o, uint32_t except_id, const struct buffer *b);
/* A packet that another thread handed over for our peer `peer_id`. */
void outbound_handed_over(struct outbound *o, uint32_t peer_id, struct buffer *b);
/* Seal and send a plaintext of ours (ping, OCC) to a peer. A missing key or buffer is a drop. */
void outbound_message(struct outbound *o, struct peer *p, const void *text, uint32_t len);
/* Seal and queue what was gathered. At the end of a turn, and before a peer is removed. */
void outbound_flush(struct outbound *o);

#endif
