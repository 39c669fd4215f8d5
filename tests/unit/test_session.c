/* SPDX-License-Identifier: Apache-2.0 */
/* What a session does packet by packet; whole conversations are in tests/sim. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/link.h"
#include "tests/support/pki.h"

#define NOW	 1000000
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct session_id client_sid = {{1, 1, 1, 1, 1, 1, 1, 1}};
static const struct session_id server_sid = {{2, 2, 2, 2, 2, 2, 2, 2}};

/* A server's session alone, with a peer that is played by hand. */
struct alone {
	struct link *link; /* for its settings and certificates */
	struct session *s;
	enum wrap_mode mode;
	uint32_t packet_id;
};

static struct alone alone(enum wrap_mode mode)
{
	struct alone a = {.mode = mode};
	a.link = link_new(&(struct link_setup){.wrap = mode});
	const struct session_start start = {
		.own_sid = server_sid, .peer_sid = client_sid, .now_ms = NOW, .wall_s = PKI_NOW};
	struct link_end *e = &a.link->ends[LINK_SERVER];
	assert_int_equal(session_new(&e->settings, e->tls, &start, &a.s), 0);
	return a;
}

static void alone_free(struct alone *a)
{
	session_free(a->s);
	link_free(a->link);
}

static enum drop give_from(struct alone *a, const struct session_id *sid, enum opcode op,
			   uint8_t key_id, const struct control_body *body)
{
	uint8_t plain[CONTROL_PACKET_MAX], out[CONTROL_PACKET_MAX + 512];
	struct writer p = writer_init(plain, sizeof(plain)), w = writer_init(out, sizeof(out));
	control_body_write(&p, op, body);
	wrap_seal(a->link->wraps[LINK_CLIENT], op, key_id, sid, ++a->packet_id, PKI_NOW,
		  writer_done(&p), &w);
	assert_true(writer_ok(&p) && writer_ok(&w));
	return session_receive(a->s, writer_done(&w), NOW);
}

static enum drop give(struct alone *a, enum opcode op, uint8_t key_id,
		      const struct control_body *body)
{
	return give_from(a, &client_sid, op, key_id, body);
}

/* The next packet of the session, in clear. False if there is none. */
static bool take(struct alone *a, uint64_t now_ms, struct wrapped *w, struct control_body *body)
{
	static uint8_t out[CONTROL_PACKET_MAX], scratch[CONTROL_PACKET_MAX];
	session_advance(a->s, now_ms, PKI_NOW);
	size_t len = session_send(a->s, now_ms, PKI_NOW, out, sizeof(out));
	if (len == 0)
		return false;
	assert_int_equal(
		wrap_open(a->link->wraps[LINK_CLIENT], (struct view){out, len}, scratch, w),
		DROP_NONE);
	struct reader r = reader_of(w->body);
	assert_true(control_body_read(&r, w->opcode, body));
	return true;
}

static struct control_body message(uint32_t id, const char *text)
{
	return (struct control_body){
		.message_id = id,
		.payload = {(const uint8_t *)text, strlen(text)},
	};
}

static void a_message_is_acked_once(void **state)
{
	(void)state;
	for (int mode = 0; mode < 3; mode++) {
		struct alone a = alone((enum wrap_mode)mode);
		struct control_body hello = message(2, "later"), body;
		struct wrapped w;
		assert_false(take(&a, NOW, &w, &body));
		assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &hello), DROP_NONE);
		assert_int_equal(session_deadline(a.s), 0);
		assert_true(take(&a, NOW, &w, &body));
		assert_int_equal(w.opcode, OPCODE_ACK_V1);
		assert_int_equal(w.key_id, 0);
		assert_true(session_id_equal(&w.sid, &server_sid));
		assert_int_equal(body.ack_count, 1);
		assert_int_equal(body.acks[0], 2);
		assert_true(session_id_equal(&body.peer_sid, &client_sid));
		/* the stateless reset had packet-id 1 */
		if (mode != WRAP_NONE)
			assert_int_equal(w.packet_id, 2);
		assert_false(take(&a, NOW, &w, &body));
		alone_free(&a);
	}
}

static void packets_that_leave_no_trace(void **state)
{
	(void)state;
	static const struct {
		enum opcode op;
		uint8_t key_id;
		uint8_t sid; /* first byte of the sender's */
		uint8_t ack_count;
		uint8_t peer_sid; /* first byte of what it takes for ours */
		uint32_t id;
		enum drop drop;
	} cases[] = {
		{OPCODE_CONTROL_V1, 0, 9, 0, 0, 1, DROP_CONTROL_SESSION},
		{OPCODE_CONTROL_V1, 0, 1, 1, 9, 1, DROP_CONTROL_SESSION},
		{OPCODE_ACK_V1, 0, 1, 1, 9, 0, DROP_CONTROL_SESSION},
		{OPCODE_CONTROL_V1, 1, 1, 0, 0, 1, DROP_NO_KEY},
		{OPCODE_SOFT_RESET_V1, 1, 1, 0, 0, 0, DROP_NO_KEY}, /* no key to renegotiate yet */
		{OPCODE_HARD_RESET_SERVER_V2, 0, 1, 0, 0, 0, DROP_BAD_OPCODE},
		{OPCODE_HARD_RESET_CLIENT_V3, 0, 1, 0, 0, 0, DROP_BAD_OPCODE},
		{OPCODE_CONTROL_WKC_V1, 0, 1, 0, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_CONTROL_V1, 0, 1, 0, 0, 13, DROP_QUEUE_FULL},
		{OPCODE_CONTROL_V1, 0, 1, 0, 0, UINT32_MAX, DROP_QUEUE_FULL},
	};
	for (int mode = 0; mode < 3; mode++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			struct alone a = alone((enum wrap_mode)mode);
			struct session_id sid = client_sid;
			struct control_body body = {
				.ack_count = cases[i].ack_count,
				.peer_sid = server_sid,
				.message_id = cases[i].id,
			};
			struct wrapped w;
			sid.bytes[0] = cases[i].sid;
			if (cases[i].ack_count)
				body.peer_sid.bytes[0] = cases[i].peer_sid;
			assert_int_equal(give_from(&a, &sid, cases[i].op, cases[i].key_id, &body),
					 cases[i].drop);
			assert_false(take(&a, NOW, &w, &body));
			alone_free(&a);
		}
	}
}

static void replayed_wrapping_is_dropped(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_TLS_CRYPT);
	struct control_body m = message(1, "x");
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &m), DROP_NONE);
	a.packet_id--; /* the same packet-id once more */
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &m), DROP_CONTROL_REPLAY);
	alone_free(&a);
}

static void a_packet_refused_for_its_session_does_not_move_the_replay_window(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_TLS_AUTH);
	struct session_id stranger = client_sid;
	struct control_body m = message(1, "x");
	stranger.bytes[0] ^= 1;
	assert_int_equal(give_from(&a, &stranger, OPCODE_CONTROL_V1, 0, &m), DROP_CONTROL_SESSION);
	a.packet_id--;
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &m), DROP_NONE);
	alone_free(&a);
}

static void every_length_and_opcode_is_survived(void **state)
{
	(void)state;
	for (int mode = 0; mode < 3; mode++) {
		struct alone a = alone((enum wrap_mode)mode);
		for (unsigned first = 0; first < 256; first++) {
			for (size_t len = 0; len <= 60; len++) {
				uint8_t *exact = malloc(len ? len : 1);
				assert_non_null(exact);
				memset(exact, (int)len, len);
				if (len > 0)
					exact[0] = (uint8_t)first;
				for (size_t i = 1; i < len && i < 9; i++)
					exact[i] = client_sid.bytes[0];
				enum drop d = session_receive(a.s, (struct view){exact, len}, NOW);
				assert_true(d < DROP_COUNT);
				free(exact);
			}
		}
		session_advance(a.s, NOW, PKI_NOW);
		alone_free(&a);
	}
}

static void second_reset_of_routeros_is_an_empty_message(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct control_body reset = {.message_id = 1}, body;
	struct wrapped w;
	assert_int_equal(give(&a, OPCODE_HARD_RESET_CLIENT_V2, 0, &reset), DROP_NONE);
	assert_true(take(&a, NOW, &w, &body));
	assert_int_equal(w.opcode, OPCODE_ACK_V1); /* acked, not answered by a reset */
	assert_int_equal(body.acks[0], 1);
	/* the ClientHello at id 2 is next in order */
	struct control_body hello = message(2, "\x16\x03\x01\x00\x05\x01xxxx");
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &hello), DROP_NONE);
	assert_true(session_is_expensive(a.s));
	alone_free(&a);
}

static void a_lost_second_reset_of_routeros_is_done_without(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct control_body hello = message(2, "\x16\x03\x01\x02\x05\x01xxxx");
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &hello), DROP_NONE);
	assert_true(session_is_expensive(a.s));
	alone_free(&a);
	/* the second piece of a large ClientHello is not taken for a first one */
	a = alone(WRAP_NONE);
	hello = message(2, "\x16\x03\x01\x02\x05\x02xxxx");
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &hello), DROP_NONE);
	assert_false(session_is_expensive(a.s));
	alone_free(&a);
}

static void other_resets_are_ignored_but_their_acks_count(void **state)
{
	(void)state;
	static const uint32_t ids[] = {2, 3, 11};
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct alone a = alone(WRAP_NONE);
		struct control_body reset = {.message_id = ids[i]}, body;
		struct wrapped w;
		assert_int_equal(give(&a, OPCODE_HARD_RESET_CLIENT_V2, 0, &reset), DROP_NONE);
		assert_false(take(&a, NOW, &w, &body)); /* not acked */
		alone_free(&a);
	}
}

/* The client's reset arrives late, with bytes that must not become TLS. */
static void payload_of_a_reset_never_reaches_tls(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct control_body reset = message(0, "rubbish");
	assert_int_equal(give(&a, OPCODE_HARD_RESET_CLIENT_V2, 0, &reset), DROP_NONE);
	reset = message(1, "rubbish");
	assert_int_equal(give(&a, OPCODE_HARD_RESET_CLIENT_V2, 0, &reset), DROP_NONE);
	session_advance(a.s, NOW, PKI_NOW);
	struct session_event e;
	assert_false(session_next_event(a.s, &e));
	alone_free(&a);
}

static void rubbish_for_tls_ends_the_session_with_its_lines(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct control_body m = message(1, "GET / HTTP/1.1\r\n\r\n"), body;
	struct wrapped w;
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &m), DROP_NONE);
	(void)take(&a, NOW, &w, &body);
	struct session_event e;
	char log[2048] = "";
	enum session_reason reason = SESSION_REASON_NONE;
	while (session_next_event(a.s, &e)) {
		if (e.kind == SESSION_EVENT_LOG)
			strcat(strcat(log, e.text), "\n");
		if (e.kind == SESSION_EVENT_CLOSED)
			reason = e.reason;
	}
	assert_int_equal(reason, SESSION_REASON_TLS_ERROR);
	assert_non_null(strstr(log, "OpenSSL: error:"));
	assert_non_null(strstr(log, "TLS_ERROR: BIO read tls_read_plaintext error\n"
				    "TLS Error: TLS object -> incoming plaintext read error\n"
				    "TLS Error: TLS handshake failed\n"));
	assert_true(session_deadline(a.s) == UINT64_MAX);
	assert_int_equal(give(&a, OPCODE_CONTROL_V1, 0, &m), DROP_PEER_CLOSING);
	assert_false(session_next_event(a.s, &e));
	alone_free(&a);
}

static void a_silent_peer_is_given_up_after_the_hand_window(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct session_event e;
	assert_true(session_deadline(a.s) == NOW + 60000);
	session_advance(a.s, NOW + 59999, PKI_NOW);
	assert_false(session_next_event(a.s, &e));
	session_advance(a.s, NOW + 60000, PKI_NOW);
	assert_true(session_next_event(a.s, &e));
	assert_string_equal(e.text, "TLS Error: TLS key negotiation failed to occur within 60 "
				    "seconds (check your network connectivity)");
	assert_true(session_next_event(a.s, &e));
	assert_string_equal(e.text, "TLS Error: TLS handshake failed");
	assert_true(session_next_event(a.s, &e));
	assert_int_equal(e.kind, SESSION_EVENT_CLOSED);
	assert_int_equal(e.reason, SESSION_REASON_TIMEOUT);
	alone_free(&a);
}

static void facts_before_anything_is_known(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	assert_string_equal(session_common_name(a.s), "UNDEF");
	assert_string_equal(session_username(a.s), "");
	assert_string_equal(session_password(a.s), "");
	assert_string_equal(session_tls_summary(a.s), "");
	assert_int_equal(session_cipher(a.s), CIPHER_NONE);
	assert_int_equal(session_peer_id(a.s), PEER_ID_NONE);
	assert_int_equal(session_flags(a.s), 0);
	assert_false(session_is_established(a.s));
	assert_false(session_uses_peer_id(a.s));
	assert_false(session_is_expensive(a.s));
	assert_true(session_id_equal(session_own_sid(a.s), &server_sid));
	assert_true(session_id_equal(session_peer_sid(a.s), &client_sid));
	alone_free(&a);
}

static void requests_that_come_too_early(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	const struct push_plan plan = {.peer_id = 1};
	struct session_event e;
	assert_int_equal(session_set_push(a.s, &plan), -EINVAL);
	session_authorize(a.s, 0, true, NULL, NOW);
	session_renegotiate(a.s);
	session_advance(a.s, NOW, PKI_NOW);
	assert_false(session_next_event(a.s, &e));
	assert_false(session_is_established(a.s));
	alone_free(&a);
}

static void commands_are_bounded(void **state)
{
	(void)state;
	static char longest[COMMAND_MAX], too_long[COMMAND_MAX + 1];
	struct alone a = alone(WRAP_NONE);
	memset(longest, 'x', COMMAND_MAX - 1);
	memset(too_long, 'x', COMMAND_MAX);
	assert_int_equal(session_command(a.s, too_long), -EMSGSIZE);
	unsigned n = 0;
	int err;
	while ((err = session_command(a.s, longest)) == 0)
		n++;
	assert_int_equal(err, -ENOBUFS);
	assert_int_equal(n, 64); /* of 1 KiB each */
	alone_free(&a);
}

static void closing_before_the_first_key_is_at_once(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct session_event e;
	session_close(a.s, SESSION_REASON_LOCAL, NOW, 5000);
	assert_int_equal(session_deadline(a.s), 0);
	session_advance(a.s, NOW, PKI_NOW);
	assert_true(session_next_event(a.s, &e));
	assert_int_equal(e.kind, SESSION_EVENT_CLOSED);
	assert_int_equal(e.reason, SESSION_REASON_LOCAL);
	alone_free(&a);
}

static void wrapping_needs_its_raw_key(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_TLS_CRYPT);
	struct link_end *e = &a.link->ends[LINK_SERVER];
	struct session_settings settings = e->settings;
	const struct session_start start = {.own_sid = server_sid, .peer_sid = client_sid};
	struct session *s;
	settings.wrap_key = NULL;
	assert_int_equal(session_new(&settings, e->tls, &start, &s), -EINVAL);
	alone_free(&a);
}

static int no_random(void *out, size_t len)
{
	(void)out;
	(void)len;
	return -EIO;
}

static void without_random_bytes_nothing_starts(void **state)
{
	(void)state;
	struct alone a = alone(WRAP_NONE);
	struct link_end *e = &a.link->ends[LINK_CLIENT];
	struct session_settings settings = e->settings;
	const struct session_start start = {.now_ms = NOW};
	struct session *s;
	settings.random = no_random;
	assert_int_equal(session_new(&settings, e->tls, &start, &s), -EIO);
	alone_free(&a);
}

/* --- the client's side --- */

static struct session *client_of(struct link *l)
{
	return l->ends[LINK_CLIENT].session;
}

static void client_begins_with_a_reset_and_repeats_it(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){0});
	uint8_t out[CONTROL_PACKET_MAX];
	static const uint8_t zeros[5];
	assert_int_equal(session_send(client_of(l), l->now_ms, PKI_NOW, out, sizeof(out)), 14);
	assert_int_equal(out[0], 0x38);
	assert_memory_equal(out + 9, zeros, 5);
	assert_int_equal(session_send(client_of(l), l->now_ms + 1999, PKI_NOW, out, sizeof(out)),
			 0);
	assert_int_equal(session_send(client_of(l), l->now_ms + 2000, PKI_NOW, out, sizeof(out)),
			 14);
	link_free(l);
}

static enum drop give_client(struct link *l, enum opcode op, const struct session_id *from,
			     const struct control_body *body)
{
	uint8_t plain[256], out[256];
	struct writer p = writer_init(plain, sizeof(plain)), w = writer_init(out, sizeof(out));
	control_body_write(&p, op, body);
	wrap_seal(l->wraps[LINK_SERVER], op, 0, from, 1, PKI_NOW, writer_done(&p), &w);
	return session_receive(client_of(l), writer_done(&w), l->now_ms);
}

static void client_takes_only_an_answer_to_its_own_reset(void **state)
{
	(void)state;
	static const struct session_id zero;
	struct link *l = link_new(&(struct link_setup){0});
	uint8_t out[CONTROL_PACKET_MAX];
	const struct session_id *own = session_own_sid(client_of(l));
	assert_int_equal(session_send(client_of(l), l->now_ms, PKI_NOW, out, sizeof(out)), 14);
	const struct control_body right = {.ack_count = 1, .peer_sid = *own};
	const struct control_body no_ack = {0};
	const struct control_body other = {.ack_count = 1, .peer_sid = client_sid};
	const struct control_body late = {.ack_count = 1, .peer_sid = *own, .message_id = 1};
	const enum opcode reset = OPCODE_HARD_RESET_SERVER_V2;
	assert_int_equal(give_client(l, reset, &server_sid, &no_ack), DROP_CONTROL_SESSION);
	assert_int_equal(give_client(l, reset, &server_sid, &other), DROP_CONTROL_SESSION);
	assert_int_equal(give_client(l, reset, &server_sid, &late), DROP_CONTROL_SESSION);
	assert_int_equal(give_client(l, reset, &zero, &right), DROP_CONTROL_SESSION);
	assert_int_equal(give_client(l, OPCODE_CONTROL_V1, &server_sid, &right),
			 DROP_CONTROL_SESSION);
	assert_int_equal(give_client(l, OPCODE_HARD_RESET_CLIENT_V2, &server_sid, &right),
			 DROP_BAD_OPCODE);
	assert_int_equal(give_client(l, reset, &server_sid, &right), DROP_NONE);
	assert_true(session_id_equal(session_peer_sid(client_of(l)), &server_sid));
	/* a second answer, of another slot, changes nothing */
	assert_int_equal(give_client(l, reset, &client_sid, &right), DROP_CONTROL_SESSION);
	assert_true(session_id_equal(session_peer_sid(client_of(l)), &server_sid));
	assert_true(session_is_expensive(client_of(l))); /* TLS may start now */
	link_free(l);
}

/* --- packet sizes --- */

static void no_datagram_is_larger_than_asked_for(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {154, 500, 1250, 2048};
	for (int mode = 0; mode < 3; mode++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct link *l = link_new(&(struct link_setup){
				.wrap = (enum wrap_mode)mode, .max_packet_size = sizes[i]});
			assert_true(link_run(l, 60000, link_is_up));
			assert_true(l->largest + 28 <= sizes[i]);
			link_free(l);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_acked_once),
		cmocka_unit_test(packets_that_leave_no_trace),
		cmocka_unit_test(replayed_wrapping_is_dropped),
		cmocka_unit_test(a_packet_refused_for_its_session_does_not_move_the_replay_window),
		cmocka_unit_test(every_length_and_opcode_is_survived),
		cmocka_unit_test(second_reset_of_routeros_is_an_empty_message),
		cmocka_unit_test(a_lost_second_reset_of_routeros_is_done_without),
		cmocka_unit_test(other_resets_are_ignored_but_their_acks_count),
		cmocka_unit_test(payload_of_a_reset_never_reaches_tls),
		cmocka_unit_test(rubbish_for_tls_ends_the_session_with_its_lines),
		cmocka_unit_test(a_silent_peer_is_given_up_after_the_hand_window),
		cmocka_unit_test(facts_before_anything_is_known),
		cmocka_unit_test(requests_that_come_too_early),
		cmocka_unit_test(commands_are_bounded),
		cmocka_unit_test(closing_before_the_first_key_is_at_once),
		cmocka_unit_test(wrapping_needs_its_raw_key),
		cmocka_unit_test(without_random_bytes_nothing_starts),
		cmocka_unit_test(client_begins_with_a_reset_and_repeats_it),
		cmocka_unit_test(client_takes_only_an_answer_to_its_own_reset),
		cmocka_unit_test(no_datagram_is_larger_than_asked_for),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	link_pki_fini();
	return failed;
}
