/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

/* The two clocks of the control side. Read once a turn and passed down. */

#include <stdint.h>

/* CLOCK_BOOTTIME in milliseconds: cookie slots, timers, buckets. Any thread. */
uint64_t clock_boot_ms(void);
/* The same in microseconds, for durations. */
uint64_t clock_boot_us(void);
/* Unix seconds: wrapping, certificates, status. Any thread. */
uint32_t clock_wall_s(void);

#endif
