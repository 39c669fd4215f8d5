/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/prf.h"
#include "tests/support/hex.h"

static struct view text(const char *s)
{
	return (struct view){(const uint8_t *)s, strlen(s)};
}

/* All vectors: wire.md, section 15. */
static void prf_tls1_gives_the_known_bytes(void **state)
{
	(void)state;
	uint8_t out[8], expected[8];
	assert_true(prf_is_available());
	from_hex("7144fe2540737595", expected, sizeof(expected));
	assert_int_equal(prf_tls1(text("tls1-prf-test-secret"), text("tls1-prf-test"), out, 8), 0);
	assert_memory_equal(out, expected, 8);
}

/* Output is a stream: shorter requests are prefixes, nothing is written behind them. */
static void prf_tls1_output_is_a_prefix_of_longer_output(void **state)
{
	(void)state;
	uint8_t longest[100], out[101];
	assert_int_equal(prf_tls1(text("secre"), text("seed"), longest, sizeof(longest)), 0);
	for (size_t n = 0; n <= sizeof(longest); n++) {
		memset(out, 0xee, sizeof(out));
		assert_int_equal(prf_tls1(text("secre"), text("seed"), out, n), 0);
		assert_memory_equal(out, longest, n);
		assert_int_equal(out[n], 0xee);
	}
}

/* S1 and S2 share the middle byte of an odd secret, so it changes both halves. */
static void prf_tls1_depends_on_secret_and_seed(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"secre", "seed"}, {"Secre", "seed"}, {"seCre", "seed"},
		{"secrE", "seed"}, {"secre", "seeD"}, {"secret", "seed"},
	};
	uint8_t out[6][16];
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(prf_tls1(text(pairs[i][0]), text(pairs[i][1]), out[i], 16), 0);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(out[i], out[k], 16);
	}
}

static void vector_input(struct prf_input *in)
{
	for (unsigned i = 0; i < PRE_MASTER_LEN; i++)
		in->pre_master[i] = (uint8_t)i;
	memset(in->client_random1, 0xc1, KEY_RANDOM_LEN);
	memset(in->client_random2, 0xc2, KEY_RANDOM_LEN);
	memset(in->server_random1, 0xd1, KEY_RANDOM_LEN);
	memset(in->server_random2, 0xd2, KEY_RANDOM_LEN);
	from_hex("0102030405060708", in->client_sid.bytes, SESSION_ID_LEN);
	from_hex("1112131415161718", in->server_sid.bytes, SESSION_ID_LEN);
}

/* The first derivation on its own, whose result prf_key2 does not show. */
static void prf_gives_the_known_master_secret(void **state)
{
	(void)state;
	uint8_t pre_master[PRE_MASTER_LEN], seed[21 + 64], out[48], expected[48];
	for (unsigned i = 0; i < sizeof(pre_master); i++)
		pre_master[i] = (uint8_t)i;
	memcpy(seed, "OpenVPN master secret", 21);
	memset(seed + 21, 0xc1, 32);
	memset(seed + 53, 0xd1, 32);
	from_hex("7ca1add75a910bcda9c259e36fe445560e3ce7bffed46a554d27925d20583b8d"
		 "845fde1873c496c902eacfc15b7575e5",
		 expected, sizeof(expected));
	assert_int_equal(prf_tls1((struct view){pre_master, sizeof(pre_master)},
				  (struct view){seed, sizeof(seed)}, out, sizeof(out)),
			 0);
	assert_memory_equal(out, expected, sizeof(out));
}

static const struct {
	size_t offset;
	const char *hex;
} fields[] = {
	{0, "18414679e9d0572749ada1e247ece39053ba634a173fb83109f9fa331ca6cff0"},
	{64, "f9689d2e7c2bddee04b63a08870792e960e7bc11cdea3f96a56269ec0f2019f3"},
	{128, "7c81c26ef9416375d01d4ad1ddbfb0be313b6f7d83501a507f3fbe2354758771"},
	{192, "6f4ae14078261b16c11ce5a24dc8f143fd786bf19ca7cb89a3182ed3641bc207"},
};

static void prf_key2_gives_the_known_keys(void **state)
{
	(void)state;
	struct prf_input in;
	uint8_t key2[KEY2_LEN], expected[32];
	vector_input(&in);
	assert_int_equal(prf_key2(&in, key2), 0);
	for (size_t i = 0; i < 4; i++) {
		from_hex(fields[i].hex, expected, sizeof(expected));
		assert_memory_equal(key2 + fields[i].offset, expected, sizeof(expected));
	}
}

static void prf_key2_depends_on_every_input(void **state)
{
	(void)state;
	struct prf_input in;
	uint8_t key2[KEY2_LEN], other[KEY2_LEN];
	vector_input(&in);
	assert_int_equal(prf_key2(&in, key2), 0);
	for (size_t i = 0; i < sizeof(in); i++) {
		vector_input(&in);
		((uint8_t *)&in)[i] ^= 1;
		assert_int_equal(prf_key2(&in, other), 0);
		assert_memory_not_equal(key2, other, KEY2_LEN);
	}
}

static void prf_slice_mirrors_the_two_sides(void **state)
{
	(void)state;
	static const enum cipher ciphers[] = {CIPHER_AES_128_GCM, CIPHER_AES_192_GCM,
					      CIPHER_AES_256_GCM, CIPHER_CHACHA20_POLY1305};
	static const uint8_t zeros[AEAD_KEY_MAX];
	uint8_t key2[KEY2_LEN];
	for (unsigned i = 0; i < KEY2_LEN; i++)
		key2[i] = (uint8_t)(255 - i);
	for (size_t i = 0; i < 4; i++) {
		struct data_key_material server, client;
		size_t len = cipher_key_len(ciphers[i]);
		prf_slice(key2, ciphers[i], 3, true, &server);
		prf_slice(key2, ciphers[i], 3, false, &client);
		assert_int_equal(server.cipher, ciphers[i]);
		assert_int_equal(server.key_id, 3);
		assert_memory_equal(client.seal_key, key2, len);
		assert_memory_equal(client.seal_iv, key2 + 64, DATA_KEY_IV_LEN);
		assert_memory_equal(server.seal_key, key2 + 128, len);
		assert_memory_equal(server.seal_iv, key2 + 192, DATA_KEY_IV_LEN);
		assert_memory_equal(server.open_key, client.seal_key, AEAD_KEY_MAX);
		assert_memory_equal(server.open_iv, client.seal_iv, DATA_KEY_IV_LEN);
		assert_memory_equal(client.open_key, server.seal_key, AEAD_KEY_MAX);
		assert_memory_equal(client.open_iv, server.seal_iv, DATA_KEY_IV_LEN);
		assert_memory_equal(server.seal_key + len, zeros, AEAD_KEY_MAX - len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prf_tls1_gives_the_known_bytes),
		cmocka_unit_test(prf_tls1_output_is_a_prefix_of_longer_output),
		cmocka_unit_test(prf_tls1_depends_on_secret_and_seed),
		cmocka_unit_test(prf_gives_the_known_master_secret),
		cmocka_unit_test(prf_key2_gives_the_known_keys),
		cmocka_unit_test(prf_key2_depends_on_every_input),
		cmocka_unit_test(prf_slice_mirrors_the_two_sides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
