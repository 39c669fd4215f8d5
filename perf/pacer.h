/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_PACER_H
#define PERF_PACER_H

/* A rate in packets a second, as a credit that grows with time, and how it is dealt out: how many
 * packets in a row one receiver gets. What could not be sent in time is given up after a while, so
 * that a stall is not followed by a flood. */

#include <stdbool.h>
#include <stdint.h>

#define PACER_SLACK_NS	   20000000u /* of a rate that is to be kept */
#define PACER_SLACK_FIT_NS 2000000u  /* of one that looks for what a queue takes */

struct pacer_limits {
	unsigned receivers;
	unsigned burst;	    /* packets in a row; 0: about a millisecond's worth of a receiver */
	unsigned burst_max; /* of both */
	unsigned turn_max;  /* packets due at once */
	uint32_t slack_ns;
};

/* One owner. Zeroed: nothing is ever due. */
struct pacer {
	struct pacer_limits limits;
	double rate;   /* packets a second; 0: no limit */
	double credit; /* packets */
	uint64_t at_ns;
	unsigned burst; /* packets in a row */
	unsigned wake;	/* so many must be due, to be worth waking up for */
};

/* Without a limit of the rate. */
void pacer_init(struct pacer *p, const struct pacer_limits *limits, uint64_t now_ns);
/* From now on; the credit stays. 0: no limit. */
void pacer_set_rate(struct pacer *p, double rate);
/* Packets that are to go now; 0 if they are not worth it yet. */
unsigned pacer_due(struct pacer *p, uint64_t now_ns);
/* They went. */
void pacer_spend(struct pacer *p, unsigned packets);
/* How long until something is due; 0: now. */
uint64_t pacer_wait_ns(const struct pacer *p);

#endif
