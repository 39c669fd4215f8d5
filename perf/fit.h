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
	uint64_t next_ns;
	bool has_lost;
};

/* seen: the counters' values now. */
void fit_init(struct fit *f, const struct losses *seen, uint64_t now_ns);
/* Is it time to look at the losses? */
static inline bool fit_is_due(const struct fit *f, uint64_t now_ns)
{
	return now_ns >= f->next_ns;
}
/* Take what the counters say now, and change the rate. */
void fit_step(struct fit *f, const struct losses *seen, uint64_t now_ns);

#endif
