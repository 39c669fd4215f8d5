/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/aead.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/aead_engine.h"
#include "crypto/secret.h"

/* What a schedule's bytes begin with. The context serves either direction: for the ciphers here
 * both use the same expanded key. */
struct ossl_schedule {
	EVP_CIPHER_CTX *ctx;
};
static_assert(sizeof(struct ossl_schedule) <= AEAD_SCHEDULE_SIZE, "must fit a schedule's slot");

struct ossl {
	struct aead base;
	EVP_CIPHER *ciphers[CIPHER_COUNT]; /* NULL: the library does not have it */
};

static EVP_CIPHER_CTX *schedule_ctx(const struct aead_schedule *s)
{
	struct ossl_schedule o;
	memcpy(&o, s->bytes, sizeof(o));
	return o.ctx;
}

static int schedule_init(struct aead *a, enum cipher c, const uint8_t *key,
			 struct aead_schedule *out)
{
	const struct ossl *o = (const struct ossl *)a;
	if (!o->ciphers[c])
		return -ENOTSUP;
	struct ossl_schedule s = {.ctx = EVP_CIPHER_CTX_new()};
	if (!s.ctx || EVP_EncryptInit_ex2(s.ctx, o->ciphers[c], key, NULL, NULL) != 1) {
		EVP_CIPHER_CTX_free(s.ctx);
		ERR_clear_error();
		return -ENOMEM;
	}
	memset(out, 0, sizeof(*out));
	memcpy(out->bytes, &s, sizeof(s));
	return 0;
}

static void schedule_fini(struct aead_schedule *s)
{
	EVP_CIPHER_CTX_free(schedule_ctx(s));
	secret_wipe(s, sizeof(*s));
}

/* Only the pointer is here; what it leads to is the library's. */
static void prefetch(enum cipher c, const struct aead_schedule *s, uint32_t len)
{
	(void)c;
	(void)len;
	__builtin_prefetch(s);
}

/* With EVP_Cipher NULL input ends a GCM message, but is ignored by ChaCha20-Poly1305. */
static bool finish(EVP_CIPHER_CTX *ctx, enum cipher c)
{
	int len = 0;
	uint8_t none[AEAD_TAG_LEN];
	if (c == CIPHER_CHACHA20_POLY1305)
		return EVP_CipherFinal_ex(ctx, none, &len) == 1;
	return EVP_Cipher(ctx, none, NULL, 0) >= 0;
}

static bool run(EVP_CIPHER_CTX *ctx, enum cipher c, const struct aead_segment *seg)
{
	return seg->len <= INT_MAX && EVP_Cipher(ctx, NULL, seg->aad, seg->aad_len) >= 0 &&
	       (seg->len == 0 || EVP_Cipher(ctx, seg->text, seg->text, seg->len) >= 0) &&
	       finish(ctx, c);
}

static void seal(struct aead *a, enum cipher c, const struct aead_schedule *s,
		 struct aead_segment *seg, unsigned n)
{
	(void)a;
	EVP_CIPHER_CTX *ctx = schedule_ctx(s);
	OSSL_PARAM tag[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, AEAD_TAG_LEN),
		OSSL_PARAM_END,
	};
	for (unsigned i = 0; i < n; i++) {
		tag[0].data = seg[i].tag;
		seg[i].is_ok = EVP_EncryptInit_ex2(ctx, NULL, NULL, seg[i].nonce, NULL) == 1 &&
			       run(ctx, c, &seg[i]) && EVP_CIPHER_CTX_get_params(ctx, tag) == 1;
	}
}

static void open(struct aead *a, enum cipher c, const struct aead_schedule *s,
		 struct aead_segment *seg, unsigned n)
{
	(void)a;
	EVP_CIPHER_CTX *ctx = schedule_ctx(s);
	OSSL_PARAM tag[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, AEAD_TAG_LEN),
		OSSL_PARAM_END,
	};
	bool is_clean = true;
	for (unsigned i = 0; i < n; i++) {
		tag[0].data = seg[i].tag;
		seg[i].is_ok = EVP_DecryptInit_ex2(ctx, NULL, NULL, seg[i].nonce, tag) == 1 &&
			       run(ctx, c, &seg[i]);
		is_clean &= seg[i].is_ok;
	}
	/* A forged packet must not leave an error for the next TLS call of this thread. */
	if (!is_clean)
		ERR_clear_error();
}

static void ossl_free(struct aead *a)
{
	struct ossl *o = (struct ossl *)a;
	for (unsigned c = 0; c < CIPHER_COUNT; c++)
		EVP_CIPHER_free(o->ciphers[c]);
	free(o);
}

static const struct aead_engine engine = {
	.free = ossl_free,
	.schedule_init = schedule_init,
	.schedule_fini = schedule_fini,
	.prefetch = prefetch,
	.seal = seal,
	.open = open,
};

bool aead_ossl_is_fips(void)
{
	return EVP_default_properties_is_fips_enabled(NULL) == 1;
}

int aead_ossl_new(struct aead **out)
{
	struct ossl *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->base = (struct aead){.engine = &engine, .name = "openssl"};
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++)
		o->ciphers[c] = EVP_CIPHER_fetch(NULL, cipher_name((enum cipher)c), NULL);
	/* Also makes the thread's error state, so that a first forged packet allocates nothing. */
	ERR_clear_error();
	*out = &o->base;
	return 0;
}
