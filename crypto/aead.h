/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_AEAD_H
#define CRYPTO_AEAD_H

/* Seal or open a batch of segments with one key. Two engines with byte-identical output:
 * intel-ipsec-mb where the CPU has it, OpenSSL everywhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/cipher.h"

#define AEAD_TAG_LEN	   16
#define AEAD_NONCE_LEN	   12
#define AEAD_KEY_MAX	   32
#define AEAD_SCHEDULE_SIZE 1024

enum aead_choice { AEAD_AUTO, AEAD_OPENSSL, AEAD_IPSEC_MB };

/* Key schedule of one direction. May be moved byte by byte to another slot of the same
 * alignment (the old one must then be forgotten), which is how it gets into a worker's slab. */
struct aead_schedule {
	_Alignas(64) uint8_t bytes[AEAD_SCHEDULE_SIZE];
};

/* One packet: `text` is sealed or opened in place. */
struct aead_segment {
	uint8_t *text;
	const uint8_t *aad;
	uint8_t *tag; /* AEAD_TAG_LEN bytes: written by seal, compared by open */
	uint32_t len;
	uint16_t aad_len;
	bool is_ok; /* result */
	/* The first AEAD_NONCE_LEN bytes count. The rest is there to write them all at once: the
	 * engines load them so, and would wait for two stores. */
	uint8_t nonce[16];
};

struct aead; /* an engine with the state of one thread */

/* Make an engine for the calling thread's use. AEAD_AUTO takes ipsec-mb where it is built in and
 * the CPU has AES and AVX2. Returns 0, -ENOTSUP if the engine asked for cannot run here, -ENOMEM.
 */
__attribute__((warn_unused_result)) int aead_new(enum aead_choice choice, struct aead **out);
void aead_free(struct aead *a);
/* "openssl" or "ipsec-mb (avx512)" and the like: for log and metrics. */
const char *aead_name(const struct aead *a);

/* Expand `key` (cipher_key_len bytes) into `out`. May allocate: control side only; any thread
 * with an engine of the same kind. Returns 0, -ENOTSUP, -ENOMEM. */
__attribute__((warn_unused_result)) int
aead_schedule_init(struct aead *a, enum cipher c, const uint8_t *key, struct aead_schedule *out);
/* Release and wipe. Never allocates. A zeroed schedule is accepted. */
void aead_schedule_fini(struct aead *a, struct aead_schedule *s);

/* Ask for the lines of `s` that `len` bytes of text need, while another key is at work. */
void aead_prefetch(const struct aead *a, enum cipher c, const struct aead_schedule *s,
		   uint32_t len);
/* Seal or open `n` segments with one key; sets is_ok of each. On a failed open the text is
 * overwritten with rubbish. Thread: the engine's. Never allocates. */
void aead_seal(struct aead *a, enum cipher c, const struct aead_schedule *s,
	       struct aead_segment *seg, unsigned n);
void aead_open(struct aead *a, enum cipher c, const struct aead_schedule *s,
	       struct aead_segment *seg, unsigned n);

#endif
