/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/support/netns.h"
#include "tun/netlink.h"

/* v0 <-> v1, both in the namespace of the test; v0 is what the module configures. */
struct fixture {
	struct netlink *netlink;
	int ifindex;
};
static int set_up(void **state)
{
	static struct fixture f;

	*state = &f;
	if (!netns_run("ip link add v0 type veth peer name v1 && ip link set v1 up"))
		return -1;
	f.ifindex = (int)if_nametoindex("v0");
	return netlink_new(&f.netlink);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	netlink_free(f->netlink);
	f->netlink = NULL;
	return netns_run("ip link del v0") ? 0 : -1;
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a = {.family = 0};
	if (text)
		assert_true(ip_addr_parse(text, &a));
	return a;
}

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;
	assert_true(ip_prefix_parse(text, &p));
	return p;
}

static int link_up(struct fixture *f)
{
	return netlink_link_up(f->netlink, f->ifindex, 0, 0);
}

static int addr_add(struct fixture *f, const char *local, uint8_t bits, const char *peer)
{
	struct ip_addr l = addr(local), p = addr(peer);
	return netlink_addr_add(f->netlink, f->ifindex, &l, bits, &p);
}

static int addr_del(struct fixture *f, const char *local, uint8_t bits, const char *peer)
{
	struct ip_addr l = addr(local), p = addr(peer);
	return netlink_addr_del(f->netlink, f->ifindex, &l, bits, &p);
}

static int route_add(struct fixture *f, const char *net, const char *gateway, uint32_t metric,
		     bool *added)
{
	struct ip_prefix p = prefix(net);
	struct ip_addr g = addr(gateway);
	return netlink_route_add(f->netlink, f->ifindex, &p, &g, metric, added);
}

static int route_del(struct fixture *f, const char *net, const char *gateway, uint32_t metric)
{
	struct ip_prefix p = prefix(net);
	struct ip_addr g = addr(gateway);
	return netlink_route_del(f->netlink, f->ifindex, &p, &g, metric);
}

static void link_comes_up_with_mtu_and_queue(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(netlink_link_up(f->netlink, f->ifindex, 1380, 777), 0);
	assert_true(netns_output_has("ip link show v0", ",UP"));
	assert_true(netns_output_has("ip link show v0", "mtu 1380 "));
	assert_true(netns_output_has("ip link show v0", "qlen 777"));
	/* 0 leaves both as they are. */
	assert_int_equal(link_up(f), 0);
	assert_true(netns_output_has("ip link show v0", "mtu 1380 "));
	assert_true(netns_output_has("ip link show v0", "qlen 777"));
}

static void impossible_links_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(netlink_link_up(f->netlink, 9999, 1500, 0), -ENODEV);
	assert_int_equal(netlink_link_up(f->netlink, f->ifindex, 20, 0), -EINVAL);
}

static void addresses_come_and_go(void **state)
{
	static const struct {
		const char *local;
		uint8_t bits;
		const char *peer, *shown;
	} rows[] = {
		{"10.8.0.1", 24, NULL, "inet 10.8.0.1/24 "},
		{"10.8.0.1", 32, "10.8.0.2", "inet 10.8.0.1 peer 10.8.0.2/32 "},
		{"fd00::1", 64, NULL, "inet6 fd00::1/64 scope global nodad"},
		{"fd00::1", 128, "fd00::2", "inet6 fd00::1 peer fd00::2/128 scope global nodad"},
	};
	struct fixture *f = *state;

	assert_int_equal(link_up(f), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(addr_add(f, rows[i].local, rows[i].bits, rows[i].peer), 0);
		assert_true(netns_output_has("ip addr show dev v0", rows[i].shown));
		/* There already: fine. */
		assert_int_equal(addr_add(f, rows[i].local, rows[i].bits, rows[i].peer), 0);
		assert_int_equal(addr_del(f, rows[i].local, rows[i].bits, rows[i].peer), 0);
		assert_false(netns_output_has("ip addr show dev v0", rows[i].local));
		assert_int_equal(addr_del(f, rows[i].local, rows[i].bits, rows[i].peer),
				 -EADDRNOTAVAIL);
	}
}

static void addresses_of_no_device_are_refused(void **state)
{
	struct fixture *f = *state;

	f->ifindex = 9999;
	assert_int_equal(addr_add(f, "10.8.0.1", 24, NULL), -ENODEV);
	assert_int_equal(addr_add(f, "fd00::1", 64, NULL), -ENODEV);
}

static void routes_come_and_go(void **state)
{
	static const struct {
		const char *net, *gateway;
		uint32_t metric;
		const char *show, *shown;
	} rows[] = {
		{"192.0.2.0/24", NULL, 0, "ip route show dev v0", "192.0.2.0/24 scope link"},
		{"192.0.2.77/24", NULL, 0, "ip route show dev v0", "192.0.2.0/24 scope link"},
		{"192.0.2.0/24", "10.8.0.9", 0, "ip route show dev v0",
		 "192.0.2.0/24 via 10.8.0.9"},
		{"192.0.2.7/32", "10.8.0.9", 300, "ip route show dev v0",
		 "192.0.2.7 via 10.8.0.9 metric 300"},
		{"0.0.0.0/1", "10.8.0.9", 0, "ip route show dev v0", "0.0.0.0/1 via 10.8.0.9"},
		{"2001:db8::/32", NULL, 0, "ip -6 route show dev v0", "2001:db8::/32 metric 1024"},
		{"2001:db8::/32", "fd00::9", 200, "ip -6 route show dev v0",
		 "2001:db8::/32 via fd00::9 metric 200"},
	};
	struct fixture *f = *state;

	assert_int_equal(link_up(f), 0);
	assert_int_equal(addr_add(f, "10.8.0.1", 24, NULL), 0);
	assert_int_equal(addr_add(f, "fd00::1", 64, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool added = false;
		assert_int_equal(route_add(f, rows[i].net, rows[i].gateway, rows[i].metric, &added),
				 0);
		assert_true(added);
		assert_true(netns_output_has(rows[i].show, rows[i].shown));
		/* A second time it is there, but not ours. */
		assert_int_equal(route_add(f, rows[i].net, rows[i].gateway, rows[i].metric, &added),
				 0);
		assert_false(added);
		assert_int_equal(route_del(f, rows[i].net, rows[i].gateway, rows[i].metric), 0);
		assert_false(netns_output_has(rows[i].show, rows[i].shown));
		assert_int_equal(route_del(f, rows[i].net, rows[i].gateway, rows[i].metric),
				 -ESRCH);
	}
}

static void unreachable_gateway_is_refused(void **state)
{
	struct fixture *f = *state;
	bool added = true;

	assert_int_equal(link_up(f), 0);
	assert_int_equal(addr_add(f, "10.8.0.1", 24, NULL), 0);
	assert_int_equal(route_add(f, "192.0.2.0/24", "172.16.0.1", 0, &added), -ENETUNREACH);
	assert_int_equal(route_add(f, "2001:db8::/32", "2001:db9::1", 0, &added), -EHOSTUNREACH);
	assert_true(added); /* untouched on failure */
	f->ifindex = 9999;
	assert_int_equal(route_add(f, "192.0.2.0/24", NULL, 0, &added), -ENODEV);
}

static void default_gateway_is_the_one_of_lowest_metric(void **state)
{
	struct fixture *f = *state;
	struct ip_addr gateway = {.family = 99}, want4 = addr("10.8.0.254"),
		       want6 = addr("fd00::fe");
	int ifindex = 99;

	assert_int_equal(link_up(f), 0);
	assert_int_equal(addr_add(f, "10.8.0.1", 24, NULL), 0);
	assert_int_equal(addr_add(f, "fd00::1", 64, NULL), 0);
	assert_int_equal(netlink_default_gateway(f->netlink, 4, &gateway, &ifindex), -ENOENT);
	assert_int_equal(netlink_default_gateway(f->netlink, 6, &gateway, &ifindex), -ENOENT);
	assert_int_equal(gateway.family, 99);
	assert_true(netns_run("ip route add 192.0.2.0/24 via 10.8.0.3 && "
			      "ip route add 0.0.0.0/1 via 10.8.0.3 && "
			      "ip route add default via 10.8.0.4 table 77 && "
			      "ip route add unreachable default metric 9 && "
			      "ip route add default via 10.8.0.5 metric 500 && "
			      "ip route add default via 10.8.0.254 metric 100 && "
			      "ip route add default via 10.8.0.6 metric 200 && "
			      "ip -6 route add default via fd00::3 metric 500 && "
			      "ip -6 route add default via fd00::fe metric 100"));
	assert_int_equal(netlink_default_gateway(f->netlink, 4, &gateway, &ifindex), 0);
	assert_true(ip_addr_equal(&gateway, &want4));
	assert_int_equal(ifindex, f->ifindex);
	assert_int_equal(netlink_default_gateway(f->netlink, 6, &gateway, &ifindex), 0);
	assert_true(ip_addr_equal(&gateway, &want6));
	assert_int_equal(ifindex, f->ifindex);
	/* The socket is as before: requests go on. */
	assert_int_equal(addr_add(f, "10.9.0.1", 24, NULL), 0);
	netns_run("ip route del unreachable default metric 9; ip route flush table 77");
}

static void default_route_without_gateway_gives_none(void **state)
{
	struct fixture *f = *state;
	struct ip_addr gateway;
	int ifindex;

	assert_int_equal(link_up(f), 0);
	assert_true(netns_run("ip route add default dev v0"));
	assert_int_equal(netlink_default_gateway(f->netlink, 4, &gateway, &ifindex), -ENOENT);
}

static void missing_capability_is_reported(void **state)
{
	struct fixture *f = *state;
	int status;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
		struct __user_cap_data_struct none[2] = {{0}};
		if (syscall(SYS_capset, &head, none) != 0)
			_exit(3);
		/* The permission of the process that opened the socket counts, too: open another.
		 */
		if (netlink_new(&f->netlink) != 0)
			_exit(1);
		int error = link_up(f);
		netlink_free(f->netlink);
		_exit(error == -EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const char *why = netns_enter();
	if (!why && !netns_run("ip link add v0 type veth peer name v1 && ip link del v0"))
		why = "no veth devices here";
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		TEST(link_comes_up_with_mtu_and_queue),
		TEST(impossible_links_are_refused),
		TEST(addresses_come_and_go),
		TEST(addresses_of_no_device_are_refused),
		TEST(routes_come_and_go),
		TEST(unreachable_gateway_is_refused),
		TEST(default_gateway_is_the_one_of_lowest_metric),
		TEST(default_route_without_gateway_gives_none),
		TEST(missing_capability_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
