/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H

/* Latencies: counts in buckets that are at most 1/32 wide, so that a percentile is right within 3 %
 * however many values there are. */

#include <stdint.h>

#define HISTOGRAM_STEPS	  32 /* buckets of each doubling */
#define HISTOGRAM_BUCKETS (HISTOGRAM_STEPS * 60)

/* Zeroed is empty. One owner. */
struct histogram {
	uint64_t count, max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* `value`: any unit. */
void histogram_add(struct histogram *h, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The smallest bucket edge that `fraction` (0..1) of the values do not exceed; 0 without values. */
uint64_t histogram_quantile(const struct histogram *h, double fraction);

#endif
