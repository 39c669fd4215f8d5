/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/pacer.h"

#define NS_PER_S 1e9
#define WAKE_S	 0.0005 /* a paced thread saves up for so long */
#define BURST_S	 0.001	/* what a client's own stack would hand over in one go */

static unsigned clamp(double v, unsigned least, unsigned most)
{
	if (v < least)
		return least;
	return v < most ? (unsigned)v : most;
}

static void deal(struct pacer *p)
{
	const struct pacer_limits *l = &p->limits;
	double each = l->receivers ? p->rate / l->receivers : 0;

	if (l->burst)
		p->burst = clamp(l->burst, 1, l->burst_max);
	else
		p->burst = p->rate > 0 ? clamp(each * BURST_S, 1, l->burst_max) : l->burst_max;
	p->wake = clamp(p->rate * WAKE_S, 1, l->turn_max / 2);
}

void pacer_init(struct pacer *p, const struct pacer_limits *limits, uint64_t now_ns)
{
	*p = (struct pacer){.limits = *limits, .at_ns = now_ns};
	deal(p);
}

void pacer_set_rate(struct pacer *p, double rate)
{
	if (rate == p->rate)
		return;
	p->rate = rate;
	deal(p);
}

unsigned pacer_due(struct pacer *p, uint64_t now_ns)
{
	if (p->rate <= 0)
		return p->limits.turn_max;
	/* A slow rate must still be able to save up for its one packet. */
	double cap = p->rate * p->limits.slack_ns / NS_PER_S;
	if (cap < p->wake + 1)
		cap = p->wake + 1;
	p->credit += p->rate * (double)(now_ns - p->at_ns) / NS_PER_S;
	p->at_ns = now_ns;
	if (p->credit > cap)
		p->credit = cap;
	if (p->credit < p->wake)
		return 0;
	return clamp(p->credit, 0, p->limits.turn_max);
}

void pacer_spend(struct pacer *p, unsigned packets)
{
	if (p->rate > 0)
		p->credit -= packets;
}

uint64_t pacer_wait_ns(const struct pacer *p)
{
	if (p->rate <= 0 || p->credit >= p->wake)
		return 0;
	return (uint64_t)((p->wake - p->credit) * NS_PER_S / p->rate);
}
