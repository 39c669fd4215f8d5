/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/ip.h"

#include <string.h>

#include "tun/checksum.h"

#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define TCP_MSS_LEN    4

/* IPv6 extension headers (RFC 8200, section 4). */
#define EXTENSION_HOP_BY_HOP  0
#define EXTENSION_ROUTING     43
#define EXTENSION_FRAGMENT    44
#define EXTENSION_DESTINATION 60
#define EXTENSION_MIN	      8

static uint32_t version_of(const uint8_t *packet, uint32_t len)
{
	if (len >= IPV4_HEADER_MIN && packet[0] >> 4 == 4)
		return 4;
	if (len >= IPV6_HEADER_LEN && packet[0] >> 4 == 6)
		return 6;
	return 0;
}

/* Take the address that stands at `at4` or `at6`, both inside the fixed header. */
static bool address(const uint8_t *packet, uint32_t len, uint32_t at4, uint32_t at6,
		    struct ip_addr *out)
{
	uint32_t version = version_of(packet, len);
	if (version == 0)
		return false;

	memset(out, 0, sizeof(*out));
	out->family = (uint8_t)version;
	if (version == 4)
		memcpy(out->bytes, packet + at4, 4);
	else
		memcpy(out->bytes, packet + at6, 16);
	return true;
}

bool ip_source(const uint8_t *packet, uint32_t len, struct ip_addr *out)
{
	return address(packet, len, 12, 8, out);
}

bool ip_destination(const uint8_t *packet, uint32_t len, struct ip_addr *out)
{
	return address(packet, len, 16, 24, out);
}

bool ip_is_multicast(const struct ip_addr *a)
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	if (a->family == 4)
		return a->bytes[0] >> 4 == 0xe || memcmp(a->bytes, broadcast, 4) == 0;
	return a->family == 6 && a->bytes[0] == 0xff;
}

bool ip_is_link_local(const struct ip_addr *a)
{
	if (a->family == 4)
		return a->bytes[0] == 169 && a->bytes[1] == 254;
	return a->family == 6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

static bool is_extension(uint8_t protocol)
{
	return protocol == EXTENSION_HOP_BY_HOP || protocol == EXTENSION_ROUTING ||
	       protocol == EXTENSION_DESTINATION;
}

static void skip_extensions(const uint8_t *packet, struct ip_view *v)
{
	while (is_extension(v->protocol)) {
		const uint8_t *extension = packet + v->transport_at;
		uint32_t left = v->len - v->transport_at;
		if (left < EXTENSION_MIN || (extension[1] + 1U) * 8 > left)
			return;
		v->protocol = extension[0];
		v->transport_at += (extension[1] + 1U) * 8;
	}
	v->is_fragment = v->protocol == EXTENSION_FRAGMENT;
}

bool ip_look(const uint8_t *packet, uint32_t len, struct ip_view *out)
{
	uint32_t version = version_of(packet, len);
	if (version == 0)
		return false;

	out->is_ipv6 = version == 6;
	if (out->is_ipv6) {
		out->len = IPV6_HEADER_LEN + get16(packet + IPV6_LEN_AT);
		out->transport_at = IPV6_HEADER_LEN;
		out->protocol = packet[6];
		out->is_fragment = false;
	} else {
		out->len = get16(packet + IPV4_LEN_AT);
		out->transport_at = (uint32_t)(packet[0] & 0xf) * 4;
		out->protocol = packet[9];
		out->is_fragment = get16(packet + IPV4_FRAGMENT_AT) & IPV4_FRAGMENTED;
	}
	if (out->len > len || out->transport_at > out->len || out->transport_at < IPV4_HEADER_MIN)
		return false;
	if (out->is_ipv6)
		skip_extensions(packet, out);
	return true;
}

uint16_t ip_pseudo_sum(const uint8_t *packet, bool is_ipv6, uint8_t protocol, uint32_t len)
{
	uint64_t sum = is_ipv6 ? checksum_words(packet + IPV6_ADDRS_AT, IPV6_ADDRS_LEN / 4)
			       : checksum_words(packet + IPV4_ADDRS_AT, IPV4_ADDRS_LEN / 4);
	return checksum_fold(sum + protocol + len);
}

/* Write `mss` at `at` of the TCP header. A value at an odd offset lies across two words of the
 * checksum: its bytes count the other way round. */
static void set_mss(uint8_t *tcp, uint32_t at, uint16_t mss)
{
	uint16_t old = get16(tcp + at);
	uint16_t new = mss;
	if (at & 1) {
		old = __builtin_bswap16(old);
		new = __builtin_bswap16(new);
	}
	uint16_t checksum = get16(tcp + TCP_CHECKSUM_AT);
	put16(tcp + TCP_CHECKSUM_AT, checksum_replace(checksum, old, new));
	put16(tcp + at, mss);
}

/* `len` bytes of TCP, header included and whole. */
static void clamp_tcp(uint8_t *tcp, uint32_t len, uint16_t mss)
{
	if (len < TCP_HEADER_MIN || !(tcp[TCP_FLAGS_AT] & TCP_FLAG_SYN))
		return;
	uint32_t header_len = (uint32_t)(tcp[12] >> 4) * 4;
	if (header_len < TCP_HEADER_MIN || header_len > len)
		return;

	uint32_t at = TCP_HEADER_MIN;
	while (at < header_len && tcp[at] != TCP_OPTION_END) {
		if (tcp[at] == TCP_OPTION_NOP) {
			at++;
			continue;
		}
		if (header_len - at < 2)
			return;
		uint32_t option_len = tcp[at + 1];
		if (option_len < 2 || option_len > header_len - at)
			return;
		if (tcp[at] == TCP_OPTION_MSS && option_len == TCP_MSS_LEN &&
		    get16(tcp + at + 2) > mss)
			set_mss(tcp, at + 2, mss);
		at += option_len;
	}
}

/* Stock only clamps IPv6 where TCP is the first next header (wire.md, section 14). */
void ip_clamp_mss(uint8_t *packet, uint32_t len, uint16_t mss4, uint16_t mss6)
{
	struct ip_view v;

	if (!ip_look(packet, len, &v) || v.protocol != PROTOCOL_TCP || v.is_fragment)
		return;
	uint16_t mss = v.is_ipv6 ? mss6 : mss4;
	if (mss > 0 && !(v.is_ipv6 && v.transport_at > IPV6_HEADER_LEN))
		clamp_tcp(packet + v.transport_at, v.len - v.transport_at, mss);
}
