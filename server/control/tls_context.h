/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_TLS_CONTEXT_H
#define SERVER_CONTROL_TLS_CONTEXT_H

/* The inside of a tls_context, private to tls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "config/config.h"

struct verify_policy;

struct tls_context {
	unsigned ref_count; /* only the owner of sessions takes and gives references */
	bool is_server;
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	struct verify_policy *policy;
	int64_t cert_not_after;
};

/* Fill `ctx` from the configuration: protocol, ciphers, groups, own certificate and key. Returns 0
 * or -errno with one sentence in `why`. */
__attribute__((warn_unused_result)) int tls_context_configure(SSL_CTX *ctx, const struct config *c,
							      bool is_server, char *why,
							      size_t why_len);
/* Own certificate, extra-certs and private key, as the above does. */
__attribute__((warn_unused_result)) int tls_credentials_load(SSL_CTX *ctx, const struct config *c,
							     char *why, size_t why_len);

#endif
