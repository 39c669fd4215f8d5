/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_MSS_H
#define WORKERS_MSS_H

/* From `mssfix` to the MSS that a peer's TCP connections are clamped to (wire.md, section 14). A
 * pure function of the configuration and the peer's encapsulation, computed anew for each peer. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct mss_limits {
	uint16_t mss4, mss6; /* for IPv4 and IPv6 inside; 0: do not clamp */
};

/* is_v2: P_DATA_V2 towards the peer; is_ipv6: it is reached over IPv6 (a mapped address is IPv4).
 * AEAD ciphers over UDP. Any thread. */
struct mss_limits mss_limits(enum mssfix_mode mode, uint32_t mssfix, bool is_v2, bool is_ipv6);

#endif
