/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/connect.h"
#include "server/ip_pool.h"

static struct ip_addr parse(const char *text)
{
	struct ip_addr a = {0};

	if (text)
		assert_true(ip_addr_parse(text, &a));
	return a;
}

static void connect_writes_ifconfig_by_topology(void **state)
{
	static const struct {
		enum topology topology;
		uint8_t bits;
		const char *addr, *peer, *expected;
	} cases[] = {
		{TOPOLOGY_SUBNET, 24, "10.8.0.2", NULL, "10.8.0.2 255.255.255.0"},
		{TOPOLOGY_SUBNET, 16, "10.8.1.2", NULL, "10.8.1.2 255.255.0.0"},
		{TOPOLOGY_SUBNET, 29, "10.8.0.2", NULL, "10.8.0.2 255.255.255.248"},
		{TOPOLOGY_SUBNET, 1, "10.8.0.2", NULL, "10.8.0.2 128.0.0.0"},
		{TOPOLOGY_NET30, 24, "10.8.0.6", "10.8.0.5", "10.8.0.6 10.8.0.5"},
		{TOPOLOGY_P2P, 24, "10.8.0.3", "10.8.0.1", "10.8.0.3 10.8.0.1"},
		{TOPOLOGY_SUBNET, 24, NULL, NULL, ""},
	};
	char text[CONNECT_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c = {.topology = cases[i].topology, .pool_bits = cases[i].bits};
		struct ip_lease l = {.addr4 = parse(cases[i].addr), .peer4 = parse(cases[i].peer)};

		connect_ifconfig_text(&c, &l, text);
		assert_string_equal(text, cases[i].expected);
	}
}

static void connect_writes_ifconfig_ipv6_with_the_servers_address(void **state)
{
	struct config c = {.ifconfig_ipv6_local = parse("fd00:8::1"), .ifconfig_ipv6_bits = 64};
	struct ip_lease l = {.addr6 = parse("fd00:8::1000")};
	char text[CONNECT_TEXT_MAX];

	(void)state;
	connect_ifconfig_ipv6_text(&c, &l, text);
	assert_string_equal(text, "fd00:8::1000/64 fd00:8::1");
	l.addr6.family = 0;
	connect_ifconfig_ipv6_text(&c, &l, text);
	assert_string_equal(text, "");
}

static void connect_has_room_for_the_longest_texts(void **state)
{
	const char *longest = "fd00:1111:2222:3333:4444:5555:6666:7777";
	struct config c = {.ifconfig_ipv6_local = parse(longest), .ifconfig_ipv6_bits = 128};
	struct ip_lease l = {.addr6 = parse(longest)};
	char text[CONNECT_TEXT_MAX];

	(void)state;
	connect_ifconfig_ipv6_text(&c, &l, text);
	assert_int_equal(strlen(text), 2 * strlen(longest) + strlen("/128 "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_writes_ifconfig_by_topology),
		cmocka_unit_test(connect_writes_ifconfig_ipv6_with_the_servers_address),
		cmocka_unit_test(connect_has_room_for_the_longest_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
