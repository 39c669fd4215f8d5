/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/session.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/static_key.h"
#include "server/control/session_state.h"

/* --- life --- */

static int random_session_id(const struct session_settings *settings, struct session_id *out)
{
	int err = settings->random(out->bytes, sizeof(out->bytes));
	/* All zero means "undefined" on the wire. */
	if (!err && session_id_is_zero(out))
		out->bytes[0] = 1;
	return err;
}

/* The server's reset went without state, with packet-id 1; the peer's is what brought it here. */
static int start_server(struct session *s, const struct session_start *start)
{
	s->own_sid = start->own_sid;
	s->peer_sid = start->peer_sid;
	s->has_peer_sid = true;
	s->wrap.send_id = 1;
	return 0;
}

static int start_client(struct session *s)
{
	int err = random_session_id(s->settings, &s->own_sid);
	return err ? err
		   : reliable_queue(&s->primary->reliable, OPCODE_HARD_RESET_CLIENT_V2,
				    (struct view){0});
}

static int session_init(struct session *s, const struct session_start *start)
{
	const struct session_settings *settings = s->settings;
	wrap_state_init(&s->wrap, settings->replay_window, settings->replay_time_s);
	const struct key_state_start key = {
		.first_send = s->is_server ? 1 : 0,
		.first_recv = s->is_server ? 1 : 0,
		.now_ms = start->now_ms,
		.timeout_ms = UINT64_C(1000) * settings->tls_timeout_s,
	};
	int err = key_state_new(&key, &s->primary);
	if (err)
		return err;
	return s->is_server ? start_server(s, start) : start_client(s);
}

int session_new(const struct session_settings *settings, struct tls_context *tls,
		const struct session_start *start, struct session **out)
{
	if (wrap_keys_mode(settings->wrap) != WRAP_NONE && !settings->wrap_key)
		return -EINVAL;
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->settings = settings;
	s->tls = tls_context_ref(tls);
	s->is_server = settings->role == SESSION_SERVER;
	s->is_ipv6 = settings->is_ipv6 || start->is_ipv6;
	s->peer_id = PEER_ID_NONE;
	s->close_at_ms = NEVER;
	s->push_request_ms = NEVER;
	push_received_init(&s->received);
	int err = session_init(s, start);
	if (err) {
		session_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	key_state_free(s->primary);
	wrap_keys_free(s->dynamic_keys);
	client_info_fini(&s->client);
	push_reply_fini(&s->push);
	commands_fini(&s->commands);
	session_events_fini(&s->events);
	free(s->username);
	tls_context_unref(s->tls);
	free(s);
}

/* --- events --- */

void session_tell(struct session *s, const struct session_event *e)
{
	if (!session_events_push(&s->events, e))
		session_die(s, SESSION_REASON_LOCAL);
}

void session_say(struct session *s, int level, const char *fmt, ...)
{
	char text[COMMAND_MAX + 256], printable[sizeof(text)];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	session_tell(
		s, &(struct session_event){
			   .kind = SESSION_EVENT_LOG,
			   .log_level = level,
			   .text = log_printable(text, strlen(text), printable, sizeof(printable)),
		   });
}

/* What follows from the mark, between two calls of the owner. */
static void bury(struct session *s)
{
	if (s->is_dead && !s->primary->is_failed)
		key_state_fail(s->primary, session_payload_max(s));
}

static bool has_last_words(const struct session *s)
{
	return reliable_deadline(&s->primary->reliable) != NEVER;
}

bool session_next_event(struct session *s, struct session_event *out)
{
	bury(s);
	if (session_events_next(&s->events, out))
		return true;
	if (!s->is_dead || s->is_closed_told || has_last_words(s))
		return false;
	s->is_closed_told = true;
	*out = (struct session_event){.kind = SESSION_EVENT_CLOSED, .reason = s->reason};
	return true;
}

/* --- ends --- */

/* Only a mark: whoever calls may be in the middle of the primary key's TLS. */
void session_die(struct session *s, enum session_reason reason)
{
	if (s->reason == SESSION_REASON_NONE)
		s->reason = reason;
	s->is_dead = true;
}

bool session_is_leaving(const struct session *s)
{
	return s->close_at_ms != NEVER;
}

void session_leave(struct session *s, enum session_reason reason, uint64_t at_ms)
{
	if (s->reason == SESSION_REASON_NONE)
		s->reason = reason;
	if (at_ms < s->close_at_ms)
		s->close_at_ms = at_ms;
	s->needs_advance = true;
}

void session_close(struct session *s, enum session_reason reason, uint64_t now_ms,
		   uint32_t linger_ms)
{
	if (s->is_dead)
		return;
	if (!s->is_server && (s->flags & SESSION_FLAG_CC_EXIT) && !session_is_leaving(s))
		/* Without memory the peer finds out by its ping-restart. */
		(void)!session_command(s, "EXIT");
	session_leave(s, reason, now_ms + linger_ms);
	s->is_closed_when_flushed = true;
}

/* Commands that cannot go any more do not keep a session alive. */
static bool is_flushed(const struct session *s)
{
	const struct key_state *k = s->primary;
	return k->is_failed ||
	       (key_state_is_flushed(k) && !reliable_has_acks(&k->reliable) && !s->commands.first);
}

static bool is_time_to_close(const struct session *s, uint64_t now_ms)
{
	return session_is_leaving(s) &&
	       (now_ms >= s->close_at_ms || (s->is_closed_when_flushed && is_flushed(s)));
}

/* A first key that fails ends the session. A later one leaves the old data keys working; and a key
 * whose data keys are out loses only its control channel, which a renegotiation brings back. */
void session_fail_key(struct session *s, enum session_reason reason)
{
	struct key_state *k = s->primary;
	key_state_fail(k, session_payload_max(s));
	commands_rewind(&s->commands);
	if (!k->is_generated && !s->lame.is_used) {
		session_die(s, reason);
		return;
	}
	if (k->is_generated) {
		s->wants_renegotiation = true;
	} else if (k->is_handed_out) {
		k->is_handed_out = false;
		session_tell(s, &(struct session_event){
					.kind = SESSION_EVENT_KEY_RETIRED,
					.key_id = k->key_id,
				});
	}
	session_tell(s, &(struct session_event){
				.kind = SESSION_EVENT_RENEGOTIATION,
				.reason = reason,
				.key_id = k->key_id,
			});
}

/* --- running --- */

bool session_is_expensive(const struct session *s)
{
	const struct key_state *k = s->primary;
	struct view v;
	if (s->is_dead || k->is_failed || (k->tls && tls_is_established(k->tls)))
		return false;
	return (reliable_peek(&k->reliable, &v) && v.len > 0) || session_may_start_tls(s);
}

/* One step after the other, as long as none of them ends the session. */
static void advance(struct session *s, uint64_t now_ms, uint32_t wall_s)
{
	session_keys_expire(s, now_ms);
	if (!s->is_dead)
		session_exchange_advance(s, now_ms, wall_s);
	if (!s->is_dead)
		session_keys_advance(s, now_ms);
	if (!s->is_dead && !s->is_server)
		session_client_advance(s, now_ms);
	if (!s->is_dead)
		session_commands_advance(s, now_ms);
	if (!s->is_dead && key_state_drain(s->primary, session_payload_max(s)) != 0)
		session_die(s, SESSION_REASON_LOCAL);
	if (!s->is_dead && is_time_to_close(s, now_ms))
		session_die(s, s->reason);
}

void session_advance(struct session *s, uint64_t now_ms, uint32_t wall_s)
{
	s->needs_advance = false;
	if (!s->is_dead)
		advance(s, now_ms, wall_s);
	bury(s);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t session_deadline(const struct session *s)
{
	if (s->is_closed_told)
		return NEVER;
	if (s->is_dead || s->needs_advance || session_commands_are_due(s))
		return 0;
	if (!s->primary->is_failed && reliable_has_acks(&s->primary->reliable))
		return 0;
	if (is_time_to_close(s, 0))
		return 0;
	uint64_t at = earlier(s->close_at_ms, reliable_deadline(&s->primary->reliable));
	at = earlier(at, session_keys_deadline(s));
	return s->is_server ? at : earlier(at, session_client_deadline(s));
}

/* --- facts --- */

const char *session_common_name(const struct session *s)
{
	return s->identity.common_name[0] ? s->identity.common_name : "UNDEF";
}

const char *session_username(const struct session *s)
{
	const struct key_state *k = s->primary;
	if (k->username)
		return k->username;
	return s->username ? s->username : "";
}

const char *session_password(const struct session *s)
{
	return s->primary->password ? s->primary->password : "";
}

const struct identity *session_identity(const struct session *s)
{
	return &s->identity;
}

const struct client_info *session_client_info(const struct session *s)
{
	return &s->client;
}

enum cipher session_cipher(const struct session *s)
{
	return s->cipher;
}

bool session_uses_peer_id(const struct session *s)
{
	return s->uses_peer_id;
}

uint32_t session_peer_id(const struct session *s)
{
	return s->peer_id;
}

unsigned session_flags(const struct session *s)
{
	return s->flags;
}

const struct session_id *session_own_sid(const struct session *s)
{
	return &s->own_sid;
}

const struct session_id *session_peer_sid(const struct session *s)
{
	return &s->peer_sid;
}

bool session_is_established(const struct session *s)
{
	return s->is_established;
}

const char *session_tls_summary(const struct session *s)
{
	return s->tls_summary;
}

/* --- what the owner asks for --- */

/* A verdict for another key, a second one, or one that comes after the end has no effect. */
void session_authorize(struct session *s, uint8_t key_id, bool is_ok, const char *reason,
		       uint64_t now_ms)
{
	struct key_state *k = s->primary;
	if (s->is_dead || session_is_leaving(s) || k->is_failed || k->key_id != key_id ||
	    !k->has_got || k->verdict != KEY_VERDICT_NONE)
		return;
	s->needs_advance = true;
	key_state_forget_password(k);
	if (!is_ok) {
		session_refuse(s, SESSION_REASON_AUTH_FAILED, reason, now_ms);
		return;
	}
	if (!s->username) {
		s->username = strdup(k->username);
		if (!s->username) {
			session_die(s, SESSION_REASON_LOCAL);
			return;
		}
	}
	k->verdict = KEY_VERDICT_ALLOWED;
}

int session_set_push(struct session *s, const struct push_plan *plan)
{
	if (!s->is_server || s->cipher == CIPHER_NONE)
		return -EINVAL;
	const struct push_facts facts = {
		.has_peer_id = s->uses_peer_id,
		.peer_id = plan->peer_id,
		.is_cipher_pushed = s->client.iv_ncp >= 2 || s->client.has_iv_ciphers,
		.cipher = s->cipher,
		.has_tls_ekm = s->flags & SESSION_FLAG_TLS_EKM,
		.has_cc_exit = s->flags & SESSION_FLAG_CC_EXIT,
		.has_dyn_tls_crypt = s->flags & SESSION_FLAG_DYN_TLS_CRYPT,
		.tun_mtu = s->client.iv_mtu ? s->settings->tun_mtu : 0,
	};
	struct push_reply reply;
	int err = push_build(plan, &facts, &reply);
	if (err)
		return err;
	push_reply_fini(&s->push);
	s->push = reply;
	s->peer_id = s->uses_peer_id ? plan->peer_id : PEER_ID_NONE;
	s->has_push = true;
	s->needs_advance = true;
	return 0;
}

int session_command(struct session *s, const char *text)
{
	if (strlen(text) >= COMMAND_MAX)
		return -EMSGSIZE;
	int err = commands_add(&s->commands, text, false, COMMANDS_WAITING_MAX);
	if (!err)
		s->needs_advance = true;
	return err;
}

void session_renegotiate(struct session *s)
{
	if (!s->primary->is_generated || s->is_dead || session_is_leaving(s))
		return;
	s->wants_renegotiation = true;
	s->needs_advance = true;
}

/* A TLS object borrows the context that it was made of. The primary key's is the only one, so
 * without it nobody looks at the old context any more. */
void session_use_tls(struct session *s, struct tls_context *tls)
{
	if (s->tls == tls || s->primary->tls)
		return;
	tls_context_unref(s->tls);
	s->tls = tls_context_ref(tls);
}
