/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that no kernel would make: refused without a trace, or split into packets that are whole,
 * have right checksums as far as the frame promised it, and hold the payload and nothing else. */

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/made_packet.h"
#include "tun/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FLAG_FIN 0x01
#define FLAG_PSH 0x08
#define FLAG_CWR 0x80

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

/* At most one checksum of a packet that goes as it is was written: two bytes side by side, or what
 * stands there became right. */
static void check_single(const struct super_packet *s, const uint8_t *before)
{
	uint32_t first = s->len, last = 0;

	for (uint32_t i = 0; i < s->len; i++) {
		if (s->packet[i] == before[i])
			continue;
		first = i < first ? i : first;
		last = i;
	}
	require(first == s->len || last - first <= 1);
}

static uint32_t sum_of_transport(const struct super_packet *s, const uint8_t *packet, uint32_t len)
{
	uint32_t sum = (s->is_tcp ? 6 : 17) + len - s->ip_len;
	sum = made_sum(packet + (s->is_ipv6 ? 8 : 12), s->is_ipv6 ? 32 : 8, sum);
	return made_sum(packet + s->ip_len, len - s->ip_len, sum);
}

static void check_ip_header(const struct super_packet *s, unsigned i, const uint8_t *out,
			    uint32_t len)
{
	if (s->is_ipv6) {
		require(made_get16(out + 4) + 40 == len);
		require(memcmp(out, s->packet, 4) == 0);
		require(memcmp(out + 6, s->packet + 6, s->ip_len - 6) == 0);
		return;
	}
	require(made_get16(out + 2) == len);
	require(made_get16(out + 4) == (uint16_t)(made_get16(s->packet + 4) + i));
	require(made_sum(out, s->ip_len, 0) == 0xffff);
	require(memcmp(out + 12, s->packet + 12, s->ip_len - 12) == 0);
}

static void check_transport(const struct super_packet *s, unsigned i, const uint8_t *out,
			    uint32_t len)
{
	const uint8_t *got = out + s->ip_len, *whole = s->packet + s->ip_len;

	require(memcmp(got, whole, 4) == 0);
	if (!s->is_tcp) {
		require(made_get16(got + 4) == len - s->ip_len && made_get16(got + 6) != 0);
		return;
	}
	uint8_t lost =
		(uint8_t)((i + 1 < s->count ? FLAG_FIN | FLAG_PSH : 0) | (i > 0 ? FLAG_CWR : 0));
	uint32_t seq = made_get16(whole + 4) << 16 | made_get16(whole + 6);
	require((made_get16(got + 4) << 16 | made_get16(got + 6)) == seq + i * s->payload_len);
	require(got[13] == (whole[13] & ~lost));
	require(memcmp(got + 8, whole + 8, 5) == 0 && memcmp(got + 14, whole + 14, 2) == 0);
	require(memcmp(got + 18, whole + 18, s->header_len - s->ip_len - 18) == 0);
}

static void check_segments(const struct super_packet *s, bool is_sum_ours)
{
	uint32_t at = s->header_len;

	require(s->payload_len > 0 && s->header_len < s->len);
	for (unsigned i = 0; i < s->count; i++) {
		uint32_t len = super_packet_segment_len(s, i);
		uint8_t *out = malloc(len);
		require(out && len > s->header_len && len <= s->header_len + s->payload_len);
		super_packet_split(s, i, 1, out, s->header_len + s->payload_len);
		check_ip_header(s, i, out, len);
		check_transport(s, i, out, len);
		require(memcmp(out + s->header_len, s->packet + at, len - s->header_len) == 0);
		require(!is_sum_ours || sum_of_transport(s, out, len) == 0xffff);
		at += len - s->header_len;
		free(out);
	}
	require(at == s->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct super_packet s;

	if (len > VIRTIO_LEN + 65600)
		return 0;
	/* Exactly as large as the frame, so that the sanitizer sees the first byte past it. */
	uint8_t *frame = malloc(len ? len : 1);
	require(frame);
	if (len > 0)
		memcpy(frame, data, len);
	enum drop drop = super_packet_parse(frame, (uint32_t)len, &s);
	require(drop == DROP_NONE || drop == DROP_BAD_IP);
	if (drop != DROP_NONE) {
		require(len == 0 || memcmp(frame, data, len) == 0);
	} else {
		require(s.packet == frame + VIRTIO_LEN && s.len <= len - VIRTIO_LEN && s.count > 0);
		if (s.count == 1)
			check_single(&s, data + VIRTIO_LEN);
		else
			check_segments(&s, !(frame[0] & VIRTIO_NET_HDR_F_NEEDS_CSUM));
	}
	free(frame);
	return 0;
}
