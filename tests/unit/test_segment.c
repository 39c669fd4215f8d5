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
#include "tun/segment.h"

#define GSO_UDP_L4  5
#define FRAME_MAX   (VIRTIO_LEN + 65575)
#define FLAG_FIN    0x01
#define FLAG_PSH    0x08
#define FLAG_ACK    0x10
#define FLAG_CWR    0x80
#define GUARD	    0xa5
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* A frame that ends exactly where its buffer ends, so that the sanitizer sees one byte more. */
struct frame {
	uint8_t *data;
	uint32_t len;
};

static uint8_t gso_type_of(const struct made_packet *m)
{
	if (m->is_udp)
		return GSO_UDP_L4;
	return m->is_ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
}

/* As the kernel hands it over: the checksum field has the sum of the pseudo header. */
static struct frame make_frame(const struct made_packet *m, uint8_t gso_type, uint16_t gso_size)
{
	struct frame f = {.data = malloc(FRAME_MAX)};
	assert_non_null(f.data);
	uint8_t *packet = f.data + VIRTIO_LEN;
	uint32_t len = made_write(m, packet), at = made_transport_at(packet);
	uint32_t offset = m->is_udp ? 6 : 16;
	struct virtio_net_hdr virtio = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = gso_type,
					.hdr_len = 28, /* not to be believed */
					.gso_size = gso_size,
					.csum_start = (uint16_t)at,
					.csum_offset = (uint16_t)offset};

	memcpy(f.data, &virtio, sizeof(virtio));
	made_put16(packet + at + offset, made_pseudo_sum(packet, len - at));
	f.len = VIRTIO_LEN + len;
	f.data = realloc(f.data, f.len);
	assert_non_null(f.data);
	return f;
}

/* Segment `i` of `count` is what a sender would have made of that part by itself. */
static void check_segment(const struct made_packet *whole, uint32_t mss, unsigned i, unsigned count,
			  const uint8_t *got, uint32_t got_len)
{
	struct made_packet m = *whole;
	uint8_t *want = malloc(mss + 512);

	m.seq += i * mss;
	m.id = (uint16_t)(m.id + i);
	m.payload_len = i + 1 < count ? mss : whole->payload_len - i * mss;
	if (i + 1 < count)
		m.flags &= (uint8_t) ~(FLAG_FIN | FLAG_PSH);
	if (i > 0)
		m.flags &= (uint8_t)~FLAG_CWR;
	assert_int_equal(got_len, made_write(&m, want));
	assert_memory_equal(got, want, got_len);
	free(want);
}

/* Split as a whole, or `step` segments at a time. */
static void check_split(const struct made_packet *m, uint16_t mss, unsigned step)
{
	struct frame f = make_frame(m, gso_type_of(m), mss);
	struct super_packet s;

	assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
	assert_int_equal(s.count, (m->payload_len + mss - 1) / mss);
	uint32_t stride = s.header_len + s.payload_len;
	uint8_t *out = malloc(step * stride + 1);
	assert_non_null(out);
	out[step * stride] = GUARD;
	for (unsigned first = 0; first < s.count; first += step) {
		unsigned n = s.count - first < step ? s.count - first : step;
		super_packet_split(&s, first, n, out, stride);
		for (unsigned j = 0; j < n; j++)
			check_segment(m, mss, first + j, s.count, out + j * stride,
				      super_packet_segment_len(&s, first + j));
	}
	assert_int_equal(out[step * stride], GUARD);
	free(out);
	free(f.data);
}

static void super_packet_becomes_what_the_sender_meant(void **state)
{
	(void)state;
	static const struct {
		struct made_packet m;
		uint16_t mss;
	} rows[] = {
		{{.flags = FLAG_ACK, .payload_len = 2800, .seq = 7, .id = 5}, 1400},
		{{.flags = FLAG_ACK, .payload_len = 2801, .id = 0xffff, .is_atomic = true}, 1400},
		{{.flags = FLAG_ACK | FLAG_PSH | FLAG_FIN, .payload_len = 65000}, 1448},
		{{.flags = FLAG_ACK, .option = 9, .payload_len = 5000, .seq = 0xfffffff0}, 999},
		{{.flags = FLAG_ACK | FLAG_CWR, .tos = 2, .payload_len = 300}, 100},
		{{.flags = FLAG_ACK, .ip_options_len = 40, .payload_len = 3000}, 1000},
		{{.is_ipv6 = true, .flags = FLAG_ACK | FLAG_PSH, .payload_len = 2900}, 1420},
		{{.is_ipv6 = true, .flags = FLAG_ACK | FLAG_CWR, .option = 3, .payload_len = 65000},
		 1228},
		{{.is_ipv6 = true, .flags = FLAG_ACK, .ip_options_len = 24, .payload_len = 50}, 9},
		{{.is_udp = true, .payload_len = 1001, .id = 77}, 500},
		{{.is_udp = true, .payload_len = 65000, .tos = 0xb8}, 1400},
		{{.is_udp = true, .ip_options_len = 4, .payload_len = 7}, 1},
		{{.is_udp = true, .is_ipv6 = true, .payload_len = 640, .port = 53}, 64},
		{{.is_udp = true, .is_ipv6 = true, .ip_options_len = 8, .payload_len = 65519},
		 1399},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		check_split(&rows[i].m, rows[i].mss, 1);
		check_split(&rows[i].m, rows[i].mss, 7);
		check_split(&rows[i].m, rows[i].mss, 64);
	}
}

/* Among so many payloads are some whose checksum comes out as 0. */
static void checksum_of_zero_is_written_as_ffff(void **state)
{
	(void)state;
	struct made_packet m = {.is_udp = true, .payload_len = 4};
	unsigned seen = 0;

	for (uint32_t port = 0; port < 0x10000; port++) {
		m.port = (uint16_t)port;
		struct frame f = make_frame(&m, GSO_UDP_L4, 2);
		struct super_packet s;
		uint8_t out[2][32];
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		super_packet_split(&s, 0, 2, out[0], 32);
		for (int i = 0; i < 2; i++) {
			assert_true(made_is_right(out[i], 30));
			assert_int_not_equal(made_get16(out[i] + 26), 0);
			seen += made_get16(out[i] + 26) == 0xffff;
		}
		free(f.data);
	}
	assert_true(seen > 0);
}

/* Without super-packet: the kernel leaves the checksum alone, or to us, wherever it stands. */
static void checksum_left_to_us_is_finished(void **state)
{
	(void)state;
	static const struct made_packet rows[] = {
		{.flags = FLAG_ACK, .payload_len = 0},
		{.flags = FLAG_ACK, .payload_len = 1399, .ip_options_len = 8},
		{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 31, .ip_options_len = 16},
		{.is_udp = true, .payload_len = 1},
		{.is_udp = true, .is_ipv6 = true, .payload_len = 1400},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct frame f = make_frame(&rows[i], VIRTIO_NET_HDR_GSO_NONE, 0);
		struct super_packet s;
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		assert_ptr_equal(s.packet, f.data + VIRTIO_LEN);
		assert_int_equal(s.count, 1);
		assert_int_equal(s.len, f.len - VIRTIO_LEN);
		assert_int_equal(super_packet_segment_len(&s, 0), s.len);
		assert_int_equal(s.is_ipv6, rows[i].is_ipv6);
		assert_true(made_is_right(s.packet, s.len));
		free(f.data);
	}
}

static void finished_checksum_of_zero_is_ffff(void **state)
{
	(void)state;
	for (uint32_t port = 0, seen = 0; port < 0x10000; port++) {
		struct made_packet m = {
			.is_udp = true, .is_ipv6 = true, .payload_len = 3, .port = (uint16_t)port};
		struct frame f = make_frame(&m, VIRTIO_NET_HDR_GSO_NONE, 0);
		struct super_packet s;
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		assert_int_not_equal(made_get16(s.packet + 46), 0);
		seen += made_get16(s.packet + 46) == 0xffff;
		free(f.data);
		if (port == 0xffff)
			assert_int_not_equal(seen, 0);
	}
}

/* GRE with a packet inside: the checksum is that of the inner one. */
static void checksum_may_be_that_of_a_packet_inside(void **state)
{
	(void)state;
	struct made_packet m = {.is_udp = true, .payload_len = 60};
	struct frame f = make_frame(&m, VIRTIO_NET_HDR_GSO_NONE, 0);
	struct super_packet s;
	struct virtio_net_hdr virtio = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 48, .csum_offset = 6};
	uint8_t before[88];

	memcpy(f.data, &virtio, sizeof(virtio));
	memcpy(before, f.data + VIRTIO_LEN, sizeof(before));
	assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
	made_put16(before + 54, ~made_sum(before + 48, 40, 0));
	assert_memory_equal(s.packet, before, sizeof(before));
	free(f.data);
}

static void packet_without_offloads_is_left_alone(void **state)
{
	(void)state;
	static const uint8_t flags[] = {0, VIRTIO_NET_HDR_F_DATA_VALID};

	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		struct made_packet m = {.is_udp = true, .payload_len = 20};
		struct frame f = make_frame(&m, VIRTIO_NET_HDR_GSO_NONE, 0);
		uint8_t before[48];
		struct super_packet s;
		f.data[0] = flags[i];
		memcpy(before, f.data + VIRTIO_LEN, sizeof(before));
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		assert_int_equal(s.len, sizeof(before));
		assert_memory_equal(s.packet, before, sizeof(before));
		free(f.data);
	}
}

static void super_packet_of_one_segment_is_a_packet(void **state)
{
	(void)state;
	static const struct made_packet rows[] = {
		{.flags = FLAG_ACK | FLAG_PSH, .payload_len = 500, .id = 3},
		{.is_ipv6 = true, .flags = FLAG_ACK | FLAG_CWR, .payload_len = 499},
		{.is_udp = true, .payload_len = 1, .id = 3},
		{.is_udp = true, .payload_len = 0},
	};
	for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
		const struct made_packet *m = &rows[i / 2];
		struct frame f = make_frame(m, gso_type_of(m), 500);
		struct super_packet s;
		uint8_t want[600];
		if (i & 1)
			f.data[0] = 0; /* nothing is said about checksums: they are made */
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		assert_int_equal(s.count, 1);
		assert_int_equal(s.len, made_write(m, want));
		assert_memory_equal(s.packet, want, s.len);
		free(f.data);
	}
}

static void super_packet_that_needs_no_checksum_gets_one(void **state)
{
	(void)state;
	static const struct made_packet rows[] = {
		{.flags = FLAG_ACK, .payload_len = 400, .id = 3},
		{.is_udp = true, .is_ipv6 = true, .payload_len = 301, .ip_options_len = 8},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct frame f = make_frame(&rows[i], gso_type_of(&rows[i]), 150);
		struct super_packet s;
		uint8_t out[300];
		f.data[0] = 0;
		memset(f.data + 6, 0, 4);
		assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
		assert_int_equal(s.count, 3);
		for (unsigned j = 0; j < s.count; j++) {
			super_packet_split(&s, j, 1, out, sizeof(out));
			check_segment(&rows[i], 150, j, s.count, out,
				      super_packet_segment_len(&s, j));
		}
		free(f.data);
	}
}

/* The destination of the pseudo header is the last one, which stands in the routing header. */
static void pseudo_header_is_the_kernels(void **state)
{
	(void)state;
	struct made_packet m = {
		.is_ipv6 = true, .flags = FLAG_ACK, .ip_options_len = 24, .payload_len = 100};
	struct frame f = make_frame(&m, VIRTIO_NET_HDR_GSO_TCPV6, 60);
	uint8_t *packet = f.data + VIRTIO_LEN, last[16] = {0xfd, 1, 2, 3}, out[200];
	struct super_packet s;

	packet[6] = 43;
	memcpy(packet + 48, last, 16);
	made_put16(packet + 80, 6 + 120 + made_sum(packet + 8, 16, made_sum(last, 16, 0)));
	assert_int_equal(super_packet_parse(f.data, f.len, &s), DROP_NONE);
	super_packet_split(&s, 1, 1, out, sizeof(out));
	assert_int_equal(super_packet_segment_len(&s, 1), 124);
	uint32_t sum = made_sum(out + 8, 16, made_sum(last, 16, 6 + 60));
	assert_int_equal(made_sum(out + 64, 60, sum), 0xffff);
	free(f.data);
}

static void bytes_behind_the_packet_are_trimmed(void **state)
{
	(void)state;
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct made_packet m = {
			.is_ipv6 = is_ipv6, .flags = FLAG_ACK, .payload_len = 200, .id = 3};
		struct frame f = make_frame(&m, gso_type_of(&m), 150);
		uint8_t *longer = calloc(1, f.len + 7), out[300];
		struct super_packet s;
		memcpy(longer, f.data, f.len);
		assert_int_equal(super_packet_parse(longer, f.len + 7, &s), DROP_NONE);
		assert_int_equal(s.len, f.len - VIRTIO_LEN);
		assert_int_equal(s.count, 2);
		super_packet_split(&s, 1, 1, out, sizeof(out));
		check_segment(&m, 150, 1, 2, out, super_packet_segment_len(&s, 1));
		free(longer);
		free(f.data);
	}
}

/* A frame of TCP over IPv4 in which one byte is another one. */
static void frame_that_contradicts_itself_is_refused(void **state)
{
	(void)state;
	enum { FLAGS, TYPE, HDR_LEN, SIZE = 4, START = 6, OFFSET = 8, IP = 10, TCP = 30 };
	static const struct {
		const char *what;
		uint8_t type, at, value;
	} rows[] = {
		{"start in the IP header", 0, START, 19},
		{"start far out", 0, START + 1, 0xff},
		{"offset far out", 0, OFFSET + 1, 0xff},
		{"offset at the last byte", 0, OFFSET, 219},
		{"total length too long", 0, IP + 3, 241},
		{"total length too short", 0, IP + 3, 19},
		{"IPv4 header too short", 0, IP, 0x44},
		{"version 5", 0, IP, 0x55},
		{"UFO", 3, FLAGS, 1},
		{"unknown type", 2, FLAGS, 1},
		{"only ECN", 0x80, FLAGS, 1},
		{"UDP with ECN", 0x85, FLAGS, 1},
		{"TCP of IPv6", 4, FLAGS, 1},
		{"UDP", 5, FLAGS, 1},
		{"size 0", 1, SIZE, 0},
		{"start elsewhere", 1, START, 24},
		{"offset elsewhere", 1, OFFSET, 14},
		{"fragment", 1, IP + 6, 0x20},
		{"later fragment", 1, IP + 7, 1},
		{"protocol", 1, IP + 9, 17},
		{"TCP header too short", 1, TCP + 12, 0x40},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct made_packet m = {.flags = FLAG_ACK, .payload_len = 200};
		struct frame f = make_frame(&m, rows[i].type, 50);
		uint8_t before[250];
		struct super_packet s;
		f.data[rows[i].at] = rows[i].value;
		memcpy(before, f.data, f.len);
		if (super_packet_parse(f.data, f.len, &s) != DROP_BAD_IP)
			fail_msg("%s", rows[i].what);
		assert_memory_equal(f.data, before, f.len);
		free(f.data);
	}
}

static void other_super_packets_that_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		struct made_packet m;
		uint8_t type;
		uint16_t at;
		uint8_t value;
	} rows[] = {
		{"TCP header too long", {.payload_len = 3}, 1, 42, 0xf0},
		{"UDP length", {.is_udp = true, .payload_len = 90}, 5, 35, 97},
		{"UDP of TCP", {.is_udp = true, .payload_len = 90}, 1, 0, 1},
		{"TCP of IPv4", {.is_ipv6 = true, .payload_len = 90}, 1, 0, 1},
		{"fragment header",
		 {.is_ipv6 = true, .ip_options_len = 8, .payload_len = 90},
		 4,
		 16,
		 44},
		{"extension header too long",
		 {.is_ipv6 = true, .ip_options_len = 8, .payload_len = 90},
		 4,
		 51,
		 200},
		{"unknown extension header",
		 {.is_ipv6 = true, .ip_options_len = 8, .payload_len = 90},
		 4,
		 16,
		 51},
		{"IPv6 payload length", {.is_ipv6 = true, .payload_len = 90}, 4, 15, 111},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct frame f = make_frame(&rows[i].m, rows[i].type, 50);
		struct super_packet s;
		f.data[rows[i].at] = rows[i].value;
		if (super_packet_parse(f.data, f.len, &s) != DROP_BAD_IP)
			fail_msg("%s", rows[i].what);
		free(f.data);
	}
}

/* Every cut is too short for what the header says. */
static void frame_cut_anywhere_is_refused(void **state)
{
	(void)state;
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct made_packet m = {.is_ipv6 = is_ipv6, .flags = FLAG_ACK, .payload_len = 100};
		struct frame f = make_frame(&m, gso_type_of(&m), 50);
		for (uint32_t len = 0; len < f.len; len++) {
			uint8_t *exact = malloc(len ? len : 1);
			struct super_packet s;
			memcpy(exact, f.data, len);
			assert_int_equal(super_packet_parse(exact, len, &s), DROP_BAD_IP);
			free(exact);
		}
		free(f.data);
	}
}

/* The IP header is content with the cut: it is TCP that is not whole. */
static void transport_header_cut_anywhere_is_refused(void **state)
{
	(void)state;
	for (uint32_t left = 0; left < 32; left++) {
		for (int i = 0; i < 4; i++) {
			struct made_packet m = {.is_ipv6 = i & 1,
						.is_udp = i & 2,
						.flags = FLAG_ACK,
						.option = 1,
						.payload_len = 100};
			struct frame f = make_frame(&m, gso_type_of(&m), 50);
			struct super_packet s;
			uint32_t len = (m.is_ipv6 ? 40 : 20) + left;
			made_put16(f.data + VIRTIO_LEN + (m.is_ipv6 ? 4 : 2),
				   m.is_ipv6 ? left : len);
			f.data = realloc(f.data, VIRTIO_LEN + len);
			assert_int_equal(super_packet_parse(f.data, VIRTIO_LEN + len, &s),
					 DROP_BAD_IP);
			free(f.data);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super_packet_becomes_what_the_sender_meant),
		cmocka_unit_test(checksum_of_zero_is_written_as_ffff),
		cmocka_unit_test(checksum_left_to_us_is_finished),
		cmocka_unit_test(finished_checksum_of_zero_is_ffff),
		cmocka_unit_test(checksum_may_be_that_of_a_packet_inside),
		cmocka_unit_test(packet_without_offloads_is_left_alone),
		cmocka_unit_test(super_packet_of_one_segment_is_a_packet),
		cmocka_unit_test(super_packet_that_needs_no_checksum_gets_one),
		cmocka_unit_test(pseudo_header_is_the_kernels),
		cmocka_unit_test(bytes_behind_the_packet_are_trimmed),
		cmocka_unit_test(frame_that_contradicts_itself_is_refused),
		cmocka_unit_test(other_super_packets_that_are_refused),
		cmocka_unit_test(frame_cut_anywhere_is_refused),
		cmocka_unit_test(transport_header_cut_anywhere_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
