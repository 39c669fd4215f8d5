/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_OUTBOUND_H
#define WORKERS_OUTBOUND_H

/* Inner packets -> destination -> seal in batch -> datagrams. Thread: the worker. */

#include "workers/datapath.h"
#include "workers/fair_queue.h"

#define OUTBOUND_TURN_BYTES 524288 /* sealed in a turn; the rest waits, so that others get in */

struct outbound {
	struct datapath *dp;
	struct fair_queue queue;
	bool is_held_back; /* all that is left has to wait for its rate */
};

/* Nothing queued yet; `dp` outlives it. */
void outbound_init(struct outbound *o, struct datapath *dp);
/* Frames from our tun queue; all buffers are taken. */
void outbound_frames(struct outbound *o, struct buffer *const *frames, unsigned n);
/* An inner packet, or a frame, for whoever has destination `d`: queued here, or handed to the
 * owner. */
void outbound_route(struct outbound *o, struct destination d, struct buffer *b);
/* A multicast packet for every client but `except_id` (PEER_ID_NONE: for all): copies for our own
 * peers, one for each other worker. The buffer stays the caller's. */
void outbound_broadcast(struct outbound *o, uint32_t except_id, const struct buffer *b);
/* A packet that another thread handed over for our peer `peer_id`. */
void outbound_handed_over(struct outbound *o, uint32_t peer_id, struct buffer *b);
/* Seal and send a plaintext of ours (ping, OCC) to a peer. A missing key or buffer is a drop. */
void outbound_message(struct outbound *o, struct peer *p, const void *text, uint32_t len);
/* Seal and queue for sending what the peers' turns allow. At the end of a turn, and before a peer
 * is removed. */
void outbound_flush(struct outbound *o);
/* How long what is left may wait: 0, 1, or UINT64_MAX if nothing is. */
uint64_t outbound_wait_ms(const struct outbound *o);
/* A peer goes: drop what is queued for it. */
void outbound_forget(struct outbound *o, struct peer *p);

#endif
