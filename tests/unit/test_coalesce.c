/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/made_packet.h"
#include "tun/coalesce.h"
#include "tun/segment.h"

#define ALL	    (TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_ECN | TUN_OFFLOAD_UDP)
#define FLAG_FIN    0x01
#define FLAG_SYN    0x02
#define FLAG_PSH    0x08
#define FLAG_ACK    0x10
#define FLAG_URG    0x20
#define FLAG_CWR    0x80
#define HOME_LEN    (VIRTIO_LEN + 2048)
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* A batch of packets in buffers of their own, and copies of what they were. */
struct lot {
	struct coalesce_item items[COALESCE_BATCH];
	uint8_t *homes[COALESCE_BATCH];
	uint8_t *were[COALESCE_BATCH];
	uint32_t lens[COALESCE_BATCH];
	unsigned count;
};

static void lot_add_bytes(struct lot *l, const uint8_t *packet, uint32_t len)
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

static void lot_add(struct lot *l, const struct made_packet *m)
{
	uint8_t packet[HOME_LEN];
	lot_add_bytes(l, packet, made_write(m, packet));
}

static void lot_fini(struct lot *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		free(l->homes[i]);
		free(l->were[i]);
	}
}

/* The pieces of a frame behind each other, as the kernel sees them. */
static uint32_t gather(const struct lot *l, unsigned head, uint8_t *out)
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
static void check_frame(const struct lot *l, unsigned head)
{
	uint8_t *frame = malloc(VIRTIO_LEN + 65536), *out = malloc(65536);
	struct super_packet s;

	assert_non_null(frame);
	assert_non_null(out);
	uint32_t len = gather(l, head, frame);
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
			assert_memory_equal(out, l->were[i], l->lens[i]);
		}
		assert_int_equal(n, s.count);
	}
	free(frame);
	free(out);
}

/* Coalesce; each frame is what it was made of. Returns the count of frames. */
static unsigned lot_coalesce(struct lot *l, uint32_t offloads)
{
	unsigned frames = coalesce(l->items, l->count, offloads), seen = 0;

	for (unsigned i = 0; i < l->count; i++) {
		assert_true(l->items[i].first <= i);
		assert_true(l->items[i].next == COALESCE_NONE || l->items[i].next > i);
		if (l->items[i].first != i)
			continue;
		check_frame(l, i);
		seen++;
	}
	assert_int_equal(frames, seen);
	return frames;
}

/* Segment `i` of a flow of whole segments. */
static struct made_packet nth(const struct made_packet *flow, unsigned i)
{
	struct made_packet m = *flow;
	m.seq += i * flow->payload_len;
	m.id = (uint16_t)(m.id + i);
	return m;
}

static const struct made_packet flows[] = {
	{.flags = FLAG_ACK, .payload_len = 500, .id = 0xfffe, .seq = 0xffffff00},
	{.flags = FLAG_ACK, .payload_len = 1348, .option = 5, .tos = 3, .is_atomic = true},
	{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 1, .option = 1, .tos = 0xff},
	{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 1001},
	{.is_udp = true, .payload_len = 500, .id = 9},
	{.is_udp = true, .payload_len = 1, .is_atomic = true, .id = 0xffff},
	{.is_udp = true, .is_ipv6 = true, .payload_len = 1200},
};

static void segments_of_a_flow_become_one_frame(void **state)
{
	(void)state;
	for (size_t f = 0; f < COUNT_OF(flows); f++) {
		for (unsigned n = 1; n <= 40; n += 3) {
			struct lot l = {0};
			for (unsigned i = 0; i < n; i++) {
				struct made_packet m = nth(&flows[f], i);
				lot_add(&l, &m);
			}
			assert_int_equal(lot_coalesce(&l, ALL), 1);
			lot_fini(&l);
		}
	}
}

static void interleaved_flows_do_not_disturb_each_other(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= 16; count++) {
		struct lot l = {0};
		for (unsigned i = 0; i < 64; i++) {
			struct made_packet m = flows[i % count % COUNT_OF(flows)];
			m.port = (uint16_t)(1000 + i % count);
			m = nth(&m, i / count);
			lot_add(&l, &m);
		}
		/* A flow of 64 times 1348 bytes does not fit one frame, at the third place. */
		unsigned frames = lot_coalesce(&l, ALL);
		assert_int_equal(frames, count);
		lot_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_of_a_flow_become_one_frame),
		cmocka_unit_test(interleaved_flows_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
