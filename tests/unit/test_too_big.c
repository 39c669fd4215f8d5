/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/made_packet.h"
#include "tun/too_big.h"

#define TOO_LONG 1400

static const struct ip_addr us4 = {.family = 4, .bytes = {10, 8, 0, 1}};
static const struct ip_addr us6 = {.family = 6, .bytes = {0xfd, [15] = 1}};
static const struct ip_addr nobody;

static uint8_t packet[2048], out[TOO_BIG_MAX + 1];

/* A TCP packet of `len` bytes from 10.8.0.6 to 192.0.2.9 (DF set), or from fd00::6 to 2001::9. */
static void make(bool is_ipv6, uint32_t len)
{
	memset(packet, 0, sizeof(packet));
	if (is_ipv6) {
		packet[0] = 0x60;
		made_put16(packet + 4, len - 40);
		packet[6] = 6;
		packet[7] = 64;
		packet[8] = 0xfd;
		packet[23] = 6;
		packet[24] = 0x20;
		packet[25] = 1;
		packet[39] = 9;
	} else {
		packet[0] = 0x45;
		made_put16(packet + 2, len);
		packet[6] = 0x40;
		packet[8] = 64;
		packet[9] = 6;
		memcpy(packet + 12, (uint8_t[]){10, 8, 0, 6, 192, 0, 2, 9}, 8);
	}
	for (uint32_t i = is_ipv6 ? 40 : 20; i < len; i++)
		packet[i] = (uint8_t)i;
}

static void ipv4_sender_is_told_what_fits(void **state)
{
	(void)state;
	make(false, TOO_LONG);
	memset(out, 0xee, sizeof(out));
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us4), 576);
	assert_int_equal(out[576], 0xee);
	assert_int_equal(out[0], 0x45);
	assert_int_equal(made_get16(out + 2), 576);
	assert_int_equal(out[9], 1);
	assert_memory_equal(out + 12, us4.bytes, 4);
	assert_memory_equal(out + 16, packet + 12, 4);
	assert_int_equal(made_sum(out, 20, 0), 0xffff);
	assert_memory_equal(out + 20, ((uint8_t[]){3, 4}), 2);
	assert_memory_equal(out + 24, ((uint8_t[]){0, 0, 1300 >> 8, 1300 & 255}), 4);
	assert_memory_equal(out + 28, packet, 576 - 28);
	assert_int_equal(made_sum(out + 20, 556, 0), 0xffff);
}

static void ipv6_sender_is_told_what_fits(void **state)
{
	(void)state;
	make(true, TOO_LONG);
	memset(out, 0xee, sizeof(out));
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us6), 1280);
	assert_int_equal(out[1280], 0xee);
	assert_int_equal(out[0], 0x60);
	assert_int_equal(made_get16(out + 4), 1240);
	assert_int_equal(out[6], 58);
	assert_memory_equal(out + 8, us6.bytes, 16);
	assert_memory_equal(out + 24, packet + 8, 16);
	assert_memory_equal(out + 40, ((uint8_t[]){2, 0}), 2);
	assert_memory_equal(out + 44, ((uint8_t[]){0, 0, 1300 >> 8, 1300 & 255}), 4);
	assert_memory_equal(out + 48, packet, 1280 - 48);
	uint32_t pseudo = made_sum(out + 8, 32, 58 + 1240);
	assert_int_equal(made_sum(out + 40, 1240, pseudo), 0xffff);
}

static void short_packets_are_quoted_whole(void **state)
{
	(void)state;
	make(false, 101);
	assert_int_equal(too_big_write(out, packet, 101, 90, &us4), 28 + 101);
	assert_int_equal(made_sum(out + 20, 109, 0), 0xffff);
	make(true, 101);
	assert_int_equal(too_big_write(out, packet, 101, 90, &us6), 48 + 101);
	/* What lies behind the packet is not told. */
	make(false, 100);
	assert_int_equal(too_big_write(out, packet, 200, 90, &us4), 28 + 100);
}

static void mtu_is_one_that_is_believed(void **state)
{
	(void)state;
	make(true, TOO_LONG);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1279, &us6), 1280);
	assert_int_equal(made_get16(out + 46), 1280);
	make(false, TOO_LONG);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 70000, &us4), 576);
	assert_int_equal(made_get16(out + 26), 65535);
}

static void nothing_is_said_where_none_is_due(void **state)
{
	static const struct {
		bool is_ipv6;
		uint8_t at, value[4], value_len;
	} rows[] = {
		{false, 6, {0x00}, 1},		/* may be fragmented */
		{false, 6, {0x40, 0x01}, 2},	/* a fragment, not the first */
		{false, 12, {224, 0, 0, 1}, 4}, /* from a group */
		{false, 12, {255, 255, 255, 255}, 4},
		{false, 12, {0, 0, 0, 0}, 4},
		{false, 12, {127, 0, 0, 1}, 4},
		{false, 12, {240, 0, 0, 1}, 4},
		{false, 16, {224, 0, 0, 1}, 4}, /* to a group */
		{false, 16, {255, 255, 255, 255}, 4},
		{false, 0, {0x44}, 1},
		{false, 0, {0x55}, 1},
		{false, 2, {0x07, 0xff}, 2}, /* longer than it is */
		{true, 8, {0xff}, 1},
		{true, 24, {0xff}, 1},
		{true, 4, {0x07, 0xff}, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(rows[i].is_ipv6, TOO_LONG);
		memcpy(packet + rows[i].at, rows[i].value, rows[i].value_len);
		uint32_t len =
			too_big_write(out, packet, TOO_LONG, 1300, rows[i].is_ipv6 ? &us6 : &us4);
		if (len != 0)
			fail_msg("row %zu: %u bytes", i, len);
	}
	make(true, TOO_LONG);
	memset(packet + 8, 0, 16);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us6), 0);
}

static void errors_answer_no_errors(void **state)
{
	static const struct {
		bool is_ipv6;
		uint8_t type;
		bool is_due;
	} rows[] = {
		{false, 0, true},   {false, 8, true},	{false, 13, true},  {false, 3, false},
		{false, 4, false},  {false, 5, false},	{false, 11, false}, {false, 12, false},
		{true, 128, true},  {true, 129, true},	{true, 1, false},   {true, 2, false},
		{true, 127, false}, {true, 137, false}, {true, 135, true},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(rows[i].is_ipv6, TOO_LONG);
		packet[rows[i].is_ipv6 ? 6 : 9] = rows[i].is_ipv6 ? 58 : 1;
		packet[rows[i].is_ipv6 ? 40 : 20] = rows[i].type;
		uint32_t len =
			too_big_write(out, packet, TOO_LONG, 1300, rows[i].is_ipv6 ? &us6 : &us4);
		if ((len > 0) != rows[i].is_due)
			fail_msg("row %zu: %u bytes", i, len);
	}
	/* Also behind an extension header, and if the type is not there. */
	make(true, TOO_LONG);
	packet[6] = 60;
	packet[40] = 58;
	packet[41] = 0;
	packet[48] = 1;
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us6), 0);
	packet[48] = 128;
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us6), 1280);
	make(false, 20);
	packet[9] = 1;
	assert_int_equal(too_big_write(out, packet, 20, 10, &us4), 0);
}

static void without_an_address_of_the_family_nothing_is_said(void **state)
{
	(void)state;
	make(false, TOO_LONG);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us6), 0);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &nobody), 0);
	make(true, TOO_LONG);
	assert_int_equal(too_big_write(out, packet, TOO_LONG, 1300, &us4), 0);
}

/* Of every length, in memory that ends with it. */
static void short_input_is_not_overread(void **state)
{
	(void)state;
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++)
		for (uint32_t len = 0; len < 80; len++) {
			make(is_ipv6, 79);
			uint8_t *cut = malloc(len > 0 ? len : 1);
			assert_non_null(cut);
			memcpy(cut, packet, len);
			uint32_t n = too_big_write(out, cut, len, 60, is_ipv6 ? &us6 : &us4);
			assert_int_equal(n > 0, len == 79);
			free(cut);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_sender_is_told_what_fits),
		cmocka_unit_test(ipv6_sender_is_told_what_fits),
		cmocka_unit_test(short_packets_are_quoted_whole),
		cmocka_unit_test(mtu_is_one_that_is_believed),
		cmocka_unit_test(nothing_is_said_where_none_is_due),
		cmocka_unit_test(errors_answer_no_errors),
		cmocka_unit_test(without_an_address_of_the_family_nothing_is_said),
		cmocka_unit_test(short_input_is_not_overread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
