/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_TOO_BIG_H
#define TUN_TOO_BIG_H

/* What the sender of an inner packet is told when it does not fit the way ahead: ICMP
 * "fragmentation needed" (RFC 1191) or ICMPv6 "packet too big" (RFC 4443, section 3.2). Without it
 * connections hang once the path shrinks. */

#include <stdint.h>

#include "config/addr.h"

#define TOO_BIG_MAX 1280 /* longest answer */

/* Write the answer to `packet` (in `len` bytes), of which `mtu` bytes would fit, into `out`
 * (TOO_BIG_MAX bytes). from: our inner address of the packet's family; family 0: none. Returns its
 * length, or 0 if none is due: no address, inconsistent headers, an IPv4 packet that may be
 * fragmented, a fragment but the first, a source or destination that is not one host's, an ICMP
 * error. IPv6 senders are never told less than 1280, which they would not believe. */
uint32_t too_big_write(uint8_t *out, const uint8_t *packet, uint32_t len, uint32_t mtu,
		       const struct ip_addr *from);

#endif
