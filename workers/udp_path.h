/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_UDP_PATH_H
#define WORKERS_UDP_PATH_H

/* The MTU of the route to a peer, with what ICMP taught the kernel of it. */

#include <stdint.h>

#include "config/addr.h"

/* Look it up by a socket that is connected to `l` from our address there; nothing is sent.
 * `bound`: what the group is bound to, used where `l` does not name our address. Not bound to the
 * port, so the group keeps its places. A few system calls. Returns 0 and 1..65535 in *mtu (more is
 * said as 65535), or -errno (no route). Thread: acceptor. */
__attribute__((warn_unused_result)) int
udp_path_mtu(const struct link_addr *l, const union sockaddr_any *bound, uint32_t *mtu);

#endif
