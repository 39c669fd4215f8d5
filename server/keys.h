/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

/* What the server must read before it gives up root: certificates, private key, and the key that
 * wraps control packets. Thread: main. */

#include <stddef.h>

#include "config/config.h"

struct tls_context;
struct wrap_keys;
struct static_key;

struct keys {
	struct tls_context *tls;
	struct wrap_keys *wrap;
	struct static_key
		*wrap_key; /* what `wrap` was made of; NULL without tls-auth or tls-crypt */
};

/* On failure nothing is left and `why` (512 bytes) says which file, what is wrong, what to do.
 * Returns 0 or -errno. */
__attribute__((warn_unused_result)) int keys_load(const struct config *c, struct keys *out,
						  char *why, size_t why_len);
/* Wipe and free. */
void keys_free(struct keys *k);

#endif
