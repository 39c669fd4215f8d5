/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* Included for the ways of summing that this machine would not choose. */
#include "tun/checksum.c"

/* Word by word, as RFC 1071 has it. */
static uint16_t plain_sum(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < len; i++) {
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void fill(uint8_t *p, uint32_t len)
{
	uint32_t x = 12345;
	for (uint32_t i = 0; i < len; i++) {
		x = x * 1103515245 + 12345;
		p[i] = (uint8_t)(x >> 16);
	}
}

/* RFC 1071, section 3; RFC 791's header from a capture. */
static void known_sums(void **state)
{
	(void)state;
	static const uint8_t rfc[8] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	static const uint8_t header[20] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
					   0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
					   0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};

	assert_int_equal(checksum_sum(rfc, sizeof(rfc)), 0xddf2);
	assert_int_equal(checksum_sum(header, sizeof(header)), 0xffff);
	assert_int_equal(checksum_sum(rfc, 0), 0);
	assert_int_equal(checksum_sum(rfc + 1, 1), 0x0100);
}

/* The ways of summing; what this machine cannot do is NULL. */
struct way {
	uint64_t (*sum)(const uint8_t *p, uint32_t len);
	uint64_t (*copy)(uint8_t *to, const uint8_t *p, uint32_t len);
};

static uint64_t sum_plain_lanes(const uint8_t *p, uint32_t len)
{
	return sum_lanes16((struct pass){p, NULL, len});
}

static uint64_t copy_plain_lanes(uint8_t *to, const uint8_t *p, uint32_t len)
{
	return sum_lanes16((struct pass){p, to, len});
}

static void find_ways(struct way ways[4])
{
	ways[0] = (struct way){sum_any, copy_any};
	ways[1] = (struct way){sum_plain_lanes, copy_plain_lanes};
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		ways[2] = (struct way){sum_avx2, copy_avx2};
	if (__builtin_cpu_supports("avx512f"))
		ways[3] = (struct way){sum_avx512, copy_avx512};
#endif
}

static void check_ways(uint32_t len, uint32_t shift)
{
	struct way ways[4] = {{NULL, NULL}};
	uint8_t *from = malloc(len + shift + 1), *to = malloc(len + shift + 1);

	assert_non_null(from);
	assert_non_null(to);
	fill(from, len + shift);
	uint16_t sum = plain_sum(from + shift, len);
	assert_int_equal(checksum_sum(from + shift, len), sum);
	assert_int_equal(checksum_copy(to + shift, from + shift, len), sum);
	find_ways(ways);
	for (int i = 0; i < 4; i++) {
		if (!ways[i].sum)
			continue;
		memset(to, 0xa5, len + shift + 1);
		assert_int_equal(in_order(ways[i].sum(from + shift, len)), sum);
		assert_int_equal(in_order(ways[i].copy(to + shift, from + shift, len)), sum);
		assert_memory_equal(to + shift, from + shift, len);
		assert_int_equal(to[len + shift], 0xa5);
	}
	free(from);
	free(to);
}

static void every_length_and_alignment_is_summed_and_copied(void **state)
{
	(void)state;
	for (uint32_t len = 0; len <= 1500; len += len < 300 ? 1 : 37) {
		for (uint32_t shift = 0; shift < 4; shift++)
			check_ways(len, shift);
	}
}

static void words_of_a_header_are_summed(void **state)
{
	(void)state;
	uint8_t p[40];

	fill(p, sizeof(p));
	for (uint32_t n = 0; n <= 10; n++)
		assert_int_equal(checksum_fold(checksum_words(p, n)), plain_sum(p, 4 * n));
	memset(p, 0xff, sizeof(p));
	assert_int_equal(checksum_words(p, 10), 10 * (uint64_t)UINT32_MAX);
}

static void carries_are_never_lost(void **state)
{
	(void)state;
	uint32_t len = 1 << 20;
	uint8_t *p = malloc(len);

	assert_non_null(p);
	memset(p, 0xff, len);
	assert_int_equal(checksum_sum(p, len), 0xffff);
	assert_int_equal(checksum_sum(p, 65535), plain_sum(p, 65535));
	memset(p, 0, len);
	assert_int_equal(checksum_sum(p, len), 0);
	p[len - 1] = 1;
	assert_int_equal(checksum_sum(p, len), 1);
	free(p);
}

static void fold_keeps_what_is_not_zero(void **state)
{
	(void)state;
	static const struct {
		uint64_t sum;
		uint16_t folded;
	} rows[] = {
		{0, 0},
		{1, 1},
		{0xffff, 0xffff},
		{0x10000, 1},
		{0x1fffe, 0xffff},
		{0xffffffff, 0xffff},
		{0x100000000, 1},
		{0x1fffffffe, 0xffff},
		{UINT64_MAX, 0xffff},
		{UINT64_MAX - 1, 0xfffe},
		{0x123456789abcdef0, 0xe259},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(checksum_fold(rows[i].sum), rows[i].folded);
}

static void replacing_a_word_is_summing_up_anew(void **state)
{
	(void)state;
	static const uint16_t words[] = {0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x1234};
	size_t n = sizeof(words) / sizeof(words[0]);

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			uint8_t p[6] = {0x45, 0, (uint8_t)(words[i] >> 8), (uint8_t)words[i], 7, 9};
			uint16_t before = (uint16_t)~plain_sum(p, sizeof(p));
			p[2] = (uint8_t)(words[j] >> 8);
			p[3] = (uint8_t)words[j];
			assert_int_equal(checksum_replace(before, words[i], words[j]),
					 (uint16_t)~plain_sum(p, sizeof(p)));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sums),
		cmocka_unit_test(every_length_and_alignment_is_summed_and_copied),
		cmocka_unit_test(words_of_a_header_are_summed),
		cmocka_unit_test(carries_are_never_lost),
		cmocka_unit_test(fold_keeps_what_is_not_zero),
		cmocka_unit_test(replacing_a_word_is_summing_up_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
