/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_HMAC_H
#define CRYPTO_HMAC_H

/* HMAC-SHA256 with a key that is used again and again (RFC 2104). The algorithm is fetched once,
 * when the key is set. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HMAC_LEN 32

struct hmac; /* a key; immutable, so that any thread may use it */

/* `key` is copied. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int hmac_new(const uint8_t *key, size_t len, struct hmac **out);
/* Wipes the key. NULL is accepted. */
void hmac_free(struct hmac *h);
/* The tag of `len` bytes at `data`. Any thread. Returns false without memory: `out` must then not
 * be used. */
__attribute__((warn_unused_result)) bool hmac_tag(const struct hmac *h, const void *data,
						  size_t len, uint8_t out[HMAC_LEN]);

#endif
