/* SPDX-License-Identifier: Apache-2.0 */
/* Differential: whatever is coalesced, splitting each frame gives back exactly the packets that
 * went in, and within a flow none overtakes another. The first byte says what the rest is: packets
 * as they are, each behind its length in two bytes; or orders for flows that are made here, which
 * are right but for a byte that an order changes. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/made_packet.h"
#include "tun/coalesce.h"
#include "tun/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FLOW_COUNT	 8
#define PACKET_MAX	 2048
#define FRAME_MAX	 (VIRTIO_LEN + 65536)
#define FLAG_ACK	 0x10
#define FLAG_PSH	 0x08
#define MODE_BYTES	 0x80 /* of the first byte; the others: offloads */
#define ORDER_LEN	 4
#define ORDER_PUSH	 0x08 /* of the first byte of an order; the lower three: which flow */
#define ORDER_SAME_ID	 0x10
#define ORDER_SHORTER	 0x20
#define ORDER_CHANGE	 0x40 /* exclusive or of byte [1] with [2], and the checksums */
#define ORDER_CHANGE_BAD 0x80 /* the same, the checksums are left */

struct lot {
	struct coalesce_item items[COALESCE_BATCH];
	uint8_t *homes[COALESCE_BATCH];
	uint8_t were[COALESCE_BATCH][PACKET_MAX];
	uint32_t lens[COALESCE_BATCH];
	unsigned count;
};

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

static void add(struct lot *l, const uint8_t *packet, uint32_t len)
{
	unsigned i = l->count++;
	/* Exactly as large as the packet, so that the sanitizer sees the first byte past it. */
	l->homes[i] = malloc(VIRTIO_LEN + len);
	require(l->homes[i]);
	memcpy(l->homes[i] + VIRTIO_LEN, packet, len);
	memcpy(l->were[i], packet, len);
	l->lens[i] = len;
	l->items[i] = (struct coalesce_item){.data = l->homes[i] + VIRTIO_LEN, .len = len};
}

static void add_bytes(struct lot *l, const uint8_t *data, size_t len)
{
	while (len >= 2 && l->count < COALESCE_BATCH) {
		uint32_t packet_len = made_get16(data);
		data += 2;
		len -= 2;
		if (packet_len > len)
			packet_len = (uint32_t)len;
		if (packet_len > PACKET_MAX)
			packet_len = PACKET_MAX;
		add(l, data, packet_len);
		data += packet_len;
		len -= packet_len;
	}
}

/* Eight flows of all kinds; some share addresses, two only differ in their port. */
static void make_flows(struct made_packet *flows, const uint8_t *shape)
{
	for (unsigned i = 0; i < FLOW_COUNT; i++) {
		flows[i] = (struct made_packet){.is_ipv6 = i & 1,
						.is_udp = i & 2,
						.is_atomic = shape[i] & 0x80,
						.flags = FLAG_ACK,
						.option = i & 4 ? 7 : 0,
						.id = (uint16_t)(0xfffc + i),
						.port = (uint16_t)(i & 4),
						.seq = 0xfffff000,
						.payload_len = 1 + (shape[i] & 0x7fU) * 11};
	}
}

static void obey(struct lot *l, struct made_packet *flow, const uint8_t *order)
{
	uint8_t packet[PACKET_MAX];
	struct made_packet m = *flow;

	if (order[0] & ORDER_PUSH)
		m.flags |= FLAG_PSH;
	if (order[0] & ORDER_SHORTER)
		m.payload_len = m.payload_len * order[3] / 256;
	uint32_t len = made_write(&m, packet), at = order[1] % len;
	if (order[0] & (ORDER_CHANGE | ORDER_CHANGE_BAD))
		packet[at] ^= order[2];
	/* Only if what is summed up still stands where it did. */
	if (order[0] & ORDER_CHANGE && made_transport_at(packet) == (m.is_ipv6 ? 40 : 20))
		made_finish(packet, len);
	add(l, packet, len);
	flow->seq += m.payload_len;
	flow->id = (uint16_t)(flow->id + !(order[0] & ORDER_SAME_ID));
}

static void add_flows(struct lot *l, const uint8_t *data, size_t len)
{
	struct made_packet flows[FLOW_COUNT];

	if (len < FLOW_COUNT)
		return;
	make_flows(flows, data);
	data += FLOW_COUNT;
	len -= FLOW_COUNT;
	for (; len >= ORDER_LEN && l->count < COALESCE_BATCH; data += ORDER_LEN, len -= ORDER_LEN)
		obey(l, &flows[data[0] % FLOW_COUNT], data);
}

/* The frame that item `head` begins, its pieces behind each other. */
static uint32_t gather(const struct lot *l, uint8_t head, uint8_t *out)
{
	uint32_t len = 0;
	for (uint8_t i = head; i != COALESCE_NONE; i = l->items[i].next) {
		require(i < l->count && l->items[i].first == head);
		require(len + l->items[i].len <= FRAME_MAX);
		memcpy(out + len, l->items[i].data, l->items[i].len);
		len += l->items[i].len;
	}
	return len;
}

/* RFC 6864: the id of a datagram that must not be fragmented means nothing. Such packets may all
 * have had the same one; then ids that count up came out. */
static void restore_id(uint8_t *got, const uint8_t *was, const uint8_t *head)
{
	if (was[0] >> 4 != 4 || !(was[6] & 0x40) || memcmp(was + 4, head + 4, 2) != 0)
		return;
	memcpy(got + 4, was + 4, 2);
	memcpy(got + 10, was + 10, 2);
}

static void check_merged(const struct lot *l, uint8_t head, uint8_t *frame, uint32_t len)
{
	struct super_packet s;
	uint8_t out[PACKET_MAX];
	unsigned n = 0;

	require(super_packet_parse(frame, len, &s) == DROP_NONE);
	require(s.count >= 2 && s.count <= 64 && s.len == len - VIRTIO_LEN && s.len <= 65535);
	for (uint8_t i = head; i != COALESCE_NONE; i = l->items[i].next, n++) {
		require(n < s.count && super_packet_segment_len(&s, n) == l->lens[i]);
		super_packet_split(&s, n, 1, out, PACKET_MAX);
		require(!s.is_ipv6 ? made_sum(out, 20, 0) == 0xffff : true);
		restore_id(out, l->were[i], l->were[head]);
		require(memcmp(out, l->were[i], l->lens[i]) == 0);
	}
	require(n == s.count);
}

static void check_frame(const struct lot *l, uint8_t head, uint8_t *frame)
{
	static const uint8_t nothing[VIRTIO_LEN];
	uint32_t len = gather(l, head, frame);

	if (l->items[head].next != COALESCE_NONE) {
		check_merged(l, head, frame, len);
		return;
	}
	require(len == VIRTIO_LEN + l->lens[head]);
	require(memcmp(frame, nothing, VIRTIO_LEN) == 0);
	require(memcmp(frame + VIRTIO_LEN, l->were[head], l->lens[head]) == 0);
}

/* Could `a` and `b` be of one flow? Addresses decide, and ports where both show them. */
static bool may_be_of_one_flow(const struct lot *l, unsigned a, unsigned b)
{
	const uint8_t *p = l->were[a], *q = l->were[b];
	uint32_t at = p[0] >> 4 == 4 ? 12 : 8, len = p[0] >> 4 == 4 ? 8 : 32;

	if (l->lens[a] < at + len + 8 || l->lens[b] < at + len + 8 || p[0] >> 4 != q[0] >> 4 ||
	    memcmp(p + at, q + at, len) != 0)
		return false;
	if (p[0] >> 4 == 4) {
		bool is_plain = p[0] == 0x45 && q[0] == 0x45 && !(made_get16(p + 6) & 0x3fff) &&
				!(made_get16(q + 6) & 0x3fff);
		return !is_plain || (p[9] == q[9] && memcmp(p + 20, q + 20, 4) == 0);
	}
	bool is_plain = (p[6] == 6 || p[6] == 17) && (q[6] == 6 || q[6] == 17);
	return !is_plain || (p[6] == q[6] && memcmp(p + 40, q + 40, 4) == 0);
}

/* A packet comes out at its frame's place: what came between it and its frame's first one, and is
 * not of the frame, is overtaken. */
static void check_order(const struct lot *l, unsigned i)
{
	for (unsigned j = l->items[i].first; j < i; j++)
		require(l->items[j].first <= l->items[i].first || !may_be_of_one_flow(l, i, j));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct lot l;
	static uint8_t frame[FRAME_MAX];
	unsigned heads = 0;

	if (len == 0)
		return 0;
	l.count = 0;
	if (data[0] & MODE_BYTES)
		add_bytes(&l, data + 1, len - 1);
	else
		add_flows(&l, data + 1, len - 1);
	unsigned frames = coalesce(l.items, l.count, data[0] & ~(unsigned)MODE_BYTES);
	for (unsigned i = 0; i < l.count; i++) {
		require(l.items[i].first <= i);
		check_order(&l, i);
		if (l.items[i].first == i) {
			check_frame(&l, (uint8_t)i, frame);
			heads++;
		}
	}
	require(heads == frames);
	for (unsigned i = 0; i < l.count; i++)
		free(l.homes[i]);
	return 0;
}
