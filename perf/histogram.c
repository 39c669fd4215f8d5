/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/histogram.h"

#include <assert.h>

#define STEP_BITS 5
static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "a doubling has that many buckets");

/* Values below two doublings' steps have buckets of their own; above, the leading bits name it. */
static unsigned bucket_of(uint64_t v)
{
	if (v < 2u * HISTOGRAM_STEPS)
		return (unsigned)v;
	unsigned shift = 63u - (unsigned)__builtin_clzll(v) - STEP_BITS;
	return shift * HISTOGRAM_STEPS + (unsigned)(v >> shift);
}

static uint64_t last_of(unsigned bucket)
{
	if (bucket < 2 * HISTOGRAM_STEPS)
		return bucket;
	unsigned shift = bucket / HISTOGRAM_STEPS - 1;
	uint64_t lead = bucket - shift * HISTOGRAM_STEPS;
	return ((lead + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->buckets[bucket_of(value)]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t histogram_quantile(const struct histogram *h, double fraction)
{
	double wanted = fraction * (double)h->count;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && h->count; i++) {
		seen += h->buckets[i];
		if (seen && (double)seen >= wanted)
			return last_of(i) < h->max ? last_of(i) : h->max;
	}
	return h->max;
}
