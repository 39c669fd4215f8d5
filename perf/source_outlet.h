/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SOURCE_OUTLET_H
#define PERF_SOURCE_OUTLET_H

/* How source's packets get to the tun device: as datagrams of sockets, or as TCP super-packets of a
 * packet socket. One thread each. */

#include <stdint.h>

#include "perf/inner.h"
#include "perf/source_options.h"

#define OUTLET_BURSTS_MAX  64  /* in one call */
#define OUTLET_PACKETS_MAX 256 /* of all of them */

/* One address that is sent to. Owned by one thread. */
struct source_target {
	struct inner_flow *flows; /* options.flows of them */
	struct inner_stamp stamp; /* of the next packet */
};

struct source_burst {
	struct source_target *target;
	unsigned packets; /* 1..outlet_burst_max */
};

struct outlet;

/* Open what sends. thread: its number, for ports of its own. Returns 0 or -errno, with a line on
 * stderr. */
__attribute__((warn_unused_result)) int outlet_new(const struct source_options *o, unsigned thread,
						   struct outlet **out);
void outlet_free(struct outlet *t);
/* Most packets of one burst. */
unsigned outlet_burst_max(const struct outlet *t);
/* Send the bursts, all in flow number `flow`. Returns how many of them, from the first on, the
 * kernel took; the others' numbers are used up all the same. */
unsigned outlet_send(struct outlet *t, const struct source_burst *bursts, unsigned count,
		     unsigned flow);

#endif
