/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/inner.h"

#include <netinet/in.h>
#include <string.h>

#include "crypto/bytes.h"

#define MAGIC	     0x5357524du
#define IP_HEAD	     0x45u
#define TTL	     64u
#define DONT_FRAG    0x4000u
#define UDP_HEAD_LEN 8
#define TCP_HEAD_LEN 20
#define TCP_OFFSET   (5u << 12)
#define TCP_PSH	     0x08u
#define TCP_ACK	     0x10u
#define TCP_WINDOW   0xffffu
#define TCP_ACKED    1u
#define ICMP_REPLY   0
#define ICMP_ASK     8u

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

/* What a field adds to a one's complement sum. Sums are made of what is written, not read back: a
 * load of bytes that were just stored one by one waits for them. */
static uint32_t sum32(uint32_t v)
{
	return (v >> 16) + (v & 0xffff);
}

static uint32_t sum64(uint64_t v)
{
	return sum32((uint32_t)(v >> 32)) + sum32((uint32_t)v);
}

static uint32_t sum_of_stamp(const struct inner_stamp *s)
{
	return sum32(MAGIC) + sum32(s->stream) + sum64(s->seq);
}

static uint32_t sum_of_addresses(const struct inner_flow *f)
{
	return sum32(ntohl(f->source_be32)) + sum32(ntohl(f->target_be32));
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void write_ip(struct inner_flow *f, uint8_t protocol, uint32_t len, uint8_t *out)
{
	uint32_t sum = (IP_HEAD << 8) + len + f->ip_id + DONT_FRAG + (TTL << 8 | protocol) +
		       sum_of_addresses(f);

	put16(out, IP_HEAD << 8);
	put16(out + 2, len);
	put16(out + 4, f->ip_id++);
	put16(out + 6, DONT_FRAG);
	put16(out + 8, TTL << 8 | protocol);
	put16(out + 10, (uint16_t)~fold(sum));
	memcpy(out + 12, &f->source_be32, 4);
	memcpy(out + 16, &f->target_be32, 4);
}

/* Of pseudo header and ports. */
static uint32_t sum_of_flow(const struct inner_flow *f, uint32_t protocol, uint32_t l4_len)
{
	return sum_of_addresses(f) + protocol + l4_len + f->source_port + f->target_port;
}

static void write_udp(const struct inner_flow *f, uint32_t payload_len, uint32_t sum, uint8_t *udp)
{
	uint32_t len = payload_len + UDP_HEAD_LEN;
	uint16_t check = (uint16_t)~fold(sum + sum_of_flow(f, IPPROTO_UDP, len) + len);

	put16(udp, f->source_port);
	put16(udp + 2, f->target_port);
	put16(udp + 4, len);
	put16(udp + 6, check ? check : 0xffff);
}

/* Without the checksum. Returns the sum of what was written. */
static uint32_t write_tcp(struct inner_flow *f, uint32_t payload_len, uint32_t flags, uint8_t *tcp)
{
	uint32_t seq = f->tcp_seq;

	put16(tcp, f->source_port);
	put16(tcp + 2, f->target_port);
	put32(tcp + 4, seq);
	put32(tcp + 8, TCP_ACKED);
	put16(tcp + 12, TCP_OFFSET | flags);
	put16(tcp + 14, TCP_WINDOW);
	put32(tcp + 16, 0);
	f->tcp_seq += payload_len;
	return sum_of_flow(f, IPPROTO_TCP, payload_len + TCP_HEAD_LEN) + sum32(seq) + TCP_ACKED +
	       (TCP_OFFSET | flags) + TCP_WINDOW;
}

void inner_stamp_write(const struct inner_stamp *s, uint8_t *out)
{
	put32(out, MAGIC);
	put32(out + 4, s->stream);
	put64(out + 8, s->seq);
}

void inner_write(struct inner_flow *f, const struct inner_stamp *s, uint32_t payload_len,
		 bool is_last, uint8_t *out)
{
	uint32_t head_len = inner_header_len(f->protocol), sum = sum_of_stamp(s);
	uint8_t *l4 = out + INNER_IP_LEN, *payload = out + head_len;

	/* The zeros behind the stamp add nothing to the checksum. */
	if (f->protocol == INNER_TCP) {
		write_ip(f, IPPROTO_TCP, head_len + payload_len, out);
		sum += write_tcp(f, payload_len, is_last ? TCP_ACK | TCP_PSH : TCP_ACK, l4);
		put16(l4 + 16, (uint16_t)~fold(sum));
	} else {
		write_ip(f, IPPROTO_UDP, head_len + payload_len, out);
		write_udp(f, payload_len, sum, l4);
	}
	inner_stamp_write(s, payload);
	memset(payload + INNER_STAMP_LEN, 0, payload_len - INNER_STAMP_LEN);
}

void inner_write_super(struct inner_flow *f, uint32_t payload_len, uint32_t segment_len,
		       uint8_t *out)
{
	uint8_t *tcp = out + INNER_IP_LEN;

	write_ip(f, IPPROTO_TCP, INNER_TCP_LEN + payload_len, out);
	f->ip_id = (uint16_t)(f->ip_id + (payload_len - 1) / segment_len);
	(void)write_tcp(f, payload_len, TCP_ACK | TCP_PSH, tcp);
	put16(tcp + 16, fold(sum_of_addresses(f) + IPPROTO_TCP + TCP_HEAD_LEN + payload_len));
}

void inner_write_probe(const struct inner_flow *f, const struct inner_stamp *s, uint64_t sent_ns,
		       uint32_t payload_len, uint8_t *out)
{
	struct inner_flow copy = *f;
	uint8_t *icmp = out + INNER_IP_LEN, *payload = out + INNER_ICMP_LEN;
	uint32_t number = (uint16_t)s->seq;
	uint32_t sum = (ICMP_ASK << 8) + f->source_port + number + sum_of_stamp(s) + sum64(sent_ns);

	copy.ip_id = (uint16_t)number;
	write_ip(&copy, IPPROTO_ICMP, INNER_ICMP_LEN + payload_len, out);
	put16(icmp, ICMP_ASK << 8);
	put16(icmp + 2, (uint16_t)~fold(sum));
	put16(icmp + 4, f->source_port);
	put16(icmp + 6, number);
	inner_stamp_write(s, payload);
	put64(payload + INNER_STAMP_LEN, sent_ns);
	memset(payload + INNER_STAMP_LEN + 8, 0, payload_len - INNER_STAMP_LEN - 8);
}

/* Where the payload begins behind the IP header, or 0. */
static uint32_t payload_at(uint8_t protocol, const uint8_t *l4, uint32_t len)
{
	if (protocol == IPPROTO_UDP)
		return 8;
	if (protocol == IPPROTO_TCP && len > 12)
		return (uint32_t)(l4[12] >> 4) * 4;
	if (protocol == IPPROTO_ICMP && len > 0 && l4[0] == ICMP_REPLY)
		return 8;
	return 0;
}

struct inner_seen inner_read(const uint8_t *packet, uint32_t len)
{
	struct inner_seen seen = {.kind = INNER_OTHER};

	if (len < INNER_IP_LEN || packet[0] != IP_HEAD)
		return seen;
	const uint8_t *l4 = packet + INNER_IP_LEN;
	uint32_t skip = payload_at(packet[9], l4, len - INNER_IP_LEN);
	if (skip == 0 || skip > len - INNER_IP_LEN)
		return seen;
	seen.payload_len = len - INNER_IP_LEN - skip;
	struct reader r = reader_init(l4 + skip, seen.payload_len);
	uint32_t magic = reader_u32(&r);
	seen.stamp.stream = reader_u32(&r);
	seen.stamp.seq = reader_u64(&r);
	bool is_echo = packet[9] == IPPROTO_ICMP;
	if (is_echo)
		seen.sent_ns = reader_u64(&r);
	if (reader_ok(&r) && magic == MAGIC)
		seen.kind = is_echo ? INNER_ECHO : INNER_STAMPED;
	return seen;
}
