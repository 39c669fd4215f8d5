/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clock.h"

#include <time.h>

uint64_t clock_boot_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t clock_boot_ms(void)
{
	return clock_boot_us() / 1000u;
}

uint32_t clock_wall_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint32_t)t.tv_sec;
}
