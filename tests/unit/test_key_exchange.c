/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/control/key_exchange.h"

static struct view text(const char *s)
{
	return (struct view){(const uint8_t *)s, strlen(s)};
}

static bool view_is(struct view v, const char *s)
{
	return v.len == strlen(s) && (v.len == 0 || memcmp(v.data, s, v.len) == 0);
}

static struct key_exchange sample(void)
{
	struct key_exchange k = {
		.options = text("V4,dev-type tun"),
		.username = text("alice"),
		.password = text("secret"),
		.peer_info = text("IV_VER=2.6.14\nIV_PROTO=990\n"),
	};
	memset(k.pre_master, 0x11, sizeof(k.pre_master));
	memset(k.random1, 0x22, sizeof(k.random1));
	memset(k.random2, 0x33, sizeof(k.random2));
	return k;
}

static size_t write_sample(bool is_from_client, uint8_t *out, size_t cap)
{
	struct key_exchange k = sample();
	struct writer w = writer_init(out, cap);
	key_exchange_write(&w, is_from_client, &k);
	return writer_ok(&w) ? writer_len(&w) : 0;
}

static void both_directions_survive_the_trip(void **state)
{
	(void)state;
	for (int is_client = 0; is_client < 2; is_client++) {
		uint8_t buf[1024];
		size_t len = write_sample(is_client, buf, sizeof(buf));
		struct key_exchange got, want = sample();
		assert_true(key_exchange_read((struct view){buf, len}, is_client, &got));
		if (is_client)
			assert_memory_equal(got.pre_master, want.pre_master, PRE_MASTER_LEN);
		assert_memory_equal(got.random1, want.random1, KEY_RANDOM_LEN);
		assert_memory_equal(got.random2, want.random2, KEY_RANDOM_LEN);
		assert_true(view_is(got.options, "V4,dev-type tun"));
		assert_true(view_is(got.username, "alice"));
		assert_true(view_is(got.password, "secret"));
		assert_true(view_is(got.peer_info, "IV_VER=2.6.14\nIV_PROTO=990\n"));
	}
}

static void layout_is_that_of_the_wire(void **state)
{
	(void)state;
	uint8_t buf[1024];
	size_t len = write_sample(true, buf, sizeof(buf));
	static const uint8_t head[] = {0, 0, 0, 0, 2, 0x11};
	assert_memory_equal(buf, head, sizeof(head));
	assert_int_equal(buf[4 + 1 + 48], 0x22);
	assert_int_equal(buf[4 + 1 + 48 + 32], 0x33);
	static const uint8_t options[] = {0, 16, 'V', '4'};
	assert_memory_equal(buf + 4 + 1 + 48 + 64, options, sizeof(options));
	assert_int_equal(buf[len - 1], 0);
	/* the server's message has no pre-master */
	assert_int_equal(write_sample(false, buf, sizeof(buf)), len - 48);
}

static void absent_strings_are_two_zero_bytes(void **state)
{
	(void)state;
	uint8_t buf[256];
	struct key_exchange k = sample(), got;
	k.username = k.password = k.peer_info = (struct view){0};
	struct writer w = writer_init(buf, sizeof(buf));
	key_exchange_write(&w, false, &k);
	size_t len = writer_len(&w);
	static const uint8_t none[6];
	assert_memory_equal(buf + len - 6, none, 6);
	assert_true(key_exchange_read((struct view){buf, len}, false, &got));
	assert_int_equal(got.username.len, 0);
	assert_int_equal(got.peer_info.len, 0);
}

/* Old clients end after the options, the password, or before peer-info; every other cut is none. */
static void truncation_at_every_byte(void **state)
{
	(void)state;
	uint8_t buf[1024];
	size_t len = write_sample(true, buf, sizeof(buf));
	size_t after_options = 4 + 1 + 48 + 64 + 2 + 16;
	size_t after_username = after_options + 2 + 6, after_password = after_username + 2 + 7;
	for (size_t n = 0; n <= len; n++) {
		uint8_t *exact = malloc(n ? n : 1);
		struct key_exchange got;
		assert_non_null(exact);
		memcpy(exact, buf, n);
		bool is_whole = n == len || n == after_options || n == after_username ||
				n == after_password;
		assert_int_equal(key_exchange_read((struct view){exact, n}, true, &got), is_whole);
		free(exact);
	}
}

static void bytes_behind_peer_info_are_ignored(void **state)
{
	(void)state;
	uint8_t buf[1024] = {0};
	size_t len = write_sample(true, buf, sizeof(buf));
	struct key_exchange got;
	assert_true(key_exchange_read((struct view){buf, len + 7}, true, &got));
}

static void method_one_is_refused_and_flags_are_not(void **state)
{
	(void)state;
	uint8_t buf[1024];
	struct key_exchange got;
	size_t len = write_sample(true, buf, sizeof(buf));
	static const struct {
		uint8_t byte;
		bool is_ok;
	} cases[] = {{0, false}, {1, false}, {2, true}, {0x12, true}, {3, false}, {0x21, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf[4] = cases[i].byte;
		assert_int_equal(key_exchange_read((struct view){buf, len}, true, &got),
				 cases[i].is_ok);
	}
}

static void strings_end_at_their_first_nul(void **state)
{
	(void)state;
	uint8_t buf[1024];
	struct writer w = writer_init(buf, sizeof(buf));
	uint8_t zeros[5 + 64] = {0};
	zeros[4] = 2;
	writer_bytes(&w, zeros, sizeof(zeros));
	writer_u16(&w, 4);
	writer_bytes(&w, "a\0bc", 4); /* no NUL at the end: the last byte goes */
	writer_u16(&w, 1);
	writer_bytes(&w, "", 1); /* "a single zero byte" */
	writer_u16(&w, 3);
	writer_bytes(&w, "xyz", 3);
	struct key_exchange got;
	assert_true(key_exchange_read(writer_done(&w), false, &got));
	assert_true(view_is(got.options, "a"));
	assert_int_equal(got.username.len, 0);
	assert_true(view_is(got.password, "xy"));
}

static void long_options_are_refused(void **state)
{
	(void)state;
	static uint8_t buf[4096], filler[OPTIONS_STRING_MAX];
	memset(filler, 'o', sizeof(filler));
	for (size_t n = OPTIONS_STRING_MAX - 1; n <= OPTIONS_STRING_MAX; n++) {
		struct key_exchange k = sample(), got;
		k.options = (struct view){filler, n};
		struct writer w = writer_init(buf, sizeof(buf));
		key_exchange_write(&w, true, &k);
		assert_int_equal(key_exchange_read(writer_done(&w), true, &got),
				 n < OPTIONS_STRING_MAX);
	}
}

static void long_messages_are_refused(void **state)
{
	(void)state;
	static uint8_t buf[4096];
	size_t len = write_sample(true, buf, sizeof(buf));
	struct key_exchange got;
	assert_true(len < KEY_EXCHANGE_MAX);
	assert_true(key_exchange_read((struct view){buf, KEY_EXCHANGE_MAX}, true, &got));
	assert_false(key_exchange_read((struct view){buf, KEY_EXCHANGE_MAX + 1}, true, &got));
}

static void writing_needs_every_byte(void **state)
{
	(void)state;
	uint8_t buf[1024];
	size_t len = write_sample(true, buf, sizeof(buf));
	assert_int_equal(write_sample(true, buf, len - 1), 0);
	assert_int_equal(write_sample(true, buf, len), len);
}

static void names_are_made_printable(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"alice", "alice"},
		{"", ""},
		{"a/b", "a/b"},
		{"tab\there", "tab_here"},
		{"line\r\nbreak", "line__break"},
		{"esc\033[31m", "esc_[31m"},
		{"\x7f", "_"},
		{"gr\xc3\xbc\xc3\x9f", "gr____"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *got = key_exchange_text(text(cases[i].in));
		assert_string_equal(got, cases[i].out);
		free(got);
	}
}

/* As stock 2.6.14 prints its own for the same configuration. */
static void options_string_is_that_of_stock(void **state)
{
	(void)state;
	static const struct {
		struct options_facts facts;
		const char *want;
	} cases[] = {
		{{true, 1500, -1, false, NULL, "AES-128-GCM:AES-256-GCM"},
		 "V4,dev-type tun,link-mtu 1549,tun-mtu 1500,proto UDPv4,cipher AES-128-GCM,auth "
		 "[null-digest],keysize 128,key-method 2,tls-server"},
		{{false, 1500, -1, false, "AES-256-GCM", "AES-128-GCM:AES-256-GCM"},
		 "V4,dev-type tun,link-mtu 1549,tun-mtu 1500,proto UDPv4,cipher AES-256-GCM,auth "
		 "[null-digest],keysize 256,key-method 2,tls-client"},
		{{true, 1400, 0, true, "BF-CBC", "AES-256-GCM"},
		 "V4,dev-type tun,link-mtu 1449,tun-mtu 1400,proto UDPv4,keydir 0,cipher "
		 "AES-256-GCM,auth [null-digest],keysize 256,tls-auth,key-method 2,tls-server"},
		{{true, 1500, -1, false, "AES-192-GCM", "AES-256-GCM"},
		 "V4,dev-type tun,link-mtu 1549,tun-mtu 1500,proto UDPv4,auth "
		 "[null-digest],keysize 192,key-method 2,tls-server"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[OPTIONS_STRING_MAX];
		options_string(&cases[i].facts, got);
		assert_string_equal(got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_survive_the_trip),
		cmocka_unit_test(layout_is_that_of_the_wire),
		cmocka_unit_test(absent_strings_are_two_zero_bytes),
		cmocka_unit_test(truncation_at_every_byte),
		cmocka_unit_test(bytes_behind_peer_info_are_ignored),
		cmocka_unit_test(method_one_is_refused_and_flags_are_not),
		cmocka_unit_test(strings_end_at_their_first_nul),
		cmocka_unit_test(long_options_are_refused),
		cmocka_unit_test(long_messages_are_refused),
		cmocka_unit_test(writing_needs_every_byte),
		cmocka_unit_test(names_are_made_printable),
		cmocka_unit_test(options_string_is_that_of_stock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
