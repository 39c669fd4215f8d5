/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/wrap.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/secret.h"

#define PID_LEN	      8	 /* packet-id and time */
#define CRYPT_TAG_LEN 32 /* HMAC-SHA256 */
#define CRYPT_KEY_LEN 32
#define CRYPT_IV_LEN  16
#define TAG_MAX	      64
static_assert(TAG_MAX + PID_LEN == WRAP_OVERHEAD_MAX, "the largest HMAC");

CLEANUP_FN(EVP_MAC_CTX, EVP_MAC_CTX_free);
CLEANUP_FN(EVP_CIPHER_CTX, EVP_CIPHER_CTX_free);
CLEANUP_FN(EVP_MAC, EVP_MAC_free);
CLEANUP_FN(EVP_MD, EVP_MD_free);

struct wrap_direction {
	EVP_MAC_CTX *hmac; /* keyed; read only, copied for each use */
	uint8_t cipher_key[CRYPT_KEY_LEN];
};

struct wrap_keys {
	enum wrap_mode mode;
	unsigned tag_len;
	EVP_CIPHER *ctr;
	struct wrap_direction seal, open;
};

static bool is_zero(const uint8_t *p, size_t len)
{
	uint8_t any = 0;
	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return any == 0;
}

/* A context keyed with the first digest-size bytes at `key`. NULL if the library refuses. */
static EVP_MAC_CTX *hmac_new(EVP_MAC *mac, const EVP_MD *md, const uint8_t *key)
{
	char name[64];
	snprintf(name, sizeof(name), "%s", EVP_MD_get0_name(md));
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	if (ctx && EVP_MAC_init(ctx, key, (size_t)EVP_MD_get_size(md), params) != 1) {
		EVP_MAC_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

/* Names of --auth are OpenSSL's old ones; some are known only to the old lookup ("RSA-SHA256"). */
static EVP_MD *digest_fetch(const char *name)
{
	const EVP_MD *alias = EVP_get_digestbyname(name);
	EVP_MD *md = EVP_MD_fetch(NULL, alias ? EVP_MD_get0_name(alias) : name, NULL);
	if (md && (EVP_MD_get_size(md) <= 0 || EVP_MD_get_size(md) > TAG_MAX)) {
		EVP_MD_free(md);
		return NULL;
	}
	return md;
}

/* Key fields of one direction; `half` 0 or 1 (wire.md, section 4). */
static int direction_init(struct wrap_direction *d, enum wrap_mode mode, EVP_MAC *mac,
			  const EVP_MD *md, const struct static_key *key, unsigned half)
{
	const uint8_t *cipher = key->bytes + (size_t)half * 2 * STATIC_KEY_FIELD;
	const uint8_t *hmac = cipher + STATIC_KEY_FIELD;
	if (is_zero(hmac, (size_t)EVP_MD_get_size(md)))
		return -EINVAL;
	if (mode == WRAP_TLS_CRYPT) {
		if (is_zero(cipher, CRYPT_KEY_LEN))
			return -EINVAL;
		memcpy(d->cipher_key, cipher, CRYPT_KEY_LEN);
	}
	d->hmac = hmac_new(mac, md, hmac);
	/* The library refuses digests that HMAC cannot take (SHAKE). */
	return d->hmac ? 0 : -EINVAL;
}

static int keys_init(struct wrap_keys *k, const struct static_key *key,
		     enum key_direction direction, const char *digest)
{
	bool is_crypt = k->mode == WRAP_TLS_CRYPT;
	if (is_crypt && direction == KEY_DIRECTION_NONE)
		return -EINVAL;
	CLEANUP(EVP_MAC_free) EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	CLEANUP(EVP_MD_free) EVP_MD *md = digest_fetch(is_crypt ? "SHA256" : digest);
	k->ctr = is_crypt ? EVP_CIPHER_fetch(NULL, "AES-256-CTR", NULL) : NULL;
	if (!mac || (is_crypt && !k->ctr))
		return -ENOMEM;
	if (!md)
		return -EINVAL;
	k->tag_len = (unsigned)EVP_MD_get_size(md);
	unsigned seal_half = direction == KEY_DIRECTION_1 ? 1 : 0;
	unsigned open_half = direction == KEY_DIRECTION_0 ? 1 : 0;
	int err = direction_init(&k->seal, k->mode, mac, md, key, seal_half);
	return err ? err : direction_init(&k->open, k->mode, mac, md, key, open_half);
}

int wrap_keys_new(enum wrap_mode mode, const struct static_key *key, enum key_direction direction,
		  const char *digest, struct wrap_keys **out)
{
	struct wrap_keys *k = secret_alloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->mode = mode;
	int err = mode == WRAP_NONE ? 0 : keys_init(k, key, direction, digest);
	if (err) {
		ERR_clear_error();
		wrap_keys_free(k);
		return err;
	}
	*out = k;
	return 0;
}

void wrap_keys_free(struct wrap_keys *k)
{
	if (!k)
		return;
	EVP_MAC_CTX_free(k->seal.hmac);
	EVP_MAC_CTX_free(k->open.hmac);
	EVP_CIPHER_free(k->ctr);
	secret_free(k, sizeof(*k));
}

enum wrap_mode wrap_keys_mode(const struct wrap_keys *k)
{
	return k->mode;
}

unsigned wrap_overhead(const struct wrap_keys *k)
{
	return k->mode == WRAP_NONE ? 0 : k->tag_len + PID_LEN;
}

/* The three parts of a packet that its tag covers: head (opcode, session-id), pid (packet-id,
 * time) and body. */
struct parts {
	struct view head, pid, body;
};

static bool mac_view(EVP_MAC_CTX *ctx, struct view v)
{
	return EVP_MAC_update(ctx, v.data, v.len) == 1;
}

/* tls-auth puts the packet-id before the head, tls-crypt behind it (wire.md, 2.2 and 2.3). */
static bool make_tag(const struct wrap_keys *k, const struct wrap_direction *d,
		     const struct parts *p, uint8_t tag[TAG_MAX])
{
	CLEANUP(EVP_MAC_CTX_free) EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(d->hmac);
	bool is_auth = k->mode == WRAP_TLS_AUTH;
	size_t len = 0;
	if (ctx && mac_view(ctx, is_auth ? p->pid : p->head) &&
	    mac_view(ctx, is_auth ? p->head : p->pid) && mac_view(ctx, p->body) &&
	    EVP_MAC_final(ctx, tag, &len, TAG_MAX) == 1 && len == k->tag_len)
		return true;
	ERR_clear_error();
	return false;
}

/* AES-256-CTR in one direction or the other; `iv` is the first half of the tag. */
static bool ctr(const struct wrap_keys *k, const struct wrap_direction *d, const uint8_t *iv,
		struct view in, uint8_t *out)
{
	CLEANUP(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int len = 0;
	if (ctx && in.len <= CONTROL_PACKET_MAX &&
	    EVP_EncryptInit_ex2(ctx, k->ctr, d->cipher_key, iv, NULL) == 1 &&
	    EVP_EncryptUpdate(ctx, out, &len, in.data, (int)in.len) == 1)
		return true;
	ERR_clear_error();
	return false;
}

static bool verify(const struct wrap_keys *k, const struct parts *p, struct view tag)
{
	uint8_t expected[TAG_MAX];
	return make_tag(k, &k->open, p, expected) && secret_equal(expected, tag.data, k->tag_len);
}

/* [tag] [packet-id, time] body */
static enum drop open_auth(const struct wrap_keys *k, struct view head, struct reader *r,
			   struct parts *out)
{
	struct view tag = reader_bytes(r, k->tag_len);
	*out = (struct parts){.head = head, .pid = reader_bytes(r, PID_LEN)};
	out->body = reader_rest(r);
	if (!reader_done(r))
		return DROP_SHORT;
	return verify(k, out, tag) ? DROP_NONE : DROP_CONTROL_HMAC;
}

/* [packet-id, time] [tag] ciphertext; SIV style, so it is decrypted before it is verified. */
static enum drop open_crypt(const struct wrap_keys *k, struct view head, struct reader *r,
			    uint8_t *scratch, struct parts *out)
{
	*out = (struct parts){.head = head, .pid = reader_bytes(r, PID_LEN)};
	struct view tag = reader_bytes(r, k->tag_len);
	struct view ciphertext = reader_rest(r);
	if (!reader_done(r))
		return DROP_SHORT;
	if (!ctr(k, &k->open, tag.data, ciphertext, scratch))
		return DROP_CONTROL_HMAC;
	out->body = (struct view){scratch, ciphertext.len};
	return verify(k, out, tag) ? DROP_NONE : DROP_CONTROL_HMAC;
}

static enum drop open_parts(const struct wrap_keys *k, struct view head, struct reader *r,
			    uint8_t *scratch, struct parts *out)
{
	switch (k->mode) {
	case WRAP_NONE:
		*out = (struct parts){.head = head, .body = reader_rest(r)};
		return DROP_NONE;
	case WRAP_TLS_AUTH:
		return open_auth(k, head, r, out);
	case WRAP_TLS_CRYPT:
		return open_crypt(k, head, r, scratch, out);
	}
	return DROP_CONTROL_HMAC;
}

enum drop wrap_open(const struct wrap_keys *k, struct view datagram, uint8_t *scratch,
		    struct wrapped *out)
{
	if (datagram.len > CONTROL_PACKET_MAX)
		return DROP_CONTROL_MALFORMED;
	struct reader r = reader_of(datagram);
	struct view head = reader_bytes(&r, CONTROL_HEAD_LEN);
	if (!reader_ok(&r))
		return DROP_SHORT;
	struct reader h = reader_of(head);
	uint8_t first = reader_u8(&h);
	if (!packet_is_control(packet_opcode(first)))
		return DROP_BAD_OPCODE;
	struct parts parts;
	enum drop drop = open_parts(k, head, &r, scratch, &parts);
	if (drop != DROP_NONE)
		return drop;
	struct reader pid = reader_of(parts.pid);
	*out = (struct wrapped){.opcode = (enum opcode)packet_opcode(first),
				.key_id = packet_key_id(first),
				.body = parts.body};
	reader_copy(&h, out->sid.bytes, SESSION_ID_LEN);
	if (k->mode != WRAP_NONE) {
		out->packet_id = reader_u32(&pid);
		out->time = reader_u32(&pid);
	}
	return DROP_NONE;
}

static void seal_auth(const struct wrap_keys *k, const struct parts *p, struct writer *out)
{
	uint8_t tag[TAG_MAX];
	out->is_failed |= !make_tag(k, &k->seal, p, tag);
	writer_bytes(out, tag, k->tag_len);
	writer_view(out, p->pid);
	writer_view(out, p->body);
}

static void seal_crypt(const struct wrap_keys *k, const struct parts *p, struct writer *out)
{
	uint8_t tag[TAG_MAX];
	out->is_failed |= !make_tag(k, &k->seal, p, tag);
	writer_view(out, p->pid);
	writer_bytes(out, tag, k->tag_len);
	uint8_t *ciphertext = writer_reserve(out, p->body.len);
	if (ciphertext)
		out->is_failed |= !ctr(k, &k->seal, tag, p->body, ciphertext);
}

void wrap_seal(const struct wrap_keys *k, enum opcode op, uint8_t key_id,
	       const struct session_id *sid, uint32_t packet_id, uint32_t time, struct view body,
	       struct writer *out)
{
	uint8_t head[CONTROL_HEAD_LEN], pid[PID_LEN];
	struct writer h = writer_init(head, sizeof(head));
	writer_u8(&h, packet_first_byte(op, key_id));
	writer_bytes(&h, sid->bytes, SESSION_ID_LEN);
	struct writer w = writer_init(pid, sizeof(pid));
	writer_u32(&w, packet_id);
	writer_u32(&w, time);
	const struct parts parts = {writer_done(&h), writer_done(&w), body};
	writer_view(out, parts.head);
	switch (k->mode) {
	case WRAP_NONE:
		writer_view(out, body);
		break;
	case WRAP_TLS_AUTH:
		seal_auth(k, &parts, out);
		break;
	case WRAP_TLS_CRYPT:
		seal_crypt(k, &parts, out);
		break;
	}
}

void wrap_state_init(struct wrap_state *s, uint32_t replay_window, uint32_t replay_time_s)
{
	/* Control packets reorder by a few places at most: one word serves any configured window.
	 */
	uint32_t window = replay_window > 64 ? 64 : replay_window;
	*s = (struct wrap_state){0};
	replay_init(&s->recv, window, replay_time_s, NULL);
}

bool wrap_state_next(struct wrap_state *s, uint32_t wall_s, uint32_t *packet_id, uint32_t *time)
{
	if (s->send_time == 0)
		s->send_time = wall_s;
	if (s->send_id == UINT32_MAX) {
		if (wall_s <= s->send_time)
			return false;
		s->send_time = wall_s;
		s->send_id = 0;
	}
	*packet_id = ++s->send_id;
	*time = s->send_time;
	return true;
}

enum drop wrap_state_accept(struct wrap_state *s, uint32_t packet_id, uint32_t time,
			    uint64_t now_ms)
{
	if (packet_id == 0 || time < s->recv_time)
		return DROP_CONTROL_REPLAY;
	if (time > s->recv_time) {
		/* A strictly sequential peer restarts at 1, if it restarts. */
		bool is_restart = s->recv_time != 0;
		if (s->recv.window == 0 && is_restart && packet_id != 1)
			return DROP_CONTROL_REPLAY;
		s->recv_time = time;
		replay_init(&s->recv, s->recv.window, s->recv.time_s, NULL);
	}
	return replay_commit(&s->recv, packet_id, now_ms) == DROP_NONE ? DROP_NONE
								       : DROP_CONTROL_REPLAY;
}
