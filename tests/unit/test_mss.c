/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/mss.h"

static void mss_follows_the_arithmetic_of_the_protocol(void **state)
{
	(void)state;
	static const struct {
		enum mssfix_mode mode;
		uint32_t value;
		bool is_v2, is_ipv6;
		uint16_t mss4, mss6;
	} cases[] = {
		{MSSFIX_OFF, 1492, true, false, 0, 0},
		{MSSFIX_MTU, 1492, true, false, 1400, 1380}, /* the example of wire.md */
		{MSSFIX_MTU, 1492, false, false, 1403, 1383},
		{MSSFIX_MTU, 1492, true, true, 1380, 1360},
		{MSSFIX_PLAIN, 1450, true, false, 1386, 1366},
		{MSSFIX_PLAIN, 1450, true, true, 1386, 1366},
		{MSSFIX_FIXED, 1420, true, false, 1380, 1360},
		{MSSFIX_FIXED, 9000, false, true, 8960, 8940},
		{MSSFIX_FIXED, 103, true, false, 0, 0}, /* 63 is below what anybody can mean */
		{MSSFIX_FIXED, 104, true, false, 64, 0},
		{MSSFIX_FIXED, 65575, true, false, 65535, 65515},
		{MSSFIX_FIXED, 65576, true, false, 0, 65516}, /* more than the option can say */
		{MSSFIX_MTU, 0, true, true, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mss_limits m =
			mss_limits(cases[i].mode, cases[i].value, cases[i].is_v2, cases[i].is_ipv6);
		assert_int_equal(m.mss4, cases[i].mss4);
		assert_int_equal(m.mss6, cases[i].mss6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mss_follows_the_arithmetic_of_the_protocol),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
