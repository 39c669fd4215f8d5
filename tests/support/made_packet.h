/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_MADE_PACKET_H
#define TESTS_SUPPORT_MADE_PACKET_H

/* Inner packets made for tests, with checksums summed up byte by byte: nothing here is shared with
 * what is tested. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One packet of TCP or UDP. Zeros are a plain packet of version 4 without payload. */
struct made_packet {
	bool is_ipv6, is_udp;
	bool is_atomic; /* IPv4: don't fragment */
	uint8_t flags;	/* TCP */
	uint8_t tos;
	uint8_t option;		/* TCP: a timestamp that ends in this value; 0: no options */
	uint8_t ip_options_len; /* IPv4: so many no-operations; IPv6: destination options */
	uint16_t id, port;
	uint32_t seq; /* UDP: of the payload */
	uint32_t payload_len;
};

static inline uint32_t made_sum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++) {
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static inline void made_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline uint32_t made_get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Where TCP or UDP begins in a packet that has no extension headers but destination options. */
static inline uint32_t made_transport_at(const uint8_t *packet)
{
	if (packet[0] >> 4 == 4)
		return (packet[0] & 15) * 4U;
	return packet[6] == 60 ? 40 + (packet[41] + 1U) * 8 : 40;
}

static inline bool made_is_udp(const uint8_t *packet)
{
	uint8_t protocol = packet[packet[0] >> 4 == 4 ? 9 : 6];
	return (protocol == 60 ? packet[40] : protocol) == 17;
}

/* Sum of the pseudo header of `len` bytes of TCP or UDP. */
static inline uint32_t made_pseudo_sum(const uint8_t *packet, uint32_t len)
{
	bool is_ipv4 = packet[0] >> 4 == 4;
	uint32_t sum = (made_is_udp(packet) ? 17 : 6) + len;
	return made_sum(packet + (is_ipv4 ? 12 : 8), is_ipv4 ? 8 : 32, sum);
}

/* Sum up the checksums anew; both forms of zero as the kernel writes them. */
static inline void made_finish(uint8_t *packet, uint32_t len)
{
	uint32_t at = made_transport_at(packet);
	uint8_t *checksum = packet + at + (made_is_udp(packet) ? 6 : 16);

	if (packet[0] >> 4 == 4) {
		made_put16(packet + 10, 0);
		made_put16(packet + 10, ~made_sum(packet, at, 0));
	}
	made_put16(checksum, 0);
	uint32_t sum = ~made_sum(packet + at, len - at, made_pseudo_sum(packet, len - at)) & 0xffff;
	made_put16(checksum, sum ? sum : 0xffff);
}

/* Both checksums are right. */
static inline bool made_is_right(const uint8_t *packet, uint32_t len)
{
	uint32_t at = made_transport_at(packet);
	if (packet[0] >> 4 == 4 && made_sum(packet, at, 0) != 0xffff)
		return false;
	return made_sum(packet + at, len - at, made_pseudo_sum(packet, len - at)) == 0xffff;
}

static inline uint32_t made_ip_header(const struct made_packet *m, uint32_t len, uint8_t *out)
{
	uint8_t protocol = m->is_udp ? 17 : 6;

	memset(out, 0, 40U + m->ip_options_len);
	if (!m->is_ipv6) {
		out[0] = (uint8_t)(0x45 + m->ip_options_len / 4);
		out[1] = m->tos;
		made_put16(out + 2, 20 + m->ip_options_len + len);
		made_put16(out + 4, m->id);
		out[6] = m->is_atomic ? 0x40 : 0;
		out[8] = 64;
		out[9] = protocol;
		memcpy(out + 12, (uint8_t[]){10, 8, 0, 6, 192, 0, 2, 99}, 8);
		memset(out + 20, 1, m->ip_options_len);
		return 20U + m->ip_options_len;
	}
	out[0] = (uint8_t)(0x60 | m->tos >> 4);
	out[1] = (uint8_t)(m->tos << 4);
	made_put16(out + 4, m->ip_options_len + len);
	out[6] = m->ip_options_len ? 60 : protocol;
	out[7] = 64;
	out[8] = out[24] = 0xfd;
	out[23] = 7;
	out[39] = 9;
	if (m->ip_options_len) {
		out[40] = protocol;
		out[41] = (uint8_t)(m->ip_options_len / 8 - 1);
	}
	return 40U + m->ip_options_len;
}

static inline uint32_t made_transport_header(const struct made_packet *m, uint8_t *out)
{
	memset(out, 0, 32);
	out[0] = 0xd4;
	made_put16(out + 2, m->port);
	if (m->is_udp) {
		made_put16(out + 4, 8 + m->payload_len);
		return 8;
	}
	made_put16(out + 4, m->seq >> 16);
	made_put16(out + 6, m->seq & 0xffff);
	out[11] = 77;
	out[13] = m->flags;
	out[14] = 2;
	out[12] = m->option ? 0x80 : 0x50;
	if (m->option)
		memcpy(out + 20, (uint8_t[]){1, 1, 8, 10, 0, 0, 0, m->option, 0, 0, 0, 1}, 12);
	return m->option ? 32 : 20;
}

/* Write the packet to `out`; its payload goes on where that of the packet with a lower seq ends,
 * also of UDP. Returns its length. */
static inline uint32_t made_write(const struct made_packet *m, uint8_t *out)
{
	uint8_t transport[32];
	uint32_t header_len = made_transport_header(m, transport);
	uint32_t ip_len = made_ip_header(m, header_len + m->payload_len, out);
	uint32_t at = ip_len + header_len;

	memcpy(out + ip_len, transport, header_len);
	for (uint32_t i = 0; i < m->payload_len; i++)
		out[at + i] = (uint8_t)((m->seq + i) * 37 + ((m->seq + i) >> 8) + m->port);
	made_finish(out, at + m->payload_len);
	return at + m->payload_len;
}

#endif
