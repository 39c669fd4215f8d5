/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and key method 2 of the primary key (wire.md, section 6). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "server/control/key_exchange.h"
#include "server/control/session.h"
#include "server/control/session_state.h"

#define AUTH_FAILED_TEXT_MAX 256
#define NO_CIPHER_TEXT	     "Data channel cipher negotiation failed (no shared cipher)"
#define NO_PRF_TEXT                                                                                \
	"the server has no MD5 and SHA-1: a client that can export TLS keys (2.6) is needed"

/* --- failure --- */

static void tell_tls_lines(struct session *s, struct tls *t)
{
	for (size_t i = 0; i < tls_log_count(t); i++) {
		int level;
		const char *text = tls_log_line(t, i, &level);
		session_say(s, level, "%s", text);
	}
}

/* The lines that tools look for, in stock's order. */
static void fail_tls(struct session *s, const char *what)
{
	struct tls *t = s->primary->tls;
	bool is_refused = t && tls_is_refused(t);
	if (t) {
		tell_tls_lines(s, t);
		if (tls_error_text(t)[0])
			session_say(s, LOG_WARN, "OpenSSL: %s:", tls_error_text(t));
	}
	if (what)
		session_say(s, LOG_WARN, "TLS Error: %s", what);
	session_say(s, LOG_WARN, "TLS_ERROR: BIO read tls_read_plaintext error");
	session_say(s, LOG_WARN, "TLS Error: TLS object -> incoming plaintext read error");
	session_say(s, LOG_WARN, "TLS Error: TLS handshake failed");
	session_fail_key(s, is_refused ? SESSION_REASON_CERT_REJECTED : SESSION_REASON_TLS_ERROR);
}

void session_refuse(struct session *s, enum session_reason reason, const char *text,
		    uint64_t now_ms)
{
	char command[sizeof("AUTH_FAILED,") + AUTH_FAILED_TEXT_MAX] = "AUTH_FAILED";
	char printable[AUTH_FAILED_TEXT_MAX + 1];
	if (text && text[0])
		snprintf(command, sizeof(command), "AUTH_FAILED,%s",
			 log_printable(text, strlen(text), printable, sizeof(printable)));
	s->primary->verdict = KEY_VERDICT_REFUSED;
	/* The old key was for who has just failed (security.md, A-9). */
	session_retire_lame(s);
	if (session_command(s, command) == -ENOMEM)
		session_die(s, reason);
	session_leave(s, reason, now_ms + LEAVING_GRACE_MS);
}

/* --- our message --- */

static void own_options(const struct session *s, char *out)
{
	const struct session_settings *settings = s->settings;
	options_string(
		&(struct options_facts){
			.is_server = s->is_server,
			.tun_mtu = settings->tun_mtu,
			.key_direction = settings->key_direction,
			.has_tls_auth = wrap_keys_mode(settings->wrap) == WRAP_TLS_AUTH,
			.cipher = settings->cipher,
			.data_ciphers = settings->data_ciphers,
		},
		out);
}

static struct view text_view(const char *text)
{
	return text ? (struct view){(const uint8_t *)text, strlen(text)} : (struct view){0};
}

/* Draw our random bytes, and remember them where the derivation wants them. */
static int make_randoms(struct session *s, struct key_exchange *out)
{
	struct prf_input *p = s->primary->secrets;
	uint8_t *random1 = s->is_server ? p->server_random1 : p->client_random1;
	uint8_t *random2 = s->is_server ? p->server_random2 : p->client_random2;
	random_fn random = s->settings->random;
	if (random(random1, KEY_RANDOM_LEN) != 0 || random(random2, KEY_RANDOM_LEN) != 0)
		return -EIO;
	if (!s->is_server && random(p->pre_master, PRE_MASTER_LEN) != 0)
		return -EIO;
	memcpy(out->random1, random1, KEY_RANDOM_LEN);
	memcpy(out->random2, random2, KEY_RANDOM_LEN);
	memcpy(out->pre_master, p->pre_master, PRE_MASTER_LEN);
	return 0;
}

static void send_exchange(struct session *s)
{
	struct key_state *k = s->primary;
	struct key_exchange mine = {0};
	WIPE_ON_EXIT(mine);
	uint8_t message[KEY_EXCHANGE_MAX];
	WIPE_ON_EXIT(message);
	char options[OPTIONS_STRING_MAX], peer_info[1024];
	if (make_randoms(s, &mine) != 0) {
		session_die(s, SESSION_REASON_LOCAL);
		return;
	}
	own_options(s, options);
	mine.options = text_view(options);
	if (!s->is_server) {
		mine.username = text_view(s->settings->username);
		mine.password = text_view(s->settings->password);
		mine.peer_info =
			text_view(session_client_peer_info(s, peer_info, sizeof(peer_info)));
	}
	struct writer w = writer_init(message, sizeof(message));
	key_exchange_write(&w, !s->is_server, &mine);
	if (!writer_ok(&w) || tls_write(k->tls, writer_done(&w)) != TLS_OK) {
		fail_tls(s, NULL);
		return;
	}
	k->has_sent = true;
}

/* --- their message --- */

static void remember_theirs(struct session *s, const struct key_exchange *theirs)
{
	struct prf_input *p = s->primary->secrets;
	uint8_t *random1 = s->is_server ? p->client_random1 : p->server_random1;
	uint8_t *random2 = s->is_server ? p->client_random2 : p->server_random2;
	memcpy(random1, theirs->random1, KEY_RANDOM_LEN);
	memcpy(random2, theirs->random2, KEY_RANDOM_LEN);
	if (s->is_server)
		memcpy(p->pre_master, theirs->pre_master, PRE_MASTER_LEN);
}

/* What the first exchange says holds for the whole session. */
static int negotiate(struct session *s, const struct key_exchange *theirs)
{
	const struct session_settings *settings = s->settings;
	int err = client_info_parse((const char *)theirs->peer_info.data, theirs->peer_info.len,
				    (const char *)theirs->options.data, theirs->options.len,
				    &s->client);
	if (err)
		return err;
	for (size_t i = 0; i < s->client.line_count; i++)
		session_say(s, LOG_NOTE, "peer info: %s", s->client.lines[i]);
	uint32_t proto = s->client.iv_proto;
	s->uses_peer_id = proto & IV_PROTO_DATA_V2;
	if (proto & IV_PROTO_TLS_KEY_EXPORT)
		s->flags |= SESSION_FLAG_TLS_EKM;
	if (proto & IV_PROTO_CC_EXIT_NOTIFY)
		s->flags |= SESSION_FLAG_CC_EXIT;
	if (proto & IV_PROTO_DYN_TLS_CRYPT)
		s->flags |= SESSION_FLAG_DYN_TLS_CRYPT;
	s->cipher = negotiate_cipher(&s->client, settings->data_ciphers,
				     settings->data_ciphers_fallback);
	s->identity = *tls_identity(s->primary->tls);
	return 0;
}

/* Nobody may become somebody else within a session (security.md, F-6). */
static bool is_same_peer(struct session *s)
{
	const struct identity *now = tls_identity(s->primary->tls);
	if (strcmp(now->common_name, s->identity.common_name) != 0) {
		session_say(s, LOG_WARN,
			    "TLS Auth Error: TLS object CN attempted to change from '%s' to '%s' "
			    "-- tunnel disabled",
			    s->identity.common_name, now->common_name);
		return false;
	}
	if (!identity_equal(now, &s->identity)) {
		session_say(s, LOG_WARN,
			    "TLS Auth Error: TLS object CN=%s client-provided SSL certs "
			    "unexpectedly changed during mid-session reauth",
			    now->common_name);
		return false;
	}
	if (s->username && strcmp(s->primary->username, s->username) != 0) {
		session_say(s, LOG_WARN,
			    "TLS Auth Error: username attempted to change from '%s' to '%s' -- "
			    "tunnel disabled",
			    s->username, s->primary->username);
		return false;
	}
	return true;
}

static void say_no_cipher(struct session *s)
{
	const struct client_info *c = &s->client;
	session_say(s, LOG_NOTE,
		    "PUSH: No common cipher between server and client. Server data-ciphers: '%s', "
		    "client supported ciphers '%s'",
		    s->settings->data_ciphers, c->has_iv_ciphers ? c->iv_ciphers : c->occ_cipher);
}

static void judge_client(struct session *s, uint64_t now_ms)
{
	bool is_first = s->primary->key_id == 0;
	if (is_first && s->cipher == CIPHER_NONE)
		say_no_cipher(s);
	if (s->settings->is_client_cert_required && !s->identity.has_certificate)
		session_refuse(s, SESSION_REASON_CERT_REJECTED, NULL, now_ms);
	else if (!is_first && !is_same_peer(s))
		session_refuse(s, SESSION_REASON_AUTH_FAILED, NULL, now_ms);
	else if (is_first && s->cipher == CIPHER_NONE)
		session_refuse(s, SESSION_REASON_NO_CIPHER, NO_CIPHER_TEXT, now_ms);
	else if (!(s->flags & SESSION_FLAG_TLS_EKM) && !prf_is_available())
		session_refuse(s, SESSION_REASON_NO_CIPHER, NO_PRF_TEXT, now_ms);
	else
		session_tell(s, &(struct session_event){
					.kind = SESSION_EVENT_AUTHORIZE,
					.key_id = s->primary->key_id,
				});
}

/* The server's message to us as a client needs no verdict: its certificate was the proof. */
static void judge_server(struct session *s, uint64_t now_ms)
{
	if (s->primary->key_id == 0)
		s->identity = *tls_identity(s->primary->tls);
	else if (!is_same_peer(s))
		session_leave(s, SESSION_REASON_AUTH_FAILED, now_ms);
	s->primary->verdict = KEY_VERDICT_ALLOWED;
}

static void read_exchange(struct session *s, struct view message, uint64_t now_ms)
{
	struct key_state *k = s->primary;
	struct key_exchange theirs;
	WIPE_ON_EXIT(theirs);
	if (!key_exchange_read(message, s->is_server, &theirs)) {
		fail_tls(s, "malformed key exchange message");
		return;
	}
	remember_theirs(s, &theirs);
	k->username = key_exchange_text(theirs.username);
	k->password = key_exchange_text(theirs.password);
	k->has_got = true;
	if (!k->username || !k->password ||
	    (s->is_server && k->key_id == 0 && negotiate(s, &theirs) != 0)) {
		session_die(s, SESSION_REASON_LOCAL);
		return;
	}
	/* Once a goodbye is said no verdict is asked for. */
	if (session_is_leaving(s))
		return;
	if (s->is_server)
		judge_client(s, now_ms);
	else
		judge_server(s, now_ms);
}

/* --- TLS --- */

bool session_may_start_tls(const struct session *s)
{
	const struct key_state *k = s->primary;
	struct view reset;
	bool has_reset = k->reliable.next_recv > 0 || reliable_peek(&k->reliable, &reset);
	return !s->is_server && !k->tls && !k->is_failed && has_reset &&
	       reliable_is_all_acked(&k->reliable);
}

/* TLS objects are made for the first byte, so that a half-open session costs none. */
static bool ensure_tls(struct session *s)
{
	struct key_state *k = s->primary;
	if (k->tls)
		return true;
	k->secrets = secret_alloc(sizeof(*k->secrets));
	if (k->secrets && tls_new(s->tls, &k->tls) == 0)
		return true;
	session_die(s, SESSION_REASON_LOCAL);
	return false;
}

/* Messages in order, to TLS. What it does not take up yet waits in the window, which makes the peer
 * wait; more than a record is always in its hands. */
static bool feed(struct session *s)
{
	struct key_state *k = s->primary;
	struct view v;
	while (reliable_peek(&k->reliable, &v)) {
		if (k->tls && tls_input_left(k->tls) > TLS_INPUT_MAX) {
			s->needs_advance = true;
			return true;
		}
		if (v.len > 0 && !ensure_tls(s))
			return false;
		if (v.len > 0 && !tls_input(k->tls, v)) {
			fail_tls(s, NULL);
			return false;
		}
		reliable_consume(&k->reliable);
	}
	return !session_may_start_tls(s) || ensure_tls(s);
}

static bool handshake(struct session *s, uint32_t wall_s)
{
	struct tls *t = s->primary->tls;
	if (tls_is_established(t))
		return true;
	tls_set_time(t, wall_s);
	enum tls_result result = tls_handshake(t);
	if (result == TLS_ERROR)
		fail_tls(s, NULL);
	if (result != TLS_OK)
		return false;
	tell_tls_lines(s, t);
	tls_summary(t, s->tls_summary, sizeof(s->tls_summary));
	tls_settle(t);
	return true;
}

/* One decrypted message. Returns false if there is none, or the key is lost. */
static bool read_message(struct session *s, uint64_t now_ms)
{
	struct key_state *k = s->primary;
	uint8_t message[KEY_EXCHANGE_MAX];
	size_t len = 0;
	enum tls_result result = tls_read(k->tls, message, sizeof(message), &len);
	if (result == TLS_ERROR)
		fail_tls(s, NULL);
	if (result != TLS_OK)
		return false;
	if (k->has_got)
		session_commands_read(s, (struct view){message, len}, now_ms);
	else
		read_exchange(s, (struct view){message, len}, now_ms);
	secret_wipe(message, len);
	return !s->is_dead && !s->primary->is_failed;
}

/* The first answer goes without waiting for the verdict. A later one waits: with it the peer begins
 * to use the key, which is handed out only after the verdict. */
static bool is_answer_due(const struct session *s)
{
	const struct key_state *k = s->primary;
	return s->is_server && k->has_got && !k->has_sent && !k->is_failed &&
	       (k->key_id == 0 || k->verdict != KEY_VERDICT_NONE);
}

void session_exchange_advance(struct session *s, uint64_t now_ms, uint32_t wall_s)
{
	struct key_state *k = s->primary;
	if (k->is_failed || !feed(s) || !k->tls || !handshake(s, wall_s))
		return;
	if (!s->is_server && !k->has_sent)
		send_exchange(s);
	unsigned n = 0;
	while (!k->is_failed && n < TLS_READS_MAX && read_message(s, now_ms))
		n++;
	if (n == TLS_READS_MAX)
		s->needs_advance = true;
	if (is_answer_due(s))
		send_exchange(s);
}
