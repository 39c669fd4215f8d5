/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_IP_H
#define TUN_IP_H

/* Look into inner packets: version, lengths, addresses, and the TCP MSS clamp. Works on
 * min(header length, buffer length) and leaves alone whatever is inconsistent. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"

/* Lengths, and offsets of fields in their header: RFC 791, 8200, 9293, 768. */
#define IPV4_HEADER_MIN	 20
#define IPV4_LEN_AT	 2
#define IPV4_ID_AT	 4
#define IPV4_FRAGMENT_AT 6
#define IPV4_CHECKSUM_AT 10
#define IPV4_ADDRS_AT	 12
#define IPV4_ADDRS_LEN	 8
#define IPV6_HEADER_LEN	 40
#define IPV6_LEN_AT	 4
#define IPV6_ADDRS_AT	 8
#define IPV6_ADDRS_LEN	 32
#define TCP_HEADER_MIN	 20
#define TCP_SEQ_AT	 4
#define TCP_FLAGS_AT	 13
#define TCP_CHECKSUM_AT	 16
#define UDP_HEADER_LEN	 8
#define UDP_LEN_AT	 4
#define UDP_CHECKSUM_AT	 6

#define IPV4_FRAGMENTED	   0x3fff /* more fragments, or an offset */
#define IPV4_DONT_FRAGMENT 0x4000
#define PROTOCOL_TCP	   6
#define PROTOCOL_UDP	   17
#define TCP_FLAG_FIN	   0x01
#define TCP_FLAG_SYN	   0x02
#define TCP_FLAG_PSH	   0x08
#define TCP_FLAG_ACK	   0x10
#define TCP_FLAG_CWR	   0x80

/* Integers in network order, at any alignment. */
static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)(v >> 16));
	put16(p + 2, (uint16_t)v);
}

/* The outline of a packet. */
struct ip_view {
	uint32_t len;	       /* as its header says: 20..65535, IPv6 40..65575 */
	uint32_t transport_at; /* behind the IP header, its options and extension headers */
	uint8_t protocol;      /* of what stands there; an extension header that is cut short */
	bool is_ipv6;
	bool is_fragment; /* also an IPv6 packet with a fragment header that is whole */
};

/* Look at a packet that lies in `len` bytes. Hop-by-hop, routing and destination options of IPv6
 * are passed over. Returns false if the version is neither 4 nor 6, or the headers say that the
 * packet is longer than `len` or shorter than themselves. */
bool ip_look(const uint8_t *packet, uint32_t len, struct ip_view *out);

/* Folded sum of the pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1) of a packet with
 * `len` bytes of `protocol`. The destination is the one in the fixed header. */
uint16_t ip_pseudo_sum(const uint8_t *packet, bool is_ipv6, uint8_t protocol, uint32_t len);

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
