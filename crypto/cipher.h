/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_CIPHER_H
#define CRYPTO_CIPHER_H

/* The data channel's ciphers by name, as both sides negotiate them. */

#include <stddef.h>

enum cipher {
	CIPHER_NONE,
	CIPHER_AES_128_GCM,
	CIPHER_AES_192_GCM,
	CIPHER_AES_256_GCM,
	CIPHER_CHACHA20_POLY1305,
	CIPHER_COUNT
};

/* "AES-256-GCM"; `c` < CIPHER_COUNT. CIPHER_NONE is "none". */
const char *cipher_name(enum cipher c);
/* Case-insensitive; CIPHER_NONE if the name is not an AEAD cipher of ours. */
enum cipher cipher_from_name(const char *name);
size_t cipher_key_len(enum cipher c);

#endif
