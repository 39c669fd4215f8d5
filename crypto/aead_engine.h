/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_AEAD_ENGINE_H
#define CRYPTO_AEAD_ENGINE_H

/* What an AEAD engine gives to the choice among them; nobody else includes this. */

#include <stdbool.h>

#include "crypto/aead.h"

/* The contracts are those of the aead_* functions of the same names. */
struct aead_engine {
	void (*free)(struct aead *a);
	int (*schedule_init)(struct aead *a, enum cipher c, const uint8_t *key,
			     struct aead_schedule *out);
	void (*schedule_fini)(struct aead_schedule *s);
	void (*prefetch)(enum cipher c, const struct aead_schedule *s, uint32_t len);
	void (*seal)(struct aead *a, enum cipher c, const struct aead_schedule *s,
		     struct aead_segment *seg, unsigned n);
	void (*open)(struct aead *a, enum cipher c, const struct aead_schedule *s,
		     struct aead_segment *seg, unsigned n);
};

/* First member of each engine's state. */
struct aead {
	const struct aead_engine *engine;
	const char *name; /* static text */
};

/* OpenSSL's engine, for one thread. Returns 0 or -ENOMEM. A cipher that the library lacks is told
 * by schedule_init. */
__attribute__((warn_unused_result)) int aead_ossl_new(struct aead **out);
/* The library may use only what FIPS 140 approves. */
bool aead_ossl_is_fips(void);
/* ipsec-mb's engine, for one thread; exists only with HAVE_IPSEC_MB. Returns 0, -ENOMEM, or
 * -ENOTSUP where the CPU lacks what it needs. */
__attribute__((warn_unused_result)) int aead_mb_new(struct aead **out);

#endif
