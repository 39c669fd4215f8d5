/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_LOT_H
#define TESTS_SUPPORT_LOT_H

/* A batch for coalesce, and the check that its frames are what they were made of. Included behind
 * cmocka.h. */

#include <stdlib.h>

#include "tests/support/made_packet.h"
#include "tun/coalesce.h"
#include "tun/segment.h"

#define LOT_OFFLOADS   (TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_ECN | TUN_OFFLOAD_UDP)
#define FLAG_FIN       0x01
#define FLAG_SYN       0x02
#define FLAG_PSH       0x08
#define FLAG_ACK       0x10
#define LOT_PACKET_MAX 2048
#define COUNT_OF(a)    (sizeof(a) / sizeof((a)[0]))

/* A batch of packets in buffers of their own, and copies of what they were. */
struct lot {
	struct coalesce_item items[COALESCE_BATCH];
	uint8_t *homes[COALESCE_BATCH];
	uint8_t *were[COALESCE_BATCH];
	uint32_t lens[COALESCE_BATCH];
	unsigned count;
	bool is_id_free; /* ids come out as the split has them */
};

static inline void lot_add_bytes(struct lot *l, const uint8_t *packet, uint32_t len)
{
	unsigned i = l->count++;
	assert_true(i < COALESCE_BATCH);
	l->homes[i] = malloc(VIRTIO_LEN + len);
	l->were[i] = malloc(len + 1);
	assert_non_null(l->homes[i]);
	assert_non_null(l->were[i]);
	memset(l->homes[i], 0xa5, VIRTIO_LEN);
	if (len > 0) {
		memcpy(l->homes[i] + VIRTIO_LEN, packet, len);
		memcpy(l->were[i], packet, len);
	}
	l->lens[i] = len;
	l->items[i] = (struct coalesce_item){.data = l->homes[i] + VIRTIO_LEN, .len = len};
}

static inline void lot_add(struct lot *l, const struct made_packet *m)
{
	uint8_t packet[LOT_PACKET_MAX];
	lot_add_bytes(l, packet, made_write(m, packet));
}

static inline void lot_fini(struct lot *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		free(l->homes[i]);
		free(l->were[i]);
	}
}

/* The pieces of a frame behind each other, as the kernel sees them. */
static inline uint32_t lot_gather(const struct lot *l, unsigned head, uint8_t *out)
{
	uint32_t len = 0;
	for (uint8_t i = (uint8_t)head; i != COALESCE_NONE; i = l->items[i].next) {
		assert_int_equal(l->items[i].first, head);
		memcpy(out + len, l->items[i].data, l->items[i].len);
		len += l->items[i].len;
	}
	return len;
}

/* Splitting the frame that item `head` begins gives back its packets. */
static inline void lot_check_frame(const struct lot *l, unsigned head)
{
	uint8_t *frame = malloc(VIRTIO_LEN + 65536), *out = malloc(65536);
	struct super_packet s;

	assert_non_null(frame);
	assert_non_null(out);
	uint32_t len = lot_gather(l, head, frame);
	if (l->items[head].next == COALESCE_NONE) {
		static const uint8_t nothing[VIRTIO_LEN];
		assert_memory_equal(frame, nothing, VIRTIO_LEN);
		assert_int_equal(len, VIRTIO_LEN + l->lens[head]);
		assert_memory_equal(frame + VIRTIO_LEN, l->were[head], l->lens[head]);
	} else {
		unsigned n = 0;
		assert_int_equal(super_packet_parse(frame, len, &s), DROP_NONE);
		assert_true(s.count >= 2 && s.count <= 64 && s.len <= 65535);
		for (uint8_t i = (uint8_t)head; i != COALESCE_NONE; i = l->items[i].next) {
			super_packet_split(&s, n, 1, out, s.header_len + s.payload_len);
			assert_int_equal(super_packet_segment_len(&s, n++), l->lens[i]);
			if (l->is_id_free) {
				memcpy(out + 4, l->were[i] + 4, 2);
				made_finish(out, l->lens[i]);
			}
			assert_memory_equal(out, l->were[i], l->lens[i]);
		}
		assert_int_equal(n, s.count);
	}
	free(frame);
	free(out);
}

/* Coalesce; each frame is what it was made of. Returns the count of frames. */
static inline unsigned lot_coalesce(struct lot *l, uint32_t offloads)
{
	unsigned frames = coalesce(l->items, l->count, offloads), seen = 0;

	for (unsigned i = 0; i < l->count; i++) {
		assert_true(l->items[i].first <= i);
		assert_true(l->items[i].next == COALESCE_NONE || l->items[i].next > i);
		if (l->items[i].first != i)
			continue;
		lot_check_frame(l, i);
		seen++;
	}
	assert_int_equal(frames, seen);
	return frames;
}

/* Segment `i` of a flow of whole segments. */
static inline struct made_packet lot_nth(const struct made_packet *flow, unsigned i)
{
	struct made_packet m = *flow;
	m.seq += i * flow->payload_len;
	m.id = (uint16_t)(m.id + i);
	return m;
}

#endif
