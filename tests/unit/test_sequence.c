/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf/sequence.h"

struct step {
	uint32_t stream;
	uint64_t seq;
	int lost;
	bool is_late;
};

static void check(const struct step *steps, unsigned count)
{
	struct sequence s = {0};

	for (unsigned i = 0; i < count; i++) {
		struct sequence_change c =
			sequence_take(&s, &(struct inner_stamp){steps[i].stream, steps[i].seq});
		assert_int_equal(c.lost, steps[i].lost);
		assert_int_equal(c.is_late, steps[i].is_late);
	}
}
#define CHECK(steps) check(steps, sizeof(steps) / sizeof((steps)[0]))

static void gaps_are_losses_until_they_are_filled(void **state)
{
	static const struct step steps[] = {
		{1, 1000, 0, false}, /* the first one begins, wherever it stands */
		{1, 1001, 0, false}, {1, 1004, 2, false}, /* 1002, 1003 */
		{1, 1003, -1, true},			  /* one was only late */
		{1, 1005, 0, false}, {1, 11005, 9999, false},
	};

	(void)state;
	CHECK(steps);
}

static void streams_do_not_mix(void **state)
{
	static const struct step steps[] = {
		{1, 0, 0, false}, {2, 500, 0, false}, {0, 9, 0, false},
		{1, 1, 0, false}, {2, 502, 1, false}, {0, 10, 0, false},
	};

	(void)state;
	CHECK(steps);
}

static void the_oldest_stream_makes_room(void **state)
{
	static const struct step steps[] = {
		{1, 5, 0, false}, {2, 5, 0, false},   {3, 5, 0, false},
		{4, 5, 0, false}, {5, 5, 0, false},   /* in the place of the first */
		{2, 7, 1, false}, {1, 100, 0, false}, /* which begins again */
	};

	(void)state;
	CHECK(steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_are_losses_until_they_are_filled),
		cmocka_unit_test(streams_do_not_mix),
		cmocka_unit_test(the_oldest_stream_makes_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
