/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf/fit.h"
#include "perf/pacer.h"

#define SECOND 1000000000ull

static const struct pacer_limits usual = {
	.receivers = 10,
	.burst_max = 40,
	.turn_max = 256,
	.slack_ns = PACER_SLACK_NS,
};

/* Packets of `seconds` with a look every `step_ns`. */
static unsigned run(struct pacer *p, uint64_t *now_ns, unsigned seconds, uint64_t step_ns)
{
	uint64_t end_ns = *now_ns + seconds * SECOND;
	unsigned sent = 0;

	for (; *now_ns < end_ns; *now_ns += step_ns) {
		unsigned due = pacer_due(p, *now_ns);
		pacer_spend(p, due);
		sent += due;
	}
	return sent;
}

static void a_rate_is_kept(void **state)
{
	static const double rates[] = {0.5, 1, 1000, 12345, 200000};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct pacer p;
		uint64_t now_ns = 77;
		pacer_init(&p, &usual, now_ns);
		pacer_set_rate(&p, rates[i]);
		double sent = run(&p, &now_ns, 10, 100000);
		assert_true(sent >= rates[i] * 10 * 0.999 - 1 && sent <= rates[i] * 10);
	}
}

static void no_rate_is_no_limit(void **state)
{
	struct pacer p;

	(void)state;
	pacer_init(&p, &usual, 5);
	assert_int_equal(pacer_due(&p, 5), 256);
	pacer_spend(&p, 256);
	assert_int_equal(pacer_due(&p, 5), 256);
	assert_int_equal(pacer_wait_ns(&p), 0);
	assert_int_equal(p.burst, 40);
}

static void a_stall_is_not_made_up_for(void **state)
{
	struct pacer p;
	uint64_t now_ns = 0;

	(void)state;
	pacer_init(&p, &usual, now_ns);
	pacer_set_rate(&p, 10000);
	now_ns = 60 * SECOND;
	/* 20 ms of the rate. */
	assert_int_equal(pacer_due(&p, now_ns), 200);
	pacer_spend(&p, 200);
	assert_int_equal(pacer_due(&p, now_ns), 0);
}

static void one_wakes_up_for_half_a_millisecond(void **state)
{
	struct pacer p;

	(void)state;
	pacer_init(&p, &usual, 0);
	pacer_set_rate(&p, 100000);
	assert_int_equal(pacer_due(&p, 490000), 0);
	assert_true(pacer_wait_ns(&p) > 9000 && pacer_wait_ns(&p) < 11000);
	assert_int_equal(pacer_due(&p, 501000), 50);
}

static void bursts_are_a_millisecond_of_a_receiver(void **state)
{
	static const struct {
		double rate;
		unsigned wanted, burst;
	} cases[] = {
		{5000, 0, 1},	  /* less than one packet */
		{30000, 0, 3},	  /* of 10 receivers */
		{9000000, 0, 40}, /* more than one send takes */
		{5000, 8, 8},	  /* as asked for */
		{5000, 64, 40},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pacer_limits l = usual;
		struct pacer p;
		l.burst = cases[i].wanted;
		pacer_init(&p, &l, 0);
		pacer_set_rate(&p, cases[i].rate);
		assert_int_equal(p.burst, cases[i].burst);
	}
}

/* --- the rate that fits --- */

/* A receiver that takes `capacity` packets a second and loses the rest, as it would count them. */
static double fit_to(double capacity, double sender_most, unsigned steps)
{
	struct losses seen = {1000, 5000};
	struct fit f;
	uint64_t now_ns = 0, all = 0;

	fit_init(&f, &seen, now_ns);
	for (unsigned i = 0; i < steps; i++) {
		double rate = f.rate < sender_most ? f.rate : sender_most;
		double sent = rate * FIT_STEP_NS / 1e9, took = capacity * FIT_STEP_NS / 1e9;
		all += (uint64_t)sent;
		now_ns += FIT_STEP_NS;
		assert_true(fit_is_due(&f, now_ns));
		seen.passed += (uint64_t)(sent < took ? sent : took);
		seen.lost += (uint64_t)(sent < took ? 0 : sent - took);
		fit_step(&f, &seen, all, now_ns);
		assert_false(fit_is_due(&f, now_ns));
	}
	return f.rate;
}

static void the_rate_finds_what_is_taken(void **state)
{
	static const double capacities[] = {5000, 30000, 100000, 1000000};

	(void)state;
	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		double rate = fit_to(capacities[i], 1e9, 50);
		assert_true(rate > capacities[i] * 0.9 && rate < capacities[i] * 1.15);
	}
}

static void a_sender_at_its_limit_stays_there(void **state)
{
	(void)state;
	double rate = fit_to(1e9, 200000, 300);
	assert_true(rate >= 200000 && rate <= 301000);
}

static void the_rate_never_stops(void **state)
{
	(void)state;
	assert_true(fit_to(0, 1e9, 200) >= 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_kept),
		cmocka_unit_test(no_rate_is_no_limit),
		cmocka_unit_test(a_stall_is_not_made_up_for),
		cmocka_unit_test(one_wakes_up_for_half_a_millisecond),
		cmocka_unit_test(bursts_are_a_millisecond_of_a_receiver),
		cmocka_unit_test(the_rate_finds_what_is_taken),
		cmocka_unit_test(a_sender_at_its_limit_stays_there),
		cmocka_unit_test(the_rate_never_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
