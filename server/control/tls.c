/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "config/log.h"
#include "crypto/secret.h"
#include "server/control/tls_context.h"
#include "server/control/verify.h"

#define HANDSHAKE_INPUT_MAX 131072 /* security.md, 4.1 */
#define KEY_UPDATES_MAX	    32	   /* peers of this protocol send none */

/* Bytes on their way between the reliable layer and the library; no memory while empty. */
struct byte_queue {
	uint8_t *data;
	size_t pos, len, cap;
};

struct tls {
	struct tls_context *context; /* borrowed: the session holds the reference */
	SSL *ssl;
	struct byte_queue in, out;
	size_t input_len; /* during the handshake */
	unsigned key_updates;
	bool is_established, is_refused;
	struct verification *verification; /* until tls_settle */
	struct identity identity;
	char error[256];
};

/* --- the queue --- */

static void queue_free(struct byte_queue *q)
{
	if (q->data)
		secret_wipe(q->data, q->cap);
	free(q->data);
	*q = (struct byte_queue){0};
}

/* What was pulled makes room, so that a queue that is never quite empty does not grow for ever. */
static void queue_compact(struct byte_queue *q)
{
	if (q->pos == 0)
		return;
	memmove(q->data, q->data + q->pos, q->len - q->pos);
	q->len -= q->pos;
	q->pos = 0;
}

static bool queue_push(struct byte_queue *q, const void *data, size_t len)
{
	if (q->cap - q->len < len)
		queue_compact(q);
	if (q->cap - q->len < len) {
		size_t cap = q->len + len + 1024;
		uint8_t *more = realloc(q->data, cap);
		if (!more)
			return false;
		q->data = more;
		q->cap = cap;
	}
	memcpy(q->data + q->len, data, len);
	q->len += len;
	return true;
}

static size_t queue_left(const struct byte_queue *q)
{
	return q->len - q->pos;
}

static size_t queue_pull(struct byte_queue *q, void *out, size_t cap)
{
	size_t n = queue_left(q) < cap ? queue_left(q) : cap;
	if (n > 0)
		memcpy(out, q->data + q->pos, n);
	q->pos += n;
	if (queue_left(q) == 0)
		queue_free(q);
	return n;
}

/* --- the BIO over both queues --- */

static int bio_read(BIO *bio, char *out, size_t cap, size_t *len)
{
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	*len = queue_pull(&t->in, out, cap);
	if (*len > 0)
		return 1;
	BIO_set_retry_read(bio);
	return 0;
}

static int bio_write(BIO *bio, const char *data, size_t len, size_t *written)
{
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	*written = queue_push(&t->out, data, len) ? len : 0;
	return *written == len;
}

static long bio_ctrl(BIO *bio, int cmd, long arg, void *ptr)
{
	(void)arg;
	(void)ptr;
	const struct tls *t = BIO_get_data(bio);
	switch (cmd) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_PENDING:
		return (long)queue_left(&t->in);
	default:
		return 0;
	}
}

static BIO_METHOD *bio_method_new(void)
{
	/* A fixed type: the library has numbers for only some hundred methods, and each reload
	 * makes one. */
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "control channel");
	if (m && BIO_meth_set_read_ex(m, bio_read) == 1 &&
	    BIO_meth_set_write_ex(m, bio_write) == 1 && BIO_meth_set_ctrl(m, bio_ctrl) == 1)
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* --- context --- */

/* Counts KeyUpdate messages of the peer: each costs us a key derivation, and is free to send. */
static void on_message(int is_write, int version, int type, const void *data, size_t len, SSL *ssl,
		       void *arg)
{
	(void)version;
	(void)arg;
	struct tls *t = SSL_get_app_data(ssl);
	if (!is_write && type == SSL3_RT_HANDSHAKE && len > 0 &&
	    *(const uint8_t *)data == SSL3_MT_KEY_UPDATE)
		t->key_updates++;
}

/* Alerts are often all that says why a peer is not content. */
static void on_info(const SSL *ssl, int where, int code)
{
	struct tls *t = SSL_get_app_data(ssl);
	if ((where & SSL_CB_ALERT) && t && t->verification)
		verification_say(t->verification, LOG_INFO, "%s %s SSL alert: %s",
				 where & SSL_CB_READ ? "Received" : "Sent",
				 SSL_alert_type_string_long(code),
				 SSL_alert_desc_string_long(code));
}

static int64_t not_after(SSL_CTX *ctx)
{
	const X509 *cert = SSL_CTX_get0_certificate(ctx);
	struct tm tm;
	if (!cert || ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1)
		return 0;
	return (int64_t)timegm(&tm);
}

static int context_init(struct tls_context *t, const struct config *c, char *why, size_t why_len)
{
	t->ctx = SSL_CTX_new(t->is_server ? TLS_server_method() : TLS_client_method());
	t->bio = bio_method_new();
	if (!t->ctx || !t->bio)
		return -ENOMEM;
	int err = verify_policy_new(c, t->is_server, &t->policy, why, why_len);
	if (!err)
		err = verify_policy_install(t->policy, c, t->ctx, why, why_len);
	if (!err)
		err = tls_context_configure(t->ctx, c, t->is_server, why, why_len);
	if (err)
		return err;
	SSL_CTX_set_msg_callback(t->ctx, on_message);
	SSL_CTX_set_info_callback(t->ctx, on_info);
	t->cert_not_after = not_after(t->ctx);
	return 0;
}

/* One reference; NULL without memory. */
static struct tls_context *context_alloc(bool is_server, char *why, size_t why_len)
{
	ERR_clear_error();
	snprintf(why, why_len, "out of memory");
	struct tls_context *t = calloc(1, sizeof(*t));
	if (t) {
		t->ref_count = 1;
		t->is_server = is_server;
	}
	return t;
}

/* Hand out what was initialised with `err`, or end it. Returns err. */
static int context_hand_out(struct tls_context *t, int err, struct tls_context **out)
{
	ERR_clear_error();
	if (err)
		tls_context_unref(t);
	else
		*out = t;
	return err;
}

int tls_context_new(const struct config *c, bool is_server, struct tls_context **out, char *why,
		    size_t why_len)
{
	struct tls_context *t = context_alloc(is_server, why, why_len);
	return t ? context_hand_out(t, context_init(t, c, why, why_len), out) : -ENOMEM;
}

/* Own certificate and key are shared with `old`. */
static int context_init_renewed(struct tls_context *t, const struct tls_context *old,
				const struct config *c, char *why, size_t why_len)
{
	t->cert_not_after = old->cert_not_after;
	t->bio = bio_method_new();
	if (!t->bio || SSL_CTX_up_ref(old->ctx) != 1)
		return -ENOMEM;
	t->ctx = old->ctx;
	return verify_policy_renew_crl(old->policy, c, t->is_server, &t->policy, why, why_len);
}

int tls_context_renew_crl(const struct tls_context *old, const struct config *c,
			  struct tls_context **out, char *why, size_t why_len)
{
	struct tls_context *t = context_alloc(old->is_server, why, why_len);
	return t ? context_hand_out(t, context_init_renewed(t, old, c, why, why_len), out)
		 : -ENOMEM;
}

struct tls_context *tls_context_ref(struct tls_context *t)
{
	t->ref_count++;
	return t;
}

void tls_context_unref(struct tls_context *t)
{
	if (!t || --t->ref_count > 0)
		return;
	SSL_CTX_free(t->ctx);
	BIO_meth_free(t->bio);
	verify_policy_free(t->policy);
	free(t);
}

bool tls_context_crl_changed(const struct tls_context *t)
{
	return verify_policy_crl_changed(t->policy);
}

int64_t tls_context_cert_not_after(const struct tls_context *t)
{
	return t->cert_not_after;
}

int64_t tls_context_crl_next_update(const struct tls_context *t)
{
	return verify_policy_crl_next_update(t->policy);
}

/* --- one handshake --- */

static bool tls_init(struct tls *t)
{
	t->verification = malloc(sizeof(*t->verification));
	if (!t->verification)
		return false;
	verification_init(t->verification, t->context->policy);
	t->ssl = SSL_new(t->context->ctx);
	BIO *bio = t->ssl ? BIO_new(t->context->bio) : NULL;
	if (!bio)
		return false;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	if (t->context->is_server)
		SSL_set_accept_state(t->ssl);
	else
		SSL_set_connect_state(t->ssl);
	return SSL_set_app_data(t->ssl, t) == 1 && verification_attach(t->verification, t->ssl);
}

int tls_new(struct tls_context *context, struct tls **out)
{
	ERR_clear_error();
	struct tls *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->context = context;
	if (!tls_init(t)) {
		ERR_clear_error();
		tls_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

static void verification_drop(struct tls *t)
{
	if (t->verification)
		verification_fini(t->verification);
	free(t->verification);
	t->verification = NULL;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	verification_drop(t);
	queue_free(&t->in);
	queue_free(&t->out);
	free(t);
}

void tls_set_time(struct tls *t, uint32_t wall_s)
{
	X509_VERIFY_PARAM_set_time(SSL_get0_param(t->ssl), (time_t)wall_s);
}

bool tls_input(struct tls *t, struct view bytes)
{
	if (!t->is_established) {
		t->input_len += bytes.len;
		if (t->input_len > HANDSHAKE_INPUT_MAX) {
			snprintf(t->error, sizeof(t->error), "more than %d bytes of handshake",
				 HANDSHAKE_INPUT_MAX);
			return false;
		}
	}
	return queue_push(&t->in, bytes.data, bytes.len);
}

size_t tls_input_left(const struct tls *t)
{
	return queue_left(&t->in);
}

/* The library's verdict on a call that returned `ret`, right after it. */
static enum tls_result result_of(struct tls *t, int ret)
{
	if (ret > 0)
		return TLS_OK;
	int error = SSL_get_error(t->ssl, ret);
	if (error == SSL_ERROR_WANT_READ)
		return TLS_WANT;
	unsigned long reason = ERR_peek_error();
	if (reason)
		ERR_error_string_n(reason, t->error, sizeof(t->error));
	else
		snprintf(t->error, sizeof(t->error), "%s",
			 error == SSL_ERROR_ZERO_RETURN ? "closed by the peer" : "unknown error");
	ERR_clear_error();
	return TLS_ERROR;
}

enum tls_result tls_handshake(struct tls *t)
{
	if (t->is_established)
		return TLS_OK;
	ERR_clear_error();
	enum tls_result result = result_of(t, SSL_do_handshake(t->ssl));
	t->is_refused |= t->verification->is_refused;
	if (result != TLS_OK)
		return result;
	if (!verification_finish(t->verification, t->ssl)) {
		t->is_refused = true;
		snprintf(t->error, sizeof(t->error), "the peer showed no verified certificate");
		return TLS_ERROR;
	}
	t->identity = t->verification->identity;
	t->is_established = true;
	return TLS_OK;
}

bool tls_is_established(const struct tls *t)
{
	return t->is_established;
}

bool tls_is_refused(const struct tls *t)
{
	return t->is_refused;
}

size_t tls_log_count(const struct tls *t)
{
	return t->verification ? t->verification->line_count : 0;
}

const char *tls_log_line(const struct tls *t, size_t i, int *level)
{
	*level = t->verification->lines[i].level;
	return t->verification->lines[i].text;
}

void tls_settle(struct tls *t)
{
	/* The library may still ask for the verification while it reads or writes, but only a
	 * handshake makes it verify, and there is no second one. */
	SSL_set_ex_data(t->ssl, verify_ex_index(), NULL);
	verification_drop(t);
}

enum tls_result tls_read(struct tls *t, uint8_t *out, size_t cap, size_t *len)
{
	ERR_clear_error();
	enum tls_result result = result_of(t, SSL_read_ex(t->ssl, out, cap, len));
	if (result != TLS_ERROR && t->key_updates > KEY_UPDATES_MAX) {
		snprintf(t->error, sizeof(t->error), "too many key updates");
		return TLS_ERROR;
	}
	if (result != TLS_OK)
		return result;
	if (SSL_pending(t->ssl) > 0) {
		snprintf(t->error, sizeof(t->error), "a message longer than %zu bytes", cap);
		return TLS_ERROR;
	}
	return TLS_OK;
}

enum tls_result tls_write(struct tls *t, struct view bytes)
{
	ERR_clear_error();
	size_t written;
	return result_of(t, SSL_write_ex(t->ssl, bytes.data, bytes.len, &written));
}

size_t tls_output(struct tls *t, uint8_t *out, size_t cap)
{
	return queue_pull(&t->out, out, cap);
}

size_t tls_output_left(struct tls *t)
{
	return queue_left(&t->out);
}

int tls_export(struct tls *t, const char *label, uint8_t *out, size_t len)
{
	ERR_clear_error();
	if (SSL_export_keying_material(t->ssl, out, len, label, strlen(label), NULL, 0, 0) == 1)
		return 0;
	ERR_clear_error();
	return -EPROTO;
}

const char *tls_error_text(const struct tls *t)
{
	return t->error;
}

const struct identity *tls_identity(const struct tls *t)
{
	return t->is_established ? &t->identity : NULL;
}

/* --- summary --- */

static void key_text(const EVP_PKEY *key, char *buf, size_t len)
{
	char curve[64] = "";
	int type = EVP_PKEY_get_base_id(key);
	const char *name = type == EVP_PKEY_RSA	 ? "RSA"
			   : type == EVP_PKEY_EC ? "EC"
						 : OBJ_nid2sn(type);
	if (type == EVP_PKEY_EC)
		EVP_PKEY_get_group_name(key, curve, sizeof(curve), NULL);
	snprintf(buf, len, "%d bits %s%s", EVP_PKEY_get_bits(key), name ? name : "?", curve);
}

const char *tls_summary(struct tls *t, char *buf, size_t len)
{
	char cert_part[256] = "", temp_part[256] = "", key[128];
	const SSL_CIPHER *cipher = SSL_get_current_cipher(t->ssl);
	X509 *cert = SSL_get0_peer_certificate(t->ssl);
	if (cert) {
		key_text(X509_get0_pubkey(cert), key, sizeof(key));
		snprintf(cert_part, sizeof(cert_part), ", peer certificate: %s, signature: %s", key,
			 OBJ_nid2sn(X509_get_signature_nid(cert)));
	}
	EVP_PKEY *temp = NULL;
	if (SSL_get_peer_tmp_key(t->ssl, &temp) == 1) {
		key_text(temp, key, sizeof(key));
		snprintf(temp_part, sizeof(temp_part), ", peer temporary key: %s", key);
		EVP_PKEY_free(temp);
	}
	snprintf(buf, len, "%s, cipher %s %s%s%s", SSL_get_version(t->ssl),
		 SSL_CIPHER_get_version(cipher), SSL_CIPHER_get_name(cipher), cert_part, temp_part);
	ERR_clear_error();
	return buf;
}
