/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/fit.h"

#define RATE_FIRST 10000
#define RATE_LEAST 1000
/* Until the first loss the rate doubles in 30 ms; then it grows by a quarter a second, which is
 * what a loss takes back in two or three steps. */
#define GROWTH_FIRST 1.26
#define GROWTH	     1.0022
#define CUT_FIRST    0.7
#define CUT	     0.93

void fit_init(struct fit *f, uint64_t losses, uint64_t now_ns)
{
	*f = (struct fit){.rate = RATE_FIRST, .losses = losses, .next_ns = now_ns + FIT_STEP_NS};
}

void fit_step(struct fit *f, uint64_t losses, uint64_t now_ns)
{
	bool is_loss = losses != f->losses;

	if (is_loss)
		f->rate *= f->has_lost ? CUT : CUT_FIRST;
	else
		f->rate *= f->has_lost ? GROWTH : GROWTH_FIRST;
	if (f->rate < RATE_LEAST)
		f->rate = RATE_LEAST;
	f->has_lost |= is_loss;
	f->losses = losses;
	f->next_ns = now_ns + FIT_STEP_NS;
}
