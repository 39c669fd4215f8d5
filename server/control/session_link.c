/* SPDX-License-Identifier: Apache-2.0 */
/* A session's packets: which key state one belongs to, in and out. */

#include <string.h>

#include "server/control/session.h"
#include "server/control/session_state.h"

/* Bytes of a control packet besides its payload: opcode, session-id, ack count, acks with the
 * peer's session-id, message id (wire.md, section 3). */
#define CONTROL_HEAD_MAX (CONTROL_HEAD_LEN + 1 + 4 * RELIABLE_ACKS_PIGGYBACK + SESSION_ID_LEN + 4)
#define PAYLOAD_MIN	 16

static const struct wrap_keys *keys_for(const struct session *s, uint8_t key_id)
{
	return key_id > 0 && s->dynamic_keys ? s->dynamic_keys : s->settings->wrap;
}

static struct wrap_state *counters_for(struct session *s, uint8_t key_id)
{
	return key_id > 0 && s->dynamic_keys ? &s->dynamic_wrap : &s->wrap;
}

size_t session_payload_max(const struct session *s)
{
	const struct wrap_keys *keys = keys_for(s, s->primary->key_id);
	size_t limit = s->settings->max_packet_size < RELIABLE_PAYLOAD_MAX
			       ? s->settings->max_packet_size
			       : RELIABLE_PAYLOAD_MAX;
	size_t overhead = CONTROL_HEAD_MAX + wrap_overhead(keys) + (s->is_ipv6 ? 48 : 28);
	return limit > overhead + PAYLOAD_MIN ? limit - overhead : PAYLOAD_MIN;
}

/* --- in --- */

/* A packet that passed all checks but the replay window. */
struct arrival {
	struct wrapped wrapped;
	struct control_body body;
	bool is_new_generation; /* a soft reset that begins a renegotiation */
	bool is_server_reset;	/* client: the server's session-id is learned */
	bool is_ignored;	/* its acks count, its message does not */
};

static enum drop check_opcode(const struct session *s, enum opcode op)
{
	switch (op) {
	case OPCODE_SOFT_RESET_V1:
	case OPCODE_CONTROL_V1:
	case OPCODE_ACK_V1:
		return DROP_NONE;
	case OPCODE_HARD_RESET_CLIENT_V2:
		return s->is_server ? DROP_NONE : DROP_BAD_OPCODE;
	case OPCODE_HARD_RESET_SERVER_V2:
		return s->is_server ? DROP_BAD_OPCODE : DROP_NONE;
	case OPCODE_HARD_RESET_CLIENT_V3:
	case OPCODE_CONTROL_WKC_V1:
	case OPCODE_DATA_V1:
	case OPCODE_DATA_V2:
		return DROP_BAD_OPCODE;
	}
	return DROP_BAD_OPCODE;
}

static enum drop check_sids(const struct session *s, struct arrival *a)
{
	const struct control_body *body = &a->body;
	if (body->ack_count > 0 && !session_id_equal(&body->peer_sid, &s->own_sid))
		return DROP_CONTROL_SESSION;
	if (s->has_peer_sid)
		return session_id_equal(&a->wrapped.sid, &s->peer_sid) ? DROP_NONE
								       : DROP_CONTROL_SESSION;
	/* The server names itself in its reset; the ack proves that it has seen ours. */
	if (a->wrapped.opcode != OPCODE_HARD_RESET_SERVER_V2 || body->ack_count == 0 ||
	    body->message_id != 0 || session_id_is_zero(&a->wrapped.sid))
		return DROP_CONTROL_SESSION;
	a->is_server_reset = true;
	return DROP_NONE;
}

/* RouterOS sends two client resets, ids 0 and 1, and goes on with id 2: the second one counts as
 * an empty message (wire.md, section 3). The first is a repetition: only its ack is wanted. */
static bool is_wanted_reset(const struct session *s, const struct arrival *a)
{
	uint32_t id = a->body.message_id;
	if (a->wrapped.opcode == OPCODE_HARD_RESET_CLIENT_V2)
		return id == 0 || (id == 1 && a->body.payload.len == 0 && !s->primary->tls);
	return id == 0;
}

static enum drop check_key(const struct session *s, struct arrival *a, uint64_t now_ms)
{
	const struct key_state *k = s->primary;
	uint8_t key_id = a->wrapped.key_id;
	if (key_id == k->key_id)
		return k->is_failed ? DROP_NO_KEY : DROP_NONE;
	if (a->wrapped.opcode != OPCODE_SOFT_RESET_V1 || key_id != session_next_key_id(s) ||
	    a->body.message_id != 0 || !k->is_generated)
		return DROP_NO_KEY;
	if (session_is_leaving(s))
		return DROP_PEER_CLOSING;
	/* Too soon: the peer repeats it. */
	if (!session_may_renegotiate(s, now_ms))
		return DROP_RATE_LIMITED;
	a->is_new_generation = true;
	return DROP_NONE;
}

static enum drop check(const struct session *s, struct arrival *a, uint64_t now_ms)
{
	struct reader r = reader_of(a->wrapped.body);
	enum drop drop = check_opcode(s, a->wrapped.opcode);
	if (drop != DROP_NONE)
		return drop;
	if (!control_body_read(&r, a->wrapped.opcode, &a->body) ||
	    a->body.payload.len > RELIABLE_PAYLOAD_MAX)
		return DROP_CONTROL_MALFORMED;
	drop = check_sids(s, a);
	if (drop == DROP_NONE)
		drop = check_key(s, a, now_ms);
	if (drop != DROP_NONE)
		return drop;
	bool is_reset =
		a->wrapped.opcode != OPCODE_CONTROL_V1 && a->wrapped.opcode != OPCODE_ACK_V1;
	a->is_ignored = a->wrapped.opcode == OPCODE_ACK_V1 || (is_reset && !is_wanted_reset(s, a));
	if (is_reset)
		a->body.payload = (struct view){0}; /* never TLS bytes (wire.md, 5.4) */
	return DROP_NONE;
}

/* The first TLS record of a client. */
static bool is_client_hello(struct view v)
{
	return v.len > 5 && v.data[0] == 0x16 && v.data[1] == 0x03 && v.data[5] == 0x01;
}

/* A RouterOS client whose second reset was lost goes on with id 2 and would be waited for in vain:
 * id 1 is taken as that empty reset (interop.md, section 8). */
static void skip_lost_reset(struct session *s, const struct control_body *body)
{
	struct reliable *r = &s->primary->reliable;
	struct view first;
	if (s->is_server && s->primary->key_id == 0 && !s->primary->tls && r->next_recv == 1 &&
	    body->message_id == 2 && is_client_hello(body->payload) && !reliable_peek(r, &first))
		reliable_skip(r);
}

static enum drop take(struct session *s, const struct arrival *a, uint64_t now_ms)
{
	if (a->is_new_generation) {
		session_start_generation(s, false, now_ms);
		if (s->is_dead)
			return DROP_PEER_CLOSING;
	}
	if (a->is_server_reset) {
		s->peer_sid = a->wrapped.sid;
		s->has_peer_sid = true;
	}
	struct reliable *r = &s->primary->reliable;
	for (unsigned i = 0; i < a->body.ack_count; i++)
		reliable_acked(r, a->body.acks[i], now_ms);
	s->needs_advance = true;
	if (a->is_ignored)
		return DROP_NONE;
	skip_lost_reset(s, &a->body);
	return reliable_receive(r, a->body.message_id, a->body.payload) ? DROP_NONE
									: DROP_QUEUE_FULL;
}

enum drop session_receive(struct session *s, struct view datagram, uint64_t now_ms)
{
	uint8_t scratch[CONTROL_PACKET_MAX];
	struct arrival a = {0};
	if (s->is_dead)
		return DROP_PEER_CLOSING;
	if (datagram.len < CONTROL_HEAD_LEN)
		return DROP_SHORT;
	uint8_t key_id = packet_key_id(datagram.data[0]);
	const struct wrap_keys *keys = keys_for(s, key_id);
	enum drop drop = wrap_open(keys, datagram, scratch, &a.wrapped);
	if (drop == DROP_NONE)
		drop = check(s, &a, now_ms);
	if (drop == DROP_NONE && wrap_keys_mode(keys) != WRAP_NONE)
		drop = wrap_state_accept(counters_for(s, key_id), a.wrapped.packet_id,
					 a.wrapped.time, now_ms);
	return drop == DROP_NONE ? take(s, &a, now_ms) : drop;
}

/* --- out --- */

static size_t seal(struct session *s, enum opcode op, const struct control_body *body,
		   uint32_t wall_s, uint8_t *out, size_t cap)
{
	uint8_t plain[CONTROL_PACKET_MAX];
	uint8_t key_id = s->primary->key_id;
	uint32_t packet_id = 0, time = 0;
	struct writer p = writer_init(plain, sizeof(plain));
	struct writer w = writer_init(out, cap);
	control_body_write(&p, op, body);
	const struct wrap_keys *keys = keys_for(s, key_id);
	if (wrap_keys_mode(keys) != WRAP_NONE &&
	    !wrap_state_next(counters_for(s, key_id), wall_s, &packet_id, &time))
		return 0;
	wrap_seal(keys, op, key_id, &s->own_sid, packet_id, time, writer_done(&p), &w);
	return writer_ok(&p) && writer_ok(&w) ? writer_len(&w) : 0;
}

/* SoftEther and its likes take only four acks even in a packet of acks (wire.md, section 3). */
static size_t ack_packet_max(const struct session *s)
{
	return s->is_server ? ACK_MAX : RELIABLE_ACKS_PIGGYBACK;
}

size_t session_send(struct session *s, uint64_t now_ms, uint32_t wall_s, uint8_t *out, size_t cap)
{
	struct reliable *r = &s->primary->reliable;
	struct control_body body = {.peer_sid = s->peer_sid};
	struct reliable_message m;
	if (s->is_closed_told)
		return 0;
	enum opcode op = OPCODE_ACK_V1;
	size_t ack_max = ack_packet_max(s);
	if (reliable_next(r, now_ms, &m)) {
		op = m.opcode;
		body.message_id = m.id;
		body.payload = m.payload;
		ack_max = RELIABLE_ACKS_PIGGYBACK;
		s->retransmits += m.is_repeated;
	} else if (s->primary->is_failed || !reliable_has_acks(r)) {
		return 0;
	}
	body.ack_count = (uint8_t)reliable_take_acks(r, ack_max, body.acks);
	return seal(s, op, &body, wall_s, out, cap);
}

uint32_t session_take_retransmits(struct session *s)
{
	uint32_t n = s->retransmits;
	s->retransmits = 0;
	return n;
}
