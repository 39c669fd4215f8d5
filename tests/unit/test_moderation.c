/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/moderation.h"

/* The last answer after `turns` turns of `packets` packets, `period_us` apart. */
static uint32_t after(struct moderation *m, unsigned turns, unsigned packets, uint64_t period_us)
{
	uint32_t gather_us = 0;
	for (unsigned i = 0; i < turns; i++)
		gather_us = moderation_turn(m, m->turned_ns + period_us * 1000, packets);
	return gather_us;
}

static void moderation_gathers_only_where_more_than_one_packet_is_due(void **state)
{
	(void)state;
	static const struct {
		unsigned packets;
		uint64_t period_us;
		uint32_t gather_us;
	} cases[] = {
		{1, 1000000, 0}, {1, 1000, 0},	  {1, 100, 0},	{1, 101, 0}, {2, 1000, 0},
		{64, 10000, 0},	 {1, 90, 100},	  {1, 40, 100}, {1, 1, 100}, {2, 150, 100},
		{64, 100, 100},	 {64, 6000, 100}, {0, 50, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct moderation m = {.turned_ns = 1};
		assert_int_equal(after(&m, 100, cases[i].packets, cases[i].period_us),
				 cases[i].gather_us);
	}
}

static void moderation_ends_soon_after_the_load(void **state)
{
	(void)state;
	struct moderation m = {.turned_ns = 1};
	assert_int_equal(after(&m, 100, 64, 10), MODERATION_GATHER_US); /* as loaded as can be */
	assert_int_equal(after(&m, 40, 1, 1000), 0);
}

static void moderation_begins_only_after_some_turns(void **state)
{
	(void)state;
	struct moderation m = {.turned_ns = 1};
	(void)after(&m, 10, 1, 100000);
	assert_int_equal(after(&m, 1, 2, 100), 0); /* a lone pair is no load */
}

static void moderation_takes_a_clock_that_stands_still(void **state)
{
	(void)state;
	struct moderation m = {.turned_ns = 5};
	assert_int_equal(moderation_turn(&m, 5, 64), MODERATION_GATHER_US);
	assert_int_equal(after(&m, 100, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moderation_gathers_only_where_more_than_one_packet_is_due),
		cmocka_unit_test(moderation_ends_soon_after_the_load),
		cmocka_unit_test(moderation_begins_only_after_some_turns),
		cmocka_unit_test(moderation_takes_a_clock_that_stands_still),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
