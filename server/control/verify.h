/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_VERIFY_H
#define SERVER_CONTROL_VERIFY_H

/* Certificates: usage, names, CRL. What was verified is an identity, locked at first
 * authentication (security.md, F-6). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/control/verify_policy.h"

struct identity {
	bool has_certificate;
	char common_name[64];	/* NUL-terminated; "" without certificate */
	uint8_t chain_hash[32]; /* SHA-256 over the chain's certificate hashes; zero without */
};

/* Same certificate chain and same name. */
bool identity_equal(const struct identity *a, const struct identity *b);

struct ssl_st; /* the library's SSL */

/* A line for the log, as stock prints it. */
struct verify_line {
	int level; /* enum log_level, or 2: between NOTE and INFO */
	char *text;
};
#define VERIFY_LINES_MAX 64

/* One handshake's verification. */
struct verification {
	const struct verify_policy *policy;
	struct verify_line lines[VERIFY_LINES_MAX]; /* owned */
	size_t line_count;
	bool is_refused; /* a certificate was refused */
	struct identity identity;
};
void verification_init(struct verification *v, const struct verify_policy *p);
void verification_fini(struct verification *v);
/* Add a line for the log. Without memory or beyond VERIFY_LINES_MAX it is lost, never a verdict. */
void verification_say(struct verification *v, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Let the check of `ssl`'s peer certificates write into `v`, which must outlive the handshake. */
__attribute__((warn_unused_result)) bool verification_attach(struct verification *v,
							     struct ssl_st *ssl);
/* After the handshake: fill the identity. Returns false if a certificate is demanded and was not
 * shown, or was not verified. */
__attribute__((warn_unused_result)) bool verification_finish(struct verification *v,
							     struct ssl_st *ssl);

#endif
