/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet costs that comes out of the tun: split from a super-packet of up to 64 KB, or its
 * checksum finished. Beside it a plain copy of the same bytes, and the checksum alone. */

#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/bench.h"
#include "tests/support/made_packet.h"
#include "tun/checksum.h"
#include "tun/segment.h"

#define NAME	    "bench_segment"
#define GSO_UDP_L4  5
#define PAYLOAD_MAX 65000
#define STRIDE	    1536
#define SEGMENTS    64
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* A frame as the kernel hands it over, and room for its segments. */
struct subject {
	uint8_t frame[VIRTIO_LEN + 65536];
	uint8_t out[SEGMENTS * STRIDE];
	uint32_t len, payload_len; /* of the frame; of a segment */
	uint16_t checksum_at;	   /* in the frame */
	uint8_t pseudo_sum[2];
};

static void subject_init(struct subject *s, const struct made_packet *m, uint8_t type, uint16_t mss)
{
	uint8_t *packet = s->frame + VIRTIO_LEN;
	uint32_t len = made_write(m, packet), at = made_transport_at(packet);
	struct virtio_net_hdr virtio = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = type,
					.gso_size = mss,
					.csum_start = (uint16_t)at,
					.csum_offset = m->is_udp ? 6 : 16};

	memcpy(s->frame, &virtio, sizeof(virtio));
	s->len = VIRTIO_LEN + len;
	s->payload_len = mss;
	s->checksum_at = (uint16_t)(VIRTIO_LEN + at + virtio.csum_offset);
	made_put16(s->pseudo_sum, made_pseudo_sum(packet, len - at));
	memcpy(s->frame + s->checksum_at, s->pseudo_sum, 2);
}

static void split(void *context, unsigned rounds)
{
	struct subject *s = context;
	struct super_packet super;

	while (rounds-- > 0) {
		if (super_packet_parse(s->frame, s->len, &super) != DROP_NONE)
			abort();
		super_packet_split(&super, 0, super.count, s->out, STRIDE);
		bench_use(s->out);
	}
}

/* Copies of one frame; their checksums are undone long before they are read again. */
static void finish(void *context, unsigned rounds)
{
	struct subject *s = context;
	struct super_packet super;

	while (rounds-- > 0) {
		for (unsigned i = 0; i < SEGMENTS; i++)
			memcpy(s->out + i * STRIDE + s->checksum_at, s->pseudo_sum, 2);
		for (unsigned i = 0; i < SEGMENTS; i++) {
			if (super_packet_parse(s->out + i * STRIDE, s->len, &super) != DROP_NONE)
				abort();
		}
		bench_use(s->out);
	}
}

static void copy(void *context, unsigned rounds)
{
	struct subject *s = context;
	uint32_t len = s->payload_len + 40;

	while (rounds-- > 0) {
		for (uint32_t i = 0; i < SEGMENTS && (i + 1) * len <= PAYLOAD_MAX; i++)
			memcpy(s->out + i * STRIDE, s->frame + i * len, len);
		bench_use(s->out);
	}
}

static void sum(void *context, unsigned rounds)
{
	struct subject *s = context;
	uint16_t result = 0;

	while (rounds-- > 0)
		result ^= checksum_sum(s->frame, s->payload_len);
	bench_use(&result);
}

static uint32_t segments_of(uint32_t payload_len, uint32_t header_len)
{
	uint32_t count = PAYLOAD_MAX / (payload_len + header_len);
	return count < SEGMENTS ? count : SEGMENTS;
}

static void report(const char *what, uint32_t size, double ns)
{
	char which[64];
	snprintf(which, sizeof(which), "%s/%u", what, size);
	bench_print(NAME, which, ns, "ns/packet");
	snprintf(which, sizeof(which), "%s/%u/rate", what, size);
	bench_print(NAME, which, size / ns, "GB/s");
}

static const struct {
	const char *name;
	struct made_packet m;
	uint8_t type;
} kinds[] = {
	{"tcp4", {.flags = 0x10, .option = 1}, VIRTIO_NET_HDR_GSO_TCPV4},
	{"tcp6", {.flags = 0x10, .option = 1, .is_ipv6 = true}, VIRTIO_NET_HDR_GSO_TCPV6},
	{"udp4", {.is_udp = true}, GSO_UDP_L4},
	{"udp6", {.is_udp = true, .is_ipv6 = true}, GSO_UDP_L4},
};

static void measure(struct subject *s, uint32_t size)
{
	char what[32];

	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		struct made_packet m = kinds[k].m;
		uint32_t count = segments_of(size, 0);
		m.payload_len = count * size;
		subject_init(s, &m, kinds[k].type, (uint16_t)size);
		snprintf(what, sizeof(what), "split/%s", kinds[k].name);
		report(what, size, bench_ns(split, s) / count);
		m.payload_len = size;
		subject_init(s, &m, VIRTIO_NET_HDR_GSO_NONE, 0);
		for (unsigned i = 0; i < SEGMENTS; i++)
			memcpy(s->out + i * STRIDE, s->frame, s->len);
		snprintf(what, sizeof(what), "finish/%s", kinds[k].name);
		report(what, size, bench_ns(finish, s) / SEGMENTS);
	}
	s->payload_len = size;
	report("copy", size, bench_ns(copy, s) / segments_of(size, 40));
	report("checksum", size, bench_ns(sum, s));
}

int main(int argc, char **argv)
{
	static struct subject s;

	bench_start(argc, argv);
	measure(&s, 64);
	measure(&s, 500);
	measure(&s, 1400);
	return 0;
}
