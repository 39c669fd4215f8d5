/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/replay.h"

struct step {
	uint32_t id;
	enum drop expected;
	uint64_t at_ms;
};

#define OK    DROP_NONE
#define OLD   DROP_REPLAY_OLD
#define TWICE DROP_REPLAY_DUPLICATE

static void run(struct replay *r, const struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum drop got = replay_commit(r, steps[i].id, steps[i].at_ms);
		if (got != steps[i].expected)
			fail_msg("step %zu, id %u: %s, expected %s", i, steps[i].id, drop_name(got),
				 drop_name(steps[i].expected));
	}
}
#define RUN(r, steps) run(r, steps, sizeof(steps) / sizeof((steps)[0]))

static void replay_window_of_64_accepts_each_id_once(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{0, OLD, 0},
		{1, OK, 0},
		{1, TWICE, 0},
		{3, OK, 0},
		{2, OK, 0},
		{2, TWICE, 0},
		{66, OK, 0},
		{2, OLD, 0}, /* exactly 64 behind */
		{3, TWICE, 0},
		{4, OK, 0}, /* 62 behind */
		{65, OK, 0},
		{1000, OK, 0},
		{936, OLD, 0},
		{937, OK, 0}, /* 63 behind */
		{937, TWICE, 0},
		{999, OK, 0},
		{0, OLD, 0},
		{UINT32_MAX, OK, 0},
		{UINT32_MAX, TWICE, 0},
		{UINT32_MAX - 63, OK, 0},
		{UINT32_MAX - 64, OLD, 0},
		{1, OLD, 0},
	};
	struct replay r;
	replay_init(&r, 64, 0, NULL);
	RUN(&r, steps);
}

static void replay_accepts_below_a_first_id_that_is_not_one(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{500, OK, 0}, {437, OK, 0}, {436, OLD, 0}, {437, TWICE, 0}, {500, TWICE, 0},
	};
	struct replay r;
	replay_init(&r, 64, 0, NULL);
	RUN(&r, steps);
}

static void replay_check_changes_nothing(void **state)
{
	(void)state;
	struct replay r, before;
	replay_init(&r, 64, 15, NULL);
	assert_int_equal(replay_commit(&r, 10, 1000), DROP_NONE);
	before = r;
	for (uint32_t id = 0; id < 200; id++)
		(void)replay_check(&r, id);
	assert_memory_equal(&r, &before, sizeof(r));
}

static void replay_rejects_second_copy_in_batch(void **state)
{
	(void)state;
	struct replay r;
	replay_init(&r, 64, 15, NULL);
	assert_int_equal(replay_check(&r, 5), DROP_NONE);
	assert_int_equal(replay_check(&r, 5), DROP_NONE);
	assert_int_equal(replay_commit(&r, 5, 0), DROP_NONE);
	assert_int_equal(replay_commit(&r, 5, 0), DROP_REPLAY_DUPLICATE);
}

static void replay_window_of_zero_is_strictly_sequential(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{0, OLD, 0}, {7, OK, 0}, {7, TWICE, 0},	       {6, OLD, 0}, {9, OLD, 0},
		{8, OK, 0},  {9, OK, 0}, {UINT32_MAX, OLD, 0}, {8, OLD, 0}, {10, OK, 0},
	};
	struct replay r;
	replay_init(&r, 0, 0, NULL);
	RUN(&r, steps);
	replay_init(&r, 0, 0, NULL);
	static const struct step end[] = {
		{UINT32_MAX, OK, 0}, {UINT32_MAX, TWICE, 0}, {0, OLD, 0}, {1, OLD, 0}};
	RUN(&r, end);
}

/* Against a model that remembers everything, with jumps of all sizes. */
static void check_against_model(uint32_t window)
{
	static uint64_t bits[REPLAY_WINDOW_MAX / 64];
	static uint8_t seen[65536];
	struct replay r;
	uint32_t highest = 0, rng = 12345;
	memset(bits, 0xff, sizeof(bits)); /* replay_init clears */
	memset(seen, 0, sizeof(seen));
	replay_init(&r, window, 0, bits);
	for (unsigned i = 0; i < 20000; i++) {
		rng = rng * 1664525 + 1013904223;
		uint32_t spread = rng >> 30 ? 2 * window + 2 : 8;
		int64_t id = (int64_t)highest + (rng >> 8) % spread - spread / 2;
		if (id < 1 || id >= (int64_t)sizeof(seen))
			continue;
		bool is_old = (int64_t)highest - id >= window;
		enum drop expected = is_old ? OLD : seen[id] ? TWICE : OK;
		assert_int_equal(replay_check(&r, (uint32_t)id), expected);
		assert_int_equal(replay_commit(&r, (uint32_t)id, 0), expected);
		seen[id] = 1;
		if (expected == OK && id > highest)
			highest = (uint32_t)id;
	}
}

static void replay_agrees_with_a_model_for_all_window_sizes(void **state)
{
	(void)state;
	static const uint32_t windows[] = {1, 2, 16, 63, 64, 65, 100, 128, 1000, REPLAY_WINDOW_MAX};
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		check_against_model(windows[i]);
}

/* Reaped every 5 s; refused once a higher id came more than 15 s before a reap. */
static void replay_time_rule_refuses_what_a_higher_id_overtook_long_ago(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{10, OK, 100000},  {20, OK, 101000},	{19, OK, 104999}, {18, OK, 115000},
		{17, OK, 119999},  /* 20 came 18.999 s ago, and no reap since */
		{16, OLD, 120000}, /* the reap 19 s after 20 */
		{21, OK, 120000},  {20, TWICE, 120000}, {30, OK, 121000}, {29, OK, 135000},
		{22, OK, 139999},  {23, OLD, 140000},	{31, OK, 140000},
	};
	struct replay r;
	replay_init(&r, 64, 15, NULL);
	RUN(&r, steps);
}

static void replay_time_rule_sees_a_long_silence(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{10, OK, 1000},	  {8, OK, 1000},      {9, OLD, 600000},
		{11, OK, 600000}, {12, OK, 86400000}, {10, TWICE, 86400000},
	};
	struct replay r;
	replay_init(&r, 64, 15, NULL);
	RUN(&r, steps);
}

static void replay_time_rule_can_be_off(void **state)
{
	(void)state;
	static const struct step steps[] = {{10, OK, 1000}, {9, OK, 86400000}};
	struct replay r;
	replay_init(&r, 64, 0, NULL);
	RUN(&r, steps);
}

/* The delay after which an overtaken id is refused: never before time_s, and not long after. */
static void replay_time_rule_keeps_its_time_for_all_lengths(void **state)
{
	(void)state;
	static const uint32_t times[] = {1, 4, 5, 6, 10, 14, 15, 16, 60, 599, 600};
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct replay r;
		uint64_t start = 1000, ms = (uint64_t)times[i] * 1000;
		replay_init(&r, 64, times[i], NULL);
		assert_int_equal(replay_commit(&r, 1000, start), OK);
		uint32_t id = 999;
		uint64_t t = start;
		while (replay_commit(&r, id, t) == OK && id > 940) {
			t += ms / 20 + 250;
			id--;
		}
		assert_true(id > 940);
		uint64_t slack = ms / 3 > 5000 ? ms / 3 : 5000;
		assert_in_range(t - start, ms, ms + slack + ms / 20 + 250);
	}
}

static void replay_may_be_moved(void **state)
{
	(void)state;
	struct replay a, b;
	replay_init(&a, 64, 15, NULL);
	assert_int_equal(replay_commit(&a, 7, 0), OK);
	memcpy(&b, &a, sizeof(b));
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(replay_commit(&b, 7, 0), TWICE);
	assert_int_equal(replay_commit(&b, 6, 0), OK);
}

static void send_counter_starts_at_one_and_ends(void **state)
{
	(void)state;
	struct send_counter c = {0};
	uint32_t id = 99;
	assert_true(send_counter_next(&c, &id));
	assert_int_equal(id, 1);
	c.last = PACKET_ID_RENEGOTIATE - 1;
	assert_false(send_counter_is_nearly_used(&c));
	assert_true(send_counter_next(&c, &id));
	assert_true(send_counter_is_nearly_used(&c));
	c.last = UINT32_MAX - 1;
	assert_true(send_counter_next(&c, &id));
	assert_int_equal(id, UINT32_MAX);
	assert_false(send_counter_next(&c, &id));
	assert_false(send_counter_next(&c, &id));
	assert_int_equal(c.last, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_window_of_64_accepts_each_id_once),
		cmocka_unit_test(replay_accepts_below_a_first_id_that_is_not_one),
		cmocka_unit_test(replay_check_changes_nothing),
		cmocka_unit_test(replay_rejects_second_copy_in_batch),
		cmocka_unit_test(replay_window_of_zero_is_strictly_sequential),
		cmocka_unit_test(replay_agrees_with_a_model_for_all_window_sizes),
		cmocka_unit_test(replay_time_rule_refuses_what_a_higher_id_overtook_long_ago),
		cmocka_unit_test(replay_time_rule_sees_a_long_silence),
		cmocka_unit_test(replay_time_rule_can_be_off),
		cmocka_unit_test(replay_time_rule_keeps_its_time_for_all_lengths),
		cmocka_unit_test(replay_may_be_moved),
		cmocka_unit_test(send_counter_starts_at_one_and_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
