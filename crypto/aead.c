/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/aead.h"

#include <assert.h>
#include <errno.h>
#include <strings.h>

#include "crypto/aead_engine.h"

static const struct {
	const char *name;
	size_t key_len;
} ciphers[CIPHER_COUNT] = {
	[CIPHER_NONE] = {"none", 0},
	[CIPHER_AES_128_GCM] = {"AES-128-GCM", 16},
	[CIPHER_AES_192_GCM] = {"AES-192-GCM", 24},
	[CIPHER_AES_256_GCM] = {"AES-256-GCM", 32},
	[CIPHER_CHACHA20_POLY1305] = {"CHACHA20-POLY1305", 32},
};

const char *cipher_name(enum cipher c)
{
	assert(c < CIPHER_COUNT);
	return ciphers[c].name;
}

enum cipher cipher_from_name(const char *name)
{
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++) {
		if (strcasecmp(name, ciphers[c].name) == 0)
			return (enum cipher)c;
	}
	return CIPHER_NONE;
}

size_t cipher_key_len(enum cipher c)
{
	assert(c < CIPHER_COUNT);
	return ciphers[c].key_len;
}

static int mb_new(struct aead **out)
{
#ifdef HAVE_IPSEC_MB
	/* The library is not a validated module. */
	return aead_ossl_is_fips() ? -ENOTSUP : aead_mb_new(out);
#else
	(void)out;
	return -ENOTSUP;
#endif
}

static int auto_new(struct aead **out)
{
	int err = mb_new(out);
	return err == -ENOTSUP ? aead_ossl_new(out) : err;
}

int aead_new(enum aead_choice choice, struct aead **out)
{
	switch (choice) {
	case AEAD_AUTO:
		return auto_new(out);
	case AEAD_OPENSSL:
		return aead_ossl_new(out);
	case AEAD_IPSEC_MB:
		return mb_new(out);
	}
	return -ENOTSUP;
}

void aead_free(struct aead *a)
{
	if (a)
		a->engine->free(a);
}

const char *aead_name(const struct aead *a)
{
	return a->name;
}

int aead_schedule_init(struct aead *a, enum cipher c, const uint8_t *key, struct aead_schedule *out)
{
	assert(c > CIPHER_NONE && c < CIPHER_COUNT);
	/* A slot that is not on its alignment would crash the engine only later, on a packet. */
	assert((uintptr_t)out % _Alignof(struct aead_schedule) == 0);
	return a->engine->schedule_init(a, c, key, out);
}

void aead_schedule_fini(struct aead *a, struct aead_schedule *s)
{
	a->engine->schedule_fini(s);
}

void aead_seal(struct aead *a, enum cipher c, const struct aead_schedule *s,
	       struct aead_segment *seg, unsigned n)
{
	a->engine->seal(a, c, s, seg, n);
}

void aead_open(struct aead *a, enum cipher c, const struct aead_schedule *s,
	       struct aead_segment *seg, unsigned n)
{
	a->engine->open(a, c, s, seg, n);
}
