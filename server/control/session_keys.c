/* SPDX-License-Identifier: Apache-2.0 */
/* Data keys, dynamic tls-crypt, renegotiation (wire.md, sections 7 and 12). */

#include <errno.h>
#include <string.h>

#include "crypto/secret.h"
#include "crypto/static_key.h"
#include "server/control/session.h"
#include "server/control/session_state.h"

#define LABEL_DATA_KEYS		  "EXPORTER-OpenVPN-datakeys"
#define LABEL_DYN_CRYPT		  "EXPORTER-OpenVPN-dynamic-tls-crypt"
#define KEY_ID_RENEGOTIATED_FIRST 1
#define KEY_ID_LAST		  7
#define KEY_REST_MS		  5000 /* packets on the way, and a soft reset that is repeated */

/* --- data keys --- */

static int derive(struct session *s, uint8_t key2[KEY2_LEN])
{
	struct key_state *k = s->primary;
	if (s->flags & SESSION_FLAG_TLS_EKM)
		return tls_export(k->tls, LABEL_DATA_KEYS, key2, KEY2_LEN);
	k->secrets->client_sid = s->is_server ? s->peer_sid : s->own_sid;
	k->secrets->server_sid = s->is_server ? s->own_sid : s->peer_sid;
	return prf_key2(k->secrets, key2);
}

/* What was exported, XORed with the configured key if there is one, wraps all control packets of
 * later key-ids. */
static int make_dynamic_keys(struct session *s)
{
	struct static_key key;
	WIPE_ON_EXIT(key);
	int err = tls_export(s->primary->tls, LABEL_DYN_CRYPT, key.bytes, sizeof(key.bytes));
	if (err)
		return err;
	if (wrap_keys_mode(s->settings->wrap) != WRAP_NONE)
		for (size_t i = 0; i < sizeof(key.bytes); i++)
			key.bytes[i] ^= s->settings->wrap_key->bytes[i];
	err = wrap_keys_new(WRAP_TLS_CRYPT, &key, s->is_server ? KEY_DIRECTION_0 : KEY_DIRECTION_1,
			    NULL, &s->dynamic_keys);
	if (!err)
		wrap_state_init(&s->dynamic_wrap, s->settings->replay_window,
				s->settings->replay_time_s);
	return err;
}

/* A renegotiated key rests for a while, so that the peer has it too when we send with it. */
static uint64_t seal_from(const struct session *s, uint64_t now_ms)
{
	const struct session_settings *settings = s->settings;
	const struct key_state *k = s->primary;
	if (k->key_id == 0)
		return now_ms;
	uint64_t rest_ms = UINT64_C(1000) * settings->hand_window_s;
	uint64_t half_ms = UINT64_C(500) * settings->reneg_sec_max;
	if (half_ms && half_ms < rest_ms)
		rest_ms = half_ms;
	return k->start_ms + rest_ms;
}

/* A random moment between min and max keeps clients that came together from renegotiating
 * together. */
static uint64_t renegotiate_at(const struct session *s, uint64_t now_ms)
{
	uint32_t max = s->settings->reneg_sec_max, min = s->settings->reneg_sec_min, random = 0;
	if (max == 0)
		return NEVER;
	uint64_t at_ms = UINT64_C(1000) * max;
	if (min < max && s->settings->random(&random, sizeof(random)) == 0)
		at_ms -= UINT64_C(1000) * (max - min) * random / UINT32_MAX;
	return now_ms + at_ms;
}

/* Returns false after a failure, which it has told. */
static bool hand_out(struct session *s, uint64_t seal_from_ms)
{
	struct key_state *k = s->primary;
	uint8_t key2[KEY2_LEN];
	WIPE_ON_EXIT(key2);
	struct session_event e = {.kind = SESSION_EVENT_KEY, .key_id = k->key_id};
	WIPE_ON_EXIT(e);
	int err = derive(s, key2);
	if (!err && k->key_id == 0 && (s->flags & SESSION_FLAG_DYN_TLS_CRYPT))
		err = make_dynamic_keys(s);
	if (err) {
		session_say(s, LOG_WARN, "TLS Error: generation of data channel keys failed: %s",
			    strerror(-err));
		session_fail_key(s, SESSION_REASON_TLS_ERROR);
		return false;
	}
	prf_slice(key2, s->cipher, k->key_id, s->is_server, &e.key);
	e.seal_from_ms = seal_from_ms;
	session_tell(s, &e);
	key_state_forget_secrets(k);
	k->is_handed_out = true;
	return true;
}

static void tell_seal_from(struct session *s, uint8_t key_id, uint64_t seal_from_ms)
{
	session_tell(s, &(struct session_event){
				.kind = SESSION_EVENT_KEY_SEAL_FROM,
				.key_id = key_id,
				.seal_from_ms = seal_from_ms,
			});
}

static void generate(struct session *s, uint64_t now_ms)
{
	struct key_state *k = s->primary;
	if (k->is_handed_out)
		tell_seal_from(s, k->key_id, seal_from(s, now_ms));
	else if (!hand_out(s, seal_from(s, now_ms)))
		return;
	k->is_generated = true;
	k->renegotiate_ms = renegotiate_at(s, now_ms);
	s->is_established = true;
}

/* A client seals with a renegotiated key as soon as it has our exchange, while its acknowledgment
 * takes another way than its data: so the key is there to open before the exchange goes out, and is
 * sealed with only after the acknowledgment. */
static bool is_early_key_due(const struct session *s)
{
	const struct key_state *k = s->primary;
	return s->is_server && k->key_id > 0 && key_state_is_open(k) && !k->is_handed_out &&
	       k->verdict == KEY_VERDICT_ALLOWED && !session_is_leaving(s);
}

void session_keys_advance(struct session *s, uint64_t now_ms)
{
	struct key_state *k = s->primary;
	if (!k->is_active && key_state_is_open(k) && key_state_is_flushed(k)) {
		k->is_active = true;
		if (!s->is_server && !s->has_push)
			s->push_request_ms = now_ms + PUSH_REQUEST_FIRST_MS;
	}
	if (is_early_key_due(s) && !hand_out(s, NEVER))
		return;
	if (k->is_active && !k->is_generated && !k->is_failed &&
	    k->verdict == KEY_VERDICT_ALLOWED && s->has_push && !session_is_leaving(s))
		generate(s, now_ms);
}

/* --- generations --- */

uint8_t session_next_key_id(const struct session *s)
{
	uint8_t now = s->primary->key_id;
	return now == KEY_ID_LAST ? KEY_ID_RENEGOTIATED_FIRST : (uint8_t)(now + 1);
}

bool session_may_renegotiate(const struct session *s, uint64_t now_ms)
{
	return s->primary->is_generated && !session_is_leaving(s) &&
	       (s->renegotiated_ms == 0 || now_ms >= s->renegotiated_ms + RENEGOTIATION_SPACING_MS);
}

static void retire(struct session *s, struct lame_duck *key)
{
	if (!key->is_used)
		return;
	key->is_used = false;
	session_tell(s, &(struct session_event){
				.kind = SESSION_EVENT_KEY_RETIRED,
				.key_id = key->key_id,
			});
}

void session_retire_lame(struct session *s)
{
	retire(s, &s->resting);
	retire(s, &s->lame);
}

/* The peer drops the lame duck when it sees our reset, or has done so: nothing more is sealed with
 * it. What the peer had sealed before is still on its way. */
static void rest_lame(struct session *s, uint64_t now_ms)
{
	retire(s, &s->resting);
	if (!s->lame.is_used)
		return;
	s->resting = s->lame;
	s->resting.must_die_ms = now_ms + KEY_REST_MS;
	s->lame.is_used = false;
	tell_seal_from(s, s->resting.key_id, NEVER);
}

void session_start_generation(struct session *s, bool is_initiator, uint64_t now_ms)
{
	struct key_state *k;
	const struct key_state_start start = {
		.key_id = session_next_key_id(s),
		.now_ms = now_ms,
		.timeout_ms = UINT64_C(1000) * s->settings->tls_timeout_s,
	};
	if (key_state_new(&start, &k) != 0) {
		session_die(s, SESSION_REASON_LOCAL);
		return;
	}
	rest_lame(s, now_ms);
	commands_rewind(&s->commands);
	/* Of the old generation only the data keys, which the owner has, live on. Control packets
	 * of its key-id are dropped by either side from now on. */
	s->lame = (struct lame_duck){
		.is_used = true,
		.key_id = s->primary->key_id,
		.must_die_ms = now_ms + UINT64_C(1000) * s->settings->tran_window_s,
	};
	key_state_free(s->primary);
	s->primary = k;
	s->wants_renegotiation = false;
	s->renegotiated_ms = now_ms;
	s->needs_advance = true;
	session_tell(s, &(struct session_event){
				.kind = SESSION_EVENT_RENEGOTIATION,
				.key_id = k->key_id,
				.is_initiator = is_initiator,
			});
	if (reliable_queue(&k->reliable, OPCODE_SOFT_RESET_V1, (struct view){0}) != 0)
		session_die(s, SESSION_REASON_LOCAL);
}

/* --- deadlines --- */

static uint64_t hand_deadline(const struct session *s)
{
	const struct key_state *k = s->primary;
	if (k->is_generated || k->is_failed || session_is_leaving(s))
		return NEVER;
	return k->start_ms + UINT64_C(1000) * s->settings->hand_window_s;
}

static uint64_t renegotiation_deadline(const struct session *s)
{
	const struct key_state *k = s->primary;
	if (!k->is_generated || session_is_leaving(s))
		return NEVER;
	uint64_t earliest = s->renegotiated_ms ? s->renegotiated_ms + RENEGOTIATION_SPACING_MS : 0;
	uint64_t due = s->wants_renegotiation ? 0 : k->renegotiate_ms;
	return due > earliest ? due : earliest;
}

static uint64_t retire_deadline(const struct lame_duck *key)
{
	return key->is_used ? key->must_die_ms : NEVER;
}

uint64_t session_keys_deadline(const struct session *s)
{
	const uint64_t all[] = {hand_deadline(s), renegotiation_deadline(s),
				retire_deadline(&s->lame), retire_deadline(&s->resting)};
	uint64_t at = NEVER;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] < at)
			at = all[i];
	return at;
}

static void time_out(struct session *s)
{
	session_say(s, LOG_WARN,
		    "TLS Error: TLS key negotiation failed to occur within %u seconds (check your "
		    "network connectivity)",
		    s->settings->hand_window_s);
	session_say(s, LOG_WARN, "TLS Error: TLS handshake failed");
	session_fail_key(s, SESSION_REASON_TIMEOUT);
}

void session_keys_expire(struct session *s, uint64_t now_ms)
{
	if (now_ms >= hand_deadline(s))
		time_out(s);
	if (now_ms >= retire_deadline(&s->resting))
		retire(s, &s->resting);
	if (!s->is_dead && now_ms >= retire_deadline(&s->lame)) {
		session_retire_lame(s);
		/* After a failed renegotiation there was nothing but the old key. */
		if (s->primary->is_failed && !s->primary->is_generated)
			session_die(s, SESSION_REASON_TIMEOUT);
	}
	if (!s->is_dead && now_ms >= renegotiation_deadline(s))
		session_start_generation(s, true, now_ms);
}
