/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define TUN_MTU_MIN	    100
#define TUN_MTU_MAX	    65536
#define DEVICE_NAME_MAX	    15	/* IFNAMSIZ without NUL */
#define CONTROL_PACKET_MIN  154 /* TLS_CHANNEL_MTU_MIN of stock */
#define CONTROL_PACKET_MOST 2048
#define POOL_SIZE_MAX	    65536
#define METRIC_MAX	    INT32_MAX

/* Transport. */

/* What getaddrinfo would take for a number, and cut to 16 bits, is no name. */
static bool is_numeric(const char *text)
{
	char *end;
	(void)strtoul(text, &end, 10);
	return *end == '\0';
}

/* A name from the services database, as stock takes it. */
static bool find_service(const char *name, uint16_t *port)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found = NULL;
	union sockaddr_any a;
	if (getaddrinfo(NULL, name, &hints, &found) != 0)
		return false;
	memcpy(&a, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	*port = endpoint_port(&a);
	return true;
}

void options_set_port(struct options *o, const struct lexer_line *l)
{
	uint64_t n;
	uint16_t *port = &o->config->listen.port;
	if (number_parse(l->words[1], UINT16_MAX, &n))
		*port = (uint16_t)n;
	else if (!o->has_files || is_numeric(l->words[1]) || !find_service(l->words[1], port))
		options_fault(o, l, "'%s' is neither a port (0 to 65535) nor a known service",
			      l->words[1]);
}

void options_set_local(struct options *o, const struct lexer_line *l)
{
	if (l->count > 2) {
		options_fault(o, l, "port and protocol behind the address: not supported yet");
		return;
	}
	if (o->local_count++ > 0) {
		options_fault(o, l, "more than one local address: not supported yet");
		return;
	}
	bool is_any = strcmp(l->words[1], "*") == 0;
	o->config->listen.host = is_any ? NULL : options_text(o, l, 1);
}

void options_set_bind(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"ipv6only", NULL};
	if (l->count > 1 && options_choice(o, l, 1, words) == 0)
		o->is_ipv6_only = true;
}

void options_set_proto(struct options *o, const struct lexer_line *l)
{
	/* The first three stand in the order of enum proto. */
	static const char *const words[] = {
		"udp",	       "udp4",	      "udp6",	     "tcp",	    "tcp-server",
		"tcp-client",  "tcp4",	      "tcp4-server", "tcp4-client", "tcp6",
		"tcp6-server", "tcp6-client", NULL};
	int i = options_choice(o, l, 1, words);
	if (i > (int)PROTO_UDP6)
		options_fault(o, l, "%s: not supported yet; use udp", l->words[1]);
	else if (i >= 0)
		o->proto = (enum proto)i;
}

void options_set_multihome(struct options *o, const struct lexer_line *l)
{
	if (l->count > 1)
		options_fault(o, l, "%s: not supported yet", l->words[1]);
	else
		o->config->is_multihome = true;
}

void options_set_exit_notify(struct options *o, const struct lexer_line *l)
{
	uint64_t n = 1;
	if (l->count == 1 || options_number(o, l, 1, 0, 2, &n))
		o->config->explicit_exit_notify = (int)n;
}

void options_set_mtu_disc(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"no", "maybe", "yes", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->config->mtu_disc = (enum mtu_disc)(MTU_DISC_NO + i);
}

/* Device and sizes. */

void options_set_dev(struct options *o, const struct lexer_line *l)
{
	const char *name = l->words[1];
	if (strcmp(name, "null") == 0)
		options_fault(o, l, "null: not supported yet");
	else if (strlen(name) > DEVICE_NAME_MAX || strchr(name, '/') || strcmp(name, ".") == 0 ||
		 strcmp(name, "..") == 0)
		options_fault(o, l, "'%s' is no name for a device (at most 15 bytes, no '/')",
			      name);
	else
		o->config->dev = options_text(o, l, 1);
}

void options_set_dev_type(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"tun", "tap", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->dev_type = i == 0 ? DEV_TYPE_TUN : DEV_TYPE_TAP;
}

void options_set_tun_mtu(struct options *o, const struct lexer_line *l)
{
	uint64_t n;
	if (l->count > 2)
		options_fault(o, l, "a second size: not supported yet");
	else if (options_number(o, l, 1, TUN_MTU_MIN, TUN_MTU_MAX, &n))
		o->config->tun_mtu = (uint32_t)n;
}

void options_set_mssfix(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"mtu", "fixed", NULL};
	enum mssfix_mode mode = MSSFIX_PLAIN;
	uint64_t n;
	if (l->count == 1) {
		o->is_mssfix_default = true;
		return;
	}
	if (!options_number(o, l, 1, 0, UINT16_MAX, &n))
		return;
	if (l->count > 2) {
		int i = options_choice(o, l, 2, words);
		if (i < 0)
			return;
		mode = i == 0 ? MSSFIX_MTU : MSSFIX_FIXED;
	}
	o->config->mssfix_mode = n > 0 ? mode : MSSFIX_OFF;
	o->config->mssfix = (uint32_t)n;
	o->is_mssfix_default = false;
}

void options_set_max_packet_size(struct options *o, const struct lexer_line *l)
{
	uint64_t n;
	if (!options_number(o, l, 1, CONTROL_PACKET_MIN, UINT16_MAX, &n))
		return;
	/* Also the size that data packets are kept below, which may exceed that of control packets.
	 */
	o->config->mssfix_mode = MSSFIX_MTU;
	o->config->mssfix = (uint32_t)n;
	o->is_mssfix_default = false;
	o->config->max_packet_size = (uint32_t)(n > CONTROL_PACKET_MOST ? CONTROL_PACKET_MOST : n);
}

/* Addresses. */

/* Argument `arg` as an IPv4 address. */
static bool get_ipv4(struct options *o, const struct lexer_line *l, unsigned arg,
		     struct ip_addr *out)
{
	struct ip_addr a;
	if (ip_addr_parse(l->words[arg], &a) && a.family == 4) {
		*out = a;
		return true;
	}
	options_fault(o, l, "'%s' is no IPv4 address", l->words[arg]);
	return false;
}

/* Argument `arg` as "ADDRESS/BITS" of IPv6. */
static bool get_prefix6(struct options *o, const struct lexer_line *l, unsigned arg,
			struct ip_prefix *out)
{
	struct ip_prefix p;
	if (strchr(l->words[arg], '/') && ip_prefix_parse(l->words[arg], &p) &&
	    p.addr.family == 6) {
		*out = p;
		return true;
	}
	options_fault(o, l, "'%s' is no IPv6 prefix (ADDRESS/BITS)", l->words[arg]);
	return false;
}

static bool get_mask(struct options *o, const struct lexer_line *l, unsigned arg, uint8_t *bits)
{
	if (ip_mask_parse(l->words[arg], bits))
		return true;
	options_fault(o, l, "'%s' is no netmask", l->words[arg]);
	return false;
}

/* Clear host bits, which the kernel would not take; say so. */
static void mask_host_bits(struct options *o, const struct lexer_line *l, struct ip_prefix *p)
{
	char text[IP_ADDR_TEXT_MAX];
	struct ip_addr given = p->addr;
	ip_prefix_mask(p);
	if (!ip_addr_equal(&given, &p->addr))
		options_warn(o, l, "host bits set, taken as %s/%u", ip_addr_print(&p->addr, text),
			     p->bits);
}

void options_set_topology(struct options *o, const struct lexer_line *l)
{
	/* In the order of enum topology. */
	static const char *const words[] = {"net30", "p2p", "subnet", NULL};
	int i = options_choice(o, l, 1, words);
	if (i < 0)
		return;
	o->config->topology = (enum topology)i;
	o->has_topology = true;
}

void options_set_ifconfig(struct options *o, const struct lexer_line *l)
{
	struct ip_addr local, remote;
	if (!get_ipv4(o, l, 1, &local) || !get_ipv4(o, l, 2, &remote))
		return;
	o->ifconfig_local = local;
	o->ifconfig_remote = options_text(o, l, 2);
}

void options_set_ifconfig_ipv6(struct options *o, const struct lexer_line *l)
{
	struct ip_prefix local;
	struct ip_addr remote;
	if (!get_prefix6(o, l, 1, &local))
		return;
	if (!ip_addr_parse(l->words[2], &remote) || remote.family != 6) {
		options_fault(o, l, "'%s' is no IPv6 address", l->words[2]);
		return;
	}
	o->config->ifconfig_ipv6_local = local.addr;
	o->config->ifconfig_ipv6_bits = local.bits;
	o->config->ifconfig_ipv6_remote = remote;
}

void options_set_ifconfig_pool(struct options *o, const struct lexer_line *l)
{
	struct ip_addr start, end;
	uint8_t bits = 0;
	if (!get_ipv4(o, l, 1, &start) || !get_ipv4(o, l, 2, &end) ||
	    (l->count > 3 && !get_mask(o, l, 3, &bits)))
		return;
	uint32_t first = ip_addr_to_host32(&start), last = ip_addr_to_host32(&end);
	if (first > last || last - first >= POOL_SIZE_MAX) {
		options_fault(o, l,
			      "a pool runs from its start to its end over at most %d addresses",
			      POOL_SIZE_MAX);
		return;
	}
	o->config->has_pool = true;
	o->config->pool_start = start;
	o->config->pool_end = end;
	o->config->pool_bits = bits;
}

void options_set_ifconfig_ipv6_pool(struct options *o, const struct lexer_line *l)
{
	struct ip_prefix p;
	if (!get_prefix6(o, l, 1, &p))
		return;
	if (p.bits < 64 || p.bits > 124) {
		options_fault(o, l, "the prefix must be between /64 and /124, not /%u", p.bits);
		return;
	}
	o->config->has_pool6 = true;
	o->config->pool6_base = p.addr;
	o->config->pool6_bits = p.bits;
}

void options_set_pool_persist(struct options *o, const struct lexer_line *l)
{
	uint64_t seconds = 600;
	if (l->count > 2 && !options_number(o, l, 2, 0, INT32_MAX, &seconds))
		return;
	/* Stock only notes that it cannot open "", and people's configurations have it. */
	if (l->words[1][0] == '\0')
		options_warn(o, l, "no file name, addresses are not remembered");
	else
		o->config->pool_persist_path = options_text(o, l, 1);
	o->config->pool_persist_s = (uint32_t)seconds;
}

/* server NETWORK MASK [nopool] */
void options_set_server(struct options *o, const struct lexer_line *l)
{
	static const char *const flags[] = {"nopool", NULL};
	struct ip_prefix p = {0};
	if (!get_ipv4(o, l, 1, &p.addr) || !get_mask(o, l, 2, &p.bits) ||
	    (l->count > 3 && options_choice(o, l, 3, flags) < 0))
		return;
	struct ip_prefix masked = p;
	ip_prefix_mask(&masked);
	if (!ip_addr_equal(&p.addr, &masked.addr) || p.bits < 16) {
		options_fault(o, l, "network and netmask do not fit: no host bits, /16 to /29");
		return;
	}
	if (p.bits > 29) {
		options_fault(o, l, "must define a subnet of 255.255.255.248 (/29) or lower");
		return;
	}
	o->server = p;
	o->is_nopool = l->count > 3;
	o->config->is_server = true;
	o->config->is_tls_server = true;
}

void options_set_server_ipv6(struct options *o, const struct lexer_line *l)
{
	struct ip_prefix p;
	if (!get_prefix6(o, l, 1, &p))
		return;
	if (p.bits < 64 || p.bits > 124) {
		options_fault(o, l, "the network must be between /64 and /124, not /%u", p.bits);
		return;
	}
	mask_host_bits(o, l, &p);
	o->server6 = p;
	o->config->is_server = true;
	o->config->is_tls_server = true;
}

/* Routing. */

/* Gateway and metric of a route: arguments `arg` and `arg` + 1. */
static bool get_gateway(struct options *o, const struct lexer_line *l, unsigned arg,
			struct route_spec *r)
{
	uint64_t metric = 0;
	const char *gateway = arg < l->count ? l->words[arg] : "default";
	if (arg + 1 < l->count && strcmp(l->words[arg + 1], "default") != 0 &&
	    !options_number(o, l, arg + 1, 0, METRIC_MAX, &metric))
		return false;
	r->metric = (uint32_t)metric;
	if (strcmp(gateway, "default") == 0 || strcmp(gateway, "vpn_gateway") == 0) {
		r->kind = ROUTE_GATEWAY_VPN;
	} else if (strcmp(gateway, "net_gateway") == 0) {
		r->kind = ROUTE_GATEWAY_NET;
	} else if (ip_addr_parse(gateway, &r->gateway) && r->gateway.family == r->net.addr.family) {
		r->kind = ROUTE_GATEWAY_ADDR;
	} else {
		options_fault(o, l, "'%s' is no gateway (address, vpn_gateway or net_gateway)",
			      gateway);
		return false;
	}
	return true;
}

void options_set_route(struct options *o, const struct lexer_line *l)
{
	struct route_spec r = {.net.bits = 32};
	if (!get_ipv4(o, l, 1, &r.net.addr))
		return;
	if (l->count > 2 && strcmp(l->words[2], "default") != 0 && !get_mask(o, l, 2, &r.net.bits))
		return;
	if (!get_gateway(o, l, 3, &r))
		return;
	mask_host_bits(o, l, &r.net);
	options_add_route(o, &r);
}

void options_set_route_ipv6(struct options *o, const struct lexer_line *l)
{
	struct route_spec r = {0};
	if (!get_prefix6(o, l, 1, &r.net) || !get_gateway(o, l, 2, &r))
		return;
	mask_host_bits(o, l, &r.net);
	options_add_route(o, &r);
}

void options_set_route_gateway(struct options *o, const struct lexer_line *l)
{
	struct ip_addr a;
	if (strcmp(l->words[1], "dhcp") == 0)
		options_fault(o, l, "refused: dhcp needs a tap device, which is out of scope");
	else if (get_ipv4(o, l, 1, &a))
		o->config->route_gateway = a;
}
