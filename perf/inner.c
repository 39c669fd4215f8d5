/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/inner.h"

#include <netinet/in.h>
#include <string.h>

#include "crypto/bytes.h"

#define MAGIC	   0x5357524du
#define TTL	   64
#define DONT_FRAG  0x4000
#define TCP_PSH	   0x08
#define TCP_ACK	   0x10
#define TCP_WINDOW 0xffff
#define ICMP_REPLY 0
#define ICMP_ASK   8

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

/* One's complement sum of `len` (even) bytes, in network order, not folded. */
static uint64_t sum_of(const uint8_t *p, uint32_t len)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i + 4 <= len; i += 4) {
		uint32_t word;

		memcpy(&word, p + i, 4);
		sum += ntohl(word);
	}
	return len % 4 ? sum + ((uint64_t)p[len - 2] << 8 | p[len - 1]) : sum;
}

static uint16_t fold(uint64_t sum)
{
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void write_ip(struct inner_flow *f, uint8_t protocol, uint32_t len, uint8_t *out)
{
	out[0] = 0x45;
	out[1] = 0;
	put16(out + 2, len);
	put16(out + 4, f->ip_id++);
	put16(out + 6, DONT_FRAG);
	out[8] = TTL;
	out[9] = protocol;
	put16(out + 10, 0);
	memcpy(out + 12, &f->source_be32, 4);
	memcpy(out + 16, &f->target_be32, 4);
	put16(out + 10, (uint16_t)~fold(sum_of(out, INNER_IP_LEN)));
}

static uint64_t pseudo_sum(const uint8_t *ip, uint8_t protocol, uint32_t len)
{
	return sum_of(ip + 12, 8) + protocol + len;
}

static void write_udp(const struct inner_flow *f, uint32_t payload_len, uint8_t *udp)
{
	put16(udp, f->source_port);
	put16(udp + 2, f->target_port);
	put16(udp + 4, payload_len + 8);
	put16(udp + 6, 0);
}

static void write_tcp(struct inner_flow *f, uint32_t payload_len, uint8_t flags, uint8_t *tcp)
{
	put16(tcp, f->source_port);
	put16(tcp + 2, f->target_port);
	put32(tcp + 4, f->tcp_seq);
	put32(tcp + 8, 1);
	tcp[12] = 5 << 4;
	tcp[13] = flags;
	put16(tcp + 14, TCP_WINDOW);
	put32(tcp + 16, 0);
	f->tcp_seq += payload_len;
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
	bool is_tcp = f->protocol == INNER_TCP;
	uint8_t protocol = is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
	uint32_t head_len = inner_header_len(f->protocol);
	uint8_t *l4 = out + INNER_IP_LEN, *payload = out + head_len;

	write_ip(f, protocol, head_len + payload_len, out);
	if (is_tcp)
		write_tcp(f, payload_len, is_last ? TCP_ACK | TCP_PSH : TCP_ACK, l4);
	else
		write_udp(f, payload_len, l4);
	inner_stamp_write(s, payload);
	memset(payload + INNER_STAMP_LEN, 0, payload_len - INNER_STAMP_LEN);
	/* The zeros add nothing. */
	uint64_t sum = pseudo_sum(out, protocol, head_len - INNER_IP_LEN + payload_len) +
		       sum_of(l4, head_len - INNER_IP_LEN + INNER_STAMP_LEN);
	uint16_t check = (uint16_t)~fold(sum);
	put16(l4 + (is_tcp ? 16 : 6), check ? check : 0xffff);
}

void inner_write_super(struct inner_flow *f, uint32_t payload_len, uint32_t segment_len,
		       uint8_t *out)
{
	uint8_t *tcp = out + INNER_IP_LEN;

	write_ip(f, IPPROTO_TCP, INNER_TCP_LEN + payload_len, out);
	f->ip_id = (uint16_t)(f->ip_id + (payload_len - 1) / segment_len);
	write_tcp(f, payload_len, TCP_ACK | TCP_PSH, tcp);
	put16(tcp + 16,
	      fold(pseudo_sum(out, IPPROTO_TCP, INNER_TCP_LEN - INNER_IP_LEN + payload_len)));
}

void inner_write_probe(const struct inner_flow *f, const struct inner_stamp *s, uint64_t sent_ns,
		       uint32_t payload_len, uint8_t *out)
{
	struct inner_flow copy = *f;
	uint8_t *icmp = out + INNER_IP_LEN, *payload = out + INNER_ICMP_LEN;

	copy.ip_id = (uint16_t)s->seq;
	write_ip(&copy, IPPROTO_ICMP, INNER_ICMP_LEN + payload_len, out);
	put32(icmp, (uint32_t)ICMP_ASK << 24);
	put16(icmp + 4, f->source_port);
	put16(icmp + 6, (uint32_t)s->seq);
	inner_stamp_write(s, payload);
	put64(payload + INNER_STAMP_LEN, sent_ns);
	memset(payload + INNER_STAMP_LEN + 8, 0, payload_len - INNER_STAMP_LEN - 8);
	put16(icmp + 2, (uint16_t)~fold(sum_of(icmp, 8 + INNER_STAMP_LEN + 8)));
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

	if (len < INNER_IP_LEN || packet[0] != 0x45)
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
