/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_NETLINK_H
#define TUN_NETLINK_H

/* Addresses, routes, MTU and link state through rtnetlink (libnl-route-3). Thread: main/acceptor.
 */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"

struct netlink;

/* Returns 0 or -errno. */
__attribute__((warn_unused_result)) int netlink_new(struct netlink **out);
void netlink_free(struct netlink *n);

/* Set MTU and queue length (0: left as they are) and bring the link up. Blocks for the kernel's
 * answer, like all that follow. Returns 0 or the kernel's -errno. */
__attribute__((warn_unused_result)) int netlink_link_up(struct netlink *n, int ifindex,
							uint32_t mtu, uint32_t txqueuelen);
/* How many packets the kernel had for the link's queue and dropped, since the link was made.
 * Returns 0 or -errno. */
__attribute__((warn_unused_result)) int netlink_link_drops(struct netlink *n, int ifindex,
							   uint64_t *drops);
/* peer: family 0, or the point-to-point address (then bits is 32 or 128). An address that is there
 * already is no error. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int netlink_addr_add(struct netlink *n, int ifindex,
							 const struct ip_addr *local, uint8_t bits,
							 const struct ip_addr *peer);
/* -EADDRNOTAVAIL: it was not there. */
int netlink_addr_del(struct netlink *n, int ifindex, const struct ip_addr *local, uint8_t bits,
		     const struct ip_addr *peer);
/* gateway: family 0 for a device route. metric 0: kernel's default.
 * *added tells whether the route is ours to remove: false if the same one was there already. */
__attribute__((warn_unused_result)) int netlink_route_add(struct netlink *n, int ifindex,
							  const struct ip_prefix *net,
							  const struct ip_addr *gateway,
							  uint32_t metric, bool *added);
/* -ESRCH: it was not there. */
int netlink_route_del(struct netlink *n, int ifindex, const struct ip_prefix *net,
		      const struct ip_addr *gateway, uint32_t metric);
/* The gateway of the default route of `family` (4 or 6) with the lowest metric in the main table,
 * for "net_gateway". -ENOENT: there is none, or it has no gateway. */
__attribute__((warn_unused_result)) int
netlink_default_gateway(struct netlink *n, uint8_t family, struct ip_addr *gateway, int *ifindex);

#endif
