/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/bytes.h"

static const uint8_t input[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09};

static uint64_t read_uint(struct reader *r, size_t width)
{
	switch (width) {
	case 1:
		return reader_u8(r);
	case 2:
		return reader_u16(r);
	case 4:
		return reader_u32(r);
	default:
		return reader_u64(r);
	}
}

static void write_uint(struct writer *w, size_t width, uint64_t v)
{
	switch (width) {
	case 1:
		writer_u8(w, (uint8_t)v);
		break;
	case 2:
		writer_u16(w, (uint16_t)v);
		break;
	case 4:
		writer_u32(w, (uint32_t)v);
		break;
	default:
		writer_u64(w, v);
	}
}

static const struct {
	size_t width;
	uint64_t value;
} uints[] = {{1, 0x01}, {2, 0x0102}, {4, 0x01020304}, {8, 0x0102030405060708}};
#define UINT_COUNT (sizeof(uints) / sizeof(uints[0]))

static void reader_uint_fits_exactly_or_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < UINT_COUNT; i++) {
		size_t n = uints[i].width;
		struct reader r = reader_init(input, n - 1);
		assert_int_equal(read_uint(&r, n), 0);
		assert_false(reader_ok(&r));
		assert_int_equal(reader_left(&r), 0);
		r = reader_init(input, n);
		assert_int_equal(read_uint(&r, n), uints[i].value);
		assert_true(reader_done(&r));
		r = reader_init(input, n + 1);
		assert_int_equal(read_uint(&r, n), uints[i].value);
		assert_true(reader_ok(&r));
		assert_false(reader_done(&r));
		assert_int_equal(reader_left(&r), 1);
	}
}

static void reader_bytes_fit_exactly_or_fail(void **state)
{
	(void)state;
	for (size_t n = 0; n <= sizeof(input) - 1; n++) {
		struct reader r = reader_init(input, n);
		struct view v = reader_bytes(&r, n);
		assert_int_equal(v.len, n);
		assert_ptr_equal(v.data, input);
		assert_true(reader_done(&r));
		r = reader_init(input, n + 1);
		(void)reader_bytes(&r, n);
		assert_int_equal(reader_left(&r), 1);
		r = reader_init(input, n);
		v = reader_bytes(&r, n + 1);
		assert_int_equal(v.len, 0);
		assert_false(reader_ok(&r));
	}
}

static void reader_copy_fits_exactly_or_gives_zeros(void **state)
{
	(void)state;
	uint8_t out[4], zeros[4] = {0};
	struct reader r = reader_init(input, 4);
	reader_copy(&r, out, 4);
	assert_memory_equal(out, input, 4);
	assert_true(reader_done(&r));
	r = reader_init(input, 5);
	reader_copy(&r, out, 4);
	assert_int_equal(reader_left(&r), 1);
	r = reader_init(input, 3);
	reader_copy(&r, out, 4);
	assert_memory_equal(out, zeros, 4);
	assert_false(reader_ok(&r));
}

static void reader_stays_failed_and_yields_nothing(void **state)
{
	(void)state;
	struct reader r = reader_init(input, 3);
	(void)reader_u32(&r);
	assert_int_equal(reader_u8(&r), 0);
	assert_int_equal(reader_bytes(&r, 0).len, 0);
	assert_int_equal(reader_rest(&r).len, 0);
	assert_int_equal(reader_left(&r), 0);
	assert_false(reader_ok(&r));
	assert_false(reader_done(&r));
}

static void reader_takes_no_bytes_at_all(void **state)
{
	(void)state;
	struct reader r = reader_init(NULL, 0);
	assert_true(reader_done(&r));
	assert_int_equal(reader_bytes(&r, 0).len, 0);
	reader_copy(&r, NULL, 0);
	assert_true(reader_done(&r));
	(void)reader_u8(&r);
	assert_false(reader_ok(&r));
}

static void reader_refuses_a_huge_length(void **state)
{
	(void)state;
	struct reader r = reader_init(input, sizeof(input));
	(void)reader_u8(&r);
	assert_int_equal(reader_bytes(&r, SIZE_MAX).len, 0);
	assert_false(reader_ok(&r));
}

static void reader_sub_covers_its_part_only(void **state)
{
	(void)state;
	struct reader r = reader_init(input, sizeof(input));
	struct reader sub = reader_sub(&r, 2);
	assert_int_equal(reader_u16(&sub), 0x0102);
	assert_true(reader_done(&sub));
	(void)reader_u8(&sub);
	assert_false(reader_ok(&sub));
	assert_true(reader_ok(&r));
	assert_int_equal(reader_u8(&r), 0x03);
	assert_int_equal(reader_rest(&r).len, 6);
	assert_true(reader_done(&r));
}

static void reader_sub_beyond_the_end_fails_both(void **state)
{
	(void)state;
	struct reader r = reader_init(input, 3);
	struct reader sub = reader_sub(&r, 4);
	assert_false(reader_ok(&sub));
	assert_int_equal(reader_left(&sub), 0);
	assert_false(reader_ok(&r));
}

static void writer_uint_fits_exactly_or_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < UINT_COUNT; i++) {
		size_t n = uints[i].width;
		uint8_t out[9];
		struct writer w = writer_init(out, n - 1);
		write_uint(&w, n, uints[i].value);
		assert_false(writer_ok(&w));
		assert_int_equal(writer_len(&w), 0);
		w = writer_init(out, n);
		write_uint(&w, n, uints[i].value);
		assert_true(writer_ok(&w));
		assert_int_equal(writer_left(&w), 0);
		assert_memory_equal(out, input, n);
		w = writer_init(out, n + 1);
		write_uint(&w, n, uints[i].value);
		assert_int_equal(writer_left(&w), 1);
		assert_int_equal(writer_len(&w), n);
	}
}

static void writer_bytes_fit_exactly_or_fail(void **state)
{
	(void)state;
	uint8_t out[8] = {0};
	struct writer w = writer_init(out, 4);
	writer_bytes(&w, input, 5);
	assert_false(writer_ok(&w));
	assert_int_equal(out[0], 0);
	w = writer_init(out, 5);
	writer_view(&w, (struct view){input, 5});
	assert_true(writer_ok(&w));
	assert_int_equal(writer_left(&w), 0);
	w = writer_init(out, 6);
	writer_bytes(&w, input, 5);
	assert_int_equal(writer_left(&w), 1);
	assert_memory_equal(writer_done(&w).data, input, writer_done(&w).len);
}

static void writer_writes_nothing_once_failed(void **state)
{
	(void)state;
	uint8_t out[4] = {0};
	struct writer w = writer_init(out, 3);
	writer_u32(&w, 0xffffffff);
	writer_u8(&w, 0xff);
	assert_null(writer_reserve(&w, 0));
	assert_int_equal(writer_len(&w), 0);
	assert_int_equal(out[0], 0);
	assert_false(writer_ok(&w));
}

static void writer_takes_no_room_at_all(void **state)
{
	(void)state;
	struct writer w = writer_init(NULL, 0);
	writer_bytes(&w, NULL, 0);
	assert_true(writer_ok(&w));
	assert_null(writer_reserve(&w, SIZE_MAX));
	assert_false(writer_ok(&w));
}

static void writer_fills_in_a_length_later(void **state)
{
	(void)state;
	uint8_t out[5];
	struct writer w = writer_init(out, sizeof(out));
	writer_u8(&w, 0xaa);
	size_t at = writer_reserve_u16(&w);
	writer_u16(&w, 0xbbcc);
	writer_set_u16(&w, at, 0x1234);
	static const uint8_t expected[] = {0xaa, 0x12, 0x34, 0xbb, 0xcc};
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(writer_len(&w), sizeof(expected));
}

static void writer_ignores_a_late_length_once_failed(void **state)
{
	(void)state;
	uint8_t out[2] = {7, 7};
	struct writer w = writer_init(out, 1);
	size_t at = writer_reserve_u16(&w);
	writer_set_u16(&w, at, 0xffff);
	assert_false(writer_ok(&w));
	assert_int_equal(out[0], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_uint_fits_exactly_or_fails),
		cmocka_unit_test(reader_bytes_fit_exactly_or_fail),
		cmocka_unit_test(reader_copy_fits_exactly_or_gives_zeros),
		cmocka_unit_test(reader_stays_failed_and_yields_nothing),
		cmocka_unit_test(reader_takes_no_bytes_at_all),
		cmocka_unit_test(reader_refuses_a_huge_length),
		cmocka_unit_test(reader_sub_covers_its_part_only),
		cmocka_unit_test(reader_sub_beyond_the_end_fails_both),
		cmocka_unit_test(writer_uint_fits_exactly_or_fails),
		cmocka_unit_test(writer_bytes_fit_exactly_or_fail),
		cmocka_unit_test(writer_writes_nothing_once_failed),
		cmocka_unit_test(writer_takes_no_room_at_all),
		cmocka_unit_test(writer_fills_in_a_length_later),
		cmocka_unit_test(writer_ignores_a_late_length_once_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
