/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_MODERATION_H
#define WORKERS_MODERATION_H

/* How long a worker lets packets come together before it looks at them: under load a wake-up costs
 * more than most packets, so a short wait pays, as the interrupt moderation of a network card does.
 * Below the load at which it pays nothing waits. */

#include <stdint.h>

#define MODERATION_GATHER_US 100 /* short beside a packet's way through any network */

struct moderation {
	uint64_t turned_ns; /* end of the last turn */
	uint32_t load;	    /* packets that one gathering wait may expect: mean, in 1/256 */
};

/* A turn took `packets` packets, at `now_ns` (any monotonic clock). Returns how long the next one
 * may gather: MODERATION_GATHER_US if that lets it expect more than one packet, else 0. Thread:
 * owner. */
uint32_t moderation_turn(struct moderation *m, uint64_t now_ns, unsigned packets);

#endif
