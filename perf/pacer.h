/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_PACER_H
#define PERF_PACER_H

/* A rate in packets a second, as a credit that grows with time. What could not be sent in time is
 * given up after a while, so that a stall is not followed by a flood. */

#include <stdbool.h>
#include <stdint.h>

#define PACER_SLACK_NS	   20000000u /* of a rate that is to be kept */
#define PACER_SLACK_FIT_NS 2000000u  /* of one that looks for what a queue takes */

/* Plain value, one owner. */
struct pacer {
	double rate;   /* packets a second; 0: no limit */
	double credit; /* packets */
	uint64_t at_ns;
	uint32_t slack_ns;
};

void pacer_init(struct pacer *p, double rate, uint32_t slack_ns, uint64_t now_ns);
/* From now on; the credit stays. */
void pacer_set_rate(struct pacer *p, double rate);
/* Packets that may go now, at most `most`. */
unsigned pacer_due(struct pacer *p, uint64_t now_ns, unsigned most);
/* They went. */
void pacer_spend(struct pacer *p, unsigned packets);
/* How long until `packets` may go; 0: now. */
uint64_t pacer_wait_ns(const struct pacer *p, unsigned packets);

#endif
