/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <netlink/socket.h>
#include <stdlib.h>
#include <string.h>

#define DUMP_TRIES 5

struct netlink {
	struct nl_sock *sock;
	int error; /* what the kernel refused the request in hand with: -errno or 0 */
};

/* libnl folds errno values into fewer codes of its own; keep the kernel's. */
static int on_error(struct sockaddr_nl *from, struct nlmsgerr *e, void *arg)
{
	struct netlink *n = arg;

	(void)from;
	n->error = e->error;
	return NL_STOP;
}

/* A failure on our side of the socket. */
static int local_error(int nl_error)
{
	switch (-nl_error) {
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
		return -EPERM;
	case NLE_NOACCESS:
		return -EACCES;
	case NLE_AF_NOSUPPORT:
	case NLE_PROTO_MISMATCH:
		return -EAFNOSUPPORT;
	case NLE_INVAL:
	case NLE_RANGE:
	case NLE_MISSING_ATTR:
		return -EINVAL;
	default:
		return -EIO;
	}
}

int netlink_new(struct netlink **out)
{
	struct netlink *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->sock = nl_socket_alloc();
	if (!n->sock) {
		free(n);
		return -ENOMEM;
	}
	int nl_error = nl_connect(n->sock, NETLINK_ROUTE);
	if (nl_error < 0) {
		netlink_free(n);
		return local_error(nl_error);
	}
	nl_socket_modify_err_cb(n->sock, NL_CB_CUSTOM, on_error, n);
	*out = n;
	return 0;
}

void netlink_free(struct netlink *n)
{
	if (!n)
		return;
	nl_socket_free(n->sock);
	free(n);
}

/* Send a request and wait for its answer. Takes the message over. */
static int request(struct netlink *n, struct nl_msg *msg)
{
	n->error = 0;
	int nl_error = nl_send_auto(n->sock, msg);
	nlmsg_free(msg);
	if (nl_error >= 0)
		nl_error = nl_wait_for_ack(n->sock);
	if (n->error)
		return n->error;
	return nl_error < 0 ? local_error(nl_error) : 0;
}

static int af_of(const struct ip_addr *a)
{
	return a->family == 4 ? AF_INET : AF_INET6;
}

/* A libnl address with prefix length; NULL without memory. The caller puts it. */
static struct nl_addr *nl_addr_of(const struct ip_addr *a, uint8_t bits)
{
	struct nl_addr *nl = nl_addr_build(af_of(a), a->bytes, a->family == 4 ? 4 : 16);
	if (nl)
		nl_addr_set_prefixlen(nl, bits);
	return nl;
}

int netlink_link_up(struct netlink *n, int ifindex, uint32_t mtu, uint32_t txqueuelen)
{
	struct rtnl_link *link = rtnl_link_alloc();
	if (!link)
		return -ENOMEM;
	rtnl_link_set_ifindex(link, ifindex);
	rtnl_link_set_family(link, AF_UNSPEC);
	rtnl_link_set_flags(link, IFF_UP);
	if (mtu > 0)
		rtnl_link_set_mtu(link, mtu);
	if (txqueuelen > 0)
		rtnl_link_set_txqlen(link, txqueuelen);

	struct nl_msg *msg = NULL;
	int nl_error = rtnl_link_build_change_request(link, link, 0, &msg);
	rtnl_link_put(link);
	return nl_error < 0 ? local_error(nl_error) : request(n, msg);
}

int netlink_link_drops(struct netlink *n, int ifindex, uint64_t *drops)
{
	struct rtnl_link *link = NULL;
	int nl_error = rtnl_link_get_kernel(n->sock, ifindex, NULL, &link);
	if (nl_error < 0)
		return nl_error == -NLE_OBJ_NOTFOUND || nl_error == -NLE_NODEV
			       ? -ENODEV
			       : local_error(nl_error);
	*drops = rtnl_link_get_stat(link, RTNL_LINK_TX_DROPPED);
	rtnl_link_put(link);
	return 0;
}

/* A request about an address, put together by hand: rtnl_addr knows no peers in IPv6. Without a
 * peer the other end is the address itself, as the kernel has it. */
static struct nl_msg *addr_message(int type, int flags, int ifindex, const struct ip_addr *local,
				   uint8_t bits, const struct ip_addr *peer)
{
	struct ifaddrmsg head = {.ifa_family = (uint8_t)af_of(local),
				 .ifa_prefixlen = bits,
				 .ifa_scope = RT_SCOPE_UNIVERSE,
				 .ifa_index = (uint32_t)ifindex};
	int len = local->family == 4 ? 4 : 16;
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags);
	if (!msg)
		return NULL;
	/* Nobody else can have the address on a tun device: do not leave it tentative. */
	if (local->family == 6)
		head.ifa_flags = IFA_F_NODAD;
	if (nlmsg_append(msg, &head, sizeof(head), NLMSG_ALIGNTO) < 0 ||
	    nla_put(msg, IFA_LOCAL, len, local->bytes) < 0 ||
	    nla_put(msg, IFA_ADDRESS, len, peer->family ? peer->bytes : local->bytes) < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

int netlink_addr_add(struct netlink *n, int ifindex, const struct ip_addr *local, uint8_t bits,
		     const struct ip_addr *peer)
{
	struct nl_msg *msg =
		addr_message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, ifindex, local, bits, peer);
	if (!msg)
		return -ENOMEM;
	int error = request(n, msg);
	return error == -EEXIST ? 0 : error;
}

int netlink_addr_del(struct netlink *n, int ifindex, const struct ip_addr *local, uint8_t bits,
		     const struct ip_addr *peer)
{
	struct nl_msg *msg = addr_message(RTM_DELADDR, 0, ifindex, local, bits, peer);
	return msg ? request(n, msg) : -ENOMEM;
}

/* The way of `route`: device and gateway. Returns a libnl error. */
static int nexthop_fill(struct rtnl_route *route, int ifindex, const struct ip_addr *gateway)
{
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
	if (!hop)
		return -NLE_NOMEM;
	if (ifindex > 0)
		rtnl_route_nh_set_ifindex(hop, ifindex);
	if (gateway->family) {
		struct nl_addr *via = nl_addr_of(gateway, gateway->family == 4 ? 32 : 128);
		if (!via) {
			rtnl_route_nh_free(hop);
			return -NLE_NOMEM;
		}
		rtnl_route_nh_set_gateway(hop, via);
		nl_addr_put(via);
	}
	rtnl_route_add_nexthop(route, hop); /* takes it over */
	return 0;
}

/* Fill `route`. Returns a libnl error. */
static int route_fill(struct rtnl_route *route, int ifindex, const struct ip_prefix *net,
		      const struct ip_addr *gateway, uint32_t metric)
{
	struct ip_prefix masked = *net;
	ip_prefix_mask(&masked);
	struct nl_addr *dst = nl_addr_of(&masked.addr, masked.bits);
	if (!dst)
		return -NLE_NOMEM;
	rtnl_route_set_family(route, (uint8_t)af_of(&net->addr));
	int nl_error = rtnl_route_set_dst(route, dst);
	nl_addr_put(dst);
	if (nl_error < 0)
		return nl_error;
	rtnl_route_set_table(route, RT_TABLE_MAIN);
	rtnl_route_set_protocol(route, RTPROT_BOOT);
	rtnl_route_set_type(route, RTN_UNICAST);
	bool is_on_link = net->addr.family == 4 && gateway->family == 0;
	rtnl_route_set_scope(route, is_on_link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
	if (metric > 0)
		rtnl_route_set_priority(route, metric);
	return nexthop_fill(route, ifindex, gateway);
}

int netlink_route_add(struct netlink *n, int ifindex, const struct ip_prefix *net,
		      const struct ip_addr *gateway, uint32_t metric, bool *added)
{
	struct rtnl_route *route = rtnl_route_alloc();
	if (!route)
		return -ENOMEM;
	struct nl_msg *msg = NULL;
	int nl_error = route_fill(route, ifindex, net, gateway, metric);
	if (nl_error == 0)
		nl_error = rtnl_route_build_add_request(route, NLM_F_CREATE | NLM_F_EXCL, &msg);
	rtnl_route_put(route);
	if (nl_error < 0)
		return local_error(nl_error);
	int error = request(n, msg);
	if (error && error != -EEXIST)
		return error;
	*added = error == 0;
	return 0;
}

int netlink_route_del(struct netlink *n, int ifindex, const struct ip_prefix *net,
		      const struct ip_addr *gateway, uint32_t metric)
{
	struct rtnl_route *route = rtnl_route_alloc();
	if (!route)
		return -ENOMEM;
	struct nl_msg *msg = NULL;
	int nl_error = route_fill(route, ifindex, net, gateway, metric);
	if (nl_error == 0)
		nl_error = rtnl_route_build_del_request(route, 0, &msg);
	rtnl_route_put(route);
	return nl_error < 0 ? local_error(nl_error) : request(n, msg);
}

/* The best default route that a dump has shown so far. */
struct default_search {
	bool is_found;
	uint32_t metric;
	struct ip_addr gateway;
	int ifindex;
};

static void take_if_better(struct default_search *s, struct rtnl_route *route)
{
	struct nl_addr *dst = rtnl_route_get_dst(route);
	struct rtnl_nexthop *hop = rtnl_route_nexthop_n(route, 0);
	struct nl_addr *via = hop ? rtnl_route_nh_get_gateway(hop) : NULL;
	if ((dst && nl_addr_get_prefixlen(dst) != 0) || !via)
		return;
	if (rtnl_route_get_table(route) != RT_TABLE_MAIN ||
	    rtnl_route_get_type(route) != RTN_UNICAST)
		return;
	uint32_t metric = rtnl_route_get_priority(route);
	unsigned len = nl_addr_get_len(via);
	if ((s->is_found && metric >= s->metric) || (len != 4 && len != 16))
		return;
	*s = (struct default_search){
		.is_found = true, .metric = metric, .ifindex = rtnl_route_nh_get_ifindex(hop)};
	s->gateway.family = len == 4 ? 4 : 6;
	memcpy(s->gateway.bytes, nl_addr_get_binary_addr(via), len);
}

static int on_route(struct nl_msg *msg, void *arg)
{
	struct rtnl_route *route;

	if (rtnl_route_parse(nlmsg_hdr(msg), &route) < 0)
		return NL_SKIP;
	take_if_better(arg, route);
	rtnl_route_put(route);
	return NL_OK;
}

/* Show all routes of a family to `s`. Looked at message by message: a router's table need not fit
 * into memory twice. Returns a libnl error. */
static int search_routes(struct netlink *n, unsigned char af, struct default_search *s)
{
	struct rtmsg rtm = {.rtm_family = af};

	*s = (struct default_search){.is_found = false};
	n->error = 0;
	nl_socket_modify_cb(n->sock, NL_CB_VALID, NL_CB_CUSTOM, on_route, s);
	int nl_error = nl_send_simple(n->sock, RTM_GETROUTE, NLM_F_DUMP, &rtm, sizeof(rtm));
	if (nl_error >= 0)
		nl_error = nl_recvmsgs_default(n->sock);
	nl_socket_modify_cb(n->sock, NL_CB_VALID, NL_CB_DEFAULT, NULL, NULL);
	return nl_error;
}

int netlink_default_gateway(struct netlink *n, uint8_t family, struct ip_addr *gateway,
			    int *ifindex)
{
	struct default_search search;
	int nl_error = -NLE_DUMP_INTR;

	/* Routes that change meanwhile spoil a dump. */
	for (int i = 0; i < DUMP_TRIES && nl_error == -NLE_DUMP_INTR; i++)
		nl_error = search_routes(n, family == 4 ? AF_INET : AF_INET6, &search);
	if (n->error || nl_error < 0)
		return n->error ? n->error : local_error(nl_error);
	if (!search.is_found)
		return -ENOENT;
	*gateway = search.gateway;
	*ifindex = search.ifindex;
	return 0;
}
