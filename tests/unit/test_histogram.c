/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "perf/histogram.h"

static struct histogram *fresh(void)
{
	struct histogram *h = test_calloc(1, sizeof(*h));

	assert_non_null(h);
	return h;
}

static void nothing_has_no_percentile(void **state)
{
	struct histogram *h = fresh();

	(void)state;
	assert_int_equal(histogram_quantile(h, 0.5), 0);
	test_free(h);
}

static void small_values_are_exact(void **state)
{
	struct histogram *h = fresh();

	(void)state;
	for (uint64_t v = 1; v <= 60; v++)
		histogram_add(h, v);
	assert_int_equal(histogram_quantile(h, 0), 1);
	assert_int_equal(histogram_quantile(h, 0.5), 30);
	assert_int_equal(histogram_quantile(h, 1), 60);
	test_free(h);
}

static void percentiles_are_right_within_3_percent(void **state)
{
	static const double quantiles[] = {0.01, 0.5, 0.9, 0.99, 0.999};
	struct histogram *h = fresh();
	const uint64_t n = 1000000;

	(void)state;
	for (uint64_t v = 1; v <= n; v++)
		histogram_add(h, v);
	for (unsigned i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double want = quantiles[i] * (double)n,
		       got = (double)histogram_quantile(h, quantiles[i]);
		assert_true(got >= want && got <= want * 1.0313 + 1);
	}
	assert_int_equal(histogram_quantile(h, 1), n);
	test_free(h);
}

static void the_largest_value_has_a_place(void **state)
{
	struct histogram *h = fresh();

	(void)state;
	histogram_add(h, 0);
	histogram_add(h, UINT64_MAX);
	assert_int_equal(histogram_quantile(h, 0.5), 0);
	assert_int_equal(histogram_quantile(h, 1), UINT64_MAX);
	test_free(h);
}

static void merged_is_as_if_added(void **state)
{
	struct histogram *a = fresh(), *b = fresh(), *both = fresh();

	(void)state;
	for (uint64_t v = 0; v < 5000; v++) {
		histogram_add(v % 3 ? a : b, v * v);
		histogram_add(both, v * v);
	}
	histogram_merge(a, b);
	assert_memory_equal(a, both, sizeof(*a));
	test_free(a);
	test_free(b);
	test_free(both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_no_percentile),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(percentiles_are_right_within_3_percent),
		cmocka_unit_test(the_largest_value_has_a_place),
		cmocka_unit_test(merged_is_as_if_added),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
