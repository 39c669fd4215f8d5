/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/fit.h"

#define RATE_FIRST 20000
#define RATE_LEAST 1000
#define TOLERATED  0.005 /* of what was sent: a receiver that waited for a CPU loses that much */
/* Up to the first loss the rate grows a hundredfold in 0.4 s; then by a third a second. */
#define GROWTH_FIRST 1.6
#define GROWTH	     1.012
#define CUT_MOST     0.4

void fit_init(struct fit *f, const struct losses *seen, uint64_t now_ns)
{
	*f = (struct fit){.rate = RATE_FIRST, .seen = *seen, .next_ns = now_ns + FIT_STEP_NS};
}

static double share_lost(const struct losses *from, const struct losses *to)
{
	double lost = (double)(to->lost - from->lost), passed = (double)(to->passed - from->passed);

	return lost > 0 ? lost / (lost + passed) : 0;
}

void fit_step(struct fit *f, const struct losses *seen, uint64_t now_ns)
{
	double share = share_lost(&f->seen, seen);

	if (share <= TOLERATED)
		f->rate *= f->has_lost ? GROWTH : GROWTH_FIRST;
	else
		f->rate *= 1 - (share < CUT_MOST ? share : CUT_MOST);
	if (f->rate < RATE_LEAST)
		f->rate = RATE_LEAST;
	f->has_lost |= share > TOLERATED;
	f->seen = *seen;
	f->next_ns = now_ns + FIT_STEP_NS;
}
