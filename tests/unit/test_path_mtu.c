/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "workers/path_mtu.h"

#define NOW 1000000u

static const struct path_peer peer4 = {.mss = {1400, 1380}, .is_v2 = true};
static const struct path_peer peer6 = {.mss = {1380, 1360}, .is_v2 = true, .is_ipv6 = true};

static void nothing_is_known_at_first(void **state)
{
	struct path_mtu m;
	(void)state;
	path_mtu_init(&m, &peer4);
	assert_int_equal(m.mtu, 0);
	assert_int_equal(m.datagram_max, 65507);
	assert_int_equal(m.mss.mss4, 1400);
	assert_int_equal(m.mss.mss6, 1380);
	assert_false(path_mtu_expire(&m, &peer4, UINT64_MAX - 1));
}

static void packets_only_get_smaller(void **state)
{
	static const struct {
		struct path_peer peer;
		uint32_t said, mtu, datagram_max;
		uint16_t mss4, mss6;
	} cases[] = {
		{{{1400, 1380}, true, false}, 1500, 1500, 1472, 1400, 1380},
		{{{1400, 1380}, true, false}, 1492, 1492, 1464, 1400, 1380},
		{{{1400, 1380}, true, false}, 1491, 1491, 1463, 1399, 1379},
		{{{1400, 1380}, true, false}, 1300, 1300, 1272, 1208, 1188},
		{{{1403, 1383}, false, false}, 1300, 1300, 1272, 1211, 1191},
		{{{1380, 1360}, true, true}, 1300, 1300, 1252, 1188, 1168},
		{{{1400, 1380}, true, false}, 9000, 9000, 8972, 1400, 1380},
		{{{1000, 0}, true, false}, 1300, 1300, 1272, 1000, 0},
		/* Not clamped by configuration: left alone. */
		{{{0, 0}, true, false}, 1300, 1300, 1272, 0, 0},
		/* Bounds. */
		{{{1400, 1380}, true, false}, 576, 576, 548, 484, 464},
		{{{1400, 1380}, true, false}, 575, 576, 548, 484, 464},
		{{{1400, 1380}, true, false}, 1, 576, 548, 484, 464},
		{{{1380, 1360}, true, true}, 1279, 1280, 1232, 1168, 1148},
		{{{1380, 1360}, true, true}, 68, 1280, 1232, 1168, 1148},
		{{{1400, 1380}, true, false}, 65535, 65535, 65507, 1400, 1380},
		{{{1400, 1380}, true, false}, UINT32_MAX, 65535, 65507, 1400, 1380},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct path_mtu m;
		path_mtu_init(&m, &cases[i].peer);
		path_mtu_learn(&m, &cases[i].peer, cases[i].said, NOW);
		assert_int_equal(m.mtu, cases[i].mtu);
		assert_int_equal(m.datagram_max, cases[i].datagram_max);
		assert_int_equal(m.mss.mss4, cases[i].mss4);
		assert_int_equal(m.mss.mss6, cases[i].mss6);
	}
}

static void the_newest_counts_and_may_be_larger(void **state)
{
	struct path_mtu m;
	(void)state;
	path_mtu_init(&m, &peer6);
	path_mtu_learn(&m, &peer6, 1300, NOW);
	path_mtu_learn(&m, &peer6, 1500, NOW + 1);
	assert_int_equal(m.datagram_max, 1452);
	assert_int_equal(m.mss.mss4, 1380);
	path_mtu_learn(&m, &peer6, 1300, NOW + 2);
	path_mtu_learn(&m, &peer6, 0, NOW + 3);
	assert_int_equal(m.mtu, 0);
	assert_int_equal(m.datagram_max, 65507);
	assert_int_equal(m.mss.mss6, 1360);
	assert_false(path_mtu_expire(&m, &peer6, UINT64_MAX - 1));
}

static void ten_minutes_later_it_is_forgotten(void **state)
{
	struct path_mtu m;
	(void)state;
	path_mtu_init(&m, &peer4);
	path_mtu_learn(&m, &peer4, 1300, NOW);
	assert_false(path_mtu_expire(&m, &peer4, NOW + 599999));
	assert_int_equal(m.mss.mss4, 1208);
	/* Renewed. */
	path_mtu_learn(&m, &peer4, 1300, NOW + 100000);
	assert_false(path_mtu_expire(&m, &peer4, NOW + 699999));
	assert_true(path_mtu_expire(&m, &peer4, NOW + 700000));
	assert_int_equal(m.mtu, 0);
	assert_int_equal(m.datagram_max, 65507);
	assert_int_equal(m.mss.mss4, 1400);
	assert_false(path_mtu_expire(&m, &peer4, NOW + 800000)); /* once */
}

static void it_is_asked_once_in_ten_seconds(void **state)
{
	struct path_mtu m;
	(void)state;
	path_mtu_init(&m, &peer4);
	assert_true(path_mtu_may_ask(&m, NOW));
	assert_false(path_mtu_may_ask(&m, NOW));
	assert_false(path_mtu_may_ask(&m, NOW + 9999));
	assert_true(path_mtu_may_ask(&m, NOW + 10000));
	path_mtu_learn(&m, &peer4, 1300, NOW + 10001);
	assert_false(path_mtu_may_ask(&m, NOW + 19999)); /* an answer does not change that */
	assert_true(path_mtu_may_ask(&m, NOW + 20000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first),
		cmocka_unit_test(packets_only_get_smaller),
		cmocka_unit_test(the_newest_counts_and_may_be_larger),
		cmocka_unit_test(ten_minutes_later_it_is_forgotten),
		cmocka_unit_test(it_is_asked_once_in_ten_seconds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
