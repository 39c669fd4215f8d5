/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/coalesce.h"

#include <assert.h>
#include <linux/virtio_net.h>
#include <stdbool.h>
#include <string.h>

#include "tun/checksum.h"
#include "tun/ip.h"
#include "tun/segment.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* headers before Linux 6.2 */
#endif

#define SEGMENTS_MAX 64	   /* kernels before 6.18 take no more of UDP */
#define LEN_MAX	     65535 /* of a super-packet, headers included */
#define SLOT_COUNT   128   /* a power of two, so large that half of it stays free */
#define SLOT_FREE    UINT8_MAX

static_assert(SLOT_COUNT >= 2 * COALESCE_BATCH, "a search must find a free slot");

/* A packet of TCP or UDP that stands right behind an IP header of the usual length. */
struct segment {
	const uint8_t *packet;
	uint32_t hash;
	uint32_t ip_len;
	uint32_t header_len;
	uint32_t payload_len;
	bool is_ipv6, is_tcp;
	bool is_candidate; /* its shape is one that merges; checksums were not looked at */
	bool has_push;
};

/* The chain of a flow, or what was left of the last one: packet and hash stay. */
struct flow {
	const struct segment *first;
	uint32_t total_len; /* of the super-packet */
	uint32_t next_seq;
	uint16_t last_id, id_step; /* IPv4 */
	uint8_t head, tail;	   /* items */
	uint8_t count;
	bool is_open;	  /* may grow */
	bool is_verified; /* the first segment's checksums are right */
	bool has_push;
};

struct batch {
	struct coalesce_item *items;
	uint32_t offloads;
	unsigned flow_count;
	struct segment segments[COALESCE_BATCH]; /* of the items, as they were looked at */
	uint8_t slots[SLOT_COUNT]; /* by hash: index of a flow; SLOT_FREE ends a search */
	struct flow flows[COALESCE_BATCH];
};

/* Addresses and ports stand side by side. */
static const uint8_t *key_of(const struct segment *s)
{
	return s->packet + (s->is_ipv6 ? IPV6_ADDRS_AT : IPV4_ADDRS_AT);
}

static uint32_t hash_of(const struct segment *s)
{
	const uint8_t *key = key_of(s);
	uint64_t lane, hash = s->is_tcp;
	uint32_t ports, len = s->is_ipv6 ? IPV6_ADDRS_LEN : IPV4_ADDRS_LEN;

	for (uint32_t i = 0; i < len; i += 8) {
		memcpy(&lane, key + i, 8);
		hash = (hash ^ lane) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	memcpy(&ports, key + len, 4);
	hash = (hash ^ ports) * 0x9e3779b97f4a7c15;
	return (uint32_t)(hash >> 32);
}

static bool is_same_flow(const struct segment *a, const struct segment *b)
{
	if (a->hash != b->hash || a->is_ipv6 != b->is_ipv6 || a->is_tcp != b->is_tcp)
		return false;
	return a->is_ipv6 ? memcmp(key_of(a), key_of(b), IPV6_ADDRS_LEN + 4) == 0
			  : memcmp(key_of(a), key_of(b), IPV4_ADDRS_LEN + 4) == 0;
}

static void look_at_tcp(struct segment *s, uint32_t left)
{
	const uint8_t *tcp = s->packet + s->ip_len;
	uint32_t header_len = (uint32_t)(tcp[12] >> 4) * 4;

	if (header_len < TCP_HEADER_MIN || header_len >= left)
		return;
	s->header_len = s->ip_len + header_len;
	s->payload_len = left - header_len;
	s->has_push = tcp[TCP_FLAGS_AT] & TCP_FLAG_PSH;
	s->is_candidate = (tcp[TCP_FLAGS_AT] & ~TCP_FLAG_PSH) == TCP_FLAG_ACK;
}

static void look_at_udp(struct segment *s, uint32_t left)
{
	const uint8_t *udp = s->packet + s->ip_len;

	s->header_len = s->ip_len + UDP_HEADER_LEN;
	s->payload_len = left - UDP_HEADER_LEN;
	s->is_candidate = left > UDP_HEADER_LEN && get16(udp + UDP_LEN_AT) == left;
}

/* Returns false if the packet is of another protocol, or its ports are not where they usually are:
 * options, extension headers, fragments, rubbish. */
static bool look(const uint8_t *packet, uint32_t len, uint32_t offloads, struct segment *s)
{
	struct ip_view ip;

	if (!ip_look(packet, len, &ip) || ip.is_fragment)
		return false;
	bool is_tcp = ip.protocol == PROTOCOL_TCP;
	uint32_t left = ip.len - ip.transport_at;
	if (ip.transport_at != (ip.is_ipv6 ? IPV6_HEADER_LEN : IPV4_HEADER_MIN) ||
	    left < (is_tcp ? TCP_HEADER_MIN : UDP_HEADER_LEN) ||
	    (!is_tcp && ip.protocol != PROTOCOL_UDP))
		return false;
	s->packet = packet;
	s->ip_len = ip.transport_at;
	s->is_ipv6 = ip.is_ipv6;
	s->is_tcp = is_tcp;
	s->is_candidate = s->has_push = false;
	s->hash = hash_of(s);
	uint32_t tcp_offload = ip.is_ipv6 ? TUN_OFFLOAD_TCP6 : TUN_OFFLOAD_TCP4;
	if (ip.len != len || !(offloads & (is_tcp ? tcp_offload : TUN_OFFLOAD_UDP)))
		return true;
	if (is_tcp)
		look_at_tcp(s, left);
	else
		look_at_udp(s, left);
	return true;
}

/* A checksum that says "none", or that the split would write in the other of its two forms, is not
 * right here. */
static bool is_right(const struct segment *s)
{
	const uint8_t *transport = s->packet + s->ip_len;
	uint32_t len = s->header_len + s->payload_len - s->ip_len;
	uint8_t protocol = s->is_tcp ? PROTOCOL_TCP : PROTOCOL_UDP;

	if (get16(transport + (s->is_tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT)) == 0)
		return false;
	if (!s->is_ipv6 &&
	    (get16(s->packet + IPV4_CHECKSUM_AT) == 0xffff ||
	     checksum_fold(checksum_words(s->packet, IPV4_HEADER_MIN / 4)) != 0xffff))
		return false;
	uint64_t sum = ip_pseudo_sum(s->packet, s->is_ipv6, protocol, len);
	return checksum_fold(sum + checksum_sum(transport, len)) == 0xffff;
}

static bool has_equal_ip_header(const uint8_t *a, const uint8_t *b, bool is_ipv6)
{
	if (is_ipv6) /* version, class, flow label; next header, hop limit */
		return memcmp(a, b, 4) == 0 && memcmp(a + 6, b + 6, 2) == 0;
	/* Version, length, type of service; flags, time to live, protocol. */
	return memcmp(a, b, 2) == 0 && memcmp(a + 6, b + 6, 4) == 0;
}

/* All but ports, sequence, flags and checksum. */
static bool has_equal_tcp_header(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	return memcmp(a + 8, b + 8, 5) == 0 && memcmp(a + 14, b + 14, 2) == 0 &&
	       memcmp(a + 18, b + 18, len - 18) == 0;
}

/* The split counts the id up. Where no fragment can ever be, an id means nothing (RFC 6864, section
 * 4), and senders leave it as it is: such packets, too, come out with ids that count up. */
static bool is_next_id(const struct flow *f, const uint8_t *packet)
{
	uint16_t step = (uint16_t)(get16(packet + IPV4_ID_AT) - f->last_id);
	if (f->count > 1)
		return step == f->id_step;
	bool is_atomic = get16(packet + IPV4_FRAGMENT_AT) & IPV4_DONT_FRAGMENT;
	return step == 1 || (step == 0 && is_atomic);
}

static bool is_next(const struct flow *f, const struct segment *s)
{
	const struct segment *first = f->first;

	if (s->payload_len > first->payload_len || f->count == SEGMENTS_MAX ||
	    f->total_len + s->payload_len > LEN_MAX)
		return false;
	if (!has_equal_ip_header(first->packet, s->packet, s->is_ipv6))
		return false;
	if (!s->is_ipv6 && !is_next_id(f, s->packet))
		return false;
	const uint8_t *transport = s->packet + s->ip_len;
	return !s->is_tcp || (get32(transport + TCP_SEQ_AT) == f->next_seq &&
			      has_equal_tcp_header(first->packet + s->ip_len, transport,
						   s->header_len - s->ip_len));
}

static void put_virtio(const struct flow *f, uint8_t *out)
{
	struct virtio_net_hdr virtio = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = (uint16_t)f->first->header_len,
		.gso_size = (uint16_t)f->first->payload_len,
		.csum_start = (uint16_t)f->first->ip_len,
		.csum_offset = UDP_CHECKSUM_AT,
	};
	if (f->first->is_tcp) {
		virtio.gso_type =
			f->first->is_ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		virtio.csum_offset = TCP_CHECKSUM_AT;
	}
	memcpy(out, &virtio, sizeof(virtio));
}

/* Make the first segment's headers speak for all. The checksum is left to whoever splits it again:
 * its field has the sum of the pseudo header. */
static void put_headers(const struct flow *f, uint8_t *packet)
{
	uint32_t transport_len = f->total_len - f->first->ip_len;
	uint8_t *transport = packet + f->first->ip_len;
	uint16_t old = get16(packet + IPV4_LEN_AT);

	if (f->first->is_ipv6) {
		put16(packet + IPV6_LEN_AT, (uint16_t)transport_len);
	} else {
		put16(packet + IPV4_LEN_AT, (uint16_t)f->total_len);
		put16(packet + IPV4_CHECKSUM_AT, checksum_replace(get16(packet + IPV4_CHECKSUM_AT),
								  old, (uint16_t)f->total_len));
	}
	uint16_t sum = ip_pseudo_sum(packet, f->first->is_ipv6,
				     f->first->is_tcp ? PROTOCOL_TCP : PROTOCOL_UDP, transport_len);
	if (f->first->is_tcp) {
		put16(transport + TCP_CHECKSUM_AT, sum);
		transport[TCP_FLAGS_AT] |= f->has_push ? TCP_FLAG_PSH : 0;
	} else {
		put16(transport + UDP_LEN_AT, (uint16_t)transport_len);
		put16(transport + UDP_CHECKSUM_AT, sum);
	}
}

static void flow_close(struct batch *b, struct flow *f)
{
	struct coalesce_item *head = &b->items[f->head];

	if (f->is_open && f->count > 1) {
		put_headers(f, head->data);
		put_virtio(f, head->data - VIRTIO_LEN);
	}
	f->is_open = false;
}

/* Begin a chain with item `i`, if another segment could follow it. */
static void flow_open(struct flow *f, const struct segment *s, unsigned i)
{
	const uint8_t *transport = s->packet + s->ip_len;

	f->first = s;
	f->is_open = s->is_candidate && !s->has_push;
	f->is_verified = f->has_push = false;
	f->head = f->tail = (uint8_t)i;
	f->count = 1;
	f->total_len = s->header_len + s->payload_len;
	f->last_id = get16(s->packet + IPV4_ID_AT);
	f->next_seq = get32(transport + TCP_SEQ_AT) + s->payload_len;
}

static void flow_append(struct batch *b, struct flow *f, const struct segment *s, unsigned i)
{
	uint16_t id = get16(s->packet + IPV4_ID_AT);

	b->items[f->tail].next = (uint8_t)i;
	b->items[i].first = f->head;
	b->items[i].data += s->header_len;
	b->items[i].len -= s->header_len;
	f->id_step = (uint16_t)(id - f->last_id);
	f->last_id = id;
	f->next_seq += s->payload_len;
	f->total_len += s->payload_len;
	f->tail = (uint8_t)i;
	f->count++;
	f->has_push = s->has_push;
	if (s->has_push || s->payload_len < f->first->payload_len)
		flow_close(b, f);
}

/* The slot of a flow, or the free one where it would stand. */
static uint8_t *find_slot(struct batch *b, const struct segment *s)
{
	uint32_t at = s->hash % SLOT_COUNT;
	while (b->slots[at] != SLOT_FREE && !is_same_flow(b->flows[b->slots[at]].first, s))
		at = (at + 1) % SLOT_COUNT;
	return &b->slots[at];
}

static bool is_mergeable(struct flow *f, const struct segment *s)
{
	if (!f->is_open || !s->is_candidate || !is_next(f, s))
		return false;
	if (!f->is_verified)
		f->is_verified = is_right(f->first);
	return f->is_verified && is_right(s);
}

/* What has no ports in sight may belong to any flow between its addresses: for the order's sake
 * nothing behind it joins what was in front of it. */
static void close_between(struct batch *b, const uint8_t *packet, uint32_t len)
{
	bool is_ipv6 = len > 0 && packet[0] >> 4 == 6;
	uint32_t at = is_ipv6 ? IPV6_ADDRS_AT : IPV4_ADDRS_AT;
	uint32_t addrs_len = is_ipv6 ? IPV6_ADDRS_LEN : IPV4_ADDRS_LEN;

	if (len < at + addrs_len)
		return;
	for (unsigned i = 0; i < b->flow_count; i++) {
		struct flow *f = &b->flows[i];
		if (f->is_open && f->first->is_ipv6 == is_ipv6 &&
		    memcmp(f->first->packet + at, packet + at, addrs_len) == 0)
			flow_close(b, f);
	}
}

static void take(struct batch *b, unsigned i)
{
	struct coalesce_item *item = &b->items[i];
	struct segment *s = &b->segments[i];

	if (!look(item->data, item->len, b->offloads, s)) {
		close_between(b, item->data, item->len);
		return;
	}
	uint8_t *slot = find_slot(b, s);
	if (*slot == SLOT_FREE) {
		if (s->is_candidate) {
			*slot = (uint8_t)b->flow_count++;
			flow_open(&b->flows[*slot], s, i);
		}
		return;
	}
	struct flow *f = &b->flows[*slot];
	if (is_mergeable(f, s)) {
		flow_append(b, f, s, i);
		return;
	}
	flow_close(b, f);
	if (s->is_candidate)
		flow_open(f, s, i);
}

static void merge(struct coalesce_item *items, unsigned n, uint32_t offloads)
{
	struct batch b;

	b.items = items;
	b.offloads = offloads;
	b.flow_count = 0;
	memset(b.slots, SLOT_FREE, sizeof(b.slots));
	for (unsigned i = 0; i < n; i++)
		take(&b, i);
	for (unsigned i = 0; i < b.flow_count; i++)
		flow_close(&b, &b.flows[i]);
}

unsigned coalesce(struct coalesce_item *items, unsigned n, uint32_t offloads)
{
	unsigned frames = 0;

	assert(n <= COALESCE_BATCH);
	for (unsigned i = 0; i < n; i++) {
		items[i].next = COALESCE_NONE;
		items[i].first = (uint8_t)i;
	}
	if (offloads != 0 && n > 1)
		merge(items, n, offloads);
	for (unsigned i = 0; i < n; i++) {
		if (items[i].first != i)
			continue;
		items[i].data -= VIRTIO_LEN;
		items[i].len += VIRTIO_LEN;
		if (items[i].next == COALESCE_NONE)
			memset(items[i].data, 0, VIRTIO_LEN);
		frames++;
	}
	return frames;
}
