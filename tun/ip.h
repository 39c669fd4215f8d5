/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_IP_H
#define TUN_IP_H

/* Look into inner packets: version, lengths, addresses, and the TCP MSS clamp. Works on
 * min(header length, buffer length) and leaves alone whatever is inconsistent. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"

/* Addresses of an inner packet. Returns false if the version is neither 4 nor 6 or the packet is
 * shorter than its fixed header. */
bool ip_source(const uint8_t *packet, uint32_t len, struct ip_addr *out);
bool ip_destination(const uint8_t *packet, uint32_t len, struct ip_addr *out);
bool ip_is_multicast(const struct ip_addr *a); /* also 255.255.255.255 */
bool ip_is_link_local(const struct ip_addr *a);

/* Lower the MSS option of a TCP SYN to at most `mss4` (IPv4) or `mss6` (IPv6; 0: leave alone) and
 * fix the checksum incrementally. Anything that is not a complete, unfragmented SYN with that
 * option stays as it is (wire.md, section 14). Changes the packet in place. */
void ip_clamp_mss(uint8_t *packet, uint32_t len, uint16_t mss4, uint16_t mss6);

#endif
