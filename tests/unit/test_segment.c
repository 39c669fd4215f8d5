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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super_packet_becomes_what_the_sender_meant),
		cmocka_unit_test(checksum_of_zero_is_written_as_ffff),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
