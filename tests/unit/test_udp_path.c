/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tests/support/netns.h"
#include "workers/udp.h"
#include "workers/udp_path.h"

/* "192.0.2.7", "::ffff:192.0.2.7" (stays mapped) or "2001:db8::7". */
static union sockaddr_any endpoint(const char *text, uint16_t port)
{
	union sockaddr_any a;
	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.in4.sin_addr) == 1) {
		a.in4.sin_family = AF_INET;
		a.in4.sin_port = htons(port);
		return a;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = htons(port);
	return a;
}

static int look_up(const char *remote, const char *local, const char *bound, uint32_t *mtu)
{
	struct link_addr l = {.remote = endpoint(remote, 40000)};
	union sockaddr_any b = endpoint(bound, 1194);
	assert_int_equal(inet_pton(AF_INET6, local, &l.local), 1);
	return udp_path_mtu(&l, &b, mtu);
}

/* out 192.0.2.1/24, 2001:db8::1/64, MTU 1450; routes with an MTU of their own, and one by source.
 */
static bool make_network(void)
{
	return netns_run(
		       "ip link add out type veth peer name far && ip link set far up && "
		       "ip addr add 192.0.2.1/24 dev out && ip addr add 192.0.2.9/24 dev out && "
		       "ip addr add 2001:db8::1/64 dev out nodad && ip link set out mtu 1450 up") &&
	       netns_run("ip route add 198.51.100.0/24 via 192.0.2.2 mtu 1300 && "
			 "ip route add 198.51.100.5 via 192.0.2.2 mtu 500 && "
			 "ip route add 2001:db8:1::/48 via 2001:db8::2 mtu 1350") &&
	       netns_run("ip rule add from 192.0.2.9 lookup 7 && "
			 "ip route add 198.51.100.0/24 via 192.0.2.2 dev out mtu 1200 table 7");
}

static void the_route_says_its_mtu(void **state)
{
	static const struct {
		const char *remote, *local, *bound;
		uint32_t mtu;
	} rows[] = {
		{"192.0.2.7", "::", "0.0.0.0", 1450},
		{"198.51.100.7", "::", "0.0.0.0", 1300},
		{"198.51.100.7", "::ffff:192.0.2.1", "0.0.0.0", 1300},
		{"198.51.100.7", "::ffff:192.0.2.9", "0.0.0.0", 1200},
		{"198.51.100.7", "::", "192.0.2.9", 1200},
		{"::ffff:198.51.100.7", "::ffff:192.0.2.9", "::", 1200},
		{"::ffff:198.51.100.7", "::", "::", 1300},
		{"2001:db8::7", "2001:db8::1", "::", 1450},
		{"2001:db8:1::7", "::", "2001:db8::1", 1350},
		{"127.0.0.1", "::", "0.0.0.0", 65535}, /* lo has 65536 */
		/* What no path may have is still said; who learns it sets the bounds. */
		{"198.51.100.5", "::", "0.0.0.0", 500},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t mtu = 0;
		int error = look_up(rows[i].remote, rows[i].local, rows[i].bound, &mtu);
		if (error != 0 || mtu != rows[i].mtu)
			fail_msg("%s from %s: %d, %u", rows[i].remote, rows[i].local, error, mtu);
	}
}

static void without_a_route_nothing_is_said(void **state)
{
	static const struct {
		const char *remote, *local;
		int error;
	} rows[] = {
		{"203.0.113.1", "::", -ENETUNREACH},
		{"2001:db8:9::1", "::", -ENETUNREACH},
		{"192.0.2.7", "::ffff:203.0.113.9", -EADDRNOTAVAIL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t mtu = 77;
		assert_int_equal(look_up(rows[i].remote, rows[i].local, "::", &mtu), rows[i].error);
		assert_int_equal(mtu, 77);
	}
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);
	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void discovery_is_set_on_every_socket(void **state)
{
	static const struct {
		enum mtu_disc disc;
		int value; /* in both families */
	} rows[] = {
		{MTU_DISC_YES, IP_PMTUDISC_DO},	    {MTU_DISC_NO, IP_PMTUDISC_DONT},
		{MTU_DISC_MAYBE, IP_PMTUDISC_WANT}, {MTU_DISC_SYSTEM, IP_PMTUDISC_WANT},
		{MTU_DISC_YES, IP_PMTUDISC_DO},	    {MTU_DISC_SYSTEM, IP_PMTUDISC_DO},
	};
	static const enum listen_family families[] = {LISTEN_IPV4, LISTEN_IPV6_DUAL};
	(void)state;
	for (size_t f = 0; f < 2; f++) {
		struct listen_spec spec = {.family = families[f]};
		struct udp_group g;
		char why[256];
		assert_int_equal(udp_group_open(&spec, 2, 0, 0, &g, why, sizeof(why)), 0);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			assert_int_equal(udp_path_discover(&g, rows[i].disc), 0);
			for (unsigned s = 0; s < g.count; s++) {
				assert_int_equal(option(g.fds[s], IPPROTO_IP, IP_MTU_DISCOVER),
						 rows[i].value);
				if (families[f] != LISTEN_IPV4)
					assert_int_equal(
						option(g.fds[s], IPPROTO_IPV6, IPV6_MTU_DISCOVER),
						rows[i].value);
			}
		}
		udp_group_close(&g);
	}
}

int main(void)
{
	const char *why = netns_enter();
	if (why)
		return netns_skip(why);
	if (!make_network())
		return netns_skip("no veth devices");

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_route_says_its_mtu),
		cmocka_unit_test(without_a_route_nothing_is_said),
		cmocka_unit_test(discovery_is_set_on_every_socket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
