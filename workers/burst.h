/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_BURST_H
#define WORKERS_BURST_H

/* Inner packets of one peer, sealed together and sent as few bursts of equal datagrams
 * (UDP_SEGMENT). Thread: the worker. */

#include "workers/datapath.h"

#define BURST_BATCH 64 /* packets at a time; also most datagrams of a burst */

/* Seal `n` packets (at most BURST_BATCH) in place, in order, and queue them for sending. All are
 * taken; without a key they are dropped. */
void burst_packets(struct datapath *dp, struct peer *p, struct buffer *const *packets, unsigned n);
/* Split a frame (buffer->is_frame) into datagrams, seal and queue them. It is taken. */
void burst_frame(struct datapath *dp, struct peer *p, struct buffer *frame);
/* Send, datagram by datagram, what could not go as bursts, and let the peers' bursts rest. */
void burst_resend(struct datapath *dp);

#endif
