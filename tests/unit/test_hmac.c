/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/hmac.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct hmac *keyed(const void *key, size_t len)
{
	struct hmac *h;
	assert_int_equal(hmac_new(key, len, &h), 0);
	return h;
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block). */
static void hmac_tag_is_that_of_rfc_4231(void **state)
{
	(void)state;
	uint8_t key1[20], key6[131];
	memset(key1, 0x0b, sizeof(key1));
	memset(key6, 0xaa, sizeof(key6));
	const struct {
		const void *key;
		size_t key_len;
		const char *data, *tag;
	} cases[] = {
		{key1, sizeof(key1), "Hi There",
		 "\xb0\x34\x4c\x61\xd8\xdb\x38\x53\x5c\xa8\xaf\xce\xaf\x0b\xf1\x2b"
		 "\x88\x1d\xc2\x00\xc9\x83\x3d\xa7\x26\xe9\x37\x6c\x2e\x32\xcf\xf7"},
		{"Jefe", 4, "what do ya want for nothing?",
		 "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e\x6a\x04\x24\x26\x08\x95\x75\xc7"
		 "\x5a\x00\x3f\x08\x9d\x27\x39\x83\x9d\xec\x58\xb9\x64\xec\x38\x43"},
		{key6, sizeof(key6), "Test Using Larger Than Block-Size Key - Hash Key First",
		 "\x60\xe4\x31\x59\x1e\xe0\xb6\x7f\x0d\x8a\x26\xaa\xcb\xf5\xb7\x7f"
		 "\x8e\x0b\xc6\x21\x37\x28\xc5\x14\x05\x46\x04\x0f\x0e\xe3\x7f\x54"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct hmac *h = keyed(cases[i].key, cases[i].key_len);
		uint8_t tag[HMAC_LEN];
		assert_true(hmac_tag(h, cases[i].data, strlen(cases[i].data), tag));
		assert_memory_equal(tag, cases[i].tag, HMAC_LEN);
		hmac_free(h);
	}
}

static void hmac_tag_leaves_the_key_as_it_was(void **state)
{
	(void)state;
	struct hmac *h = keyed("key", 3);
	uint8_t first[HMAC_LEN], other[HMAC_LEN], again[HMAC_LEN];
	assert_true(hmac_tag(h, "a", 1, first));
	assert_true(hmac_tag(h, "b", 1, other));
	assert_true(hmac_tag(h, "a", 1, again));
	assert_memory_equal(first, again, HMAC_LEN);
	assert_memory_not_equal(first, other, HMAC_LEN);
	hmac_free(h);
	hmac_free(NULL);
}

static void hmac_tag_depends_on_every_bit_of_the_key(void **state)
{
	(void)state;
	uint8_t key[32] = {0}, right[HMAC_LEN], tag[HMAC_LEN];
	struct hmac *h = keyed(key, sizeof(key));
	assert_true(hmac_tag(h, "data", 4, right));
	hmac_free(h);
	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
		h = keyed(key, sizeof(key));
		assert_true(hmac_tag(h, "data", 4, tag));
		assert_memory_not_equal(tag, right, HMAC_LEN);
		hmac_free(h);
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hmac_tag_is_that_of_rfc_4231),
		cmocka_unit_test(hmac_tag_leaves_the_key_as_it_was),
		cmocka_unit_test(hmac_tag_depends_on_every_bit_of_the_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
