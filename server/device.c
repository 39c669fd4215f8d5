/* SPDX-License-Identifier: Apache-2.0 */
#include "server/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "tun/netlink.h"

static const struct ip_addr no_addr;

/* Length of the prefix and peer of our IPv4 address: a point-to-point pair unless topology subnet.
 */
static uint8_t addr4_bits(const struct config *c)
{
	return c->topology == TOPOLOGY_SUBNET ? c->ifconfig_bits : 32;
}

static const struct ip_addr *addr4_peer(const struct config *c)
{
	return c->topology == TOPOLOGY_SUBNET ? &no_addr : &c->ifconfig_remote;
}

static void log_addr4(const struct device *d)
{
	const struct config *c = d->config;
	char local[IP_ADDR_TEXT_MAX], peer[IP_ADDR_TEXT_MAX];
	ip_addr_print(&c->ifconfig_local, local);
	if (addr4_peer(c)->family == 0)
		log_line(LOG_NOTE, "net_addr_v4_add: %s/%u dev %s", local, addr4_bits(c),
			 d->tun.name);
	else
		log_line(LOG_NOTE, "net_addr_ptp_v4_add: %s peer %s dev %s", local,
			 ip_addr_print(addr4_peer(c), peer), d->tun.name);
}

static int add_addr4(struct device *d)
{
	const struct config *c = d->config;
	if (c->ifconfig_local.family == 0)
		return 0;
	log_addr4(d);
	int err = netlink_addr_add(d->netlink, d->tun.ifindex, &c->ifconfig_local, addr4_bits(c),
				   addr4_peer(c));
	d->has_addr4 = err == 0;
	return err;
}

static int add_addr6(struct device *d)
{
	const struct config *c = d->config;
	char local[IP_ADDR_TEXT_MAX];
	if (c->ifconfig_ipv6_local.family == 0)
		return 0;
	log_line(LOG_NOTE, "net_addr_v6_add: %s/%u dev %s",
		 ip_addr_print(&c->ifconfig_ipv6_local, local), c->ifconfig_ipv6_bits, d->tun.name);
	int err = netlink_addr_add(d->netlink, d->tun.ifindex, &c->ifconfig_ipv6_local,
				   c->ifconfig_ipv6_bits, &no_addr);
	d->has_addr6 = err == 0;
	return err;
}

/* Through the tunnel: by the configured gateway or the other end of a point-to-point pair; IPv6 and
 * topology subnet need none, the device says enough. */
static void gateway_vpn(const struct device *d, struct device_route *r)
{
	const struct config *c = d->config;
	r->ifindex = d->tun.ifindex;
	if (c->topology != TOPOLOGY_SUBNET && c->ifconfig_remote.family == r->net.addr.family)
		r->gateway = c->ifconfig_remote;
	if (c->route_gateway.family == r->net.addr.family)
		r->gateway = c->route_gateway;
}

/* Where the route goes. An explicit gateway is looked for by the kernel (ifindex 0), which is right
 * inside the tunnel and outside. */
static int route_resolve(const struct device *d, const struct route_spec *s, struct device_route *r)
{
	*r = (struct device_route){.net = s->net, .metric = s->metric};
	switch (s->kind) {
	case ROUTE_GATEWAY_VPN:
		gateway_vpn(d, r);
		return 0;
	case ROUTE_GATEWAY_ADDR:
		r->gateway = s->gateway;
		return 0;
	case ROUTE_GATEWAY_NET:
		return netlink_default_gateway(d->netlink, s->net.addr.family, &r->gateway,
					       &r->ifindex);
	}
	return -EINVAL;
}

static void log_route(const struct device *d, const struct device_route *r, const char *verb)
{
	char net[IP_ADDR_TEXT_MAX], gateway[IP_ADDR_TEXT_MAX] = "0.0.0.0";
	if (r->net.addr.family == 6)
		memcpy(gateway, "::", sizeof("::"));
	if (r->gateway.family != 0)
		ip_addr_print(&r->gateway, gateway);
	log_line(LOG_NOTE, "net_route_v%u_%s: %s/%u via %s dev %s table 0 metric %d",
		 r->net.addr.family, verb, ip_addr_print(&r->net.addr, net), r->net.bits, gateway,
		 r->ifindex == d->tun.ifindex ? d->tun.name : "[NULL]",
		 r->metric == 0 ? -1 : (int)r->metric);
}

/* A route that is not there disturbs only those behind it, so it does not end the start. */
static void add_route(struct device *d, const struct route_spec *s)
{
	struct device_route r;
	bool is_added = false;
	int err = route_resolve(d, s, &r);
	if (err == 0) {
		log_route(d, &r, "add");
		err = netlink_route_add(d->netlink, r.ifindex, &r.net, &r.gateway, r.metric,
					&is_added);
	}
	char net[IP_ADDR_TEXT_MAX];
	ip_addr_print(&s->net.addr, net);
	if (err != 0)
		log_line(LOG_WARN, "WARNING: route %s/%u was not added: %s", net, s->net.bits,
			 err == -ENOENT ? "there is no default route to take the gateway from"
					: strerror(-err));
	else if (!is_added)
		log_line(LOG_NOTE, "NOTE: route %s/%u is there already; it is left alone", net,
			 s->net.bits);
	else
		d->routes[d->route_count++] = r;
}

static int add_routes(struct device *d)
{
	const struct config *c = d->config;
	if (c->route_count == 0)
		return 0;
	d->routes = calloc(c->route_count, sizeof(*d->routes));
	if (d->routes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->route_count; i++)
		add_route(d, &c->routes[i]);
	return 0;
}

static int set_up(struct device *d, char *why, size_t why_len)
{
	const char *step = "netlink";
	int err = netlink_new(&d->netlink);
	if (err == 0) {
		step = "MTU";
		log_line(LOG_NOTE, "net_iface_mtu_set: mtu %u for %s", d->config->tun_mtu,
			 d->tun.name);
		log_line(LOG_NOTE, "net_iface_up: set %s up", d->tun.name);
		err = netlink_link_up(d->netlink, d->tun.ifindex, d->config->tun_mtu,
				      d->config->txqueuelen != 0 ? d->config->txqueuelen : 1000);
	}
	if (err == 0) {
		step = "IPv4 address";
		err = add_addr4(d);
	}
	if (err == 0) {
		step = "IPv6 address";
		err = add_addr6(d);
	}
	if (err == 0) {
		step = "routes";
		err = add_routes(d);
	}
	if (err != 0)
		snprintf(why, why_len, "cannot set the %s of %s: %s%s", step, d->tun.name,
			 strerror(-err),
			 err == -EPERM ? "; start as root or with CAP_NET_ADMIN" : "");
	return err;
}

static bool may_offload(const struct config *c, enum offload o, enum feature f)
{
	return (c->offloads & (uint32_t)o) && !(c->disabled_features & (uint32_t)f);
}

int device_open(const struct config *c, struct device *out, char *why, size_t why_len)
{
	*out = (struct device){.config = c};
	int err = tun_open(c->dev, (int)c->workers, &out->tun, why, why_len);
	if (err != 0)
		return err;
	log_line(LOG_NOTE, "TUN/TAP device %s opened", out->tun.name);
	tun_set_offloads(&out->tun, may_offload(c, OFFLOAD_TSO, FEATURE_TUN_TSO),
			 may_offload(c, OFFLOAD_USO, FEATURE_TUN_USO));
	err = set_up(out, why, why_len);
	if (err != 0)
		device_close(out);
	return err;
}

static void remove_routes(struct device *d)
{
	while (d->route_count > 0) {
		const struct device_route *r = &d->routes[--d->route_count];
		log_route(d, r, "del");
		(void)netlink_route_del(d->netlink, r->ifindex, &r->net, &r->gateway, r->metric);
	}
	free(d->routes);
	d->routes = NULL;
}

static void remove_addrs(struct device *d)
{
	const struct config *c = d->config;
	if (d->has_addr4)
		(void)netlink_addr_del(d->netlink, d->tun.ifindex, &c->ifconfig_local,
				       addr4_bits(c), addr4_peer(c));
	if (d->has_addr6)
		(void)netlink_addr_del(d->netlink, d->tun.ifindex, &c->ifconfig_ipv6_local,
				       c->ifconfig_ipv6_bits, &no_addr);
}

void device_close(struct device *d)
{
	if (d->netlink != NULL) {
		remove_routes(d);
		log_line(LOG_NOTE, "Closing TUN/TAP interface");
		remove_addrs(d);
		netlink_free(d->netlink);
		d->netlink = NULL;
	}
	tun_close(&d->tun);
}
