/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/cipher.h"

#include <assert.h>
#include <strings.h>

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
