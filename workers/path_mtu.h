/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_PATH_MTU_H
#define WORKERS_PATH_MTU_H

/* What the path to a peer takes whole, and what follows for packets to it. Learned from the route
 * (which keeps what ICMP taught it), never from a packet of the peer's: the acceptor looks it up
 * when asked. It only ever makes packets smaller than the configuration has them, not below what
 * every path must take, and is forgotten after ten minutes. A plain value of the peer's owner. */

#include <stdbool.h>
#include <stdint.h>

#include "workers/mss.h"

#define PATH_MTU_MIN4	   576	  /* RFC 791, and RFC 8900 for why not to go below */
#define PATH_MTU_MIN6	   1280	  /* RFC 8200, section 5 */
#define PATH_MTU_EXPIRY_MS 600000 /* as the kernel's own (net.ipv4.route.mtu_expires) */
#define PATH_MTU_ASK_MS	   10000

struct path_mtu {
	uint32_t mtu;	       /* of the path, outer headers included; 0: unknown */
	uint32_t datagram_max; /* UDP payload that it takes whole; unknown: as UDP does */
	struct mss_limits mss; /* to clamp to now */
	uint64_t expiry_ms;    /* UINT64_MAX: nothing to forget */
	uint64_t asked_ms;     /* last; 0: never */
};

/* How the peer is configured and reached. */
struct path_peer {
	struct mss_limits mss; /* by configuration; 0: not clamped, and so it stays */
	bool is_v2, is_ipv6;   /* as for mss_limits */
};

/* Nothing is known. */
void path_mtu_init(struct path_mtu *m, const struct path_peer *p);
/* The route says `mtu`. 0: it says nothing, all is forgotten. */
void path_mtu_learn(struct path_mtu *m, const struct path_peer *p, uint32_t mtu, uint64_t now_ms);
/* Forget what is too old. Returns whether it did; then ask again. */
bool path_mtu_expire(struct path_mtu *m, const struct path_peer *p, uint64_t now_ms);
/* May it be asked now? Says yes once in PATH_MTU_ASK_MS. */
bool path_mtu_may_ask(struct path_mtu *m, uint64_t now_ms);

#endif
