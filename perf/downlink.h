/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_DOWNLINK_H
#define PERF_DOWNLINK_H

/* What a thread receives: control packets go to the client, data packets are opened, counted by
 * their stamps, and forgotten; answers to echo requests give latencies. */

#include <stdint.h>

#include "perf/member.h"

struct downlink;

/* pings: gets the round trips in us of requests that carry PROBE_MEASURED. */
__attribute__((warn_unused_result)) int
downlink_new(const struct client_world *w, struct histogram *pings, struct downlink **out);
void downlink_free(struct downlink *d);
/* Take what waits in the member's socket, or a good part of it. Returns whether control packets
 * were among it: client_advance is due. */
bool downlink_receive(struct downlink *d, struct member *m, uint64_t now_ms);

#endif
