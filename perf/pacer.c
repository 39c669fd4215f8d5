/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/pacer.h"

#define NS_PER_S 1e9

void pacer_init(struct pacer *p, double rate, uint32_t slack_ns, uint64_t now_ns)
{
	*p = (struct pacer){.rate = rate, .at_ns = now_ns, .slack_ns = slack_ns};
}

void pacer_set_rate(struct pacer *p, double rate)
{
	p->rate = rate;
}

unsigned pacer_due(struct pacer *p, uint64_t now_ns, unsigned most)
{
	if (p->rate <= 0)
		return most;
	double cap = p->rate * p->slack_ns / NS_PER_S;
	p->credit += p->rate * (double)(now_ns - p->at_ns) / NS_PER_S;
	p->at_ns = now_ns;
	/* A slow rate must still be able to save up for its one packet. */
	if (cap < 2)
		cap = 2;
	if (p->credit > cap)
		p->credit = cap;
	if (p->credit < 1)
		return 0;
	return p->credit < most ? (unsigned)p->credit : most;
}

void pacer_spend(struct pacer *p, unsigned packets)
{
	if (p->rate > 0)
		p->credit -= packets;
}

uint64_t pacer_wait_ns(const struct pacer *p, unsigned packets)
{
	if (p->rate <= 0 || p->credit >= packets)
		return 0;
	return (uint64_t)((packets - p->credit) * NS_PER_S / p->rate);
}
