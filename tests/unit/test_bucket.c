/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "workers/bucket.h"

#define MS    1000000ull
#define S     1000000000ull
#define START (5 * S)

static void without_a_rate_everything_passes(void **state)
{
	struct bucket b;
	(void)state;
	bucket_init(&b, 0, 1, START);
	for (int i = 0; i < 1000; i++)
		assert_true(bucket_take(&b, UINT32_MAX, START));
	assert_true(bucket_take(&b, 1, 0)); /* nor does a clock that stands behind matter */
	assert_int_equal(bucket_wait_ns(&b), 0);
}

/* 1000 bytes a second, 3000 of them at once. */
static void follows_the_table(void **state)
{
	static const struct {
		uint64_t at_ms;
		uint32_t bytes;
		bool is_allowed;
		uint64_t wait_ms; /* rounded down */
	} steps[] = {
		{0, 1000, true, 0},	  {0, 1999, true, 0},	    {0, 500, true, 0}, /* 1 left */
		{0, 1, false, 499},	  {499, 1, false, 0},	    {500, 1, true, 0},
		{501, 0, true, 0},	  {501, 1, true, 0},	    {501, 1, false, 0},
		{1501, 999, true, 0},	  {1501, 1, true, 0},	    {1501, 1, false, 0},
		{100000, 3000, true, 0},  {100000, 1, false, 0}, /* never more than the burst */
		{100001, 10000, true, 0}, {100001, 1, false, 9999}, {110001, 1, true, 0},
	};
	struct bucket b;
	(void)state;
	bucket_init(&b, 1000, 3000, START);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		bool is_allowed = bucket_take(&b, steps[i].bytes, START + steps[i].at_ms * MS);
		if (is_allowed != steps[i].is_allowed ||
		    bucket_wait_ns(&b) / MS != steps[i].wait_ms)
			fail_msg("step %zu: %d, wait %llu ns", i, is_allowed,
				 (unsigned long long)bucket_wait_ns(&b));
		assert_int_equal(bucket_wait_ns(&b) > 0, !is_allowed);
	}
}

static void a_refusal_takes_nothing_and_the_wait_is_exact(void **state)
{
	struct bucket b;
	(void)state;
	bucket_init(&b, 1000000, 2000, START);
	assert_true(bucket_take(&b, 5000, START)); /* 3000 below nothing: 3 ms */
	for (int i = 0; i < 10; i++)
		assert_false(bucket_take(&b, 60000, START));
	uint64_t wait = bucket_wait_ns(&b);
	assert_int_equal(wait, 3 * MS + 1);
	assert_false(bucket_take(&b, 1, START + wait - 1));
	assert_int_equal(bucket_wait_ns(&b), 1);
	assert_true(bucket_take(&b, 1, START + wait));
}

/* Ask every time it says; what passes in ten seconds is the rate, within a burst. */
static uint64_t passed_in_10_s(uint64_t rate, uint32_t packet)
{
	struct bucket b;
	uint64_t now = START, bytes = 0;
	bucket_init(&b, rate, 65536, START);
	while (now < START + 10 * S) {
		if (bucket_take(&b, packet, now))
			bytes += packet;
		else
			now += bucket_wait_ns(&b);
	}
	return bytes;
}

static void what_passes_is_the_rate(void **state)
{
	static const struct {
		uint64_t rate;
		uint32_t packet;
	} cases[] = {
		{1000, 1}, {1000, 1500},      {125000, 64},	   {3333333, 1499},
		{7, 1},	   {12500000, 65536}, {1250000000, 65536}, {50000000000, 65536},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t due = cases[i].rate * 10, slack = 65536 + cases[i].packet;
		uint64_t passed = passed_in_10_s(cases[i].rate, cases[i].packet);
		if (passed + due / 100000 + 1 < due || passed > due + due / 100000 + slack)
			fail_msg("rate %llu: %llu passed in 10 s",
				 (unsigned long long)cases[i].rate, (unsigned long long)passed);
	}
}

/* At 400 Gb/s a byte costs 0.02 ns: small packets must not be free, nor cost a nanosecond each. */
static void parts_of_a_nanosecond_add_up(void **state)
{
	struct bucket b;
	uint64_t count = 0;
	(void)state;
	bucket_init(&b, 50000000000, 1 << 20, START);
	while (bucket_take(&b, 1, START))
		count++;
	assert_in_range(count, (1 << 20) - 60, (1 << 20) + 60);
}

static void no_pause_and_no_size_overflows(void **state)
{
	static const uint64_t rates[] = {1, 1000, 50000000000};
	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bucket b;
		bucket_init(&b, rates[i], 2048, 0);
		assert_true(bucket_take(&b, 2047, 0));
		assert_true(bucket_take(&b, 2048, UINT64_MAX / 4)); /* 146 years */
		assert_false(bucket_take(&b, 1, UINT64_MAX / 4));
		bucket_init(&b, rates[i], UINT32_MAX, 1);
		assert_true(bucket_take(&b, UINT32_MAX, 1));
		assert_false(bucket_take(&b, 1, 0)); /* a clock that steps back gives nothing */
		assert_true(bucket_take(&b, UINT32_MAX, UINT64_MAX / 4));
		assert_true(bucket_wait_ns(&b) == 0);
	}
}

static void default_burst_is_50_ms_and_a_super_packet(void **state)
{
	static const struct {
		uint64_t rate, burst;
	} cases[] = {{1000, 65536}, {1310720, 65536}, {1310760, 65538}, {12500000, 625000}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bucket b;
		bucket_init(&b, cases[i].rate, 0, START);
		assert_true(bucket_take(&b, (uint32_t)cases[i].burst - 1, START));
		assert_true(bucket_take(&b, 2, START)); /* one is left, or a part of it */
		assert_false(bucket_take(&b, 1, START));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_rate_everything_passes),
		cmocka_unit_test(follows_the_table),
		cmocka_unit_test(a_refusal_takes_nothing_and_the_wait_is_exact),
		cmocka_unit_test(what_passes_is_the_rate),
		cmocka_unit_test(parts_of_a_nanosecond_add_up),
		cmocka_unit_test(no_pause_and_no_size_overflows),
		cmocka_unit_test(default_burst_is_50_ms_and_a_super_packet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
