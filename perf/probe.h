/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_PROBE_H
#define PERF_PROBE_H

/* Latency probes: ICMP echo requests through the tunnel, answered by whoever holds the address. */

#include "perf/member.h"
#include "perf/uplink.h"

/* Bit of a probe's stream: it counts. Those before and after the measuring do not. */
#define PROBE_MEASURED 0x80000000u

void probe_send(struct uplink *u, struct member *m, const struct client_world *w, bool is_measured,
		uint64_t now_ms);
/* An answer that arrived at arrived_ns, unix time. */
void probe_take(const struct inner_seen *seen, uint64_t arrived_ns, struct counts *counts,
		struct histogram *pings);

#endif
