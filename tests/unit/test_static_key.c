/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/static_key.h"

#define HEAD "-----BEGIN OpenVPN Static key V1-----"
#define FOOT "-----END OpenVPN Static key V1-----"

static const struct static_key zeros;
static struct static_key counting; /* 00 01 .. ff */
static char digits[2 * STATIC_KEY_LEN + 1];

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STATIC_KEY_LEN; i++) {
		counting.bytes[i] = (uint8_t)i;
		snprintf(digits + 2 * i, 3, "%02x", i);
	}
	return 0;
}

static int parse(const char *text, struct static_key *out)
{
	return static_key_parse((struct view){(const uint8_t *)text, strlen(text)}, out);
}

static void expect(const char *text, int result)
{
	struct static_key k;
	memset(&k, 0x55, sizeof(k));
	int got = parse(text, &k);
	if (got != result)
		fail_msg("%d instead of %d: %.60s", got, result, text);
	/* Nothing of a refused key is left behind. */
	assert_memory_equal(&k, result == 0 ? &counting : &zeros, sizeof(k));
}

static void static_key_reads_what_it_writes(void **state)
{
	(void)state;
	char text[STATIC_KEY_TEXT_MAX];
	size_t len = static_key_write(&counting, text);
	assert_int_equal(len, strlen(text));
	assert_true(len < sizeof(text));
	assert_int_equal(text[len - 1], '\n');
	expect(text, 0);
	assert_non_null(strstr(text, "\n000102030405060708090a0b0c0d0e0f\n"));
	assert_non_null(strstr(text, "\nf0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n" FOOT "\n"));
}

static void static_key_accepts_any_layout(void **state)
{
	(void)state;
	static const char *const formats[] = {
		HEAD "\n%s\n" FOOT "\n",
		HEAD "\r\n%s\r\n" FOOT "\r\n",
		"# a comment\n\nrubbish zz\n" HEAD "\n%s\n" FOOT "\n# more rubbish zz",
		HEAD "\n\t  %s" FOOT,
		HEAD "%s\n" FOOT,
		"mentions " HEAD " inside a line\n" HEAD "\n%s\n" FOOT "\n",
	};
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		char text[2048];
		const char *at = strstr(formats[i], "%s");
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - formats[i]), formats[i], digits,
			 at + 2);
		expect(text, 0);
	}
}

static void static_key_accepts_upper_case_and_odd_line_breaks(void **state)
{
	(void)state;
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), HEAD "\n");
	for (size_t i = 0; i < sizeof(digits) - 1; i++) {
		char c = digits[i];
		text[n++] = c >= 'a' ? (char)(c - 'a' + 'A') : c;
		if (i % 7 == 0)
			text[n++] = '\n';
	}
	snprintf(text + n, sizeof(text) - n, "\n" FOOT "\n");
	expect(text, 0);
}

static void static_key_refuses_broken_blocks(void **state)
{
	(void)state;
	/* skip: leading digits left out; result. */
	static const struct {
		const char *before, *behind;
		size_t skip;
		int result;
	} rows[] = {
		{"", "\n" FOOT, 0, -EINVAL},					    /* no head */
		{HEAD "\n", "\n", 0, -EINVAL},					    /* no foot */
		{HEAD "\n", "\n-----END OpenVPN Static key V1----", 0, -EINVAL},    /* cut foot */
		{HEAD "\n", "\n-----END OpenVPN tls-crypt-v2-----", 0, -EINVAL},    /* wrong foot */
		{"-----BEGIN OpenVPN Static key V2-----\n", "\n" FOOT, 0, -EINVAL}, /* other head */
		{HEAD "\n", "g\n" FOOT, 0, -EINVAL},				    /* not hex */
		{HEAD "\n", "\n# comment\n" FOOT, 0, -EINVAL},			    /* inside */
		{HEAD "\n", "00\n" FOOT, 0, -EINVAL},				    /* too long */
		{HEAD "\n", "\n" FOOT, 1, -EINVAL},   /* half a byte */
		{HEAD "\n", "\n" FOOT, 2, -ERANGE},   /* 255 bytes */
		{HEAD "\n", "\n" FOOT, 256, -ERANGE}, /* 128 bytes */
		{HEAD "\n", "\n" FOOT, 512, -ERANGE}, /* empty */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[2048];
		snprintf(text, sizeof(text), "%s%s%s", rows[i].before, digits + rows[i].skip,
			 rows[i].behind);
		expect(text, rows[i].result);
	}
	expect("", -EINVAL);
}

static void static_key_refuses_every_truncation(void **state)
{
	(void)state;
	char text[2048];
	int len = snprintf(text, sizeof(text), HEAD "\n%s\n" FOOT, digits);
	for (size_t cut = 0; cut < (size_t)len; cut++) {
		struct static_key k;
		struct view v = {(const uint8_t *)text, cut};
		assert_int_equal(static_key_parse(v, &k), -EINVAL);
		assert_memory_equal(&k, &zeros, sizeof(k));
	}
}

static void static_key_wipe_leaves_zeros(void **state)
{
	(void)state;
	struct static_key k = counting;
	static_key_wipe(&k);
	assert_memory_equal(&k, &zeros, sizeof(k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(static_key_reads_what_it_writes),
		cmocka_unit_test(static_key_accepts_any_layout),
		cmocka_unit_test(static_key_accepts_upper_case_and_odd_line_breaks),
		cmocka_unit_test(static_key_refuses_broken_blocks),
		cmocka_unit_test(static_key_refuses_every_truncation),
		cmocka_unit_test(static_key_wipe_leaves_zeros),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
