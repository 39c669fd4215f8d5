/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/prf.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include "crypto/secret.h"

#define SEED_MAX   128
#define DIGEST_MAX 20 /* SHA-1; MD5 has 16 */

CLEANUP_FN(EVP_MAC_CTX, EVP_MAC_CTX_free);

/* A library context of its own: a process that is set to FIPS, or whose OpenSSL lacks TLS1-PRF,
 * still finds the two digests in the default provider if that is installed. Made once, never
 * freed, read only from then on. */
static EVP_MAC *hmac;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool has_digest(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_MD *md = EVP_MD_fetch(lib, name, NULL);
	EVP_MD_free(md);
	return md != NULL;
}

static void load(void)
{
	OSSL_LIB_CTX *lib = OSSL_LIB_CTX_new();
	if (lib && OSSL_PROVIDER_load(lib, "default") && has_digest(lib, "MD5") &&
	    has_digest(lib, "SHA1"))
		hmac = EVP_MAC_fetch(lib, "HMAC", NULL);
	if (!hmac)
		OSSL_LIB_CTX_free(lib);
	ERR_clear_error();
}

bool prf_is_available(void)
{
	pthread_once(&once, load);
	return hmac != NULL;
}

/* Length of the digest of a || b, 0 if the library failed. */
static size_t mac(EVP_MAC_CTX *ctx, struct view secret, struct view a, struct view b,
		  uint8_t out[DIGEST_MAX])
{
	size_t len = 0;
	if (EVP_MAC_init(ctx, secret.data, secret.len, NULL) == 1 &&
	    EVP_MAC_update(ctx, a.data, a.len) == 1 && EVP_MAC_update(ctx, b.data, b.len) == 1 &&
	    EVP_MAC_final(ctx, out, &len, DIGEST_MAX) == 1)
		return len;
	return 0;
}

static EVP_MAC_CTX *mac_new(const char *digest)
{
	char name[8];
	snprintf(name, sizeof(name), "%s", digest);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);
	if (ctx && EVP_MAC_CTX_set_params(ctx, params) != 1) {
		EVP_MAC_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

/* out ^= P_hash(secret, seed), RFC 2246, section 5. */
static bool p_hash_xor(const char *digest, struct view secret, struct view seed, uint8_t *out,
		       size_t out_len)
{
	CLEANUP(EVP_MAC_CTX_free) EVP_MAC_CTX *ctx = mac_new(digest);
	if (!ctx)
		return false;
	const struct view none = {seed.data, 0};
	uint8_t a[DIGEST_MAX], block[DIGEST_MAX];
	WIPE_ON_EXIT(a);
	WIPE_ON_EXIT(block);
	struct view last = seed;
	for (size_t done = 0, len; done < out_len; done += len) {
		len = mac(ctx, secret, last, none, a);
		last = (struct view){a, len};
		if (len == 0 || mac(ctx, secret, last, seed, block) != len)
			return false;
		for (size_t i = 0; i < len && done + i < out_len; i++)
			out[done + i] ^= block[i];
	}
	return true;
}

int prf_tls1(struct view secret, struct view seed, uint8_t *out, size_t out_len)
{
	if (!prf_is_available())
		return -ENOTSUP;
	/* The halves share the middle byte of an odd secret. */
	const size_t half = (secret.len + 1) / 2;
	const struct view s1 = {secret.data, half};
	const struct view s2 = {secret.data + (secret.len - half), half};
	memset(out, 0, out_len);
	if (p_hash_xor("MD5", s1, seed, out, out_len) && p_hash_xor("SHA1", s2, seed, out, out_len))
		return 0;
	secret_wipe(out, out_len);
	ERR_clear_error();
	return -ENOTSUP;
}

int prf_key2(const struct prf_input *in, uint8_t out[KEY2_LEN])
{
	static const char master_label[] = "OpenVPN master secret";
	static const char key_label[] = "OpenVPN key expansion";
	uint8_t master[PRE_MASTER_LEN], seed[SEED_MAX];
	WIPE_ON_EXIT(master);
	WIPE_ON_EXIT(seed);

	struct writer w = writer_init(seed, sizeof(seed));
	writer_bytes(&w, master_label, strlen(master_label));
	writer_bytes(&w, in->client_random1, KEY_RANDOM_LEN);
	writer_bytes(&w, in->server_random1, KEY_RANDOM_LEN);
	const struct view pre_master = {in->pre_master, PRE_MASTER_LEN};
	int err = prf_tls1(pre_master, writer_done(&w), master, sizeof(master));
	if (err)
		return err;

	w = writer_init(seed, sizeof(seed));
	writer_bytes(&w, key_label, strlen(key_label));
	writer_bytes(&w, in->client_random2, KEY_RANDOM_LEN);
	writer_bytes(&w, in->server_random2, KEY_RANDOM_LEN);
	writer_bytes(&w, in->client_sid.bytes, SESSION_ID_LEN);
	writer_bytes(&w, in->server_sid.bytes, SESSION_ID_LEN);
	return prf_tls1((struct view){master, sizeof(master)}, writer_done(&w), out, KEY2_LEN);
}

/* c2s cipher, c2s hmac, s2c cipher, s2c hmac, 64 bytes each (wire.md, section 4). With AEAD the
 * hmac field gives the implicit part of the nonce. */
void prf_slice(const uint8_t key2[KEY2_LEN], enum cipher cipher, uint8_t key_id, bool is_server,
	       struct data_key_material *out)
{
	const uint8_t *c2s = key2, *s2c = key2 + KEY2_LEN / 2;
	const uint8_t *seal = is_server ? s2c : c2s, *open = is_server ? c2s : s2c;
	*out = (struct data_key_material){.cipher = cipher, .key_id = key_id};
	memcpy(out->seal_key, seal, cipher_key_len(cipher));
	memcpy(out->open_key, open, cipher_key_len(cipher));
	memcpy(out->seal_iv, seal + KEY2_LEN / 4, DATA_KEY_IV_LEN);
	memcpy(out->open_iv, open + KEY2_LEN / 4, DATA_KEY_IV_LEN);
}
