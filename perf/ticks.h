/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_TICKS_H
#define PERF_TICKS_H

/* perf/: programs that load a server and measure. This module: the clocks they read. */

#include <stdint.h>
#include <time.h>

static inline uint64_t ticks_ns_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What the control engine wants as `now`. */
static inline uint64_t ticks_ms(void)
{
	return ticks_ns_of(CLOCK_BOOTTIME) / 1000000u;
}

/* For pacing and latencies. */
static inline uint64_t ticks_ns(void)
{
	return ticks_ns_of(CLOCK_MONOTONIC);
}

/* Unix time: certificates, wrapping, and what the kernel stamps received datagrams with. */
static inline uint64_t ticks_wall_ns(void)
{
	return ticks_ns_of(CLOCK_REALTIME);
}

#endif
