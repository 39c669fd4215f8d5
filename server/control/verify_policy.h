/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_VERIFY_POLICY_H
#define SERVER_CONTROL_VERIFY_POLICY_H

/* What a configuration demands of peer certificates: trust store, usage, CRL. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

#define VERIFY_DEPTH_MAX 16 /* certificates in a chain */

struct ssl_ctx_st; /* the library's SSL_CTX */
struct x509_store_st;

/* What is demanded of a peer's certificate, and the CRL: immutable, owned by a tls_context. */
struct verify_policy;
/* `is_server`: peers are clients. On failure `why` gets one sentence. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int verify_policy_new(const struct config *c, bool is_server,
							  struct verify_policy **out, char *why,
							  size_t why_len);
void verify_policy_free(struct verify_policy *p);
/* Give `ctx` the trust store (CA and CRL), the list of acceptable CAs and the check of each
 * certificate. Once, after verify_policy_new. Returns 0 or -errno with `why`. */
__attribute__((warn_unused_result)) int verify_policy_install(struct verify_policy *p,
							      const struct config *c,
							      struct ssl_ctx_st *ctx, char *why,
							      size_t why_len);
/* The same demands and CAs as `old`, which may be in use by other threads, with the CRL file as it
 * is now: nothing else is read, so it works after root was given up. Returns 0 or -errno with
 * `why`. */
__attribute__((warn_unused_result)) int
verify_policy_renew_crl(const struct verify_policy *old, const struct config *c, bool is_server,
			struct verify_policy **out, char *why, size_t why_len);
/* The trust store (the library's X509_STORE), for each handshake; borrowed. */
struct x509_store_st *verify_policy_store(const struct verify_policy *p);
/* The CRL file has another size or time than when it was loaded. */
bool verify_policy_crl_changed(const struct verify_policy *p);
/* The earliest nextUpdate of the loaded CRLs in unix seconds; 0: none. */
int64_t verify_policy_crl_next_update(const struct verify_policy *p);

/* SSL_VERIFY_* of the library. */
int verify_policy_mode(const struct verify_policy *p);
/* The extended key usage demanded of a leaf (NID of the library; NID_undef: none). */
int verify_policy_usage(const struct verify_policy *p);
/* Descriptor of the directory of revoked serial numbers; -1: none. */
int verify_policy_crl_dir(const struct verify_policy *p);
/* Index under which an SSL object keeps its verification. */
int verify_ex_index(void);

#endif
