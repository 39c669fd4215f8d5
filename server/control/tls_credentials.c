/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/tls_context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "crypto/secret.h"

CLEANUP_FN(X509, X509_free);
CLEANUP_FN(EVP_PKEY, EVP_PKEY_free);

/* The content of a file and a BIO over it. */
struct source {
	const char *name;
	char *text;
	size_t len;
	BIO *bio;
};

static void source_close(struct source *s)
{
	BIO_free_all(s->bio);
	if (s->text)
		secret_wipe(s->text, s->len);
	free(s->text);
	*s = (struct source){0};
}

static int source_open(struct source *s, const struct config_file *f, const char *what, char *why,
		       size_t why_len)
{
	*s = (struct source){.name = f->path ? f->path : "[inline]"};
	int err = config_file_read(f, &s->text, &s->len);
	if (err) {
		snprintf(why, why_len, "cannot read the %s %s: %s", what, s->name, strerror(-err));
		return err;
	}
	s->bio = BIO_new_mem_buf(s->text, (int)s->len);
	if (s->bio)
		return 0;
	source_close(s);
	return -ENOMEM;
}

/* The certificates behind the first one are sent along with it. */
static int add_chain(SSL_CTX *ctx, BIO *bio)
{
	X509 *extra;
	while ((extra = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		if (SSL_CTX_add_extra_chain_cert(ctx, extra) != 1) {
			X509_free(extra);
			return -ENOMEM;
		}
	}
	ERR_clear_error();
	return 0;
}

static int use_certificate(SSL_CTX *ctx, struct source *s, char *why, size_t why_len)
{
	CLEANUP(X509_free) X509 *cert = PEM_read_bio_X509_AUX(s->bio, NULL, NULL, NULL);
	if (!cert) {
		snprintf(why, why_len, "no certificate could be read from %s: give it in PEM",
			 s->name);
		return -EINVAL;
	}
	if (SSL_CTX_use_certificate(ctx, cert) != 1) {
		char reason[256];
		ERR_error_string_n(ERR_peek_last_error(), reason, sizeof(reason));
		snprintf(why, why_len,
			 "the certificate %s is refused by OpenSSL (%s): is its key too short for "
			 "tls-cert-profile?",
			 s->name, reason);
		return -EINVAL;
	}
	return add_chain(ctx, s->bio);
}

/* Called only for an encrypted key: remember that, and give no password. */
static int no_password(char *buf, int size, int rwflag, void *was_asked)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	*(bool *)was_asked = true;
	return -1;
}

static int use_key(SSL_CTX *ctx, struct source *s, char *why, size_t why_len)
{
	bool is_encrypted = false;
	CLEANUP(EVP_PKEY_free)
	EVP_PKEY *key = PEM_read_bio_PrivateKey(s->bio, NULL, no_password, &is_encrypted);
	if (!key) {
		snprintf(why, why_len,
			 is_encrypted ? "the private key %s is encrypted: remove its password"
				      : "no private key could be read from %s: give it in PEM",
			 s->name);
		return -EINVAL;
	}
	if (SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1)
		return 0;
	snprintf(why, why_len, "the private key %s does not belong to the certificate", s->name);
	return -EINVAL;
}

static int load(SSL_CTX *ctx, const struct config_file *f, const char *what,
		int (*use)(SSL_CTX *, struct source *, char *, size_t), char *why, size_t why_len)
{
	struct source s;
	int err = source_open(&s, f, what, why, why_len);
	if (err)
		return err;
	err = use(ctx, &s, why, why_len);
	source_close(&s);
	return err;
}

static int use_extra(SSL_CTX *ctx, struct source *s, char *why, size_t why_len)
{
	(void)why;
	(void)why_len;
	return add_chain(ctx, s->bio);
}

int tls_credentials_load(SSL_CTX *ctx, const struct config *c, char *why, size_t why_len)
{
	if (!c->cert.path && !c->cert.text)
		return 0;
	int err = load(ctx, &c->cert, "certificate", use_certificate, why, why_len);
	if (!err)
		err = load(ctx, &c->key, "private key", use_key, why, why_len);
	if (!err && (c->extra_certs.path || c->extra_certs.text))
		err = load(ctx, &c->extra_certs, "extra-certs file", use_extra, why, why_len);
	return err;
}
