/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "crypto/aead.h"
#include "tests/support/hex.h"
#include "tests/support/skip.h"

#define LEN_MAX 1600
#define BATCH	64

static struct aead *engines[2]; /* OpenSSL; ipsec-mb or NULL */
static unsigned long library_allocations;

static void *count_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	library_allocations++;
	return malloc(n);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	library_allocations++;
	return realloc(p, n);
}

static void count_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

static int setup(void **state)
{
	(void)state;
	if (aead_new(AEAD_OPENSSL, &engines[0]) != 0)
		return -1;
	int err = aead_new(AEAD_IPSEC_MB, &engines[1]);
	return err == 0 || err == -ENOTSUP ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	aead_free(engines[0]);
	aead_free(engines[1]);
	aead_free(NULL);
	return 0;
}

/* Bytes that differ from call to call and repeat from run to run. */
static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

/* Vectors: the GCM specification's test cases 2, 4, 8, 10, 14, 16, and RFC 8439, section 2.8.2. */
#define GCM_KEY "feffe9928665731c6d6a8f9467308308"
#define GCM_PT                                                                                     \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"                         \
	"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define GCM_AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"
static const struct {
	enum cipher cipher;
	const char *key, *nonce, *aad, *plain, *sealed, *tag;
} vectors[] = {
	{CIPHER_AES_128_GCM, "00000000000000000000000000000000", "000000000000000000000000", "",
	 "00000000000000000000000000000000", "0388dace60b6a392f328c2b971b2fe78",
	 "ab6e47d42cec13bdf53a67b21257bddf"},
	{CIPHER_AES_128_GCM, GCM_KEY, "cafebabefacedbaddecaf888", GCM_AAD, GCM_PT,
	 "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
	 "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
	 "5bc94fbc3221a5db94fae95ae7121a47"},
	{CIPHER_AES_192_GCM, "000000000000000000000000000000000000000000000000",
	 "000000000000000000000000", "", "00000000000000000000000000000000",
	 "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb"},
	{CIPHER_AES_192_GCM, GCM_KEY "feffe9928665731c", "cafebabefacedbaddecaf888", GCM_AAD,
	 GCM_PT,
	 "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c"
	 "7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
	 "2519498e80f1478f37ba55bd6d27618c"},
	{CIPHER_AES_256_GCM, "0000000000000000000000000000000000000000000000000000000000000000",
	 "000000000000000000000000", "", "00000000000000000000000000000000",
	 "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
	{CIPHER_AES_256_GCM, GCM_KEY GCM_KEY, "cafebabefacedbaddecaf888", GCM_AAD, GCM_PT,
	 "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
	 "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
	 "76fc6ece0f4e1768cddf8853bb2d551b"},
	{CIPHER_CHACHA20_POLY1305,
	 "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
	 "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
	 "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
	 "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
	 "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
	 "637265656e20776f756c642062652069742e",
	 "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
	 "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
	 "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
	 "3ff4def08e4b7a9de576d26586cec64b6116",
	 "1ae10b594f09e26a7e902ecbd0600691"},
};

static void check_vector(struct aead *a, size_t i)
{
	uint8_t key[AEAD_KEY_MAX], aad[32], text[128], tag[AEAD_TAG_LEN];
	uint8_t plain[128], sealed[128], expected_tag[AEAD_TAG_LEN];
	struct aead_schedule s;
	struct aead_segment seg = {.text = text, .aad = aad, .tag = tag};
	assert_int_equal(from_hex(vectors[i].key, key, sizeof(key)),
			 cipher_key_len(vectors[i].cipher));
	from_hex(vectors[i].nonce, seg.nonce, sizeof(seg.nonce));
	seg.aad_len = (uint16_t)from_hex(vectors[i].aad, aad, sizeof(aad));
	seg.len = (uint32_t)from_hex(vectors[i].plain, plain, sizeof(plain));
	from_hex(vectors[i].sealed, sealed, sizeof(sealed));
	from_hex(vectors[i].tag, expected_tag, sizeof(expected_tag));
	memcpy(text, plain, seg.len);
	assert_int_equal(aead_schedule_init(a, vectors[i].cipher, key, &s), 0);
	aead_seal(a, vectors[i].cipher, &s, &seg, 1);
	assert_true(seg.is_ok);
	assert_memory_equal(text, sealed, seg.len);
	assert_memory_equal(tag, expected_tag, AEAD_TAG_LEN);
	aead_open(a, vectors[i].cipher, &s, &seg, 1);
	assert_true(seg.is_ok);
	assert_memory_equal(text, plain, seg.len);
	aead_schedule_fini(a, &s);
}

static void aead_gives_the_known_bytes(void **state)
{
	(void)state;
	for (unsigned e = 0; e < 2; e++) {
		for (size_t i = 0; engines[e] && i < sizeof(vectors) / sizeof(vectors[0]); i++)
			check_vector(engines[e], i);
	}
}

/* A batch of segments at odd addresses, all from one seed. */
struct batch {
	uint8_t text[BATCH][LEN_MAX + 8];
	uint8_t aad[BATCH][8];
	uint8_t tag[BATCH][AEAD_TAG_LEN + 1];
	struct aead_segment seg[BATCH];
};

static void batch_init(struct batch *b, uint32_t first_len, unsigned n, uint32_t seed)
{
	fill(b->text[0], sizeof(b->text), seed);
	fill(b->aad[0], sizeof(b->aad), seed + 1);
	for (unsigned i = 0; i < n; i++) {
		b->seg[i] = (struct aead_segment){.text = b->text[i] + i % 8,
						  .len = first_len + i,
						  .aad = b->aad[i],
						  .aad_len = i % 2 ? 4 : 8,
						  .tag = b->tag[i] + i % 2};
		fill(b->seg[i].nonce, AEAD_NONCE_LEN, seed + 2 + i);
	}
}

static bool is_same(const struct batch *a, const struct batch *b, unsigned n)
{
	bool same = memcmp(a->text, b->text, sizeof(a->text)) == 0;
	for (unsigned i = 0; i < n; i++)
		same = same && memcmp(a->seg[i].tag, b->seg[i].tag, AEAD_TAG_LEN) == 0 &&
		       a->seg[i].is_ok && b->seg[i].is_ok;
	return same;
}

/* What one engine sealed, the other opens; texts and tags are equal on the way. */
static void compare_engines(enum cipher c)
{
	static struct batch a, b, plain;
	struct aead_schedule sa, sb;
	uint8_t key[AEAD_KEY_MAX];
	fill(key, sizeof(key), c);
	assert_int_equal(aead_schedule_init(engines[0], c, key, &sa), 0);
	assert_int_equal(aead_schedule_init(engines[1], c, key, &sb), 0);
	for (uint32_t len = 0; len <= LEN_MAX; len += BATCH) {
		unsigned n = len + BATCH - 1 <= LEN_MAX ? BATCH : LEN_MAX - len + 1;
		batch_init(&a, len, n, len);
		batch_init(&b, len, n, len);
		batch_init(&plain, len, n, len);
		aead_seal(engines[0], c, &sa, a.seg, n);
		aead_seal(engines[1], c, &sb, b.seg, n);
		assert_true(is_same(&a, &b, n));
		aead_open(engines[1], c, &sb, a.seg, n);
		aead_open(engines[0], c, &sa, b.seg, n);
		assert_true(is_same(&a, &b, n));
		assert_memory_equal(a.text, plain.text, sizeof(a.text));
	}
	aead_schedule_fini(engines[0], &sa);
	aead_schedule_fini(engines[1], &sb);
}

static void aead_engines_agree_in_every_length(void **state)
{
	(void)state;
	if (!engines[1])
		SKIP_TEST("ipsec-mb is not built in or cannot run on this CPU");
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++)
		compare_engines((enum cipher)c);
}

/* One bit wrong in text, tag, additional data or nonce: that segment fails, its neighbours not. */
static void check_forgeries(struct aead *a, enum cipher c)
{
	static struct batch b;
	struct aead_schedule s;
	uint8_t key[AEAD_KEY_MAX];
	fill(key, sizeof(key), 77);
	assert_int_equal(aead_schedule_init(a, c, key, &s), 0);
	batch_init(&b, 1, BATCH, 5);
	aead_seal(a, c, &s, b.seg, BATCH);
	for (unsigned i = 0; i < BATCH; i++) {
		uint8_t *victims[] = {b.seg[i].text + i / 2, b.seg[i].tag + i % AEAD_TAG_LEN,
				      b.aad[i] + i % 4, b.seg[i].nonce + i % AEAD_NONCE_LEN, NULL};
		uint8_t *victim = victims[i % 5];
		if (victim)
			*victim ^= (uint8_t)(1u << i % 8);
	}
	aead_open(a, c, &s, b.seg, BATCH);
	for (unsigned i = 0; i < BATCH; i++)
		assert_int_equal(b.seg[i].is_ok, i % 5 == 4);
	aead_schedule_fini(a, &s);
}

static void aead_open_refuses_each_forgery_alone(void **state)
{
	(void)state;
	for (unsigned e = 0; e < 2; e++) {
		for (unsigned c = CIPHER_NONE + 1; engines[e] && c < CIPHER_COUNT; c++)
			check_forgeries(engines[e], (enum cipher)c);
	}
}

static void aead_open_leaves_no_error_for_the_next_tls_call(void **state)
{
	(void)state;
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++)
		check_forgeries(engines[0], (enum cipher)c);
	assert_int_equal(ERR_peek_error(), 0);
}

static void aead_takes_batches_of_every_size(void **state)
{
	(void)state;
	static struct batch b, plain;
	uint8_t key[AEAD_KEY_MAX] = {1};
	for (unsigned e = 0; e < 2 && engines[e]; e++) {
		struct aead_schedule s;
		assert_int_equal(aead_schedule_init(engines[e], CIPHER_CHACHA20_POLY1305, key, &s),
				 0);
		for (unsigned n = 0; n <= BATCH; n++) {
			batch_init(&b, 100, n, n);
			batch_init(&plain, 100, n, n);
			aead_seal(engines[e], CIPHER_CHACHA20_POLY1305, &s, b.seg, n);
			aead_open(engines[e], CIPHER_CHACHA20_POLY1305, &s, b.seg, n);
			for (unsigned i = 0; i < n; i++)
				assert_true(b.seg[i].is_ok);
			assert_memory_equal(b.text, plain.text, sizeof(b.text));
		}
		aead_schedule_fini(engines[e], &s);
	}
}

static void aead_takes_more_than_one_chunk(void **state)
{
	(void)state;
	enum { MANY = 300 };
	static uint8_t text[MANY][40], tag[MANY][AEAD_TAG_LEN];
	static struct aead_segment seg[MANY];
	uint8_t key[AEAD_KEY_MAX] = {2}, aad[4] = {3};
	for (unsigned e = 0; e < 2 && engines[e]; e++) {
		struct aead_schedule s;
		assert_int_equal(aead_schedule_init(engines[e], CIPHER_CHACHA20_POLY1305, key, &s),
				 0);
		memset(text, 0x44, sizeof(text));
		for (unsigned i = 0; i < MANY; i++) {
			seg[i] = (struct aead_segment){.text = text[i],
						       .len = 40,
						       .aad = aad,
						       .aad_len = 4,
						       .tag = tag[i]};
			seg[i].nonce[0] = (uint8_t)i;
			seg[i].nonce[1] = (uint8_t)(i >> 8);
		}
		aead_seal(engines[e], CIPHER_CHACHA20_POLY1305, &s, seg, MANY);
		tag[MANY - 1][0] ^= 1;
		aead_open(engines[e], CIPHER_CHACHA20_POLY1305, &s, seg, MANY);
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(seg[i].is_ok, i != MANY - 1);
		assert_int_equal(text[MANY - 2][39], 0x44);
		aead_schedule_fini(engines[e], &s);
	}
}

static void aead_schedule_may_be_moved(void **state)
{
	(void)state;
	uint8_t key[AEAD_KEY_MAX] = {9}, text[16] = {0}, tag[AEAD_TAG_LEN], aad[4] = {0};
	static const uint8_t zeros[sizeof(struct aead_schedule)];
	for (unsigned e = 0; e < 2 && engines[e]; e++) {
		struct aead_schedule from, to;
		struct aead_segment seg = {
			.text = text, .len = 16, .aad = aad, .aad_len = 4, .tag = tag};
		assert_int_equal(aead_schedule_init(engines[e], CIPHER_AES_256_GCM, key, &from), 0);
		aead_seal(engines[e], CIPHER_AES_256_GCM, &from, &seg, 1);
		memcpy(&to, &from, sizeof(to));
		memset(&from, 0xee, sizeof(from));
		aead_open(engines[e], CIPHER_AES_256_GCM, &to, &seg, 1);
		assert_true(seg.is_ok);
		aead_schedule_fini(engines[e], &to);
		assert_memory_equal(&to, zeros, sizeof(to));
		aead_schedule_fini(engines[e], &to); /* a zeroed one is accepted */
	}
}

static void aead_never_allocates_once_it_has_its_key(void **state)
{
	(void)state;
	static struct batch b;
	uint8_t key[AEAD_KEY_MAX] = {3};
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++) {
		struct aead_schedule s;
		assert_int_equal(aead_schedule_init(engines[0], (enum cipher)c, key, &s), 0);
		batch_init(&b, 1, BATCH, 1);
		unsigned long before = library_allocations;
		aead_seal(engines[0], (enum cipher)c, &s, b.seg, BATCH);
		b.seg[3].tag[0] ^= 1;
		aead_open(engines[0], (enum cipher)c, &s, b.seg, BATCH);
		assert_false(b.seg[3].is_ok);
		assert_true(b.seg[4].is_ok);
		aead_schedule_fini(engines[0], &s);
		assert_int_equal(library_allocations, before);
	}
	assert_true(library_allocations > 0); /* the count is alive */
}

static void cipher_names_are_those_of_the_protocol(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum cipher cipher;
		size_t key_len;
	} rows[] = {
		{"AES-128-GCM", CIPHER_AES_128_GCM, 16},
		{"aes-192-gcm", CIPHER_AES_192_GCM, 24},
		{"Aes-256-Gcm", CIPHER_AES_256_GCM, 32},
		{"CHACHA20-POLY1305", CIPHER_CHACHA20_POLY1305, 32},
		{"none", CIPHER_NONE, 0},
		{"AES-256-CBC", CIPHER_NONE, 0},
		{"AES-256-GCM ", CIPHER_NONE, 0},
		{"AES-256-GC", CIPHER_NONE, 0},
		{"", CIPHER_NONE, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(cipher_from_name(rows[i].name), rows[i].cipher);
		assert_int_equal(cipher_key_len(rows[i].cipher), rows[i].key_len);
	}
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++)
		assert_int_equal(cipher_from_name(cipher_name((enum cipher)c)), c);
	assert_string_equal(cipher_name(CIPHER_NONE), "none");
}

static void aead_new_prefers_the_fast_engine(void **state)
{
	(void)state;
	struct aead *a;
	assert_int_equal(aead_new(AEAD_AUTO, &a), 0);
	assert_string_equal(aead_name(a), aead_name(engines[engines[1] ? 1 : 0]));
	assert_string_equal(aead_name(engines[0]), "openssl");
	if (engines[1])
		assert_memory_equal(aead_name(engines[1]), "ipsec-mb (avx", 13);
	aead_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aead_gives_the_known_bytes),
		cmocka_unit_test(aead_engines_agree_in_every_length),
		cmocka_unit_test(aead_open_refuses_each_forgery_alone),
		cmocka_unit_test(aead_open_leaves_no_error_for_the_next_tls_call),
		cmocka_unit_test(aead_takes_batches_of_every_size),
		cmocka_unit_test(aead_takes_more_than_one_chunk),
		cmocka_unit_test(aead_schedule_may_be_moved),
		cmocka_unit_test(aead_never_allocates_once_it_has_its_key),
		cmocka_unit_test(cipher_names_are_those_of_the_protocol),
		cmocka_unit_test(aead_new_prefers_the_fast_engine),
	};
	if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1)
		return 1;
	return cmocka_run_group_tests(tests, setup, teardown);
}
