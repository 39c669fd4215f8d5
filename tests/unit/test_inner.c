/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "perf/inner.h"

#define ROOM 2048

static uint32_t get(const uint8_t *p, unsigned n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* By the book, over every byte; 0xffff if a packet's own checksum is right. */
static uint32_t sum_of(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t l4_sum(const uint8_t *packet, uint32_t len)
{
	uint32_t pseudo = packet[9] + len - INNER_IP_LEN;

	return sum_of(sum_of(pseudo, packet + 12, 8), packet + INNER_IP_LEN, len - INNER_IP_LEN);
}

static struct inner_flow flow_of(enum inner_protocol protocol)
{
	return (struct inner_flow){
		.protocol = protocol,
		.source_be32 = htonl(0x0a500002),
		.target_be32 = htonl(0xfffefdfc),
		.source_port = 65535,
		.target_port = INNER_PORT,
		.ip_id = 65534,
		.tcp_seq = 0xfffffff0,
	};
}

/* --- what is made --- */

static void checksums_are_right_for_every_length(void **state)
{
	static const uint32_t lens[] = {INNER_STAMP_LEN, 17, 18, 63, 500, 1400, 1401};
	uint8_t packet[ROOM];

	(void)state;
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]) * 2; i++) {
		struct inner_flow f = flow_of(i % 2 ? INNER_TCP : INNER_UDP);
		const struct inner_stamp s = {0xffffffff - i, 0xfffffffffffffff0 + i};
		uint32_t len = inner_header_len(f.protocol) + lens[i / 2];
		memset(packet, 0xAA, sizeof(packet));
		inner_write(&f, &s, lens[i / 2], true, packet);
		assert_int_equal(get(packet + 2, 2), len);
		assert_int_equal(sum_of(0, packet, INNER_IP_LEN), 0xffff);
		assert_int_equal(l4_sum(packet, len), 0xffff);
		assert_int_equal(packet[len], 0xAA);
	}
}

static void a_udp_checksum_is_never_sent_as_none(void **state)
{
	struct inner_flow f = flow_of(INNER_UDP);
	uint8_t packet[ROOM];

	(void)state;
	/* Among all values of 16 bits that count up there is one whose sum is all ones. */
	for (uint32_t seq = 0; seq < 0x10000; seq++) {
		inner_write(&f, &(struct inner_stamp){1, seq}, INNER_STAMP_LEN, true, packet);
		assert_int_not_equal(get(packet + 26, 2), 0);
	}
}

static void segments_of_a_tcp_flow_follow_each_other(void **state)
{
	struct inner_flow f = flow_of(INNER_TCP);
	uint8_t packet[ROOM];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		inner_write(&f, &(struct inner_stamp){1, i}, 100, i == 3, packet);
		assert_int_equal(get(packet + 4, 2), (65534 + i) & 0xffff);
		assert_int_equal(get(packet + 24, 4), 0xfffffff0 + i * 100);
		assert_int_equal(packet[33], i == 3 ? 0x18 : 0x10);
	}
}

static void a_super_packet_leaves_the_checksum_to_the_device(void **state)
{
	struct inner_flow f = flow_of(INNER_TCP);
	uint8_t packet[ROOM];

	(void)state;
	inner_write_super(&f, 3000, 1400, packet);
	assert_int_equal(get(packet + 2, 2), 3040);
	assert_int_equal(sum_of(0, packet, INNER_IP_LEN), 0xffff);
	/* The pseudo header's sum stands there. */
	assert_int_equal(get(packet + 36, 2), sum_of(6 + 3020, packet + 12, 8));
	/* Three segments, each with an id. */
	assert_int_equal(f.ip_id, (uint16_t)(65534 + 3));
	assert_int_equal(f.tcp_seq, (uint32_t)(0xfffffff0 + 3000u));
}

/* --- what is recognised --- */

static void what_was_written_is_read(void **state)
{
	uint8_t packet[ROOM];

	(void)state;
	for (int p = INNER_UDP; p <= INNER_TCP; p++) {
		struct inner_flow f = flow_of((enum inner_protocol)p);
		inner_write(&f, &(struct inner_stamp){7, 1ull << 40}, 500, true, packet);
		struct inner_seen s = inner_read(packet, inner_header_len(f.protocol) + 500);
		assert_int_equal(s.kind, INNER_STAMPED);
		assert_int_equal(s.stamp.stream, 7);
		assert_int_equal(s.stamp.seq, 1ull << 40);
		assert_int_equal(s.payload_len, 500);
	}
}

static void an_answer_to_a_probe_has_its_time(void **state)
{
	struct inner_flow f = flow_of(INNER_UDP);
	uint8_t packet[ROOM];
	uint32_t len = INNER_ICMP_LEN + 56;

	(void)state;
	inner_write_probe(&f, &(struct inner_stamp){9, 70000}, 123456789012345, 56, packet);
	assert_int_equal(sum_of(0, packet, INNER_IP_LEN), 0xffff);
	assert_int_equal(sum_of(0, packet + INNER_IP_LEN, len - INNER_IP_LEN), 0xffff);
	/* A request is not an answer. */
	assert_int_equal(inner_read(packet, len).kind, INNER_OTHER);
	packet[INNER_IP_LEN] = 0;
	struct inner_seen s = inner_read(packet, len);
	assert_int_equal(s.kind, INNER_ECHO);
	assert_int_equal(s.stamp.seq, 70000);
	assert_int_equal(s.sent_ns, 123456789012345);
}

static void other_packets_are_not_taken(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} changes[] = {
		{0, 0x65},	    /* IPv6 */
		{0, 0x46},	    /* options: not ours */
		{9, 47},	    /* GRE */
		{32, 0xF0},	    /* TCP header longer than the packet */
		{INNER_TCP_LEN, 0}, /* no magic */
	};
	struct inner_flow f = flow_of(INNER_TCP);
	uint8_t whole[ROOM], packet[ROOM];
	uint32_t len = INNER_TCP_LEN + INNER_STAMP_LEN;

	(void)state;
	inner_write(&f, &(struct inner_stamp){1, 1}, INNER_STAMP_LEN, true, whole);
	assert_int_equal(inner_read(whole, len).kind, INNER_STAMPED);
	for (uint32_t n = 0; n < len; n++)
		assert_int_equal(inner_read(whole, n).kind, INNER_OTHER);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		memcpy(packet, whole, sizeof(packet));
		packet[changes[i].at] = changes[i].value;
		assert_int_equal(inner_read(packet, len).kind, INNER_OTHER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_right_for_every_length),
		cmocka_unit_test(a_udp_checksum_is_never_sent_as_none),
		cmocka_unit_test(segments_of_a_tcp_flow_follow_each_other),
		cmocka_unit_test(a_super_packet_leaves_the_checksum_to_the_device),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(an_answer_to_a_probe_has_its_time),
		cmocka_unit_test(other_packets_are_not_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
