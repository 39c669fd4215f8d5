/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_STEERING_H
#define WORKERS_STEERING_H

/* Who gets which datagram: a classic BPF program on each reuseport group, and the same rule in user
 * space for what leaks past it. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"

#define STEERING_SLOTS 256

/* slot -> thread index (1..N). Changes only through the acceptor. */
struct slot_table {
	uint8_t owner[STEERING_SLOTS];
};

/* Spread the slots evenly over workers 1..count. */
void slot_table_init(struct slot_table *t, unsigned worker_count);
static inline unsigned slot_table_owner(const struct slot_table *t, uint32_t peer_id)
{
	return t->owner[peer_id & (STEERING_SLOTS - 1)];
}

/* Attach the program to the group that `fd` belongs to. Index = bind order: socket 0 is the
 * acceptor's. P_DATA_V2 with a peer-id goes to the slot's owner; P_DATA_V1 and peer-id 0xFFFFFF to
 * a worker by source address and port; all else to 0, and so do IPv6 packets with extension
 * headers and without peer-id: pass those on by steering_by_source. No privilege needed. Returns 0
 * or -errno. */
__attribute__((warn_unused_result)) int steering_attach(int fd, const struct slot_table *t,
							unsigned worker_count);
/* The same choice for a packet without peer-id from `remote`: 1..worker_count. */
unsigned steering_by_source(const union sockaddr_any *remote, unsigned worker_count);

#endif
