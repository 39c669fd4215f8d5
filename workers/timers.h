/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_TIMERS_H
#define WORKERS_TIMERS_H

/* Lazy timers of one thread: a packet stores a time, the wheel looks at it on expiry and re-arms;
 * no packet touches the wheel. Embedded nodes, no allocation, O(1) add and remove. */

#include <stdbool.h>
#include <stdint.h>

struct timer {
	struct timer *next, *prev; /* NULL when not armed */
	uint64_t at_ms;
};

#define TIMERS_SLOTS   256
#define TIMERS_LEVELS  4 /* 256^4 ticks */
#define TIMERS_TICK_MS 64

struct timers {
	struct timer slots[TIMERS_LEVELS][TIMERS_SLOTS];     /* list heads */
	uint64_t occupied[TIMERS_LEVELS][TIMERS_SLOTS / 64]; /* bit: the slot's list is not empty */
	struct timer due;				     /* list head: expired, not taken yet */
	uint64_t tick;					     /* next tick to look at */
	uint32_t armed; /* number of armed timers, those of `due` included */
};

/* An empty wheel. now_ms: the same clock as all times that follow, CLOCK_BOOTTIME. */
void timers_init(struct timers *t, uint64_t now_ms);
/* Arm (or re-arm) for at_ms, never earlier than that; up to a tick later. A time that has passed
 * comes with the next tick, so that re-arming in a loop over timers_expire ends. */
void timers_add(struct timers *t, struct timer *timer, uint64_t at_ms);
/* A timer that is not armed is left as it is. */
void timers_remove(struct timers *t, struct timer *timer);
bool timer_is_armed(const struct timer *timer);
/* A timer that is due (and now unarmed), or NULL if none is left at now_ms. */
struct timer *timers_expire(struct timers *t, uint64_t now_ms);
/* When the next timer may be due: a lower bound, later than the now_ms of the last call of
 * timers_expire that returned NULL; UINT64_MAX if none is armed. Reads a few words, no list. */
uint64_t timers_next_ms(const struct timers *t);

#endif
