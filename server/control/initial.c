/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/initial.h"

#include <string.h>

#include "crypto/hmac.h"
#include "crypto/secret.h"

#define PACKET_MIN	 14 /* opcode, session-id, ack count, message id */
#define COOKIE_SLOTS	 3  /* the current one and two before */
#define FIRST_ID_MAX	 3  /* message ids that may open a session (wire.md, 5.3) */
#define COOKIE_INPUT_LEN (4 + 2 + ENDPOINT_KEY_LEN + SESSION_ID_LEN)

static uint32_t slot_at(const struct initial_settings *s, uint64_t boot_s)
{
	uint64_t len_s = ((uint64_t)s->hand_window_s + 1) / 2;
	return (uint32_t)(boot_s / (len_s ? len_s : 1));
}

/* A tag of all that the client cannot change between its first and its third packet (wire.md, 5.2).
 * Returns false without memory. */
static bool cookie(const struct initial_settings *s, uint32_t slot, const union sockaddr_any *from,
		   uint16_t listener, const struct session_id *client_sid, struct session_id *out)
{
	uint8_t input[COOKIE_INPUT_LEN], endpoint[ENDPOINT_KEY_LEN], tag[HMAC_LEN];
	endpoint_key(from, endpoint);
	struct writer w = writer_init(input, sizeof(input));
	writer_u32(&w, slot);
	writer_u16(&w, listener);
	writer_bytes(&w, endpoint, sizeof(endpoint));
	writer_bytes(&w, client_sid->bytes, SESSION_ID_LEN);
	if (!hmac_tag(s->cookie_key, input, sizeof(input), tag))
		return false;
	memcpy(out->bytes, tag, SESSION_ID_LEN);
	if (session_id_is_zero(out)) /* "undefined" on the wire */
		out->bytes[SESSION_ID_LEN - 1] = 1;
	return true;
}

/* All slots are tried always: the time says nothing. */
static bool is_cookie(const struct initial_settings *s, const struct session_id *shown,
		      const union sockaddr_any *from, uint16_t listener, uint64_t boot_s,
		      const struct session_id *client_sid)
{
	bool is_right = false;
	for (uint32_t back = 0; back < COOKIE_SLOTS; back++) {
		struct session_id c;
		if (cookie(s, slot_at(s, boot_s) - back, from, listener, client_sid, &c))
			is_right |= secret_equal(c.bytes, shown->bytes, SESSION_ID_LEN);
	}
	return is_right;
}

/* --- judgement --- */

/* What costs nothing to see (security.md, P-1). */
static enum drop check_cheaply(struct view datagram)
{
	if (datagram.len < PACKET_MIN)
		return DROP_SHORT;
	uint8_t op = packet_opcode(datagram.data[0]);
	if (op != OPCODE_HARD_RESET_CLIENT_V2 && op != OPCODE_CONTROL_V1 && op != OPCODE_ACK_V1)
		return DROP_BAD_OPCODE;
	if (packet_key_id(datagram.data[0]) != 0)
		return DROP_CONTROL_SESSION;
	struct session_id sid;
	memcpy(sid.bytes, datagram.data + 1, SESSION_ID_LEN);
	return session_id_is_zero(&sid) ? DROP_CONTROL_SESSION : DROP_NONE;
}

/* Only the answer to our reset may open a session: it acks id 0 and nothing that we never sent.
 * Ids up to 3 leave room for a large ClientHello out of order, and for RouterOS. */
static bool may_open(enum opcode op, const struct control_body *body)
{
	bool acks_reset = false;
	for (unsigned i = 0; i < body->ack_count; i++) {
		if (body->acks[i] > 1)
			return false;
		acks_reset |= body->acks[i] == 0;
	}
	return acks_reset && (op == OPCODE_ACK_V1 || body->message_id <= FIRST_ID_MAX);
}

struct judge {
	const struct initial_settings *settings;
	const union sockaddr_any *from;
	uint16_t listener;
	uint64_t boot_s;
	bool (*is_live)(void *ctx, const struct session_id *server_sid);
	void *ctx;
};

static void judge_answer(const struct judge *j, const struct wrapped *w,
			 const struct control_body *body, struct initial_result *r)
{
	r->drop = DROP_COOKIE;
	if (!may_open(w->opcode, body) ||
	    !is_cookie(j->settings, &body->peer_sid, j->from, j->listener, j->boot_s, &w->sid))
		return;
	/* A late packet of a session that moved away does not open a second one. */
	if (j->is_live(j->ctx, &body->peer_sid))
		return;
	r->verdict = INITIAL_ACCEPT;
	r->drop = DROP_NONE;
	r->server_sid = body->peer_sid;
}

static void judge(const struct judge *j, struct view datagram, struct initial_result *r)
{
	uint8_t scratch[CONTROL_PACKET_MAX];
	struct wrapped w;
	struct control_body body;
	r->drop = check_cheaply(datagram);
	if (r->drop == DROP_NONE)
		r->drop = wrap_open(j->settings->wrap, datagram, scratch, &w);
	if (r->drop != DROP_NONE)
		return;
	struct reader reader = reader_of(w.body);
	if (!control_body_read(&reader, w.opcode, &body)) {
		r->drop = DROP_CONTROL_MALFORMED;
		return;
	}
	r->client_sid = w.sid;
	if (w.opcode != OPCODE_HARD_RESET_CLIENT_V2) {
		judge_answer(j, &w, &body, r);
	} else if (body.message_id != 0) {
		/* The second reset of RouterOS: the client gives up if it is answered by a second
		 * reset of ours. Its session will ack it. */
		r->drop = DROP_CONTROL_MALFORMED;
	} else {
		r->verdict = INITIAL_RESET;
	}
}

struct initial_result initial_judge(const struct initial_settings *s, struct view datagram,
				    const union sockaddr_any *from, uint16_t listener,
				    uint64_t boot_s,
				    bool (*is_live)(void *ctx, const struct session_id *server_sid),
				    void *ctx)
{
	struct initial_result r = {.verdict = INITIAL_DROP};
	const struct judge j = {s, from, listener, boot_s, is_live, ctx};
	judge(&j, datagram, &r);
	return r;
}

size_t initial_reply(const struct initial_settings *s, const struct initial_result *r,
		     const union sockaddr_any *from, uint16_t listener, uint64_t boot_s,
		     uint32_t wall_s, uint8_t *out, size_t cap)
{
	uint8_t plain[32];
	struct session_id sid;
	if (!cookie(s, slot_at(s, boot_s), from, listener, &r->client_sid, &sid))
		return 0;
	const struct control_body body = {.ack_count = 1, .peer_sid = r->client_sid};
	struct writer p = writer_init(plain, sizeof(plain)), w = writer_init(out, cap);
	control_body_write(&p, OPCODE_HARD_RESET_SERVER_V2, &body);
	wrap_seal(s->wrap, OPCODE_HARD_RESET_SERVER_V2, 0, &sid, 1, wall_s, writer_done(&p), &w);
	return writer_ok(&p) && writer_ok(&w) ? writer_len(&w) : 0;
}
