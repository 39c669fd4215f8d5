/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/hmac.h"

#include <errno.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/secret.h"

CLEANUP_FN(EVP_MAC, EVP_MAC_free);
CLEANUP_FN(EVP_MAC_CTX, EVP_MAC_CTX_free);

struct hmac {
	EVP_MAC_CTX *keyed; /* read only, copied for each use; the library wipes its key */
};

static EVP_MAC_CTX *keyed_new(const uint8_t *key, size_t len)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};
	CLEANUP(EVP_MAC_free) EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
	if (ctx && EVP_MAC_init(ctx, key, len, params) == 1)
		return ctx;
	EVP_MAC_CTX_free(ctx);
	ERR_clear_error();
	return NULL;
}

int hmac_new(const uint8_t *key, size_t len, struct hmac **out)
{
	struct hmac *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->keyed = keyed_new(key, len);
	if (!h->keyed) {
		free(h);
		return -ENOMEM;
	}
	*out = h;
	return 0;
}

void hmac_free(struct hmac *h)
{
	if (!h)
		return;
	EVP_MAC_CTX_free(h->keyed);
	free(h);
}

bool hmac_tag(const struct hmac *h, const void *data, size_t len, uint8_t out[HMAC_LEN])
{
	CLEANUP(EVP_MAC_CTX_free) EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(h->keyed);
	size_t tag_len = 0;
	if (ctx && EVP_MAC_update(ctx, data, len) == 1 &&
	    EVP_MAC_final(ctx, out, &tag_len, HMAC_LEN) == 1 && tag_len == HMAC_LEN)
		return true;
	ERR_clear_error();
	return false;
}
