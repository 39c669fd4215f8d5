/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/log.h"
#include "server/device.h"
#include "tests/support/netns.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;
	assert_true(ip_addr_parse(text, &a));
	return a;
}

static struct route_spec route(const char *net, enum route_gateway kind, const char *gateway)
{
	struct route_spec r = {.kind = kind};
	assert_true(ip_prefix_parse(net, &r.net));
	if (gateway != NULL)
		r.gateway = addr(gateway);
	return r;
}

static struct config subnet(void)
{
	struct config c = {
		.dev = "tun",
		.workers = 2,
		.tun_mtu = 1400,
		.topology = TOPOLOGY_SUBNET,
		.ifconfig_bits = 24,
		.ifconfig_ipv6_bits = 64,
	};
	c.ifconfig_local = addr("10.8.0.1");
	c.ifconfig_ipv6_local = addr("fd00:8::1");
	return c;
}

static void assert_output(const char *command, const char *text)
{
	if (!netns_output_has(command, text))
		fail_msg("`%s` does not say \"%s\"", command, text);
}

static void assert_no_output(const char *command, const char *text)
{
	if (netns_output_has(command, text))
		fail_msg("`%s` says \"%s\"", command, text);
}

static struct device open_device(const struct config *c)
{
	struct device d;
	char why[256] = "";
	int err = device_open(c, &d, why, sizeof(why));
	if (err != 0)
		fail_msg("%s (%d)", why, err);
	return d;
}

static void subnet_has_addresses_mtu_and_goes_away(void **state)
{
	(void)state;
	struct config c = subnet();
	struct device d = open_device(&c);
	assert_string_equal(d.tun.name, "tun0");
	assert_int_equal(d.tun.queue_count, 2);
	assert_output("ip link show tun0", "mtu 1400");
	assert_output("ip link show tun0", "qlen 1000");
	assert_output("ip link show tun0", "UP");
	assert_output("ip addr show tun0", "inet 10.8.0.1/24 ");
	assert_output("ip addr show tun0", "inet6 fd00:8::1/64 ");
	device_close(&d);
	assert_no_output("ip -br link", "tun0");
	device_close(&d); /* a second time is nothing */
}

static void net30_is_a_point_to_point_pair(void **state)
{
	(void)state;
	struct config c = subnet();
	c.topology = TOPOLOGY_NET30;
	c.ifconfig_remote = addr("10.8.0.2");
	c.txqueuelen = 77;
	const struct route_spec routes[] = {route("10.8.0.0/24", ROUTE_GATEWAY_VPN, NULL)};
	c.routes = routes;
	c.route_count = 1;
	struct device d = open_device(&c);
	assert_output("ip addr show tun0", "inet 10.8.0.1 peer 10.8.0.2/32");
	assert_output("ip route", "10.8.0.0/24 via 10.8.0.2 dev tun0");
	assert_output("ip link show tun0", "qlen 77");
	device_close(&d);
}

static void routes_go_where_they_say(void **state)
{
	(void)state;
	struct config c = subnet();
	assert_true(netns_run("ip link add out type veth peer name far && ip link set far up && "
			      "ip addr add 192.0.2.1/24 dev out && "
			      "ip link set out up && ip route add default via 192.0.2.254"));
	const struct route_spec routes[] = {
		route("10.20.0.0/16", ROUTE_GATEWAY_VPN, NULL),
		route("10.21.0.0/16", ROUTE_GATEWAY_ADDR, "10.8.0.9"),
		route("10.22.0.0/16", ROUTE_GATEWAY_NET, NULL),
		route("10.23.0.0/16", ROUTE_GATEWAY_ADDR, "192.0.2.9"),
		route("fd00:20::/48", ROUTE_GATEWAY_VPN, NULL),
		route("10.24.0.0/16", ROUTE_GATEWAY_ADDR, "203.0.113.1"), /* cannot be reached */
		route("fd00:21::/48", ROUTE_GATEWAY_NET, NULL),		  /* no default route */
		route("10.8.0.0/24", ROUTE_GATEWAY_VPN, NULL),		  /* is there */
	};
	c.routes = routes;
	c.route_count = sizeof(routes) / sizeof(routes[0]);
	struct device d = open_device(&c);
	assert_output("ip route", "10.20.0.0/16 dev tun0");
	assert_output("ip route", "10.21.0.0/16 via 10.8.0.9 dev tun0");
	assert_output("ip route", "10.22.0.0/16 via 192.0.2.254 dev out");
	assert_output("ip route", "10.23.0.0/16 via 192.0.2.9 dev out");
	assert_output("ip -6 route", "fd00:20::/48 dev tun0");
	assert_no_output("ip route", "10.24.0.0");
	assert_int_equal(d.route_count, 5);
	device_close(&d);
	assert_no_output("ip route", "10.2");
	assert_output("ip route", "default via 192.0.2.254");
	assert_true(netns_run("ip link del out"));
}

static void a_device_made_before_is_left_as_it_was(void **state)
{
	(void)state;
	struct config c = subnet();
	const struct route_spec routes[] = {route("10.20.0.0/16", ROUTE_GATEWAY_VPN, NULL)};
	c.dev = "made0";
	c.routes = routes;
	c.route_count = 1;
	assert_true(netns_run("ip tuntap add dev made0 mode tun multi_queue"));
	struct device d = open_device(&c);
	assert_output("ip addr show made0", "inet 10.8.0.1/24");
	device_close(&d);
	assert_output("ip -br link", "made0");
	assert_no_output("ip addr show made0", "inet 10.8.0.1");
	assert_no_output("ip route show table all", "10.20.0.0");
	assert_true(netns_run("ip link del made0"));
}

static void what_cannot_be_set_leaves_nothing(void **state)
{
	(void)state;
	struct config c = subnet();
	struct device d;
	char why[256] = "";
	c.tun_mtu = 10; /* less than the kernel takes */
	assert_int_not_equal(device_open(&c, &d, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "MTU of tun0"));
	assert_no_output("ip -br link", "tun0");
	c = subnet();
	c.dev = "lo";
	assert_int_not_equal(device_open(&c, &d, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "lo"));
}

int main(void)
{
	const char *why = netns_enter();
	if (why != NULL || access("/dev/net/tun", R_OK | W_OK) != 0)
		return netns_skip(why != NULL ? why : "no /dev/net/tun");
	log_set_verb(0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subnet_has_addresses_mtu_and_goes_away),
		cmocka_unit_test(net30_is_a_point_to_point_pair),
		cmocka_unit_test(routes_go_where_they_say),
		cmocka_unit_test(a_device_made_before_is_left_as_it_was),
		cmocka_unit_test(what_cannot_be_set_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
