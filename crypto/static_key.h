/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_STATIC_KEY_H
#define CRYPTO_STATIC_KEY_H

/* 2048-bit key files (tls-auth, tls-crypt), their directions and slices (wire.md, 2.6 and 4). */

#include <stdint.h>

#include "crypto/bytes.h"

#define STATIC_KEY_LEN	 256
#define STATIC_KEY_FIELD 64 /* key0.cipher, key0.hmac, key1.cipher, key1.hmac */

struct static_key {
	uint8_t bytes[STATIC_KEY_LEN];
};

enum key_direction { KEY_DIRECTION_NONE = -1, KEY_DIRECTION_0 = 0, KEY_DIRECTION_1 = 1 };

/* Parse the text of a key file. Returns 0, -EINVAL (no or broken block), -ERANGE (fewer than 256
 * bytes). On failure `out` is wiped. */
__attribute__((warn_unused_result)) int static_key_parse(struct view text, struct static_key *out);
/* Write the file's text to `out` (needs STATIC_KEY_TEXT_MAX bytes). Returns its length. */
#define STATIC_KEY_TEXT_MAX 1024
size_t static_key_write(const struct static_key *key, char *out);
void static_key_wipe(struct static_key *key);

#endif
