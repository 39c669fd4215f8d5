/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "perf/pushed.h"

static void addresses_are_found_in_every_topology(void **state)
{
	static const struct {
		const char *message, *inner, *server;
	} cases[] = {
		{"PUSH_REPLY,route-gateway 10.80.0.1,topology subnet,ifconfig 10.80.0.7 "
		 "255.255.255.0",
		 "10.80.0.7", "10.80.0.1"},
		{"PUSH_REPLY,ifconfig 10.80.1.7 255.255.0.0,peer-id 3", "10.80.1.7", "10.80.0.1"},
		/* The gateway counts, wherever it stands. */
		{"PUSH_REPLY,ifconfig 10.80.1.7 255.255.0.0,route-gateway 10.80.9.9", "10.80.1.7",
		 "10.80.9.9"},
		/* net30, p2p: the other end. */
		{"PUSH_REPLY,topology net30,ifconfig 10.80.0.6 10.80.0.5", "10.80.0.6",
		 "10.80.0.5"},
		{"PUSH_REPLY", "0.0.0.0", "0.0.0.0"},
		{"", "0.0.0.0", "0.0.0.0"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pushed p = {0};
		pushed_take(&p, cases[i].message);
		assert_int_equal(p.inner_be32, inet_addr(cases[i].inner));
		assert_int_equal(p.server_be32, inet_addr(cases[i].server));
	}
}

static void malformed_options_change_nothing(void **state)
{
	static const char *const messages[] = {
		"PUSH_REPLY,ifconfig 10.80.0.7",
		"PUSH_REPLY,ifconfig 10.80.0.7 mask",
		"PUSH_REPLY,ifconfig 10.80.0.777 255.255.255.0",
		"PUSH_REPLY,ifconfig fd80::7 fd80::1",
		"PUSH_REPLY,route-gateway dhcp",
		"PUSH_REPLY,route-gateway ,,,",
		"PUSH_REPLY,ifconfig-ipv6 fd80::7/64 fd80::1",
		"ifconfig 10.80.0.7 255.255.255.0", /* no option: the message's name */
	};
	char large[600] = "PUSH_REPLY,route-gateway 1";

	(void)state;
	struct pushed p = {0}, none = {0};
	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		pushed_take(&p, messages[i]);
	memset(large + 26, '1', sizeof(large) - 27);
	pushed_take(&p, large);
	assert_memory_equal(&p, &none, sizeof(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_found_in_every_topology),
		cmocka_unit_test(malformed_options_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
