/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/virtio_net.h>

#include "tests/support/lot.h"

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
				struct made_packet m = lot_nth(&flows[f], i);
				lot_add(&l, &m);
			}
			assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 1);
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
			m = lot_nth(&m, i / count);
			lot_add(&l, &m);
		}
		/* A flow of 64 times 1348 bytes does not fit one frame, at the third place. */
		unsigned frames = lot_coalesce(&l, LOT_OFFLOADS);
		assert_int_equal(frames, count);
		lot_fini(&l);
	}
}

/* RFC 6864: the only difference that a merge and a split may make. */
static void id_of_what_cannot_be_fragmented_may_stand_still(void **state)
{
	(void)state;
	for (int is_udp = 0; is_udp < 2; is_udp++) {
		struct lot l = {.is_id_free = true};
		for (unsigned i = 0; i < 5; i++) {
			struct made_packet m = {.is_udp = is_udp,
						.is_atomic = true,
						.flags = FLAG_ACK,
						.payload_len = 50,
						.seq = 50 * i};
			lot_add(&l, &m);
		}
		assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 1);
		lot_fini(&l);
	}
}

/* Neither way of counting turns into the other within a frame. */
static void ids_count_in_one_way(void **state)
{
	(void)state;
	static const uint16_t ids[6] = {7, 7, 8, 9, 9, 9};
	struct lot l = {.is_id_free = true};

	for (unsigned i = 0; i < 6; i++) {
		struct made_packet m = {
			.is_udp = true, .is_atomic = true, .payload_len = 50, .id = ids[i]};
		lot_add(&l, &m);
	}
	assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 3);
	lot_fini(&l);
}

static void frame_is_no_longer_than_ip_allows(void **state)
{
	(void)state;
	static const struct {
		struct made_packet flow;
		unsigned in_first;
	} rows[] = {
		{{.flags = FLAG_ACK, .payload_len = 1348}, 48},
		{{.flags = FLAG_ACK, .payload_len = 1023}, 64},
		{{.flags = FLAG_ACK, .payload_len = 1024}, 63},
		{{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 1400}, 46},
		{{.is_udp = true, .payload_len = 1472}, 44},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < COALESCE_BATCH; j++) {
			struct made_packet m = lot_nth(&rows[i].flow, j);
			lot_add(&l, &m);
		}
		assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), rows[i].in_first < 64 ? 2 : 1);
		assert_int_equal(l.items[rows[i].in_first - 1].next, COALESCE_NONE);
		lot_fini(&l);
	}
}

static void header_of_a_frame_says_what_the_kernel_wants(void **state)
{
	(void)state;
	static const struct {
		struct made_packet flow;
		struct virtio_net_hdr virtio;
	} rows[] = {
		{{.flags = FLAG_ACK, .payload_len = 100, .option = 1},
		 {.flags = 1,
		  .gso_type = 1,
		  .hdr_len = 52,
		  .gso_size = 100,
		  .csum_start = 20,
		  .csum_offset = 16}},
		{{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 7},
		 {.flags = 1,
		  .gso_type = 4,
		  .hdr_len = 60,
		  .gso_size = 7,
		  .csum_start = 40,
		  .csum_offset = 16}},
		{{.is_udp = true, .payload_len = 8},
		 {.flags = 1,
		  .gso_type = 5,
		  .hdr_len = 28,
		  .gso_size = 8,
		  .csum_start = 20,
		  .csum_offset = 6}},
		{{.is_udp = true, .is_ipv6 = true, .payload_len = 9},
		 {.flags = 1,
		  .gso_type = 5,
		  .hdr_len = 48,
		  .gso_size = 9,
		  .csum_start = 40,
		  .csum_offset = 6}},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < 3; j++) {
			struct made_packet m = lot_nth(&rows[i].flow, j);
			m.flags |= j == 2 && !m.is_udp ? FLAG_PSH : 0;
			lot_add(&l, &m);
		}
		assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 1);
		assert_memory_equal(l.items[0].data, &rows[i].virtio, VIRTIO_LEN);

		const uint8_t *packet = l.items[0].data + VIRTIO_LEN;
		uint32_t at = rows[i].virtio.csum_start, header = rows[i].virtio.hdr_len;
		uint32_t len = header - at + 3 * rows[i].virtio.gso_size;
		assert_int_equal(made_get16(packet + at + rows[i].virtio.csum_offset),
				 made_pseudo_sum(packet, len));
		assert_int_equal(made_get16(packet + (at == 20 ? 2 : 4)),
				 at == 20 ? len + 20 : len);
		if (!rows[i].flow.is_udp)
			assert_int_equal(packet[at + 13], FLAG_ACK | FLAG_PSH);
		lot_fini(&l);
	}
}

static void only_what_the_device_takes_is_merged(void **state)
{
	(void)state;
	static const struct {
		uint32_t offloads;
		unsigned frames; /* of two packets each of TCP and UDP, version 4 and 6 */
	} rows[] = {
		{0, 8},
		{TUN_OFFLOAD_ECN, 8},
		{TUN_OFFLOAD_TCP4, 7},
		{TUN_OFFLOAD_TCP6, 7},
		{TUN_OFFLOAD_UDP, 6},
		{TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6, 6},
		{LOT_OFFLOADS, 4},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < 8; j++) {
			struct made_packet m = {.is_udp = j & 1,
						.is_ipv6 = j & 2,
						.flags = FLAG_ACK,
						.payload_len = 30};
			m = lot_nth(&m, j / 4);
			lot_add(&l, &m);
		}
		assert_int_equal(lot_coalesce(&l, rows[i].offloads), rows[i].frames);
		lot_fini(&l);
	}
}

/* Flows that differ in a single part of their name, and lie in turns. */
static void flows_are_told_apart_by_all_of_their_name(void **state)
{
	(void)state;
	static const struct {
		bool is_ipv6;
		uint8_t at;
	} rows[] = {{false, 12}, {false, 15}, {false, 16}, {false, 19}, {false, 20}, {false, 23},
		    {true, 8},	 {true, 23},  {true, 24},  {true, 39},	{true, 40},  {true, 43}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < 8; j++) {
			struct made_packet m = {
				.is_ipv6 = rows[i].is_ipv6, .flags = FLAG_ACK, .payload_len = 30};
			uint8_t packet[LOT_PACKET_MAX];
			m = lot_nth(&m, j / 2);
			uint32_t len = made_write(&m, packet);
			packet[rows[i].at] ^= j & 1;
			made_finish(packet, len);
			lot_add_bytes(&l, packet, len);
		}
		assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 2);
		lot_fini(&l);
	}
}

static void batch_of_none_or_of_64_flows(void **state)
{
	(void)state;
	struct lot l = {0};

	assert_int_equal(coalesce(l.items, 0, LOT_OFFLOADS), 0);
	for (unsigned i = 0; i < COALESCE_BATCH; i++) {
		struct made_packet m = {.is_udp = true, .payload_len = 64, .port = (uint16_t)i};
		lot_add(&l, &m);
	}
	assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), COALESCE_BATCH);
	lot_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_of_a_flow_become_one_frame),
		cmocka_unit_test(interleaved_flows_do_not_disturb_each_other),
		cmocka_unit_test(id_of_what_cannot_be_fragmented_may_stand_still),
		cmocka_unit_test(ids_count_in_one_way),
		cmocka_unit_test(frame_is_no_longer_than_ip_allows),
		cmocka_unit_test(header_of_a_frame_says_what_the_kernel_wants),
		cmocka_unit_test(only_what_the_device_takes_is_merged),
		cmocka_unit_test(flows_are_told_apart_by_all_of_their_name),
		cmocka_unit_test(batch_of_none_or_of_64_flows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
