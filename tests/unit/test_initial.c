/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/hmac.h"
#include "server/control/initial.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BOOT_S	 1000000
#define WALL_S	 0x65000000

static const struct session_id client_sid = {{1, 2, 3, 4, 5, 6, 7, 8}};
static struct wrap_keys *server_keys[3], *client_keys[3];
static struct hmac *cookie_key;
static struct session_id live_sid;

static int setup(void **state)
{
	(void)state;
	struct static_key key;
	for (size_t i = 0; i < sizeof(key.bytes); i++)
		key.bytes[i] = (uint8_t)i;
	for (int mode = 0; mode < 3; mode++) {
		if (wrap_keys_new((enum wrap_mode)mode, &key, KEY_DIRECTION_0, "SHA1",
				  &server_keys[mode]) != 0 ||
		    wrap_keys_new((enum wrap_mode)mode, &key, KEY_DIRECTION_1, "SHA1",
				  &client_keys[mode]) != 0)
			return -1;
	}
	uint8_t bytes[COOKIE_KEY_LEN];
	memset(bytes, 0x42, sizeof(bytes));
	return hmac_new(bytes, sizeof(bytes), &cookie_key);
}

static int teardown(void **state)
{
	(void)state;
	for (int mode = 0; mode < 3; mode++) {
		wrap_keys_free(server_keys[mode]);
		wrap_keys_free(client_keys[mode]);
	}
	hmac_free(cookie_key);
	return 0;
}

static struct initial_settings settings(int mode)
{
	return (struct initial_settings){
		.wrap = server_keys[mode], .cookie_key = cookie_key, .hand_window_s = 60};
}

static union sockaddr_any address(const char *text, uint16_t port)
{
	union sockaddr_any a = {.in4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
	assert_int_equal(inet_pton(AF_INET, text, &a.in4.sin_addr), 1);
	return a;
}

static union sockaddr_any address6(const char *text, uint16_t port)
{
	union sockaddr_any a = {.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
	assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	return a;
}

static bool nobody_is_live(void *ctx, const struct session_id *sid)
{
	(void)ctx;
	(void)sid;
	return false;
}

static bool one_is_live(void *ctx, const struct session_id *sid)
{
	(void)ctx;
	return session_id_equal(sid, &live_sid);
}

/* What a client sends. */
static struct view packet(int mode, enum opcode op, uint8_t key_id, const struct session_id *sid,
			  const struct control_body *body, uint8_t *out)
{
	uint8_t plain[2048];
	struct writer p = writer_init(plain, sizeof(plain));
	struct writer w = writer_init(out, CONTROL_PACKET_MAX);
	control_body_write(&p, op, body);
	wrap_seal(client_keys[mode], op, key_id, sid, 1, WALL_S, writer_done(&p), &w);
	assert_true(writer_ok(&w));
	return writer_done(&w);
}

static struct initial_result judge(int mode, struct view datagram, const union sockaddr_any *from,
				   uint64_t boot_s)
{
	struct initial_settings s = settings(mode);
	return initial_judge(&s, datagram, from, 0, boot_s, nobody_is_live, NULL);
}

/* The server's session-id as the client reads it in our reply. */
static struct session_id cookie_of(int mode, const union sockaddr_any *from, uint16_t listener,
				   uint64_t boot_s)
{
	struct initial_settings s = settings(mode);
	struct initial_result r = {.verdict = INITIAL_RESET, .client_sid = client_sid};
	uint8_t out[256], scratch[CONTROL_PACKET_MAX];
	size_t len = initial_reply(&s, &r, from, listener, boot_s, WALL_S, out, sizeof(out));
	struct wrapped w;
	struct control_body body;
	assert_int_equal(wrap_open(client_keys[mode], (struct view){out, len}, scratch, &w),
			 DROP_NONE);
	struct reader reader = reader_of(w.body);
	assert_true(control_body_read(&reader, w.opcode, &body));
	assert_int_equal(w.opcode, OPCODE_HARD_RESET_SERVER_V2);
	assert_int_equal(w.key_id, 0);
	assert_int_equal(body.ack_count, 1);
	assert_int_equal(body.acks[0], 0);
	assert_int_equal(body.message_id, 0);
	assert_int_equal(body.payload.len, 0);
	assert_true(session_id_equal(&body.peer_sid, &client_sid));
	if (mode != 0)
		assert_int_equal(w.packet_id, 1);
	return w.sid;
}

static void a_reset_is_answered_with_little(void **state)
{
	(void)state;
	static const struct {
		int mode;
		size_t question, answer; /* security.md, P-4 */
	} cases[] = {{WRAP_NONE, 14, 26}, {WRAP_TLS_AUTH, 42, 54}, {WRAP_TLS_CRYPT, 54, 66}};
	const union sockaddr_any from = address("192.0.2.1", 1000);
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t buf[CONTROL_PACKET_MAX], out[256];
		struct initial_settings s = settings(cases[i].mode);
		struct view v = packet(cases[i].mode, OPCODE_HARD_RESET_CLIENT_V2, 0, &client_sid,
				       &(struct control_body){0}, buf);
		assert_int_equal(v.len, cases[i].question);
		struct initial_result r = judge(cases[i].mode, v, &from, BOOT_S);
		assert_int_equal(r.verdict, INITIAL_RESET);
		assert_true(session_id_equal(&r.client_sid, &client_sid));
		assert_int_equal(initial_reply(&s, &r, &from, 0, BOOT_S, WALL_S, out, sizeof(out)),
				 cases[i].answer);
		assert_int_equal(
			initial_reply(&s, &r, &from, 0, BOOT_S, WALL_S, out, cases[i].answer - 1),
			0);
	}
}

static void a_right_cookie_is_accepted(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	static const struct {
		enum opcode op;
		uint32_t id;
	} cases[] = {{OPCODE_ACK_V1, 0},
		     {OPCODE_CONTROL_V1, 1},
		     {OPCODE_CONTROL_V1, 2},
		     {OPCODE_CONTROL_V1, 3}};
	for (int mode = 0; mode < 3; mode++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			uint8_t buf[CONTROL_PACKET_MAX];
			struct control_body body = {
				.ack_count = 1,
				.peer_sid = cookie_of(mode, &from, 0, BOOT_S),
				.message_id = cases[i].id,
			};
			struct initial_result r =
				judge(mode, packet(mode, cases[i].op, 0, &client_sid, &body, buf),
				      &from, BOOT_S);
			assert_int_equal(r.verdict, INITIAL_ACCEPT);
			assert_true(session_id_equal(&r.server_sid, &body.peer_sid));
			assert_true(session_id_equal(&r.client_sid, &client_sid));
		}
	}
}

static void cookies_live_for_three_slots(void **state)
{
	(void)state;
	/* hand-window 60: slots of 30 s; the cookie is made in the first second of one */
	static const struct {
		int64_t later_s;
		bool is_accepted;
	} cases[] = {{0, true},	  {29, true},  {30, true},   {89, true},
		     {90, false}, {-1, false}, {-31, false}, {100000, false}};
	const union sockaddr_any from = address("192.0.2.1", 1000);
	const uint64_t made_s = 30 * 40000;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct control_body body = {.ack_count = 1,
					    .peer_sid = cookie_of(0, &from, 0, made_s)};
		struct initial_result r =
			judge(0, packet(0, OPCODE_ACK_V1, 0, &client_sid, &body, buf), &from,
			      (uint64_t)((int64_t)made_s + cases[i].later_s));
		assert_int_equal(r.verdict, cases[i].is_accepted ? INITIAL_ACCEPT : INITIAL_DROP);
		if (!cases[i].is_accepted)
			assert_int_equal(r.drop, DROP_COOKIE);
	}
}

static void a_cookie_is_bound_to_where_it_was_made(void **state)
{
	(void)state;
	const union sockaddr_any made = address("192.0.2.1", 1000);
	const struct session_id other_sid = {{9, 9, 9, 9, 9, 9, 9, 9}};
	const struct {
		union sockaddr_any from;
		uint16_t listener;
		struct session_id sid;
		bool is_accepted;
	} cases[] = {
		{made, 0, client_sid, true},
		{address("192.0.2.1", 1001), 0, client_sid, false},
		{address("192.0.2.2", 1000), 0, client_sid, false},
		{address6("2001:db8::1", 1000), 0, client_sid, false},
		{made, 1, client_sid, false},
		{made, 0, other_sid, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct initial_settings s = settings(0);
		struct control_body body = {.ack_count = 1,
					    .peer_sid = cookie_of(0, &made, 0, BOOT_S)};
		struct view v = packet(0, OPCODE_ACK_V1, 0, &cases[i].sid, &body, buf);
		struct initial_result r = initial_judge(&s, v, &cases[i].from, cases[i].listener,
							BOOT_S, nobody_is_live, NULL);
		assert_int_equal(r.verdict, cases[i].is_accepted ? INITIAL_ACCEPT : INITIAL_DROP);
	}
}

static void no_bit_of_a_cookie_may_be_wrong(void **state)
{
	(void)state;
	const union sockaddr_any from = address6("2001:db8::1", 4000);
	const struct session_id right = cookie_of(0, &from, 0, BOOT_S);
	for (unsigned bit = 0; bit < 64; bit++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct control_body body = {.ack_count = 1, .peer_sid = right};
		body.peer_sid.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		struct initial_result r = judge(
			0, packet(0, OPCODE_ACK_V1, 0, &client_sid, &body, buf), &from, BOOT_S);
		assert_int_equal(r.verdict, INITIAL_DROP);
		assert_int_equal(r.drop, DROP_COOKIE);
	}
}

static void a_cookie_of_another_process_opens_nothing(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	struct control_body body = {.ack_count = 1, .peer_sid = cookie_of(0, &from, 0, BOOT_S)};
	uint8_t buf[CONTROL_PACKET_MAX];
	struct initial_settings s = settings(0);
	uint8_t bytes[COOKIE_KEY_LEN];
	struct hmac *other;
	memset(bytes, 0x42, sizeof(bytes));
	bytes[COOKIE_KEY_LEN - 1] ^= 1;
	assert_int_equal(hmac_new(bytes, sizeof(bytes), &other), 0);
	s.cookie_key = other;
	struct view v = packet(0, OPCODE_ACK_V1, 0, &client_sid, &body, buf);
	assert_int_equal(initial_judge(&s, v, &from, 0, BOOT_S, nobody_is_live, NULL).verdict,
			 INITIAL_DROP);
	hmac_free(other);
}

/* wire.md, 5.2: the tag over slot, listener, address and client session-id, cut to 8 bytes. */
static void a_cookie_is_a_tag_cut_to_a_session_id(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	uint8_t input[4 + 2 + ENDPOINT_KEY_LEN + SESSION_ID_LEN], endpoint[ENDPOINT_KEY_LEN];
	uint8_t tag[HMAC_LEN];
	struct writer w = writer_init(input, sizeof(input));
	endpoint_key(&from, endpoint);
	writer_u32(&w, BOOT_S / 30);
	writer_u16(&w, 5);
	writer_bytes(&w, endpoint, sizeof(endpoint));
	writer_bytes(&w, client_sid.bytes, SESSION_ID_LEN);
	assert_true(writer_ok(&w) && hmac_tag(cookie_key, input, sizeof(input), tag));
	const struct session_id made = cookie_of(0, &from, 5, BOOT_S);
	assert_memory_equal(made.bytes, tag, SESSION_ID_LEN);
}

static void answers_that_open_nothing(void **state)
{
	(void)state;
	static const struct {
		enum opcode op;
		uint8_t ack_count;
		uint32_t acks[ACK_MAX];
		uint32_t id;
	} cases[] = {
		{OPCODE_CONTROL_V1, 1, {0}, 4},
		{OPCODE_CONTROL_V1, 1, {0}, 5},
		{OPCODE_CONTROL_V1, 1, {0}, UINT32_MAX},
		{OPCODE_CONTROL_V1, 1, {7}, 1},
		{OPCODE_CONTROL_V1, 2, {0, 2}, 1},
		{OPCODE_CONTROL_V1, 1, {1}, 1}, /* we never sent id 1 */
		{OPCODE_ACK_V1, 2, {0, 7}, 0},
		{OPCODE_CONTROL_V1, 0, {0}, 1}, /* proves nothing */
		{OPCODE_ACK_V1, 0, {0}, 0},
	};
	const union sockaddr_any from = address("192.0.2.1", 1000);
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct control_body body = {
			.ack_count = cases[i].ack_count,
			.peer_sid = cookie_of(0, &from, 0, BOOT_S),
			.message_id = cases[i].id,
		};
		memcpy(body.acks, cases[i].acks, sizeof(body.acks));
		struct initial_result r =
			judge(0, packet(0, cases[i].op, 0, &client_sid, &body, buf), &from, BOOT_S);
		assert_int_equal(r.verdict, INITIAL_DROP);
		assert_int_not_equal(r.drop, DROP_NONE);
	}
}

static void a_live_session_is_not_opened_twice(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	uint8_t buf[CONTROL_PACKET_MAX];
	struct initial_settings s = settings(0);
	live_sid = cookie_of(0, &from, 0, BOOT_S);
	struct control_body body = {.ack_count = 1, .peer_sid = live_sid};
	struct view v = packet(0, OPCODE_ACK_V1, 0, &client_sid, &body, buf);
	assert_int_equal(initial_judge(&s, v, &from, 0, BOOT_S, one_is_live, NULL).verdict,
			 INITIAL_DROP);
	live_sid.bytes[0] ^= 1;
	assert_int_equal(initial_judge(&s, v, &from, 0, BOOT_S, one_is_live, NULL).verdict,
			 INITIAL_ACCEPT);
}

static void the_second_reset_of_routeros_is_not_answered(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	uint8_t buf[CONTROL_PACKET_MAX];
	struct view v = packet(0, OPCODE_HARD_RESET_CLIENT_V2, 0, &client_sid,
			       &(struct control_body){.message_id = 1}, buf);
	assert_int_equal(judge(0, v, &from, BOOT_S).verdict, INITIAL_DROP);
}

/* Scanners put bytes behind the reset: they are not looked at. */
static void payload_of_a_reset_is_ignored(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	uint8_t buf[CONTROL_PACKET_MAX];
	static const uint8_t rubbish[4] = {0xFF, 0xFF, 0xFF, 0xFF};
	struct view v = packet(0, OPCODE_HARD_RESET_CLIENT_V2, 0, &client_sid,
			       &(struct control_body){.payload = {rubbish, 4}}, buf);
	assert_int_equal(judge(0, v, &from, BOOT_S).verdict, INITIAL_RESET);
}

/* security.md, N1: every length up to 60 of every opcode and key-id. */
static void rubbish_gets_no_answer(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	for (int mode = 0; mode < 3; mode++) {
		for (unsigned first = 0; first < 256; first++) {
			for (size_t len = 0; len <= 60; len++) {
				uint8_t *exact = malloc(len ? len : 1);
				assert_non_null(exact);
				memset(exact, 0, len);
				if (len > 0)
					exact[0] = (uint8_t)first;
				if (len > 8)
					exact[8] = 1; /* session-id is not zero */
				struct initial_result r =
					judge(mode, (struct view){exact, len}, &from, BOOT_S);
				bool is_reset = mode == WRAP_NONE && first == 0x38 && len >= 14;
				assert_int_equal(r.verdict,
						 is_reset ? INITIAL_RESET : INITIAL_DROP);
				if (!is_reset)
					assert_int_not_equal(r.drop, DROP_NONE);
				free(exact);
			}
		}
	}
}

static void cheap_checks_come_first(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	static const struct {
		enum opcode op;
		uint8_t key_id;
		uint8_t sid_byte;
		enum drop drop;
	} cases[] = {
		{OPCODE_HARD_RESET_SERVER_V2, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_SOFT_RESET_V1, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_HARD_RESET_CLIENT_V3, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_CONTROL_WKC_V1, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_DATA_V1, 0, 1, DROP_BAD_OPCODE},
		{OPCODE_HARD_RESET_CLIENT_V2, 1, 1, DROP_CONTROL_SESSION},
		{OPCODE_HARD_RESET_CLIENT_V2, 0, 0, DROP_CONTROL_SESSION},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct session_id sid = {{0, 0, 0, 0, 0, 0, 0, cases[i].sid_byte}};
		struct view v = packet(WRAP_TLS_AUTH, cases[i].op, cases[i].key_id, &sid,
				       &(struct control_body){0}, buf);
		assert_int_equal(judge(WRAP_TLS_AUTH, v, &from, BOOT_S).drop, cases[i].drop);
	}
}

static void every_bit_of_a_wrapped_reset_counts(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	for (int mode = WRAP_TLS_AUTH; mode <= WRAP_TLS_CRYPT; mode++) {
		uint8_t buf[CONTROL_PACKET_MAX];
		struct view v = packet(mode, OPCODE_HARD_RESET_CLIENT_V2, 0, &client_sid,
				       &(struct control_body){0}, buf);
		for (size_t bit = 0; bit < v.len * 8; bit++) {
			buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(judge(mode, v, &from, BOOT_S).verdict, INITIAL_DROP);
			buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_int_equal(judge(mode, v, &from, BOOT_S).verdict, INITIAL_RESET);
	}
}

/* A hand-window of 0 must not divide by zero. */
static void tiny_hand_windows_work(void **state)
{
	(void)state;
	const union sockaddr_any from = address("192.0.2.1", 1000);
	for (uint32_t hand_window_s = 0; hand_window_s < 3; hand_window_s++) {
		struct initial_settings s = settings(0);
		s.hand_window_s = hand_window_s;
		uint8_t out[64];
		struct initial_result r = {.verdict = INITIAL_RESET, .client_sid = client_sid};
		assert_int_equal(initial_reply(&s, &r, &from, 0, BOOT_S, WALL_S, out, sizeof(out)),
				 26);
	}
}

/* --- limits --- */

static struct initial_limit *limit(uint32_t burst, uint32_t per_s, uint32_t total)
{
	struct initial_limit *l;
	const struct initial_limit_setup s = {burst, per_s, total};
	assert_int_equal(initial_limit_new(&s, &l), 0);
	return l;
}

static unsigned take_all(struct initial_limit *l, const union sockaddr_any *from, uint64_t now_ms)
{
	unsigned n = 0;
	while (n < 100000 && initial_limit_take(l, from, now_ms))
		n++;
	return n;
}

static void a_prefix_has_its_burst_then_its_rate(void **state)
{
	(void)state;
	struct initial_limit *l = limit(500, 100, 20000);
	const union sockaddr_any a = address("192.0.2.1", 1), b = address("192.0.2.2", 1);
	assert_int_equal(take_all(l, &a, 1000), 500);
	assert_int_equal(take_all(l, &a, 1009), 0);
	assert_int_equal(take_all(l, &a, 1010), 1);
	assert_int_equal(take_all(l, &a, 2010), 100);
	assert_int_equal(take_all(l, &a, 2010 + 3600000), 500);
	assert_int_equal(take_all(l, &b, 1000), 500);
	initial_limit_free(l);
}

static void a_prefix_is_an_address_or_a_56(void **state)
{
	(void)state;
	struct initial_limit *l = limit(10, 1, 20000);
	const union sockaddr_any same[] = {address6("2001:db8:1:100::1", 1),
					   address6("2001:db8:1:1ff::2", 2)};
	const union sockaddr_any other = address6("2001:db8:1:200::1", 1);
	const union sockaddr_any v4 = address("192.0.2.1", 1),
				 mapped = address6("::ffff:192.0.2.1", 9);
	assert_int_equal(take_all(l, &same[0], 1000), 10);
	assert_int_equal(take_all(l, &same[1], 1000), 0);
	assert_int_equal(take_all(l, &other, 1000), 10);
	assert_int_equal(take_all(l, &v4, 1000), 10);
	assert_int_equal(take_all(l, &mapped, 1000), 0);
	initial_limit_free(l);
}

static void all_together_are_limited(void **state)
{
	(void)state;
	struct initial_limit *l = limit(500, 100, 1000);
	unsigned taken = 0;
	for (uint32_t i = 0; i < 50000; i++) {
		union sockaddr_any from = address("10.0.0.1", 1);
		from.in4.sin_addr.s_addr = htonl(0x0A000000 + i);
		taken += initial_limit_take(l, &from, 1000);
	}
	assert_int_equal(taken, 1000);
	const union sockaddr_any from = address("192.0.2.1", 1);
	assert_false(initial_limit_take(l, &from, 1000));
	assert_true(initial_limit_take(l, &from, 1001));
	initial_limit_free(l);
}

static void a_completed_handshake_gives_its_token_back(void **state)
{
	(void)state;
	struct initial_limit *l = limit(3, 1, 100);
	const union sockaddr_any a = address("192.0.2.1", 1), unknown = address("192.0.2.9", 1);
	assert_int_equal(take_all(l, &a, 1000), 3);
	initial_limit_give(l, &a);
	initial_limit_give(l, &unknown);
	assert_int_equal(take_all(l, &a, 1000), 1);
	for (int i = 0; i < 10; i++) /* never more than the burst */
		initial_limit_give(l, &a);
	assert_int_equal(take_all(l, &a, 1000), 3);
	initial_limit_free(l);
}

static void time_that_stands_or_goes_back_gives_nothing(void **state)
{
	(void)state;
	struct initial_limit *l = limit(2, 1000, 1000);
	const union sockaddr_any a = address("192.0.2.1", 1);
	assert_int_equal(take_all(l, &a, 5000), 2);
	assert_int_equal(take_all(l, &a, 4000), 0);
	assert_int_equal(take_all(l, &a, 4001), 1);
	initial_limit_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_is_answered_with_little),
		cmocka_unit_test(a_right_cookie_is_accepted),
		cmocka_unit_test(cookies_live_for_three_slots),
		cmocka_unit_test(a_cookie_is_bound_to_where_it_was_made),
		cmocka_unit_test(no_bit_of_a_cookie_may_be_wrong),
		cmocka_unit_test(a_cookie_of_another_process_opens_nothing),
		cmocka_unit_test(a_cookie_is_a_tag_cut_to_a_session_id),
		cmocka_unit_test(answers_that_open_nothing),
		cmocka_unit_test(a_live_session_is_not_opened_twice),
		cmocka_unit_test(the_second_reset_of_routeros_is_not_answered),
		cmocka_unit_test(payload_of_a_reset_is_ignored),
		cmocka_unit_test(rubbish_gets_no_answer),
		cmocka_unit_test(cheap_checks_come_first),
		cmocka_unit_test(every_bit_of_a_wrapped_reset_counts),
		cmocka_unit_test(tiny_hand_windows_work),
		cmocka_unit_test(a_prefix_has_its_burst_then_its_rate),
		cmocka_unit_test(a_prefix_is_an_address_or_a_56),
		cmocka_unit_test(all_together_are_limited),
		cmocka_unit_test(a_completed_handshake_gives_its_token_back),
		cmocka_unit_test(time_that_stands_or_goes_back_gives_nothing),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
