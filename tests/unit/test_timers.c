/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "workers/timers.h"

#define TICK	  TIMERS_TICK_MS
#define START	  UINT64_C(1000003)
#define HOUR_MS	  UINT64_C(3600000)
#define LEVEL1_MS (UINT64_C(256) * TICK) /* what level 0 spans */
#define LEVEL2_MS (UINT64_C(256) * 256 * TICK)
#define LEVEL3_MS (UINT64_C(256) * 256 * 256 * TICK)
#define WHEEL_MS  (LEVEL3_MS * 256)

static struct timers wheel;

static unsigned expire_all(uint64_t now_ms)
{
	unsigned n = 0;
	while (timers_expire(&wheel, now_ms))
		n++;
	return n;
}

static void expires_at_its_time_not_earlier_at_most_a_tick_later(void **state)
{
	(void)state;
	static const uint64_t delays[] = {
		0,
		1,
		TICK - 1,
		TICK,
		TICK + 1,
		2 * TICK,
		1000,
		LEVEL1_MS - 1,
		LEVEL1_MS,
		LEVEL1_MS + 1,
		LEVEL1_MS + TICK,
		2 * LEVEL1_MS,
		60000,
		LEVEL2_MS - 1,
		LEVEL2_MS,
		LEVEL2_MS + 1,
		HOUR_MS,
		LEVEL3_MS - 1,
		LEVEL3_MS,
		LEVEL3_MS + 1,
		30 * 24 * HOUR_MS,
		WHEEL_MS - 1,
		WHEEL_MS,
		3 * WHEEL_MS + 5,
	};
	for (uint64_t start = START; start < START + 3 * LEVEL1_MS; start += 4999)
		for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
			struct timer timer = {.next = NULL};
			uint64_t at = start + delays[i];
			timers_init(&wheel, start);
			timers_add(&wheel, &timer, at);
			assert_null(timers_expire(&wheel, start));
			if (at > start + 1)
				assert_null(timers_expire(&wheel, at - 1));
			assert_true(timer_is_armed(&timer));
			assert_ptr_equal(timers_expire(&wheel, at + TICK), &timer);
			assert_false(timer_is_armed(&timer));
			assert_null(timers_expire(&wheel, at + TICK));
			assert_int_equal(wheel.armed, 0);
		}
}

static void removed_timer_does_not_expire(void **state)
{
	(void)state;
	struct timer a = {.next = NULL}, b = {.next = NULL}, c = {.next = NULL};

	timers_init(&wheel, START);
	timers_remove(&wheel, &a); /* not armed: nothing happens */
	assert_int_equal(wheel.armed, 0);
	timers_add(&wheel, &a, START + 500);
	timers_add(&wheel, &b, START + 500);
	timers_add(&wheel, &c, START + 500);
	assert_int_equal(wheel.armed, 3);
	timers_remove(&wheel, &b);
	timers_remove(&wheel, &b);
	assert_int_equal(wheel.armed, 2);
	assert_ptr_equal(timers_expire(&wheel, START + 1000), &a);
	timers_remove(&wheel, &c); /* due already, but not taken */
	assert_null(timers_expire(&wheel, START + 1000));
	assert_int_equal(wheel.armed, 0);
	assert_true(timers_next_ms(&wheel) == UINT64_MAX);
}

static void removal_of_last_timer_lets_worker_sleep_for_ever(void **state)
{
	(void)state;
	static const uint64_t delays[] = {10, LEVEL1_MS + 9, LEVEL2_MS + 9, LEVEL3_MS + 9};

	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		struct timer a = {.next = NULL}, b = {.next = NULL};
		timers_init(&wheel, START);
		assert_true(timers_next_ms(&wheel) == UINT64_MAX);
		timers_add(&wheel, &a, START + delays[i]);
		timers_add(&wheel, &b, START + delays[i]);
		timers_remove(&wheel, &a);
		assert_true(timers_next_ms(&wheel) != UINT64_MAX);
		timers_remove(&wheel, &b);
		assert_true(timers_next_ms(&wheel) == UINT64_MAX);
	}
}

static void rearming_moves_a_timer(void **state)
{
	(void)state;
	struct timer a = {.next = NULL};

	timers_init(&wheel, START);
	timers_add(&wheel, &a, START + 500);
	timers_add(&wheel, &a, START + 90000);
	assert_int_equal(wheel.armed, 1);
	assert_null(timers_expire(&wheel, START + 80000));
	timers_add(&wheel, &a, START + 80100);
	assert_ptr_equal(timers_expire(&wheel, START + 80100 + TICK), &a);
	assert_null(timers_expire(&wheel, START + 200000));
}

static void rearming_in_the_past_comes_next_tick(void **state)
{
	(void)state;
	struct timer a = {.next = NULL};

	timers_init(&wheel, START);
	timers_add(&wheel, &a, START);
	uint64_t now = START + 10 * TICK;
	assert_ptr_equal(timers_expire(&wheel, now), &a);
	timers_add(&wheel, &a, 5);
	assert_null(timers_expire(&wheel, now));
	assert_true(timers_next_ms(&wheel) > now && timers_next_ms(&wheel) <= now + TICK);
	assert_ptr_equal(timers_expire(&wheel, now + TICK), &a);
}

static void clock_that_stands_still_or_falls_expires_nothing_new(void **state)
{
	(void)state;
	struct timer a = {.next = NULL};

	timers_init(&wheel, START);
	timers_add(&wheel, &a, START + 300);
	assert_null(timers_expire(&wheel, START));
	assert_null(timers_expire(&wheel, START - 500));
	assert_null(timers_expire(&wheel, START + 200));
	assert_ptr_equal(timers_expire(&wheel, START + 300 + TICK), &a);
}

static void timer_beyond_the_end_of_time_stays_armed(void **state)
{
	(void)state;
	struct timer a = {.next = NULL};

	timers_init(&wheel, START);
	timers_add(&wheel, &a, UINT64_MAX);
	for (int i = 1; i < 6; i++)
		assert_null(timers_expire(&wheel, START + WHEEL_MS * (uint64_t)i));
	assert_true(timer_is_armed(&a));
	timers_remove(&wheel, &a);
	assert_true(timers_next_ms(&wheel) == UINT64_MAX);
}

/* What a worker with nothing to do but one timer goes through. */
static unsigned wakeups_until(struct timer *timer, uint64_t now_ms)
{
	unsigned n = 0;
	while (timer_is_armed(timer)) {
		uint64_t next = timers_next_ms(&wheel);
		assert_true(next > now_ms);
		now_ms = next;
		n++;
		(void)timers_expire(&wheel, now_ms);
	}
	return n;
}

static void idle_worker_wakes_at_most_once_a_level(void **state)
{
	(void)state;
	static const struct {
		uint64_t delay_ms;
		unsigned most;
	} rows[] = {
		{10000, 1},   {LEVEL1_MS - TICK, 1}, {60000, 2},	 {LEVEL2_MS - TICK, 2},
		{HOUR_MS, 2}, {5 * HOUR_MS, 3},	     {400 * HOUR_MS, 4}, {2 * WHEEL_MS, 12},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint64_t start = START; start < START + LEVEL1_MS; start += 997) {
			struct timer timer = {.next = NULL};
			timers_init(&wheel, start);
			timers_add(&wheel, &timer, start + rows[i].delay_ms);
			assert_true(wakeups_until(&timer, start) <= rows[i].most);
		}
}

/* Against a plain list: many timers, random steps, moves and removals. */
#define MODEL_TIMERS 300
static struct timer model[MODEL_TIMERS];
static uint64_t model_at[MODEL_TIMERS]; /* 0: not armed */
static uint64_t seed;

static uint64_t next_random(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static uint64_t earliest(void)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < MODEL_TIMERS; i++)
		if (model_at[i] != 0 && model_at[i] < least)
			least = model_at[i];
	return least;
}

static void change_some(uint64_t now_ms)
{
	static const uint64_t spans[] = {2 * TICK,  LEVEL1_MS,	   5 * LEVEL1_MS,
					 LEVEL2_MS, 3 * LEVEL2_MS, 2 * LEVEL3_MS};

	for (uint64_t n = next_random(6); n > 0; n--) {
		unsigned i = (unsigned)next_random(MODEL_TIMERS);
		if (next_random(4) == 0) {
			timers_remove(&wheel, &model[i]);
			model_at[i] = 0;
		} else {
			model_at[i] = now_ms + 1 + next_random(spans[next_random(6)]);
			timers_add(&wheel, &model[i], model_at[i]);
		}
	}
}

static void take_due(uint64_t now_ms)
{
	struct timer *timer;
	while ((timer = timers_expire(&wheel, now_ms)) != NULL) {
		size_t i = (size_t)(timer - model);
		assert_true(model_at[i] != 0 && model_at[i] <= now_ms);
		model_at[i] = 0;
	}
	/* Whatever is left is due less than a tick ago, or later. */
	assert_true(earliest() / TICK + 1 > now_ms / TICK);
	uint64_t next = timers_next_ms(&wheel);
	assert_true(next > now_ms);
	assert_int_equal(next == UINT64_MAX, earliest() == UINT64_MAX);
	assert_true(next / TICK <= (earliest() - 1) / TICK + 1);
}

static void wheel_agrees_with_plain_list(void **state)
{
	(void)state;
	static const uint64_t steps[] = {
		1, TICK, 700, 3 * LEVEL1_MS, LEVEL2_MS + 77, LEVEL3_MS / 3};

	for (seed = 1; seed < 4; seed++) {
		uint64_t now = START, keep = seed;
		memset(model, 0, sizeof(model));
		memset(model_at, 0, sizeof(model_at));
		timers_init(&wheel, now);
		for (int round = 0; round < 6000; round++) {
			change_some(now);
			if (next_random(3) == 0 && timers_next_ms(&wheel) != UINT64_MAX)
				now = timers_next_ms(&wheel);
			else
				now += next_random(steps[next_random(6)]);
			take_due(now);
		}
		now += 3 * LEVEL3_MS;
		take_due(now);
		assert_int_equal(wheel.armed, 0);
		seed = keep;
	}
}

static void all_of_one_slot_expire_together(void **state)
{
	(void)state;
	memset(model, 0, sizeof(model));
	timers_init(&wheel, START);
	for (unsigned i = 0; i < MODEL_TIMERS; i++)
		timers_add(&wheel, &model[i], START + 70000);
	assert_int_equal(expire_all(START + 69999), 0);
	assert_int_equal(wheel.armed, MODEL_TIMERS);
	assert_int_equal(expire_all(START + 70000 + TICK), MODEL_TIMERS);
}

static void undrained_wheel_says_so(void **state)
{
	(void)state;
	struct timer a = {.next = NULL}, b = {.next = NULL};

	timers_init(&wheel, START);
	timers_add(&wheel, &a, START + 100);
	timers_add(&wheel, &b, START + 100);
	assert_ptr_equal(timers_expire(&wheel, START + 1000), &a);
	assert_true(timers_next_ms(&wheel) <= START + 1000);
	assert_ptr_equal(timers_expire(&wheel, START + 1000), &b);
	assert_true(timers_next_ms(&wheel) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expires_at_its_time_not_earlier_at_most_a_tick_later),
		cmocka_unit_test(removed_timer_does_not_expire),
		cmocka_unit_test(removal_of_last_timer_lets_worker_sleep_for_ever),
		cmocka_unit_test(rearming_moves_a_timer),
		cmocka_unit_test(rearming_in_the_past_comes_next_tick),
		cmocka_unit_test(clock_that_stands_still_or_falls_expires_nothing_new),
		cmocka_unit_test(timer_beyond_the_end_of_time_stays_armed),
		cmocka_unit_test(idle_worker_wakes_at_most_once_a_level),
		cmocka_unit_test(wheel_agrees_with_plain_list),
		cmocka_unit_test(all_of_one_slot_expire_together),
		cmocka_unit_test(undrained_wheel_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
