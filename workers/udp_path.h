/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_UDP_PATH_H
#define WORKERS_UDP_PATH_H

/* The MTU of the route to a peer, with what ICMP taught the kernel of it; and what the kernel does
 * with datagrams that exceed it. */

#include <stdint.h>

#include "config/addr.h"
#include "config/config.h"

struct udp_group;

/* Look it up by a socket that is connected to `l` from our address there; nothing is sent.
 * `bound`: what the group is bound to, used where `l` does not name our address. Not bound to the
 * port, so the group keeps its places. A few system calls. Returns 0 and 1..65535 in *mtu (more is
 * said as 65535), or -errno (no route). Thread: acceptor. */
__attribute__((warn_unused_result)) int
udp_path_mtu(const struct link_addr *l, const union sockaddr_any *bound, uint32_t *mtu);

/* Have the kernel find the path's MTU as `disc` says, for all that the group sends (`mtu-disc`).
 * MTU_DISC_SYSTEM: as it is. Returns 0 or -errno. Thread: main, before the workers start. */
__attribute__((warn_unused_result)) int udp_path_discover(const struct udp_group *g,
							  enum mtu_disc disc);

#endif
