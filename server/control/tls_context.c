/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/tls_context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "crypto/secret.h"

/* Stock's list for TLS 1.2 and below where `tls-cipher` is not given. */
#define CIPHERS_DEFAULT "DEFAULT:!EXP:!LOW:!MEDIUM:!kDH:!kECDH:!DSS:!PSK:!SRP:!kRSA"
#define CIPHERS_MAX	4096

CLEANUP_FN(SSL, SSL_free);
CLEANUP_FN(BIO, BIO_free_all);

static int version_of(int configured)
{
	switch (configured) {
	case 10:
		return TLS1_VERSION;
	case 11:
		return TLS1_1_VERSION;
	case 13:
		return TLS1_3_VERSION;
	default:
		return TLS1_2_VERSION;
	}
}

static int set_versions(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	int min = version_of(c->tls_version_min);
	int max = c->tls_version_max ? version_of(c->tls_version_max) : 0;
	if ((max && max < min) || SSL_CTX_set_min_proto_version(ctx, min) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, max) != 1) {
		snprintf(why, why_len,
			 "no TLS version lies between tls-version-min and tls-version-max");
		return -EINVAL;
	}
	return 0;
}

static void set_options(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
					 SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_SINGLE_DH_USE | SSL_OP_SINGLE_ECDH_USE);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
}

/* The first thing set: it decides what the rest is measured by. */
static int set_profile(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	const char *p = c->tls_cert_profile ? c->tls_cert_profile : "legacy";
	if (strcmp(p, "legacy") == 0) {
		SSL_CTX_set_security_level(ctx, 1);
	} else if (strcmp(p, "preferred") == 0) {
		SSL_CTX_set_security_level(ctx, 2);
	} else if (strcmp(p, "insecure") == 0) {
		SSL_CTX_set_security_level(ctx, 0);
	} else if (strcmp(p, "suiteb") == 0) {
		SSL_CTX_set_cipher_list(ctx, "SUITEB128");
	} else {
		snprintf(why, why_len,
			 "tls-cert-profile %s is unknown: give legacy, preferred, insecure or "
			 "suiteb",
			 p);
		return -EINVAL;
	}
	return 0;
}

/* The library's name of a cipher given by its IANA name with dashes; the name itself for all that
 * is not one ("DEFAULT", "!aNULL", library names). */
static const char *library_name(const STACK_OF(SSL_CIPHER) * all, const char *name)
{
	char iana[128];
	snprintf(iana, sizeof(iana), "%s", name);
	for (char *p = iana; *p; p++)
		if (*p == '-')
			*p = '_';
	for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
		const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, i);
		const char *standard = SSL_CIPHER_standard_name(cipher);
		if (standard && strcmp(standard, iana) == 0)
			return SSL_CIPHER_get_name(cipher);
	}
	return name;
}

static bool translate_ciphers(SSL_CTX *ctx, const char *list, char *out, size_t cap)
{
	char names[CIPHERS_MAX];
	if (strlen(list) >= sizeof(names) ||
	    SSL_CTX_set_cipher_list(ctx, "ALL:COMPLEMENTOFALL") != 1)
		return false;
	snprintf(names, sizeof(names), "%s", list);
	CLEANUP(SSL_free) SSL *ssl = SSL_new(ctx);
	const STACK_OF(SSL_CIPHER) *all = ssl ? SSL_get_ciphers(ssl) : NULL;
	size_t len = 0;
	char *rest = NULL;
	out[0] = '\0';
	for (char *n = strtok_r(names, ":", &rest); n; n = strtok_r(NULL, ":", &rest)) {
		int added = snprintf(out + len, cap - len, "%s%s", len ? ":" : "",
				     library_name(all, n));
		if (added < 0 || (size_t)added >= cap - len)
			return false;
		len += (size_t)added;
	}
	return true;
}

static int set_ciphers(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	char list[CIPHERS_MAX];
	const char *profile = c->tls_cert_profile ? c->tls_cert_profile : "";
	if (c->tls_cipher) {
		if (!translate_ciphers(ctx, c->tls_cipher, list, sizeof(list)) ||
		    SSL_CTX_set_cipher_list(ctx, list) != 1) {
			snprintf(why, why_len, "tls-cipher: OpenSSL knows no cipher of the list %s",
				 c->tls_cipher);
			return -EINVAL;
		}
	} else if (strcmp(profile, "suiteb") != 0 &&
		   SSL_CTX_set_cipher_list(ctx, CIPHERS_DEFAULT) != 1) {
		snprintf(why, why_len, "OpenSSL has none of the default TLS ciphers");
		return -ENOTSUP;
	}
	if (!c->tls_ciphersuites)
		return 0;
	snprintf(list, sizeof(list), "%s", c->tls_ciphersuites);
	for (char *p = list; *p; p++)
		if (*p == '-')
			*p = '_';
	if (SSL_CTX_set_ciphersuites(ctx, list) == 1)
		return 0;
	snprintf(why, why_len, "tls-ciphersuites: OpenSSL knows no such list: %s",
		 c->tls_ciphersuites);
	return -EINVAL;
}

static int set_groups(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	if (!c->tls_groups)
		return 0;
	/* The library's macro casts the const away. */
	char list[512];
	int len = snprintf(list, sizeof(list), "%s", c->tls_groups);
	if (len > 0 && (size_t)len < sizeof(list) && SSL_CTX_set1_groups_list(ctx, list) == 1)
		return 0;
	snprintf(why, why_len, "tls-groups: OpenSSL does not know all groups of %s", c->tls_groups);
	return -EINVAL;
}

/* Without a file only the elliptic curve exchanges are offered. */
static int set_dh(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	if (c->is_dh_none || (!c->dh.path && !c->dh.text))
		return 0;
	const char *name = c->dh.path ? c->dh.path : "[inline]";
	char *text;
	size_t len;
	int err = config_file_read(&c->dh, &text, &len);
	if (err) {
		snprintf(why, why_len, "cannot read the DH parameters %s: %s", name,
			 strerror(-err));
		return err;
	}
	CLEANUP(BIO_free_all) BIO *bio = BIO_new_mem_buf(text, (int)len);
	EVP_PKEY *dh = bio ? PEM_read_bio_Parameters(bio, NULL) : NULL;
	free(text);
	if (dh && SSL_CTX_set0_tmp_dh_pkey(ctx, dh) == 1)
		return 0;
	EVP_PKEY_free(dh);
	snprintf(why, why_len,
		 "no usable DH parameters in %s: make them with `openssl dhparam 2048`, or give "
		 "`dh none`",
		 name);
	return -EINVAL;
}

int tls_context_configure(SSL_CTX *ctx, const struct config *c, bool is_server, char *why,
			  size_t why_len)
{
	set_options(ctx);
	int err = set_profile(ctx, c, why, why_len);
	if (!err)
		err = set_versions(ctx, c, why, why_len);
	if (!err)
		err = set_ciphers(ctx, c, why, why_len);
	if (!err)
		err = set_groups(ctx, c, why, why_len);
	if (!err && is_server)
		err = set_dh(ctx, c, why, why_len);
	if (!err)
		err = tls_credentials_load(ctx, c, why, why_len);
	ERR_clear_error();
	return err;
}
