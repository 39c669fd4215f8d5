/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/segment.h"

#include <assert.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "tun/checksum.h"
#include "tun/ip.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* headers before Linux 6.2 */
#endif

static_assert(sizeof(struct virtio_net_hdr) == VIRTIO_LEN, "the header of a tun queue");

/* A checksum field. 0 would say that there is none (RFC 768), and is the same number as 0xffff. */
static void put_checksum(uint8_t *p, uint64_t sum)
{
	uint16_t checksum = (uint16_t)~checksum_fold(sum);
	put16(p, checksum ? checksum : 0xffff);
}

/* Finish the checksum of a packet whose field holds the sum of the pseudo header. The field may
 * also be that of a packet inside, behind the headers that are seen here. */
static enum drop finish_checksum(uint8_t *packet, const struct ip_view *ip, uint32_t start,
				 uint32_t offset)
{
	uint32_t ip_header_len = ip->is_ipv6 ? IPV6_HEADER_LEN : ip->transport_at;
	if (start < ip_header_len || start + offset + 2 > ip->len)
		return DROP_BAD_IP;
	put_checksum(packet + start + offset, checksum_sum(packet + start, ip->len - start));
	return DROP_NONE;
}

static bool is_offload_of(const struct virtio_net_hdr *virtio, const struct ip_view *ip)
{
	if (virtio->gso_size == 0 || ip->is_fragment)
		return false;
	switch (virtio->gso_type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN:
		return !ip->is_ipv6 && ip->protocol == PROTOCOL_TCP;
	case VIRTIO_NET_HDR_GSO_TCPV6:
	case VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN:
		return ip->is_ipv6 && ip->protocol == PROTOCOL_TCP;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		return ip->protocol == PROTOCOL_UDP;
	default:
		return false;
	}
}

/* Length of the TCP or UDP header in `len` bytes; 0 if it is not whole or says something else. */
static uint32_t transport_header_len(const uint8_t *transport, uint32_t len, bool is_tcp)
{
	if (!is_tcp)
		return len >= UDP_HEADER_LEN && get16(transport + UDP_LEN_AT) == len
			       ? UDP_HEADER_LEN
			       : 0;
	if (len < TCP_HEADER_MIN)
		return 0;
	uint32_t header_len = (uint32_t)(transport[12] >> 4) * 4;
	return header_len >= TCP_HEADER_MIN && header_len <= len ? header_len : 0;
}

/* The sums over what all segments have in common, so that a segment only adds what is its own. The
 * checksum field holds the sum of the pseudo header. */
static void sum_headers(struct super_packet *s)
{
	const uint8_t *transport = s->packet + s->ip_len;
	uint32_t transport_len = s->len - s->ip_len;
	uint64_t sum = checksum_sum(transport, s->header_len - s->ip_len);

	sum += (uint16_t)~checksum_fold(transport_len);
	if (s->is_tcp) {
		sum += (uint16_t)~get16(transport + TCP_SEQ_AT);
		sum += (uint16_t)~get16(transport + TCP_SEQ_AT + 2);
		sum += (uint16_t)~get16(transport + TCP_FLAGS_AT - 1);
	} else {
		sum += (uint16_t)~get16(transport + UDP_LEN_AT);
	}
	s->transport_sum = checksum_fold(sum);
	if (s->is_ipv6)
		return;
	sum = checksum_sum(s->packet, s->ip_len);
	sum += (uint16_t)~get16(s->packet + IPV4_LEN_AT);
	sum += (uint16_t)~get16(s->packet + IPV4_ID_AT);
	sum += (uint16_t)~get16(s->packet + IPV4_CHECKSUM_AT);
	s->ip_sum = checksum_fold(sum);
}

static enum drop parse_super(const struct virtio_net_hdr *virtio, const struct ip_view *ip,
			     struct super_packet *s)
{
	if (!is_offload_of(virtio, ip))
		return DROP_BAD_IP;
	bool is_tcp = ip->protocol == PROTOCOL_TCP;
	uint8_t *transport = s->packet + ip->transport_at;
	uint32_t transport_len = ip->len - ip->transport_at;
	uint32_t header_len = transport_header_len(transport, transport_len, is_tcp);
	if (header_len == 0)
		return DROP_BAD_IP;

	uint32_t checksum_at = is_tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT;
	if (!(virtio->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		put16(transport + checksum_at,
		      ip_pseudo_sum(s->packet, ip->is_ipv6, ip->protocol, transport_len));
	else if (virtio->csum_start != ip->transport_at || virtio->csum_offset != checksum_at)
		return DROP_BAD_IP;

	uint32_t payload_len = transport_len - header_len;
	if (payload_len <= virtio->gso_size)
		return finish_checksum(s->packet, ip, ip->transport_at, checksum_at);
	s->header_len = ip->transport_at + header_len;
	s->payload_len = virtio->gso_size;
	s->count = (payload_len + virtio->gso_size - 1) / virtio->gso_size;
	s->ip_len = ip->transport_at;
	s->is_tcp = is_tcp;
	sum_headers(s);
	return DROP_NONE;
}

enum drop super_packet_parse(uint8_t *frame, uint32_t len, struct super_packet *out)
{
	struct virtio_net_hdr virtio;
	struct ip_view ip;

	if (len < VIRTIO_LEN || !ip_look(frame + VIRTIO_LEN, len - VIRTIO_LEN, &ip))
		return DROP_BAD_IP;
	memcpy(&virtio, frame, sizeof(virtio));
	out->packet = frame + VIRTIO_LEN;
	out->len = ip.len;
	out->count = 1;
	out->is_ipv6 = ip.is_ipv6;
	if (virtio.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return parse_super(&virtio, &ip, out);
	if (virtio.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return finish_checksum(out->packet, &ip, virtio.csum_start, virtio.csum_offset);
	return DROP_NONE;
}

static uint32_t payload_of(const struct super_packet *s, unsigned i)
{
	uint32_t left = s->len - s->header_len - i * s->payload_len;
	return left < s->payload_len ? left : s->payload_len;
}

uint32_t super_packet_segment_len(const struct super_packet *s, unsigned i)
{
	return s->count > 1 ? s->header_len + payload_of(s, i) : s->len;
}

/* As the kernel does it: the id counts up, also where fragments are forbidden. */
static void put_ipv4(const struct super_packet *s, unsigned i, uint8_t *out, uint32_t len)
{
	uint16_t id = (uint16_t)(get16(out + IPV4_ID_AT) + i);
	put16(out + IPV4_LEN_AT, (uint16_t)len);
	put16(out + IPV4_ID_AT, id);
	put16(out + IPV4_CHECKSUM_AT, (uint16_t)~checksum_fold((uint64_t)s->ip_sum + len + id));
}

static void put_tcp(const struct super_packet *s, unsigned i, uint8_t *tcp, uint64_t sum)
{
	uint32_t seq = get32(tcp + TCP_SEQ_AT) + i * s->payload_len;
	uint16_t flags = get16(tcp + TCP_FLAGS_AT - 1);

	if (i + 1 < s->count)
		flags &= (uint16_t) ~(TCP_FLAG_FIN | TCP_FLAG_PSH);
	if (i > 0)
		flags &= (uint16_t)~TCP_FLAG_CWR;
	put32(tcp + TCP_SEQ_AT, seq);
	put16(tcp + TCP_FLAGS_AT - 1, flags);
	put_checksum(tcp + TCP_CHECKSUM_AT, sum + (seq >> 16) + (seq & 0xffff) + flags);
}

static void put_udp(uint8_t *udp, uint32_t len, uint64_t sum)
{
	put16(udp + UDP_LEN_AT, (uint16_t)len);
	put_checksum(udp + UDP_CHECKSUM_AT, sum + len);
}

static void write_segment(const struct super_packet *s, unsigned i, uint8_t *out)
{
	uint32_t payload_len = payload_of(s, i), len = s->header_len + payload_len;
	const uint8_t *payload = s->packet + s->header_len + i * s->payload_len;

	memcpy(out, s->packet, s->header_len);
	uint64_t sum = checksum_copy(out + s->header_len, payload, payload_len);
	sum += (uint64_t)s->transport_sum + len - s->ip_len;
	if (s->is_ipv6)
		put16(out + IPV6_LEN_AT, (uint16_t)(len - IPV6_HEADER_LEN));
	else
		put_ipv4(s, i, out, len);
	if (s->is_tcp)
		put_tcp(s, i, out + s->ip_len, sum);
	else
		put_udp(out + s->ip_len, len - s->ip_len, sum);
}

void super_packet_split(const struct super_packet *s, unsigned first, unsigned n, uint8_t *out,
			uint32_t stride)
{
	for (unsigned i = first; i < first + n; i++, out += stride)
		write_segment(s, i, out);
}
