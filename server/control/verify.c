/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "config/log.h"
#include "crypto/secret.h"

#define LEVEL_HANDSHAKE ((int)LOG_NOTE + 1)

CLEANUP_FN(BIO, BIO_free_all);
CLEANUP_FN(BIGNUM, BN_free);
CLEANUP_FN(GENERAL_NAMES, GENERAL_NAMES_free);
CLEANUP_FN(EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free);
CLEANUP_FN(EVP_MD_CTX, EVP_MD_CTX_free);

static void free_text(char **text)
{
	OPENSSL_free(*text);
}
#define CLEANUP_TEXT __attribute__((cleanup(free_text)))

bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->has_certificate == b->has_certificate &&
	       strcmp(a->common_name, b->common_name) == 0 &&
	       secret_equal(a->chain_hash, b->chain_hash, sizeof(a->chain_hash));
}

/* --- lines --- */

void verification_init(struct verification *v, const struct verify_policy *p)
{
	*v = (struct verification){.policy = p};
}

void verification_fini(struct verification *v)
{
	for (size_t i = 0; i < v->line_count; i++)
		free(v->lines[i].text);
	*v = (struct verification){0};
}

void verification_say(struct verification *v, int level, const char *fmt, ...)
{
	char text[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (v->line_count == VERIFY_LINES_MAX)
		return;
	char printable[sizeof(text)];
	char *copy = strdup(log_printable(text, strlen(text), printable, sizeof(printable)));
	if (copy)
		v->lines[v->line_count++] = (struct verify_line){level, copy};
}

/* "C=NL, O=x, CN=y" as stock prints it; the caller frees it with OPENSSL_free. NULL without
 * memory. */
static char *subject_text(const X509 *cert)
{
	CLEANUP(BIO_free_all) BIO *bio = BIO_new(BIO_s_mem());
	if (!bio)
		return NULL;
	X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0,
			   XN_FLAG_SEP_CPLUS_SPC | XN_FLAG_FN_SN | ASN1_STRFLGS_UTF8_CONVERT |
				   ASN1_STRFLGS_ESC_CTRL);
	char *text;
	long len = BIO_get_mem_data(bio, &text);
	return len < 0 ? NULL : OPENSSL_strndup(text, (size_t)len);
}

/* Decimal serial number; to be freed with OPENSSL_free. NULL without memory. */
static char *serial_text(X509 *cert)
{
	CLEANUP(BN_free) BIGNUM *n = ASN1_INTEGER_to_BN(X509_get_serialNumber(cert), NULL);
	return n ? BN_bn2dec(n) : NULL;
}

/* --- names --- */

static bool has_nul(const ASN1_STRING *s)
{
	return s && memchr(ASN1_STRING_get0_data(s), 0, (size_t)ASN1_STRING_length(s)) != NULL;
}

/* A NUL inside a name makes two programs read two names out of it. Wide string types have zero
 * bytes by nature, so it is the UTF-8 form that is looked at. */
static bool subject_has_nul(const X509 *cert)
{
	const X509_NAME *name = X509_get_subject_name(cert);
	for (int i = 0; i < X509_NAME_entry_count(name); i++) {
		const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
		unsigned char *utf8 = NULL;
		int len = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(e));
		bool is_bad = len < 0 || (len > 0 && memchr(utf8, 0, (size_t)len));
		OPENSSL_free(utf8);
		if (is_bad)
			return true;
	}
	return false;
}

static bool alt_name_has_nul(const X509 *cert)
{
	CLEANUP(GENERAL_NAMES_free)
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
		int type;
		const ASN1_STRING *s = GENERAL_NAME_get0_value(n, &type);
		if ((type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI) && has_nul(s))
			return true;
	}
	return false;
}

/* The last CN of the subject, control characters as `_`. False if there is none, or it is too
 * long for the field (security.md, 4.1). */
static bool common_name(const X509 *cert, char out[64])
{
	const X509_NAME *name = X509_get_subject_name(cert);
	int at = -1, next = -1;
	while ((next = X509_NAME_get_index_by_NID(name, NID_commonName, next)) >= 0)
		at = next;
	if (at < 0)
		return false;
	unsigned char *utf8 = NULL;
	int len =
		ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
	bool is_ok = len > 0 && len < 64 && !memchr(utf8, 0, (size_t)len);
	for (int i = 0; is_ok && i < len; i++)
		out[i] = utf8[i] < 0x20 || utf8[i] == 0x7F ? '_' : (char)utf8[i];
	if (is_ok)
		out[len] = '\0';
	OPENSSL_free(utf8);
	return is_ok;
}

/* --- usage (remote-cert-tls) --- */

static bool has_extended_usage(struct verification *v, const X509 *cert, int nid)
{
	const char *expected = OBJ_nid2ln(nid);
	CLEANUP(EXTENDED_KEY_USAGE_free)
	EXTENDED_KEY_USAGE *eku = X509_get_ext_d2i(cert, NID_ext_key_usage, NULL, NULL);
	if (!eku) {
		verification_say(v, LEVEL_HANDSHAKE,
				 "Certificate does not have extended key usage extension");
		return false;
	}
	verification_say(v, LEVEL_HANDSHAKE, "Validating certificate extended key usage");
	for (int i = 0; i < sk_ASN1_OBJECT_num(eku); i++) {
		char name[128];
		const ASN1_OBJECT *object = sk_ASN1_OBJECT_value(eku, i);
		if (OBJ_obj2txt(name, sizeof(name), object, 0) < 0)
			continue;
		verification_say(v, LEVEL_HANDSHAKE, "++ Certificate has EKU (str) %s, expects %s",
				 name, expected);
		if (OBJ_obj2nid(object) == nid)
			return true;
	}
	return false;
}

static bool check_usage(struct verification *v, X509 *cert)
{
	int nid = verify_policy_usage(v->policy);
	if (nid == NID_undef)
		return true;
	if (!(X509_get_extension_flags(cert) & EXFLAG_KUSAGE)) {
		verification_say(v, LOG_WARN, "Certificate does not have key usage extension");
		verification_say(v, LOG_WARN, "VERIFY KU ERROR");
		return false;
	}
	verification_say(v, LEVEL_HANDSHAKE, "VERIFY KU OK");
	if (!has_extended_usage(v, cert, nid)) {
		verification_say(v, LOG_WARN, "VERIFY EKU ERROR");
		return false;
	}
	verification_say(v, LEVEL_HANDSHAKE, "VERIFY EKU OK");
	return true;
}

/* --- one certificate --- */

/* `crl-verify dir`: a file named by the serial number revokes. The descriptor was opened at start,
 * so that this works after chroot; whatever but "no such file" counts as revoked. */
static bool is_revoked_in_dir(struct verification *v, const char *serial)
{
	int dir = verify_policy_crl_dir(v->policy);
	if (dir < 0)
		return false;
	if (serial && faccessat(dir, serial, F_OK, 0) != 0 && errno == ENOENT)
		return false;
	verification_say(v, LEVEL_HANDSHAKE, "VERIFY CRL: certificate serial number %s is revoked",
			 serial ? serial : "<not available>");
	return true;
}

static bool check_certificate(struct verification *v, X509 *cert, int depth)
{
	CLEANUP_TEXT char *subject = subject_text(cert);
	CLEANUP_TEXT char *serial = serial_text(cert);
	const char *shown = subject ? subject : "(Failed to retrieve certificate subject)";
	if (depth >= VERIFY_DEPTH_MAX) {
		verification_say(
			v, LOG_WARN,
			"TLS Error: Convoluted certificate chain detected with depth [%d] greater "
			"than %d",
			depth, VERIFY_DEPTH_MAX);
		return false;
	}
	if (subject_has_nul(cert) || (depth == 0 && alt_name_has_nul(cert))) {
		verification_say(v, LOG_WARN, "VERIFY ERROR: depth=%d, NUL byte in a name: %s",
				 depth, shown);
		return false;
	}
	if (depth == 0 && !common_name(cert, v->identity.common_name)) {
		verification_say(v, LOG_WARN,
				 "VERIFY ERROR: could not extract CN from X509 subject string "
				 "('%s') -- note "
				 "that the field length is limited to 63 characters",
				 shown);
		return false;
	}
	if (depth == 0 && !check_usage(v, cert))
		return false;
	if (is_revoked_in_dir(v, serial))
		return false;
	verification_say(v, LEVEL_HANDSHAKE, "VERIFY OK: depth=%d, %s", depth, shown);
	return true;
}

/* The library refused; a missing CRL of one CA among several is let through as stock does. */
static bool is_forgiven(struct verification *v, X509_STORE_CTX *store, X509 *cert)
{
	CLEANUP_TEXT char *subject = cert ? subject_text(cert) : NULL;
	CLEANUP_TEXT char *serial = cert ? serial_text(cert) : NULL;
	int error = X509_STORE_CTX_get_error(store);
	int depth = X509_STORE_CTX_get_error_depth(store);
	const char *shown = subject ? subject : "(Failed to retrieve certificate subject)";
	if (error == X509_V_ERR_UNABLE_TO_GET_CRL) {
		verification_say(v, LOG_DEBUG, "VERIFY WARNING: depth=%d, %s: %s", depth,
				 X509_verify_cert_error_string(error), shown);
		return true;
	}
	verification_say(v, LOG_WARN, "VERIFY ERROR: depth=%d, error=%s: %s, serial=%s", depth,
			 X509_verify_cert_error_string(error), shown,
			 serial ? serial : "<not available>");
	return false;
}

static int check_callback(int is_ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct verification *v = SSL_get_ex_data(ssl, verify_ex_index());
	X509 *cert = X509_STORE_CTX_get_current_cert(store);
	int depth = X509_STORE_CTX_get_error_depth(store);
	if (!is_ok && is_forgiven(v, store, cert)) {
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	}
	if (is_ok && cert && check_certificate(v, cert, depth))
		return 1;
	if (is_ok)
		X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	v->is_refused = true;
	return 0;
}

/* --- the whole chain --- */

bool verification_attach(struct verification *v, struct ssl_st *ssl)
{
	int mode = verify_policy_mode(v->policy);
	SSL_set_verify(ssl, mode, mode == SSL_VERIFY_NONE ? NULL : check_callback);
	return SSL_set1_verify_cert_store(ssl, verify_policy_store(v->policy)) == 1 &&
	       SSL_set_ex_data(ssl, verify_ex_index(), v) == 1;
}

static bool hash_chain(STACK_OF(X509) * chain, uint8_t out[32])
{
	CLEANUP(EVP_MD_CTX_free) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		return false;
	for (int i = 0; i < sk_X509_num(chain); i++) {
		uint8_t digest[EVP_MAX_MD_SIZE];
		unsigned len = 0;
		if (X509_digest(sk_X509_value(chain, i), EVP_sha256(), digest, &len) != 1 ||
		    EVP_DigestUpdate(ctx, digest, len) != 1)
			return false;
	}
	return EVP_DigestFinal_ex(ctx, out, NULL) == 1;
}

bool verification_finish(struct verification *v, struct ssl_st *ssl)
{
	int mode = verify_policy_mode(v->policy);
	if (mode == SSL_VERIFY_NONE)
		return true;
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	bool has_certificate = SSL_get0_peer_certificate(ssl) != NULL;
	if (v->is_refused || SSL_get_verify_result(ssl) != X509_V_OK)
		return false;
	if (!has_certificate)
		return !(mode & SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
	v->identity.has_certificate = true;
	return sk_X509_num(chain) > 0 && hash_chain(chain, v->identity.chain_hash);
}
