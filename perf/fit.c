/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/fit.h"

#define RATE_FIRST 20000
#define RATE_LEAST 1000
/* Of what was sent. A receiver with a small buffer loses some percent whenever it waits for a CPU,
 * long before it is busy all the time. */
#define TOLERATED 0.03
#define SMOOTHING 0.25 /* weight of the last step */
/* Up to the first loss the rate grows a hundredfold in 0.4 s; then it doubles in a second while
 * nothing is lost, and the more slowly the more is. */
#define GROWTH_FIRST 0.6
#define GROWTH	     0.03
#define CUT_MOST     0.4
/* A sender that cannot keep the rate has found its own limit; it stays near it, so that a cut is
 * felt at once. */
#define AHEAD_MOST 1.5
#define EASE	   0.8 /* a sender that only waited for a CPU does not begin anew */

void fit_init(struct fit *f, const struct losses *seen, uint64_t now_ns)
{
	*f = (struct fit){.rate = RATE_FIRST, .seen = *seen, .at_ns = now_ns};
}

static double share_lost(const struct losses *from, const struct losses *to)
{
	double lost = (double)(to->lost - from->lost), passed = (double)(to->passed - from->passed);

	return lost > 0 ? lost / (lost + passed) : 0;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double rate_of_sender(const struct fit *f, uint64_t sent, uint64_t now_ns)
{
	return (double)(sent - f->sent) * 1e9 / (double)(now_ns - f->at_ns);
}

void fit_step(struct fit *f, const struct losses *seen, uint64_t sent, uint64_t now_ns)
{
	double share = share_lost(&f->seen, seen);
	double before = f->rate, most = AHEAD_MOST * rate_of_sender(f, sent, now_ns);

	f->share = f->has_lost ? f->share + SMOOTHING * (share - f->share) : share;
	/* What the last cut has cured is not cut again. */
	double worst = f->share > share ? f->share : share,
	       excess = least(f->share, share) - TOLERATED;
	if (excess > 0)
		f->rate *= 1 - least(excess, CUT_MOST);
	else if (worst < TOLERATED)
		f->rate *= 1 + (f->has_lost ? GROWTH : GROWTH_FIRST) * (1 - worst / TOLERATED);
	if (f->rate > most)
		f->rate = most > before * EASE ? most : before * EASE;
	if (f->rate < RATE_LEAST)
		f->rate = RATE_LEAST;
	f->has_lost |= f->share > TOLERATED;
	f->seen = *seen;
	f->sent = sent;
	f->at_ns = now_ns;
}
