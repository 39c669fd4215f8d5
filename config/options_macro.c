/* SPDX-License-Identifier: Apache-2.0 */
/* What a finished set of lines means together: the macros server, server-ipv6 and keepalive
 * (options.md, section 2), and values that need two directives. The order of what is pushed is
 * stock's; clients and tests see it. */
#include "config/options.h"

#include <stdio.h>
#include <string.h>

#define PUSH_TEXT_MAX	256
#define MSSFIX_DEFAULT	1492
#define TUN_MTU_DEFAULT 1500
#define POOL6_OFFSET	0x1000 /* first pool address of a network larger than a /112 */
#define POOL_RESERVE	4      /* addresses at both ends of a net30 pool */

static bool is_given(const struct options *o, enum directive_id id)
{
	return o->config->places[id].is_given;
}

static void push_address(struct options *o, const char *name, const struct ip_addr *a)
{
	char text[PUSH_TEXT_MAX], addr[IP_ADDR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s %s", name, ip_addr_print(a, addr));
	options_add_push(o, text);
}

static struct ip_addr mask_address(uint8_t bits)
{
	struct ip_prefix p = {.addr = {.family = 4, .bytes = {255, 255, 255, 255}}, .bits = bits};
	ip_prefix_mask(&p);
	return p.addr;
}

static void expand_server_ipv6(struct options *o)
{
	struct config *c = o->config;
	const struct ip_prefix *net = &o->server6;
	if (is_given(o, DIRECTIVE_IFCONFIG_IPV6_POOL))
		config_fault(o->report, c, DIRECTIVE_IFCONFIG_IPV6_POOL,
			     "server-ipv6 already defines a pool");
	if (o->is_nopool)
		config_fault(o->report, c, DIRECTIVE_SERVER_IPV6,
			     "cannot stand beside nopool of server");
	c->ifconfig_ipv6_local = ip_addr_add(&net->addr, 1);
	c->ifconfig_ipv6_remote = ip_addr_add(&net->addr, 2);
	c->ifconfig_ipv6_bits = net->bits;
	c->has_pool6 = true;
	c->pool6_base = ip_addr_add(&net->addr, net->bits < 112 ? POOL6_OFFSET : 2);
	c->pool6_bits = net->bits;
	options_add_push(o, "tun-ipv6");
}

static void set_pool(struct config *c, const struct ip_addr *net, uint32_t first, uint32_t last)
{
	c->has_pool = true;
	c->pool_start = ip_addr_add(net, first);
	c->pool_end = ip_addr_add(net, last);
}

/* net30 and p2p: the server has the first pair of addresses, clients the pairs behind. */
static void expand_server_pairs(struct options *o)
{
	struct config *c = o->config;
	const struct ip_addr *net = &o->server.addr;
	uint32_t last = UINT32_MAX >> o->server.bits;
	char text[PUSH_TEXT_MAX], addr[IP_ADDR_TEXT_MAX], mask[IP_ADDR_TEXT_MAX];
	struct ip_addr netmask = mask_address(o->server.bits);
	struct ip_addr own = ip_addr_add(net, 1);
	c->ifconfig_local = own;
	c->ifconfig_remote = ip_addr_add(net, 2);
	if (!o->is_nopool)
		set_pool(c, net, 4, last - (o->server.bits == 29 ? 0 : POOL_RESERVE));
	options_add_route(o, &(struct route_spec){.net = o->server, .kind = ROUTE_GATEWAY_VPN});
	if (c->is_client_to_client) {
		snprintf(text, sizeof(text), "route %s %s", ip_addr_print(net, addr),
			 ip_addr_print(&netmask, mask));
		options_add_push(o, text);
	} else if (c->topology == TOPOLOGY_NET30) {
		push_address(o, "route", &own);
	}
}

static void expand_server_subnet(struct options *o)
{
	struct config *c = o->config;
	const struct ip_addr *net = &o->server.addr;
	c->ifconfig_local = ip_addr_add(net, 1);
	c->ifconfig_bits = o->server.bits;
	c->pool_bits = o->server.bits;
	if (!o->is_nopool)
		set_pool(c, net, 2, (UINT32_MAX >> o->server.bits) - 1);
	push_address(o, "route-gateway", &c->ifconfig_local);
	if (c->route_gateway.family == 0)
		c->route_gateway = ip_addr_add(net, 2);
}

static void expand_server(struct options *o)
{
	static const char *const pushes[] = {"topology net30", "topology p2p", "topology subnet"};
	if (is_given(o, DIRECTIVE_IFCONFIG_POOL) && !o->is_nopool)
		config_fault(
			o->report, o->config, DIRECTIVE_IFCONFIG_POOL,
			"server already defines a pool; remove this, or write nopool behind it");
	if (o->config->topology == TOPOLOGY_SUBNET)
		expand_server_subnet(o);
	else
		expand_server_pairs(o);
	options_add_push(o, pushes[o->config->topology]);
}

/* A server waits twice as long as its clients, so that they notice first. */
static void expand_keepalive(struct options *o)
{
	char text[PUSH_TEXT_MAX];
	if (is_given(o, DIRECTIVE_PING) || is_given(o, DIRECTIVE_PING_RESTART)) {
		config_fault(o->report, o->config, DIRECTIVE_KEEPALIVE,
			     "conflicts with ping and ping-restart, which it replaces");
		return;
	}
	o->config->ping_s = o->keepalive_ping_s;
	o->config->ping_restart_s = o->keepalive_restart_s * 2;
	snprintf(text, sizeof(text), "ping %u", o->keepalive_ping_s);
	options_add_push(o, text);
	snprintf(text, sizeof(text), "ping-restart %u", o->keepalive_restart_s);
	options_add_push(o, text);
}

/* ifconfig, whose second word is a netmask or an address depending on the topology. */
static void set_ifconfig(struct options *o)
{
	struct config *c = o->config;
	uint8_t bits;
	if (c->topology != TOPOLOGY_SUBNET) {
		c->ifconfig_local = o->ifconfig_local;
		if (!ip_addr_parse(o->ifconfig_remote, &c->ifconfig_remote))
			c->ifconfig_remote = (struct ip_addr){0};
		return;
	}
	if (!ip_mask_parse(o->ifconfig_remote, &bits)) {
		config_fault(o->report, c, DIRECTIVE_IFCONFIG,
			     "'%s' is no netmask, which topology subnet needs", o->ifconfig_remote);
		return;
	}
	c->ifconfig_local = o->ifconfig_local;
	c->ifconfig_bits = bits;
	if (c->pool_bits == 0)
		c->pool_bits = bits;
}

static void set_mssfix(struct options *o)
{
	struct config *c = o->config;
	if (!o->is_mssfix_default)
		return;
	/* As stock: TCP fits into a device of another size, whatever the path beyond it is. */
	bool is_default_mtu = c->tun_mtu == TUN_MTU_DEFAULT;
	c->mssfix_mode = is_default_mtu ? MSSFIX_MTU : MSSFIX_FIXED;
	c->mssfix = is_default_mtu ? MSSFIX_DEFAULT : c->tun_mtu;
}

static void set_listen_family(struct options *o)
{
	struct listen_spec *listen = &o->config->listen;
	struct ip_addr a = {0};
	if (listen->host && !ip_addr_parse(listen->host, &a))
		a.family = 0;
	bool is_v6 = o->proto == PROTO_UDP6 || (o->proto == PROTO_UDP && a.family == 6);
	if (is_v6 != (a.family == 6) && a.family != 0)
		config_fault(o->report, o->config, DIRECTIVE_LOCAL,
			     "'%s' is no address of the protocol (proto %s)", listen->host,
			     is_v6 ? "udp6" : "udp4");
	if (is_v6)
		listen->family = o->is_ipv6_only ? LISTEN_IPV6_ONLY : LISTEN_IPV6_DUAL;
	else
		listen->family = LISTEN_IPV4;
	if (o->is_ipv6_only && !is_v6)
		config_warn(o->report, o->config, DIRECTIVE_BIND,
			    "ipv6only has no effect without proto udp6");
}

static void set_device_type(struct options *o)
{
	const char *dev = o->config->dev;
	enum dev_type type = o->dev_type;
	if (type == DEV_TYPE_BY_NAME && dev && strncmp(dev, "tun", 3) == 0)
		type = DEV_TYPE_TUN;
	else if (type == DEV_TYPE_BY_NAME && dev && strncmp(dev, "tap", 3) == 0)
		type = DEV_TYPE_TAP;
	if (type == DEV_TYPE_TAP)
		config_fault(o->report, o->config,
			     o->dev_type == DEV_TYPE_TAP ? DIRECTIVE_DEV_TYPE : DIRECTIVE_DEV,
			     "refused: tap devices are out of scope");
	else if (type == DEV_TYPE_BY_NAME && dev)
		config_fault(o->report, o->config, DIRECTIVE_DEV,
			     "'%s' does not begin with tun: dev-type tun is missing", dev);
}

void options_finish(struct options *o)
{
	struct config *c = o->config;
	set_device_type(o);
	set_listen_family(o);
	if (!o->has_topology)
		c->topology = TOPOLOGY_NET30;
	if (o->ifconfig_remote)
		set_ifconfig(o);
	if (o->server6.addr.family != 0)
		expand_server_ipv6(o);
	if (o->server.addr.family != 0)
		expand_server(o);
	if (o->keepalive_ping_s > 0)
		expand_keepalive(o);
	set_mssfix(o);
	/* Without a terminal lines go to syslog; a file goes before both, as in stock. */
	c->is_syslog = !c->log_path && (c->is_syslog || c->is_daemon);
}
