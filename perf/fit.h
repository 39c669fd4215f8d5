/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_FIT_H
#define PERF_FIT_H

/* The rate at which a receiver that cannot answer just keeps up: raised while its buffers lose next
 * to nothing, lowered when they do. */

#include <stdbool.h>
#include <stdint.h>

#include "perf/losses.h"

#define FIT_STEP_NS 40000000u

/* Plain value, one owner. */
struct fit {
	double rate; /* packets a second */
	struct losses seen;
	double share; /* of losses, smoothed */
	uint64_t sent;
	uint64_t at_ns;
	bool has_lost;
};

/* seen: the counters' values now. */
void fit_init(struct fit *f, const struct losses *seen, uint64_t now_ns);
/* Is it time to look at the losses? */
static inline bool fit_is_due(const struct fit *f, uint64_t now_ns)
{
	return now_ns >= f->at_ns + FIT_STEP_NS;
}
/* Take what the counters say now, and change the rate. sent: packets since fit_init. */
void fit_step(struct fit *f, const struct losses *seen, uint64_t sent, uint64_t now_ns);

#endif
