/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/verify_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <openssl/ssl.h>

struct verify_policy {
	int mode;
	int usage;
	int crl_dir;
	char *crl_path; /* NULL: no CRL, inline, or a directory */
	off_t crl_size;
	struct timespec crl_time;
	int64_t crl_next_update;
	X509_STORE *ca;	   /* what the CA file holds, its CRLs too; no handshake sees it */
	X509_STORE *store; /* that and the CRL */
};

static int ex_index;
static pthread_once_t ex_index_once = PTHREAD_ONCE_INIT;

static void ex_index_make(void)
{
	ex_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

int verify_ex_index(void)
{
	pthread_once(&ex_index_once, ex_index_make);
	return ex_index;
}

int verify_policy_mode(const struct verify_policy *p)
{
	return p->mode;
}

int verify_policy_usage(const struct verify_policy *p)
{
	return p->usage;
}

int verify_policy_crl_dir(const struct verify_policy *p)
{
	return p->crl_dir;
}

static const char *file_name(const struct config_file *f)
{
	return f->path ? f->path : "[inline]";
}

static int mode_of(enum client_cert c, bool is_server)
{
	if (!is_server)
		return SSL_VERIFY_PEER;
	switch (c) {
	case CLIENT_CERT_REQUIRE:
		return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	case CLIENT_CERT_OPTIONAL:
		return SSL_VERIFY_PEER;
	case CLIENT_CERT_NONE:
		return SSL_VERIFY_NONE;
	}
	return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

static int usage_of(enum remote_cert_tls u)
{
	switch (u) {
	case REMOTE_CERT_ANY:
		return NID_undef;
	case REMOTE_CERT_CLIENT:
		return NID_client_auth;
	case REMOTE_CERT_SERVER:
		return NID_server_auth;
	}
	return NID_undef;
}

/* Where revocation is looked up; the CRL itself is loaded into the store later. */
static int crl_note(struct verify_policy *p, const struct config *c, char *why, size_t why_len)
{
	if (!c->crl.path)
		return 0;
	if (c->is_crl_dir) {
		p->crl_dir = open(c->crl.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (p->crl_dir >= 0)
			return 0;
		int err = errno;
		snprintf(why, why_len, "cannot open the crl-verify directory %s: %s", c->crl.path,
			 strerror(err));
		return -err;
	}
	struct stat st;
	if (stat(c->crl.path, &st) != 0) {
		int err = errno;
		snprintf(why, why_len, "cannot read the CRL %s: %s", c->crl.path, strerror(err));
		return -err;
	}
	p->crl_size = st.st_size;
	p->crl_time = st.st_mtim;
	p->crl_path = strdup(c->crl.path);
	return p->crl_path ? 0 : -ENOMEM;
}

int verify_policy_new(const struct config *c, bool is_server, struct verify_policy **out, char *why,
		      size_t why_len)
{
	struct verify_policy *p = calloc(1, sizeof(*p));
	if (!p) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	p->crl_dir = -1;
	p->mode = mode_of(c->client_cert, is_server);
	p->usage = usage_of(c->remote_cert_tls);
	int err = crl_note(p, c, why, why_len);
	if (err) {
		verify_policy_free(p);
		return err;
	}
	*out = p;
	return 0;
}

void verify_policy_free(struct verify_policy *p)
{
	if (!p)
		return;
	if (p->crl_dir >= 0)
		close(p->crl_dir);
	X509_STORE_free(p->ca);
	X509_STORE_free(p->store);
	free(p->crl_path);
	free(p);
}

bool verify_policy_crl_changed(const struct verify_policy *p)
{
	struct stat st;
	/* A file that cannot be looked at: the loaded one stays. */
	if (!p->crl_path || stat(p->crl_path, &st) != 0)
		return false;
	return st.st_size != p->crl_size || st.st_mtim.tv_sec != p->crl_time.tv_sec ||
	       st.st_mtim.tv_nsec != p->crl_time.tv_nsec;
}

int64_t verify_policy_crl_next_update(const struct verify_policy *p)
{
	return p->crl_next_update;
}

/* --- the trust store --- */

/* A memory BIO over a file's text; the text is freed with `*text`. */
static int read_file(const struct config_file *f, const char *what, char **text, BIO **bio,
		     char *why, size_t why_len)
{
	size_t len;
	int err = config_file_read(f, text, &len);
	if (err) {
		snprintf(why, why_len, "cannot read the %s %s: %s", what, file_name(f),
			 strerror(-err));
		return err;
	}
	*bio = BIO_new_mem_buf(*text, (int)len);
	return *bio ? 0 : -ENOMEM;
}

/* A file with certificates that all are broken still reads as an empty stack. */
static int add_ca(X509_STORE *store, STACK_OF(X509_INFO) * infos, SSL_CTX *ctx)
{
	int added = 0;
	for (int i = 0; i < sk_X509_INFO_num(infos); i++) {
		X509_INFO *info = sk_X509_INFO_value(infos, i);
		if (info->crl)
			X509_STORE_add_crl(store, info->crl);
		if (!info->x509)
			continue;
		/* OpenSSL reads the extensions at the first use: here, before threads share it. */
		(void)X509_check_purpose(info->x509, -1, 0);
		if (X509_STORE_add_cert(store, info->x509) != 1 ||
		    SSL_CTX_add_client_CA(ctx, info->x509) != 1)
			return -ENOMEM;
		added++;
	}
	return added;
}

static int load_ca(X509_STORE *store, const struct config *c, SSL_CTX *ctx, char *why,
		   size_t why_len)
{
	char *text;
	BIO *bio;
	int err = read_file(&c->ca, "CA certificate", &text, &bio, why, why_len);
	if (err)
		return err;
	STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL);
	int added = infos ? add_ca(store, infos, ctx) : 0;
	sk_X509_INFO_pop_free(infos, X509_INFO_free);
	BIO_free_all(bio);
	free(text);
	ERR_clear_error();
	if (added > 0)
		return 0;
	snprintf(why, why_len, "no certificate could be read from the CA file %s: give it in PEM",
		 file_name(&c->ca));
	return added < 0 ? added : -EINVAL;
}

static int64_t time_of(const ASN1_TIME *t)
{
	struct tm tm;
	return t && ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static int add_crls(struct verify_policy *p, X509_STORE *store, BIO *bio)
{
	int added = 0;
	X509_CRL *crl;
	while ((crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL))) {
		int64_t next = time_of(X509_CRL_get0_nextUpdate(crl));
		if (next && (!p->crl_next_update || next < p->crl_next_update))
			p->crl_next_update = next;
		added += X509_STORE_add_crl(store, crl) == 1;
		X509_CRL_free(crl);
	}
	ERR_clear_error();
	return added;
}

static int load_crl(struct verify_policy *p, X509_STORE *store, const struct config *c, char *why,
		    size_t why_len)
{
	if (c->is_crl_dir || (!c->crl.path && !c->crl.text))
		return 0;
	char *text;
	BIO *bio;
	int err = read_file(&c->crl, "CRL", &text, &bio, why, why_len);
	if (err)
		return err;
	int added = add_crls(p, store, bio);
	BIO_free_all(bio);
	free(text);
	if (added == 0) {
		snprintf(why, why_len, "no CRL could be read from %s: give it in PEM",
			 file_name(&c->crl));
		return -EINVAL;
	}
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

static bool copy_objects(X509_STORE *from, X509_STORE *to)
{
	const STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(from);
	bool is_ok = true;
	for (int i = 0; is_ok && i < sk_X509_OBJECT_num(objects); i++) {
		X509_OBJECT *object = sk_X509_OBJECT_value(objects, i);
		X509 *cert = X509_OBJECT_get0_X509(object);
		X509_CRL *crl = X509_OBJECT_get0_X509_CRL(object);
		is_ok = (!cert || X509_STORE_add_cert(to, cert) == 1) &&
			(!crl || X509_STORE_add_crl(to, crl) == 1);
	}
	return is_ok;
}

static int make_store(struct verify_policy *p, const struct config *c, char *why, size_t why_len)
{
	snprintf(why, why_len, "out of memory");
	p->store = X509_STORE_new();
	if (!p->store || !copy_objects(p->ca, p->store))
		return -ENOMEM;
	return load_crl(p, p->store, c, why, why_len);
}

int verify_policy_install(struct verify_policy *p, const struct config *c, struct ssl_ctx_st *ctx,
			  char *why, size_t why_len)
{
	snprintf(why, why_len, "out of memory");
	p->ca = X509_STORE_new();
	if (!p->ca || verify_ex_index() < 0)
		return -ENOMEM;
	int err = 0;
	if (c->ca.path || c->ca.text)
		err = load_ca(p->ca, c, ctx, why, why_len);
	if (!err)
		err = make_store(p, c, why, why_len);
	if (err)
		return err;
	SSL_CTX_set1_cert_store(ctx, p->store);
	SSL_CTX_set_verify_depth(ctx, VERIFY_DEPTH_MAX);
	return 0;
}

int verify_policy_renew_crl(const struct verify_policy *old, const struct config *c, bool is_server,
			    struct verify_policy **out, char *why, size_t why_len)
{
	struct verify_policy *p;
	int err = verify_policy_new(c, is_server, &p, why, why_len);
	if (err)
		return err;
	X509_STORE_up_ref(old->ca);
	p->ca = old->ca;
	err = make_store(p, c, why, why_len);
	if (err)
		verify_policy_free(p);
	else
		*out = p;
	return err;
}

struct x509_store_st *verify_policy_store(const struct verify_policy *p)
{
	return p->store;
}
