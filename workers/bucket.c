/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/bucket.h"

#define NS_PER_S      1000000000u
#define FRACTION_BITS 32
#define BURST_MIN     65536u /* a super-packet */
#define BURSTS_PER_S  20u    /* of the default: 50 ms of the rate */

__extension__ typedef unsigned __int128 wide;

static uint64_t default_burst(uint64_t rate_bytes_s)
{
	uint64_t burst = rate_bytes_s / BURSTS_PER_S;
	return burst < BURST_MIN ? BURST_MIN : burst;
}

void bucket_init(struct bucket *b, uint64_t rate_bytes_s, uint32_t burst_bytes, uint64_t now_ns)
{
	uint64_t burst = burst_bytes != 0 ? burst_bytes : default_burst(rate_bytes_s);
	*b = (struct bucket){.full_ns = now_ns, .burst_ns = 1};
	if (rate_bytes_s == 0)
		return;
	b->byte_cost = ((uint64_t)NS_PER_S << FRACTION_BITS) / rate_bytes_s;
	uint64_t burst_ns = (uint64_t)((wide)burst * b->byte_cost >> FRACTION_BITS);
	if (burst_ns > 0)
		b->burst_ns = burst_ns;
}

bool bucket_take(struct bucket *b, uint32_t bytes, uint64_t now_ns)
{
	if (b->byte_cost == 0)
		return true;
	if (b->full_ns < now_ns) {
		b->full_ns = now_ns;
		b->full_fraction = 0;
	}
	uint64_t missing_ns = b->full_ns - now_ns;
	if (missing_ns >= b->burst_ns) {
		b->wait_ns = missing_ns - b->burst_ns + 1;
		return false;
	}
	wide cost = (wide)bytes * b->byte_cost + b->full_fraction;
	b->full_ns += (uint64_t)(cost >> FRACTION_BITS);
	b->full_fraction = (uint32_t)cost;
	b->wait_ns = 0;
	return true;
}

uint64_t bucket_wait_ns(const struct bucket *b)
{
	return b->wait_ns;
}
