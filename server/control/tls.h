/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_TLS_H
#define SERVER_CONTROL_TLS_H

/* server/control/: the control channel of one client, an engine without I/O, clock or threads.
 * This module: OpenSSL contexts, and one TLS handshake over memory BIOs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "crypto/bytes.h"

/* Certificates, key, trust store with CRL, and policy: immutable once made, counted, swappable at
 * run time (running handshakes keep the old one). References are taken and given back by one
 * thread, the owner of the sessions. */
struct tls_context;

/* Build from configuration; `is_server` chooses the role. On failure `why` (512 bytes) gets one
 * sentence: which file, what is wrong, what to do. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int tls_context_new(const struct config *c, bool is_server,
							struct tls_context **out, char *why,
							size_t why_len);
struct tls_context *tls_context_ref(struct tls_context *t);
void tls_context_unref(struct tls_context *t);
/* As `old`, which stays, with the CRL read again and no other file: root may have been given up.
 * Returns 0 or -errno with one sentence in `why`. */
__attribute__((warn_unused_result)) int tls_context_renew_crl(const struct tls_context *old,
							      const struct config *c,
							      struct tls_context **out, char *why,
							      size_t why_len);
/* The CRL file changed since it was loaded (size or time); then renew it. One stat. */
bool tls_context_crl_changed(const struct tls_context *t);
/* notAfter of the own certificate and nextUpdate of the CRL in unix seconds; 0: none. */
int64_t tls_context_cert_not_after(const struct tls_context *t);
int64_t tls_context_crl_next_update(const struct tls_context *t);

struct tls; /* one handshake and what follows; at most one thread at a time */

struct identity; /* verify.h */

/* `t` must outlive it: the session holds the reference. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int tls_new(struct tls_context *t, struct tls **out);
void tls_free(struct tls *t);
/* The time that certificates and CRLs are held against from now on. */
void tls_set_time(struct tls *t, uint32_t wall_s);

enum tls_result {
	TLS_OK,
	TLS_WANT,  /* needs more input */
	TLS_ERROR, /* failed; an alert may wait in the output */
};

/* Bytes from the reliable layer. Returns false if the handshake's input cap is passed. */
__attribute__((warn_unused_result)) bool tls_input(struct tls *t, struct view bytes);
/* Bytes of it that wait for the library. */
size_t tls_input_left(const struct tls *t);
/* Run the handshake as far as it goes (public-key work happens here). */
enum tls_result tls_handshake(struct tls *t);
bool tls_is_established(const struct tls *t);
/* Verification refused the peer's certificate, or none was shown where one is demanded. */
bool tls_is_refused(const struct tls *t);
/* What verification has to say, oldest first; gone after tls_settle. */
size_t tls_log_count(const struct tls *t);
const char *tls_log_line(const struct tls *t, size_t i, int *level);
/* The handshake is over and its lines were read: give back what only it needed. */
void tls_settle(struct tls *t);
/* One application message (record) of at most `cap` bytes; a longer one is an error. */
enum tls_result tls_read(struct tls *t, uint8_t *out, size_t cap, size_t *len);
/* One TLS record with `bytes` (at least one). */
enum tls_result tls_write(struct tls *t, struct view bytes);
/* Take up to `cap` bytes of ciphertext for the reliable layer; returns their number. */
size_t tls_output(struct tls *t, uint8_t *out, size_t cap);
size_t tls_output_left(struct tls *t);
/* RFC 5705 exporter without context. Returns 0 or -EPROTO. */
__attribute__((warn_unused_result)) int tls_export(struct tls *t, const char *label, uint8_t *out,
						   size_t len);
/* Reason of a TLS_ERROR as stock prints it, for the log. */
const char *tls_error_text(const struct tls *t);
/* "TLSv1.3, cipher TLSv1.3 TLS_AES_256_GCM_SHA384, peer certificate: 2048 bits RSA, ..." */
const char *tls_summary(struct tls *t, char *buf, size_t len);
/* What was verified of the peer; NULL before the handshake's end. */
const struct identity *tls_identity(const struct tls *t);

#endif
