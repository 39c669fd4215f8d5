/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/wrap.h"
#include "tests/support/hex.h"

#define TIME 0x65000000u

static struct static_key counting; /* 00 01 .. ff, the key of all vectors */

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STATIC_KEY_LEN; i++)
		counting.bytes[i] = (uint8_t)i;
	return 0;
}

static struct wrap_keys *keys_of(enum wrap_mode mode, enum key_direction d, const char *digest)
{
	struct wrap_keys *k;
	assert_int_equal(wrap_keys_new(mode, mode == WRAP_NONE ? NULL : &counting, d, digest, &k),
			 0);
	return k;
}

#define CLIENT_SID "0102030405060708"
#define SERVER_SID "1112131415161718"

/* wire.md, section 15; the plain reset: section 2.1. */
static const struct {
	const char *what;
	enum wrap_mode mode;
	enum key_direction sender, receiver;
	enum opcode op;
	const char *sid, *body, *wire;
} vectors[] = {
	{"plain", WRAP_NONE, KEY_DIRECTION_NONE, KEY_DIRECTION_NONE, OPCODE_HARD_RESET_CLIENT_V2,
	 CLIENT_SID, "0000000000", "38" CLIENT_SID "0000000000"},
	{"tls-auth, client direction 1", WRAP_TLS_AUTH, KEY_DIRECTION_1, KEY_DIRECTION_0,
	 OPCODE_HARD_RESET_CLIENT_V2, CLIENT_SID, "0000000000",
	 "38" CLIENT_SID "602941d9a95a08dd2d0892de37cd48c0953c7742 0000000165000000 0000000000"},
	{"tls-auth, no direction", WRAP_TLS_AUTH, KEY_DIRECTION_NONE, KEY_DIRECTION_NONE,
	 OPCODE_HARD_RESET_CLIENT_V2, CLIENT_SID, "0000000000",
	 "38" CLIENT_SID "83fe3c468ab30a06c73e615e80ad44f527f758b2 0000000165000000 0000000000"},
	{"tls-crypt, to the server", WRAP_TLS_CRYPT, KEY_DIRECTION_1, KEY_DIRECTION_0,
	 OPCODE_HARD_RESET_CLIENT_V2, CLIENT_SID, "0000000000",
	 "38" CLIENT_SID "0000000165000000"
	 "cfccca8dc0e5aba43f54ed925ae825837d70281fd40c461fdde5ff4c89d0c5bb 677280b699"},
	{"tls-crypt, to the client", WRAP_TLS_CRYPT, KEY_DIRECTION_0, KEY_DIRECTION_1,
	 OPCODE_HARD_RESET_SERVER_V2, SERVER_SID, "01 00000000 0102030405060708 00000000",
	 "40" SERVER_SID "0000000165000000"
	 "916c21bc5d66000ca71f818325982ca7144e1e830dfa355ba6a36731fc080406"
	 "eb9321d5176ad919439633cb4220c3a5bb"},
};
#define VECTOR_COUNT (sizeof(vectors) / sizeof(vectors[0]))

static size_t vector_wire(size_t i, uint8_t wire[128])
{
	return from_hex(vectors[i].wire, wire, 128);
}

static struct wrap_keys *receiver_of(size_t i)
{
	return keys_of(vectors[i].mode, vectors[i].receiver, "SHA1");
}

static void wrap_seal_gives_the_known_packets(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		uint8_t wire[128], body[64], out[128];
		struct session_id sid;
		struct wrap_keys *k = keys_of(vectors[i].mode, vectors[i].sender, "SHA1");
		size_t wire_len = vector_wire(i, wire);
		size_t body_len = from_hex(vectors[i].body, body, sizeof(body));
		from_hex(vectors[i].sid, sid.bytes, SESSION_ID_LEN);
		struct view v = {body, body_len};
		struct writer w = writer_init(out, wire_len);
		wrap_seal(k, vectors[i].op, 0, &sid, 1, TIME, v, &w);
		assert_true(writer_ok(&w));
		assert_int_equal(writer_len(&w), wire_len);
		assert_memory_equal(out, wire, wire_len);
		assert_int_equal(wire_len, CONTROL_HEAD_LEN + wrap_overhead(k) + body_len);
		w = writer_init(out, wire_len - 1);
		wrap_seal(k, vectors[i].op, 0, &sid, 1, TIME, v, &w);
		assert_false(writer_ok(&w));
		wrap_keys_free(k);
	}
}

static void wrap_open_takes_the_known_packets(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		uint8_t wire[128], body[64], scratch[CONTROL_PACKET_MAX];
		struct session_id sid;
		struct wrapped got;
		struct wrap_keys *k = receiver_of(i);
		struct view v = {wire, vector_wire(i, wire)};
		size_t body_len = from_hex(vectors[i].body, body, sizeof(body));
		from_hex(vectors[i].sid, sid.bytes, SESSION_ID_LEN);
		assert_int_equal(wrap_keys_mode(k), vectors[i].mode);
		assert_int_equal(wrap_open(k, v, scratch, &got), DROP_NONE);
		assert_int_equal(got.opcode, vectors[i].op);
		assert_int_equal(got.key_id, 0);
		assert_true(session_id_equal(&got.sid, &sid));
		assert_int_equal(got.packet_id, vectors[i].mode == WRAP_NONE ? 0 : 1);
		assert_int_equal(got.time, vectors[i].mode == WRAP_NONE ? 0 : TIME);
		assert_int_equal(got.body.len, body_len);
		assert_memory_equal(got.body.data, body, body_len);
		wrap_keys_free(k);
	}
}

static void wrap_open_refuses_every_changed_bit(void **state)
{
	(void)state;
	for (size_t i = 1; i < VECTOR_COUNT; i++) {
		uint8_t wire[128], scratch[CONTROL_PACKET_MAX];
		struct wrapped got, before;
		struct wrap_keys *k = receiver_of(i);
		struct view v = {wire, vector_wire(i, wire)};
		memset(&got, 0x5a, sizeof(got));
		before = got;
		for (size_t bit = 0; bit < 8 * v.len; bit++) {
			wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
			enum drop drop = wrap_open(k, v, scratch, &got);
			bool is_control = packet_is_control(packet_opcode(wire[0]));
			assert_int_equal(drop, is_control ? DROP_CONTROL_HMAC : DROP_BAD_OPCODE);
			wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_memory_equal(&got, &before, sizeof(got));
		wrap_keys_free(k);
	}
}

static void wrap_open_refuses_every_truncation(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		uint8_t wire[128], scratch[CONTROL_PACKET_MAX];
		struct wrapped got;
		struct wrap_keys *k = receiver_of(i);
		size_t len = vector_wire(i, wire);
		size_t least = CONTROL_HEAD_LEN + wrap_overhead(k);
		for (size_t cut = 0; cut < len; cut++) {
			struct view v = {wire, cut};
			enum drop drop = wrap_open(k, v, scratch, &got);
			if (cut < least)
				assert_int_equal(drop, DROP_SHORT);
			else
				assert_int_equal(drop, vectors[i].mode == WRAP_NONE
							       ? DROP_NONE
							       : DROP_CONTROL_HMAC);
		}
		wrap_keys_free(k);
	}
}

static void wrap_open_refuses_data_and_unknown_opcodes(void **state)
{
	(void)state;
	static const uint8_t firsts[] = {0x00, 0x08, 0x10, 0x30, 0x48, 0x60, 0xf8};
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		uint8_t wire[128], scratch[CONTROL_PACKET_MAX];
		struct wrapped got;
		struct wrap_keys *k = receiver_of(i);
		struct view v = {wire, vector_wire(i, wire)};
		for (size_t f = 0; f < sizeof(firsts); f++) {
			wire[0] = firsts[f];
			assert_int_equal(wrap_open(k, v, scratch, &got), DROP_BAD_OPCODE);
		}
		wrap_keys_free(k);
	}
}

/* A packet sent back to its sender, or with the other kind of wrapping. */
static void wrap_open_refuses_its_own_and_foreign_packets(void **state)
{
	(void)state;
	uint8_t wire[128], scratch[CONTROL_PACKET_MAX];
	struct wrapped got;
	static const size_t directed[] = {1, 3, 4};
	for (size_t i = 0; i < 3; i++) {
		struct wrap_keys *k =
			keys_of(vectors[directed[i]].mode, vectors[directed[i]].sender, "SHA1");
		struct view v = {wire, vector_wire(directed[i], wire)};
		assert_int_equal(wrap_open(k, v, scratch, &got), DROP_CONTROL_HMAC);
		wrap_keys_free(k);
	}
	struct wrap_keys *other_digest = keys_of(WRAP_TLS_AUTH, KEY_DIRECTION_0, "MD5");
	struct view v = {wire, vector_wire(1, wire)};
	assert_int_equal(wrap_open(other_digest, v, scratch, &got), DROP_CONTROL_HMAC);
	v.len = vector_wire(4, wire);
	assert_int_equal(wrap_open(other_digest, v, scratch, &got), DROP_CONTROL_HMAC);
	wrap_keys_free(other_digest);
}

static void round_trip(const struct wrap_keys *from, const struct wrap_keys *to, size_t body_len)
{
	static const struct session_id sid = {{8, 7, 6, 5, 4, 3, 2, 1}};
	uint8_t body[CONTROL_PACKET_MAX], out[CONTROL_PACKET_MAX], scratch[CONTROL_PACKET_MAX];
	struct wrapped got;
	for (size_t i = 0; i < body_len; i++)
		body[i] = (uint8_t)(i * 7 + body_len);
	struct writer w = writer_init(out, sizeof(out));
	wrap_seal(from, OPCODE_CONTROL_V1, 5, &sid, 77, TIME + 1, (struct view){body, body_len},
		  &w);
	assert_true(writer_ok(&w));
	assert_int_equal(wrap_open(to, writer_done(&w), scratch, &got), DROP_NONE);
	assert_int_equal(got.opcode, OPCODE_CONTROL_V1);
	assert_int_equal(got.key_id, 5);
	assert_int_equal(got.body.len, body_len);
	if (body_len)
		assert_memory_equal(got.body.data, body, body_len);
	if (wrap_keys_mode(to) != WRAP_NONE)
		assert_int_equal(got.packet_id, 77);
}

static void wrap_carries_bodies_of_every_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct wrap_keys *from = keys_of(vectors[i].mode, vectors[i].sender, "SHA1");
		struct wrap_keys *to = receiver_of(i);
		size_t most = CONTROL_PACKET_MAX - CONTROL_HEAD_LEN - wrap_overhead(from);
		for (size_t len = 0; len <= 100; len++)
			round_trip(from, to, len);
		round_trip(from, to, most);
		wrap_keys_free(from);
		wrap_keys_free(to);
	}
}

static void wrap_open_refuses_what_no_scratch_holds(void **state)
{
	(void)state;
	uint8_t wire[CONTROL_PACKET_MAX + 1] = {0x20}, scratch[CONTROL_PACKET_MAX];
	struct wrapped got;
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		struct wrap_keys *k = receiver_of(i);
		struct view v = {wire, sizeof(wire)};
		assert_int_equal(wrap_open(k, v, scratch, &got), DROP_CONTROL_MALFORMED);
		v.len--;
		assert_int_equal(wrap_open(k, v, scratch, &got),
				 vectors[i].mode == WRAP_NONE ? DROP_NONE : DROP_CONTROL_HMAC);
		wrap_keys_free(k);
	}
}

static void wrap_takes_every_digest_of_auth(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned overhead;
	} rows[] = {{"MD5", 24},      {"SHA1", 28},	  {"sha1", 28},	     {"SHA224", 36},
		    {"SHA256", 40},   {"SHA384", 56},	  {"SHA512", 72},    {"SHA512-256", 40},
		    {"SHA3-256", 40}, {"RSA-SHA256", 40}, {"BLAKE2b512", 72}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wrap_keys *a = keys_of(WRAP_TLS_AUTH, KEY_DIRECTION_0, rows[i].name);
		struct wrap_keys *b = keys_of(WRAP_TLS_AUTH, KEY_DIRECTION_1, rows[i].name);
		assert_int_equal(wrap_overhead(a), rows[i].overhead);
		assert_true(rows[i].overhead <= WRAP_OVERHEAD_MAX);
		round_trip(a, b, 50);
		round_trip(b, a, 50);
		wrap_keys_free(a);
		wrap_keys_free(b);
	}
}

static void zero_field(struct static_key *k, unsigned field)
{
	*k = counting;
	memset(k->bytes + (size_t)field * STATIC_KEY_FIELD, 0, STATIC_KEY_FIELD);
}

static void wrap_keys_new_refuses_bad_keys_and_digests(void **state)
{
	(void)state;
	struct wrap_keys *k = NULL;
	struct static_key bad;
	static const char *const digests[] = {"none", "", "SHA-0", "AES-256-GCM", "SHAKE256"};
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
		assert_int_equal(
			wrap_keys_new(WRAP_TLS_AUTH, &counting, KEY_DIRECTION_0, digests[i], &k),
			-EINVAL);
	for (unsigned field = 0; field < 4; field++) {
		zero_field(&bad, field);
		assert_int_equal(wrap_keys_new(WRAP_TLS_CRYPT, &bad, KEY_DIRECTION_0, NULL, &k),
				 -EINVAL);
	}
	assert_int_equal(wrap_keys_new(WRAP_TLS_CRYPT, &counting, KEY_DIRECTION_NONE, NULL, &k),
			 -EINVAL);
	zero_field(&bad, 3);
	assert_int_equal(wrap_keys_new(WRAP_TLS_AUTH, &bad, KEY_DIRECTION_1, "SHA1", &k), -EINVAL);
	assert_null(k);
	/* tls-auth has no use for the cipher fields, nor for key1 without a direction. */
	assert_int_equal(wrap_keys_new(WRAP_TLS_AUTH, &bad, KEY_DIRECTION_NONE, "SHA1", &k), 0);
	wrap_keys_free(k);
	wrap_keys_free(NULL);
}

static void *open_many(void *arg)
{
	const struct wrap_keys *k = arg;
	uint8_t wire[128], scratch[CONTROL_PACKET_MAX];
	uintptr_t failed = 0;
	struct view v = {wire, vector_wire(wrap_keys_mode(k) == WRAP_TLS_CRYPT ? 3 : 1, wire)};
	for (unsigned i = 0; i < 2000; i++) {
		struct wrapped got;
		wire[v.len - 1] ^= i % 2;
		bool is_ok = wrap_open(k, v, scratch, &got) == DROP_NONE;
		failed += is_ok != (i % 2 == 0);
		wire[v.len - 1] ^= i % 2;
	}
	return (void *)failed;
}

static void wrap_keys_serve_threads_at_once(void **state)
{
	(void)state;
	static const size_t which[] = {1, 3};
	for (size_t i = 0; i < 2; i++) {
		struct wrap_keys *k = receiver_of(which[i]);
		pthread_t threads[4];
		for (unsigned t = 0; t < 4; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, open_many, k), 0);
		for (unsigned t = 0; t < 4; t++) {
			void *failed;
			assert_int_equal(pthread_join(threads[t], &failed), 0);
			assert_null(failed);
		}
		wrap_keys_free(k);
	}
}

static void wrap_state_counts_from_one_with_a_fixed_time(void **state)
{
	(void)state;
	struct wrap_state s;
	uint32_t id, time;
	wrap_state_init(&s, 64, 15);
	assert_true(wrap_state_next(&s, TIME, &id, &time));
	assert_int_equal(id, 1);
	assert_int_equal(time, TIME);
	assert_true(wrap_state_next(&s, TIME + 50, &id, &time));
	assert_int_equal(id, 2);
	assert_int_equal(time, TIME);
}

static void wrap_state_restarts_only_if_time_moved(void **state)
{
	(void)state;
	struct wrap_state s;
	uint32_t id = 0, time = 0;
	wrap_state_init(&s, 64, 15);
	assert_true(wrap_state_next(&s, TIME, &id, &time));
	s.send_id = UINT32_MAX - 1;
	assert_true(wrap_state_next(&s, TIME + 9, &id, &time));
	assert_int_equal(id, UINT32_MAX);
	assert_false(wrap_state_next(&s, TIME, &id, &time));
	assert_false(wrap_state_next(&s, TIME - 5, &id, &time));
	assert_true(wrap_state_next(&s, TIME + 9, &id, &time));
	assert_int_equal(id, 1);
	assert_int_equal(time, TIME + 9);
}

static void wrap_state_accepts_each_packet_once(void **state)
{
	(void)state;
	static const struct {
		uint32_t id, time;
		bool is_accepted;
	} rows[] = {
		{0, TIME, false},      {3, TIME, true},
		{3, TIME, false},      {2, TIME, true},
		{1, TIME - 1, false},  {4, TIME - 1, false}, /* an older time */
		{0, TIME + 1, false},  {4, TIME, true},	     /* id 0 does not move the time */
		{1, TIME + 1, true},   {5, TIME, false},     /* a newer time restarts */
		{1, TIME + 1, false},  {100, TIME + 1, true},
		{36, TIME + 1, false}, {37, TIME + 1, true},
	};
	struct wrap_state s;
	wrap_state_init(&s, 128, 15);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(wrap_state_accept(&s, rows[i].id, rows[i].time, 0),
				 rows[i].is_accepted ? DROP_NONE : DROP_CONTROL_REPLAY);
}

static void wrap_state_accepts_the_first_id_of_tls_crypt_v2(void **state)
{
	(void)state;
	struct wrap_state s;
	wrap_state_init(&s, 64, 15);
	assert_int_equal(wrap_state_accept(&s, 0x0f000001, TIME, 0), DROP_NONE);
	assert_int_equal(wrap_state_accept(&s, 0x0f000002, TIME, 0), DROP_NONE);
	assert_int_equal(wrap_state_accept(&s, 2, TIME, 0), DROP_CONTROL_REPLAY);
}

static void wrap_state_without_a_window_is_sequential(void **state)
{
	(void)state;
	static const struct {
		uint32_t id, time;
		bool is_accepted;
	} rows[] = {
		{7, TIME, true},      {9, TIME, false}, {8, TIME, true},     {8, TIME, false},
		{2, TIME + 1, false}, {9, TIME, true},	{1, TIME + 1, true}, {2, TIME + 1, true},
	};
	struct wrap_state s;
	wrap_state_init(&s, 0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(wrap_state_accept(&s, rows[i].id, rows[i].time, 0),
				 rows[i].is_accepted ? DROP_NONE : DROP_CONTROL_REPLAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrap_seal_gives_the_known_packets),
		cmocka_unit_test(wrap_open_takes_the_known_packets),
		cmocka_unit_test(wrap_open_refuses_every_changed_bit),
		cmocka_unit_test(wrap_open_refuses_every_truncation),
		cmocka_unit_test(wrap_open_refuses_data_and_unknown_opcodes),
		cmocka_unit_test(wrap_open_refuses_its_own_and_foreign_packets),
		cmocka_unit_test(wrap_carries_bodies_of_every_length),
		cmocka_unit_test(wrap_open_refuses_what_no_scratch_holds),
		cmocka_unit_test(wrap_takes_every_digest_of_auth),
		cmocka_unit_test(wrap_keys_new_refuses_bad_keys_and_digests),
		cmocka_unit_test(wrap_keys_serve_threads_at_once),
		cmocka_unit_test(wrap_state_counts_from_one_with_a_fixed_time),
		cmocka_unit_test(wrap_state_restarts_only_if_time_moved),
		cmocka_unit_test(wrap_state_accepts_each_packet_once),
		cmocka_unit_test(wrap_state_accepts_the_first_id_of_tls_crypt_v2),
		cmocka_unit_test(wrap_state_without_a_window_is_sequential),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
