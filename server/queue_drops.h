/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_QUEUE_DROPS_H
#define SERVER_QUEUE_DROPS_H

/* What the kernel lost for want of room before we saw it: in the sockets' receive buffers and in
 * the queues of the tun device. Thread: acceptor. */

#include <stdint.h>

#include "config/config.h"

struct netlink;
struct udp_group;

#define QUEUE_DROPS_GROUPS 16 /* groups beyond are not counted */

/* Zeros at first. */
struct queue_drops {
	uint64_t sockets[WORKERS_MAX + 1]; /* by thread, of all groups */
	uint64_t tun;
	uint32_t last[QUEUE_DROPS_GROUPS][WORKERS_MAX + 1]; /* the kernel's counts, which wrap */
};

/* Add what the sockets of `g`, the group number `index`, have lost since the last call. */
void queue_drops_read_group(struct queue_drops *q, unsigned index, const struct udp_group *g);
/* Of the device's whole life. Without an answer, or with netlink NULL, the last count stays. */
void queue_drops_read_tun(struct queue_drops *q, struct netlink *netlink, int ifindex);

#endif
