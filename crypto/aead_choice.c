/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "crypto/aead_engine.h"

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

void aead_prefetch(const struct aead *a, enum cipher c, const struct aead_schedule *s, uint32_t len)
{
	a->engine->prefetch(c, s, len);
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
