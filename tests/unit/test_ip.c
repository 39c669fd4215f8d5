/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tun/ip.h"

#define IPV4_LEN 20
#define IPV6_LEN 40

/* Ones' complement sum over TCP with its pseudo header; 0xffff if the checksum is right. */
static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t tcp_sum(const uint8_t *packet, uint32_t ip_len, uint32_t tcp_len)
{
	bool is_ipv4 = packet[0] >> 4 == 4;
	uint32_t sum = 6 + tcp_len;
	sum = sum16(packet + (is_ipv4 ? 12 : 8), is_ipv4 ? 8 : 32, sum);
	return sum16(packet + ip_len, tcp_len, sum);
}

/* A TCP packet of `version` with these options and `payload_len` bytes behind; its checksum is
 * right. Returns its length. */
static uint32_t make_tcp(uint8_t *p, unsigned version, uint8_t flags, const uint8_t *options,
			 uint32_t options_len, uint32_t payload_len)
{
	uint32_t ip_len = version == 4 ? IPV4_LEN : IPV6_LEN;
	uint32_t tcp_len = 20 + options_len + payload_len;
	uint8_t *tcp = p + ip_len;

	memset(p, 0, ip_len + tcp_len);
	if (version == 4) {
		p[0] = 0x45;
		p[2] = (uint8_t)((ip_len + tcp_len) >> 8);
		p[3] = (uint8_t)(ip_len + tcp_len);
		p[8] = 64;
		p[9] = 6;
		memcpy(p + 12, (uint8_t[]){10, 8, 0, 6, 192, 0, 2, 99}, 8);
	} else {
		p[0] = 0x60;
		p[4] = (uint8_t)(tcp_len >> 8);
		p[5] = (uint8_t)tcp_len;
		p[6] = 6;
		p[7] = 64;
		p[8] = 0xfd;
		p[23] = 7;
		p[24] = 0xfd;
		p[39] = 9;
	}
	for (uint32_t i = 0; i < payload_len; i++)
		tcp[20 + options_len + i] = (uint8_t)(i * 37);
	tcp[0] = 0xd4;
	tcp[3] = 80;
	tcp[5] = 77;
	tcp[12] = (uint8_t)((20 + options_len) / 4 << 4);
	tcp[13] = flags;
	if (options_len > 0)
		memcpy(tcp + 20, options, options_len);
	uint32_t sum = ~tcp_sum(p, ip_len, tcp_len);
	tcp[16] = (uint8_t)(sum >> 8);
	tcp[17] = (uint8_t)sum;
	return ip_len + tcp_len;
}

/* Clamp an exact copy on the heap, so that the sanitizer sees a byte read past the end. */
static void clamp(uint8_t *p, uint32_t len, uint16_t mss4, uint16_t mss6)
{
	uint8_t *exact = malloc(len ? len : 1);
	assert_non_null(exact);
	memcpy(exact, p, len);
	ip_clamp_mss(exact, len, mss4, mss6);
	memcpy(p, exact, len);
	free(exact);
}

static void addresses_come_from_fixed_header(void **state)
{
	(void)state;
	uint8_t p[100];
	struct ip_addr a;

	make_tcp(p, 4, 2, NULL, 0, 0);
	assert_true(ip_source(p, IPV4_LEN, &a));
	assert_int_equal(a.family, 4);
	assert_memory_equal(a.bytes, ((uint8_t[16]){10, 8, 0, 6}), 16);
	assert_true(ip_destination(p, IPV4_LEN, &a));
	assert_memory_equal(a.bytes, ((uint8_t[16]){192, 0, 2, 99}), 16);

	make_tcp(p, 6, 2, NULL, 0, 0);
	assert_true(ip_source(p, IPV6_LEN, &a));
	assert_int_equal(a.family, 6);
	assert_memory_equal(a.bytes, p + 8, 16);
	assert_true(ip_destination(p, IPV6_LEN, &a));
	assert_memory_equal(a.bytes, p + 24, 16);
}

static void short_packets_and_other_versions_have_no_address(void **state)
{
	(void)state;
	uint8_t p[100];
	struct ip_addr a;

	for (unsigned version = 4; version <= 6; version += 2) {
		uint32_t whole = version == 4 ? IPV4_LEN : IPV6_LEN;
		make_tcp(p, version, 2, NULL, 0, 0);
		for (uint32_t len = 0; len < whole; len++) {
			uint8_t *exact = malloc(len ? len : 1);
			memcpy(exact, p, len);
			assert_false(ip_source(exact, len, &a));
			assert_false(ip_destination(exact, len, &a));
			free(exact);
		}
		assert_true(ip_source(p, whole, &a));
	}
	for (unsigned version = 0; version < 16; version++) {
		p[0] = (uint8_t)(version << 4 | 5);
		assert_int_equal(ip_source(p, sizeof(p), &a), version == 4 || version == 6);
	}
}

static void multicast_and_link_local_are_told_apart(void **state)
{
	(void)state;
	static const struct {
		struct ip_addr a;
		bool is_multicast, is_link_local;
	} rows[] = {
		{{4, {223, 255, 255, 255}}, false, false},
		{{4, {224, 0, 0, 0}}, true, false},
		{{4, {239, 255, 255, 255}}, true, false},
		{{4, {240, 0, 0, 1}}, false, false},
		{{4, {255, 255, 255, 255}}, true, false},
		{{4, {255, 255, 255, 254}}, false, false},
		{{4, {169, 254, 0, 1}}, false, true},
		{{4, {169, 253, 255, 255}}, false, false},
		{{4, {169, 255, 0, 0}}, false, false},
		{{6, {0xff, 2}}, true, false},
		{{6, {0xfe, 0x7f}}, false, false},
		{{6, {0xfe, 0x80}}, false, true},
		{{6, {0xfe, 0xbf, 255}}, false, true},
		{{6, {0xfe, 0xc0}}, false, false},
		{{6, {224, 0, 0, 1}}, false, false},
		{{0, {0xff, 0xff, 0xff, 0xff}}, false, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ip_is_multicast(&rows[i].a), rows[i].is_multicast);
		assert_int_equal(ip_is_link_local(&rows[i].a), rows[i].is_link_local);
	}
}

/* One row of options: what stands at mss_at before and after. */
struct mss_row {
	uint8_t options[12];
	uint32_t options_len;
	uint32_t mss_at; /* in the options; UINT32_MAX: nothing may change */
	uint16_t before;
};
#define NOWHERE UINT32_MAX
static const struct mss_row mss_rows[] = {
	{{2, 4, 0x05, 0xb4}, 4, 2, 1460},
	{{1, 2, 4, 0x05, 0xb4, 0, 0, 0}, 8, 3, 1460}, /* odd offset */
	{{1, 1, 2, 4, 0xff, 0xff, 1, 1}, 8, 4, 65535},
	{{3, 3, 7, 2, 4, 0x23, 0x00, 0}, 8, 5, 8960}, /* behind another option, odd */
	{{4, 2, 8, 4, 9, 9, 2, 4, 0x05, 0xb4, 0, 0}, 12, 8, 1460},
	{{2, 4, 0x05, 0x15}, 4, NOWHERE, 0},		 /* 1301: one above is changed below */
	{{0, 0, 2, 4, 0x05, 0xb4, 0, 0}, 8, NOWHERE, 0}, /* behind the end of options */
	{{2, 3, 0x05, 0xb4}, 4, NOWHERE, 0},		 /* wrong length of the option */
	{{2, 6, 0x05, 0xb4, 0x05, 0xb4, 0, 0}, 8, NOWHERE, 0},
	{{1, 1, 2, 4}, 4, NOWHERE, 0},			 /* value lies behind the header */
	{{1, 1, 1, 2}, 4, NOWHERE, 0},			 /* no length byte */
	{{3, 0, 2, 4, 0x05, 0xb4, 0, 0}, 8, NOWHERE, 0}, /* length below 2 */
	{{3, 1, 2, 4, 0x05, 0xb4, 0, 0}, 8, NOWHERE, 0},
	{{3, 9, 2, 4, 0x05, 0xb4, 0, 0}, 8, NOWHERE, 0}, /* longer than what is left */
	{{1, 1, 1, 1}, 4, NOWHERE, 0},
	{{0}, 0, NOWHERE, 0},
};

static void syn_gets_lower_mss_and_right_checksum(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2)
		for (size_t i = 0; i < sizeof(mss_rows) / sizeof(mss_rows[0]); i++)
			for (uint32_t payload = 0; payload < 4; payload++) {
				const struct mss_row *row = &mss_rows[i];
				uint8_t p[100], want[100];
				uint32_t len = make_tcp(p, version, 0x02, row->options,
							row->options_len, payload);
				uint32_t ip_len = version == 4 ? IPV4_LEN : IPV6_LEN;
				memcpy(want, p, len);
				clamp(p, len, 1301, 1301);
				if (row->mss_at == NOWHERE) {
					assert_memory_equal(p, want, len);
					continue;
				}
				want[ip_len + 20 + row->mss_at] = 1301 >> 8;
				want[ip_len + 20 + row->mss_at + 1] = 1301 & 0xff;
				memcpy(want + ip_len + 16, p + ip_len + 16, 2);
				assert_memory_equal(p, want, len);
				assert_int_equal(tcp_sum(p, ip_len, len - ip_len), 0xffff);
			}
}

static void every_mss_keeps_checksum_right(void **state)
{
	(void)state;
	for (uint32_t mss = 1; mss <= 65535; mss += mss < 300 ? 1 : 251) {
		uint8_t even[] = {2, 4, 0xff, 0xff}, odd[] = {1, 2, 4, 0xff, 0xff, 0, 0, 0}, p[64];
		uint32_t len = make_tcp(p, 4, 0x12, even, sizeof(even), 0);
		clamp(p, len, (uint16_t)mss, 0);
		assert_int_equal(tcp_sum(p, IPV4_LEN, len - IPV4_LEN), 0xffff);
		assert_int_equal(p[42] << 8 | p[43], mss);
		len = make_tcp(p, 4, 0x12, odd, sizeof(odd), 0);
		clamp(p, len, (uint16_t)mss, 0);
		assert_int_equal(tcp_sum(p, IPV4_LEN, len - IPV4_LEN), 0xffff);
		assert_int_equal(p[43] << 8 | p[44], mss);
	}
}

static void mss_is_only_lowered_and_by_version(void **state)
{
	(void)state;
	static const struct {
		unsigned version;
		uint16_t mss4, mss6, want; /* packet has 1460 */
	} rows[] = {
		{4, 1400, 1380, 1400}, {6, 1400, 1380, 1380}, {4, 0, 1380, 1460},
		{6, 1400, 0, 1460},    {4, 1460, 1, 1460},    {4, 1461, 1, 1460},
		{4, 1459, 1, 1459},    {6, 1, 1459, 1459},    {6, 1, 9000, 1460},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t p[100], options[] = {2, 4, 1460 >> 8, 1460 & 0xff};
		uint32_t len = make_tcp(p, rows[i].version, 0x02, options, 4, 0);
		clamp(p, len, rows[i].mss4, rows[i].mss6);
		assert_int_equal(p[len - 2] << 8 | p[len - 1], rows[i].want);
	}
}

/* One byte of a good IPv4 or IPv6 SYN is changed; then it is to be left alone, or not. */
static void only_whole_unfragmented_tcp_syn_is_changed(void **state)
{
	(void)state;
	static const struct {
		unsigned version;
		uint32_t at;
		uint8_t value;
		int cut; /* bytes of the buffer missing, or trailing if negative */
		bool is_changed;
	} rows[] = {
		{4, 8, 64, 0, true},	      {4, 8, 64, -3, true}, /* the header says where the
								       packet ends */
		{4, 8, 64, 1, false},				    /* truncated */
		{4, 3, 45, 0, false},	      /* header length beyond the buffer */
		{4, 3, 43, 0, false},	      /* too short for the TCP header it announces */
		{4, 3, 19, 0, false},	      /* total length below the header's */
		{4, 0, 0x44, 0, false},	      /* IHL below 5 */
		{4, 0, 0x4f, 0, false},	      /* IHL beyond the packet */
		{4, 6, 0x20, 0, false},	      /* more fragments */
		{4, 7, 0x01, 0, false},	      /* not the first fragment */
		{4, 6, 0x40, 0, true},	      /* don't fragment */
		{4, 9, 17, 0, false},	      /* not TCP */
		{4, 20 + 13, 0x10, 0, false}, /* no SYN */
		{4, 20 + 13, 0x12, 0, true},  /* SYN + ACK */
		{4, 20 + 12, 0x40, 0, false}, /* data offset below 5 */
		{4, 20 + 12, 0x50, 0, false}, /* no options */
		{4, 20 + 12, 0x70, 0, false}, /* options beyond the packet */
		{6, 7, 64, 0, true},	      {6, 7, 64, -3, true}, {6, 7, 64, 1, false},
		{6, 5, 25, 0, false},	      {6, 5, 23, 0, false}, {6, 5, 0, 0, false},
		{6, 6, 44, 0, false}, /* fragment header */
		{6, 6, 0, 0, false},  /* hop-by-hop options */
		{6, 40 + 13, 0x01, 0, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t p[100], before[100], options[] = {2, 4, 1460 >> 8, 1460 & 0xff};
		uint32_t len = make_tcp(p, rows[i].version, 0x02, options, 4, 0);
		memset(p + len, 0, sizeof(p) - len);
		p[rows[i].at] = rows[i].value;
		memcpy(before, p, sizeof(p));
		clamp(p, (uint32_t)((int)len - rows[i].cut), 1200, 1200);
		assert_int_equal(memcmp(p, before, sizeof(p)) != 0, rows[i].is_changed);
	}
}

static void no_prefix_of_a_packet_is_changed(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		uint8_t p[100], before[100], options[] = {2, 4, 1460 >> 8, 1460 & 0xff};
		uint32_t len = make_tcp(p, version, 0x02, options, 4, 9);
		memcpy(before, p, sizeof(p));
		for (uint32_t cut = 0; cut < len; cut++) {
			clamp(p, cut, 1200, 1200);
			assert_memory_equal(p, before, len);
		}
	}
}

static void options_of_ipv4_are_skipped(void **state)
{
	(void)state;
	uint8_t p[100], options[] = {2, 4, 1460 >> 8, 1460 & 0xff};
	uint32_t len = make_tcp(p, 4, 0x02, options, 4, 0);
	memmove(p + 28, p + 20, len - 20);
	memset(p + 20, 1, 8);
	p[0] = 0x47;
	p[3] = (uint8_t)(len + 8);
	clamp(p, len + 8, 1200, 0);
	assert_int_equal(p[28 + 22] << 8 | p[28 + 23], 1200);
	assert_int_equal(tcp_sum(p, 28, len - 20), 0xffff);
}

/* Look at an exact copy on the heap. */
static bool look(const uint8_t *packet, uint32_t len, struct ip_view *out)
{
	uint8_t *exact = malloc(len ? len : 1);
	assert_non_null(exact);
	memcpy(exact, packet, len);
	bool is_good = ip_look(exact, len, out);
	free(exact);
	return is_good;
}

static void outline_of_a_packet(void **state)
{
	(void)state;
	static const struct {
		uint8_t head[8], extensions[32]; /* of 64 bytes; behind IPv4's first 8, IPv6's 40 */
		uint32_t len, transport_at;
		uint8_t protocol;
		bool is_fragment;
	} rows[] = {
		{{0x45, 0, 0, 64, 0, 0, 0x40, 0}, {64, 6}, 64, 20, 6, false},
		{{0x45, 0, 0, 20, 0, 0, 0, 0}, {64, 17}, 20, 20, 17, false},
		{{0x4f, 0, 0, 60, 0, 0, 0, 0}, {64, 17}, 60, 60, 17, false},
		{{0x45, 0, 0, 63, 0, 0, 0x20, 0}, {64, 17}, 63, 20, 17, true},
		{{0x45, 0, 0, 63, 0, 0, 0, 1}, {64, 17}, 63, 20, 17, true},
		{{0x45, 0, 0, 63, 0, 0, 0x1f, 0}, {64, 17}, 63, 20, 17, true},
		{{0x45, 0, 0, 63, 0, 0, 0xc0, 0}, {64, 17}, 63, 20, 17, false},
		{{0x60, 0, 0, 0, 0, 24, 6, 64}, {0}, 64, 40, 6, false},
		{{0x60, 0, 0, 0, 0, 0, 17, 64}, {0}, 40, 40, 17, false},
		{{0x60, 0, 0, 0, 0, 24, 0, 64}, {6, 0}, 64, 48, 6, false},
		{{0x60, 0, 0, 0, 0, 24, 60, 64}, {17, 1}, 64, 56, 17, false},
		{{0x60, 0, 0, 0, 0, 24, 0, 64},
		 {43, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 6, 0},
		 64,
		 64,
		 6,
		 false},
		{{0x60, 0, 0, 0, 0, 24, 44, 64}, {6}, 64, 40, 44, true},
		{{0x60, 0, 0, 0, 0, 24, 60, 64}, {44}, 64, 48, 44, true},
		/* Cut short, the extension header is what there is. */
		{{0x60, 0, 0, 0, 0, 24, 0, 64}, {6, 3}, 64, 40, 0, false},
		{{0x60, 0, 0, 0, 0, 0, 0, 64}, {0}, 40, 40, 0, false},
		{{0x60, 0, 0, 0, 0, 1, 0, 64}, {6}, 41, 40, 0, false},
		{{0x60, 0, 0, 0, 0, 7, 0, 64}, {6}, 47, 40, 0, false},
		{{0x60, 0, 0, 0, 0, 9, 0, 64}, {43, 0, 0, 0, 0, 0, 0, 0, 6}, 49, 48, 43, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t packet[72] = {0};
		bool is_ipv6 = rows[i].head[0] >> 4 == 6;
		struct ip_view v;
		memcpy(packet, rows[i].head, 8);
		memcpy(packet + (is_ipv6 ? 40 : 8), rows[i].extensions, is_ipv6 ? 32 : 2);
		for (uint32_t len = 0; len < rows[i].len; len++)
			assert_false(look(packet, len, &v));
		assert_true(look(packet, rows[i].len, &v));
		assert_int_equal(v.len, rows[i].len);
		assert_int_equal(v.transport_at, rows[i].transport_at);
		assert_int_equal(v.protocol, rows[i].protocol);
		assert_int_equal(v.is_ipv6, is_ipv6);
		assert_int_equal(v.is_fragment, rows[i].is_fragment);
		assert_true(look(packet, 72, &v));
		assert_int_equal(v.len, rows[i].len);
	}
}

static void packet_that_contradicts_itself_has_no_outline(void **state)
{
	(void)state;
	static const uint8_t rows[][8] = {
		{0x44, 0, 0, 64}, {0x40, 0, 0, 64}, {0x45, 0, 0, 19},	    {0x45, 0, 0, 0},
		{0x4f, 0, 0, 59}, {0x46, 0, 0, 20}, {0x45, 0, 0, 65},	    {0x45, 0, 1, 0},
		{0x55, 0, 0, 64}, {0x00, 0, 0, 64}, {0x60, 0, 0, 0, 0, 25}, {0x60, 0, 0, 0, 1, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t packet[64] = {0};
		struct ip_view v;
		memcpy(packet, rows[i], 8);
		assert_false(look(packet, sizeof(packet), &v));
	}
}

static void pseudo_header_is_summed_up(void **state)
{
	(void)state;
	static const uint32_t lens[] = {0, 1, 0x1234, 0xffff, 0x10000, 65575};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint8_t packet[40];
		for (int j = 0; j < 40; j++)
			packet[j] = (uint8_t)(0xfe - j * 3);
		assert_int_equal(ip_pseudo_sum(packet, false, 17, lens[i]),
				 sum16(packet + 12, 8, 17 + lens[i]));
		assert_int_equal(ip_pseudo_sum(packet, true, 6, lens[i]),
				 sum16(packet + 8, 32, 6 + lens[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_come_from_fixed_header),
		cmocka_unit_test(short_packets_and_other_versions_have_no_address),
		cmocka_unit_test(multicast_and_link_local_are_told_apart),
		cmocka_unit_test(syn_gets_lower_mss_and_right_checksum),
		cmocka_unit_test(every_mss_keeps_checksum_right),
		cmocka_unit_test(mss_is_only_lowered_and_by_version),
		cmocka_unit_test(only_whole_unfragmented_tcp_syn_is_changed),
		cmocka_unit_test(no_prefix_of_a_packet_is_changed),
		cmocka_unit_test(options_of_ipv4_are_skipped),
		cmocka_unit_test(outline_of_a_packet),
		cmocka_unit_test(packet_that_contradicts_itself_has_no_outline),
		cmocka_unit_test(pseudo_header_is_summed_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
