/* SPDX-License-Identifier: Apache-2.0 */
#include "server/queue_drops.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "tun/netlink.h"
#include "workers/udp.h"

/* Returns `otherwise` where the kernel does not tell. */
static uint32_t drops_of(int fd, uint32_t otherwise)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0 ||
	    len < (SK_MEMINFO_DROPS + 1) * sizeof(info[0]))
		return otherwise;
	return info[SK_MEMINFO_DROPS];
}

void queue_drops_read_group(struct queue_drops *q, unsigned index, const struct udp_group *g)
{
	if (index >= QUEUE_DROPS_GROUPS)
		return;
	for (unsigned i = 0; i < g->count; i++) {
		uint32_t *last = &q->last[index][i];
		uint32_t now = drops_of(g->fds[i], *last);

		q->sockets[i] += (uint32_t)(now - *last);
		*last = now;
	}
}

void queue_drops_read_tun(struct queue_drops *q, struct netlink *netlink, int ifindex)
{
	uint64_t drops;

	if (netlink && netlink_link_drops(netlink, ifindex, &drops) == 0)
		q->tun = drops;
}
