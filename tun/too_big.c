/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/too_big.h"

#include <stdbool.h>
#include <string.h>

#include "tun/checksum.h"
#include "tun/ip.h"

#define ICMP_HEADER_LEN	    8
#define ICMP_CHECKSUM_AT    2
#define ICMP_MTU_AT	    4 /* 32 bits in ICMPv6; the lower 16 of them in ICMP */
#define ICMP_UNREACHABLE    3
#define ICMP_NEEDS_FRAGMENT 4
#define ICMP_QUENCH	    4
#define ICMP_REDIRECT	    5
#define ICMP_TIME_EXCEEDED  11
#define ICMP_PARAMETER	    12
#define ICMPV6_TOO_BIG	    2
#define ICMPV6_ERRORS	    128 /* below it */
#define ICMPV6_REDIRECT	    137
#define PROTOCOL_ICMP	    1
#define PROTOCOL_ICMPV6	    58
#define IPV6_MTU_MIN	    1280
#define ANSWER4_MAX	    576 /* RFC 1812, section 4.3.2.3 */
#define OFFSET_MASK	    0x1fff
#define TTL		    64

/* RFC 1122, section 3.2.2, and RFC 4443, section 2.4: errors answer no errors. */
static bool is_icmp_error(const uint8_t *packet, const struct ip_view *v)
{
	if (v->protocol != (v->is_ipv6 ? PROTOCOL_ICMPV6 : PROTOCOL_ICMP))
		return false;
	if (v->transport_at == v->len)
		return true; /* nobody knows what it was */
	uint8_t type = packet[v->transport_at];
	if (v->is_ipv6)
		return type < ICMPV6_ERRORS || type == ICMPV6_REDIRECT;
	return type == ICMP_UNREACHABLE || type == ICMP_QUENCH || type == ICMP_REDIRECT ||
	       type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETER;
}

static bool is_host(const struct ip_addr *a)
{
	static const uint8_t zeros[16];
	if (ip_is_multicast(a) || memcmp(a->bytes, zeros, sizeof(zeros)) == 0)
		return false;
	return a->family != 4 || (a->bytes[0] != 0 && a->bytes[0] != 127 && a->bytes[0] < 224);
}

static bool is_due(const uint8_t *packet, uint32_t len, const struct ip_view *v)
{
	struct ip_addr source, destination;
	if (!ip_source(packet, len, &source) || !ip_destination(packet, len, &destination) ||
	    !is_host(&source) || ip_is_multicast(&destination))
		return false;
	if (!v->is_ipv6) {
		uint16_t fragment = get16(packet + IPV4_FRAGMENT_AT);
		if (!(fragment & IPV4_DONT_FRAGMENT) || (fragment & OFFSET_MASK))
			return false;
	}
	/* What an IPv6 fragment carries is not looked for; its sender keeps what it learns. */
	return !is_icmp_error(packet, v);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t write4(uint8_t *out, const uint8_t *packet, uint32_t len, uint32_t mtu,
		       const struct ip_addr *from)
{
	uint8_t *icmp = out + IPV4_HEADER_MIN;
	uint32_t quoted = smaller(len, ANSWER4_MAX - IPV4_HEADER_MIN - ICMP_HEADER_LEN);
	uint32_t total = IPV4_HEADER_MIN + ICMP_HEADER_LEN + quoted;
	memset(out, 0, IPV4_HEADER_MIN + ICMP_HEADER_LEN);
	out[0] = 0x45;
	put16(out + IPV4_LEN_AT, (uint16_t)total);
	put16(out + IPV4_FRAGMENT_AT, IPV4_DONT_FRAGMENT);
	out[8] = TTL;
	out[9] = PROTOCOL_ICMP;
	memcpy(out + IPV4_ADDRS_AT, from->bytes, 4);
	memcpy(out + IPV4_ADDRS_AT + 4, packet + IPV4_ADDRS_AT, 4);
	put16(out + IPV4_CHECKSUM_AT, (uint16_t)~checksum_sum(out, IPV4_HEADER_MIN));
	icmp[0] = ICMP_UNREACHABLE;
	icmp[1] = ICMP_NEEDS_FRAGMENT;
	put32(icmp + ICMP_MTU_AT, smaller(mtu, UINT16_MAX));
	memcpy(icmp + ICMP_HEADER_LEN, packet, quoted);
	put16(icmp + ICMP_CHECKSUM_AT, (uint16_t)~checksum_sum(icmp, ICMP_HEADER_LEN + quoted));
	return total;
}

static uint32_t write6(uint8_t *out, const uint8_t *packet, uint32_t len, uint32_t mtu,
		       const struct ip_addr *from)
{
	uint8_t *icmp = out + IPV6_HEADER_LEN;
	uint32_t quoted = smaller(len, TOO_BIG_MAX - IPV6_HEADER_LEN - ICMP_HEADER_LEN);
	uint32_t icmp_len = ICMP_HEADER_LEN + quoted;
	memset(out, 0, IPV6_HEADER_LEN + ICMP_HEADER_LEN);
	out[0] = 0x60;
	put16(out + IPV6_LEN_AT, (uint16_t)icmp_len);
	out[6] = PROTOCOL_ICMPV6;
	out[7] = TTL;
	memcpy(out + IPV6_ADDRS_AT, from->bytes, 16);
	memcpy(out + IPV6_ADDRS_AT + 16, packet + IPV6_ADDRS_AT, 16);
	icmp[0] = ICMPV6_TOO_BIG;
	put32(icmp + ICMP_MTU_AT, mtu > IPV6_MTU_MIN ? mtu : IPV6_MTU_MIN);
	memcpy(icmp + ICMP_HEADER_LEN, packet, quoted);
	uint32_t sum = ip_pseudo_sum(out, true, PROTOCOL_ICMPV6, icmp_len);
	put16(icmp + ICMP_CHECKSUM_AT,
	      (uint16_t)~checksum_fold((uint64_t)sum + checksum_sum(icmp, icmp_len)));
	return IPV6_HEADER_LEN + icmp_len;
}

uint32_t too_big_write(uint8_t *out, const uint8_t *packet, uint32_t len, uint32_t mtu,
		       const struct ip_addr *from)
{
	struct ip_view v;
	if (!ip_look(packet, len, &v) || from->family != (v.is_ipv6 ? 6 : 4) ||
	    !is_due(packet, len, &v))
		return 0;
	if (v.is_ipv6)
		return write6(out, packet, v.len, mtu, from);
	return write4(out, packet, v.len, mtu, from);
}
