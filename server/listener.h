/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

/* The acceptor's member of each reuseport group: control packets go up, data packets that leaked
 * past the steering go to the worker that owns them. Thread: acceptor. */

#include "crypto/bytes.h"

struct acceptor_shared;
struct event_base;
struct link_addr;
struct listener;

/* A control packet; `datagram` is valid during the call. */
typedef void (*listener_fn)(void *ctx, const struct link_addr *from, struct view datagram);

/* Read socket 0 of each of the shared groups whenever `base` says so. `slots`: who owns data. The
 * counters and clocks of `shared` are used. Returns 0 or -ENOMEM. */
struct slot_table;
__attribute__((warn_unused_result)) int listener_new(struct event_base *base,
						     struct acceptor_shared *shared,
						     const struct slot_table *slots,
						     listener_fn on_control, void *ctx,
						     struct listener **out);
/* Leaves the sockets open. Before hand_over_free. */
void listener_free(struct listener *l);

#endif
