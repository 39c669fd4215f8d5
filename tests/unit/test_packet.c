/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/packet.h"
#include "tests/support/hex.h"

/* First bytes of wire.md, section 1. */
static void packet_first_byte_joins_opcode_and_key_id(void **state)
{
	(void)state;
	static const struct {
		enum opcode op;
		uint8_t key_id, byte;
		bool is_control;
	} rows[] = {
		{OPCODE_SOFT_RESET_V1, 0, 0x18, true},
		{OPCODE_CONTROL_V1, 7, 0x27, true},
		{OPCODE_ACK_V1, 0, 0x28, true},
		{OPCODE_DATA_V1, 1, 0x31, false},
		{OPCODE_HARD_RESET_CLIENT_V2, 0, 0x38, true},
		{OPCODE_HARD_RESET_SERVER_V2, 0, 0x40, true},
		{OPCODE_DATA_V2, 5, 0x4d, false},
		{OPCODE_HARD_RESET_CLIENT_V3, 0, 0x50, true},
		{OPCODE_CONTROL_WKC_V1, 0, 0x58, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(packet_first_byte(rows[i].op, rows[i].key_id), rows[i].byte);
		assert_int_equal(packet_opcode(rows[i].byte), rows[i].op);
		assert_int_equal(packet_key_id(rows[i].byte), rows[i].key_id);
		assert_int_equal(packet_is_control((uint8_t)rows[i].op), rows[i].is_control);
	}
}

static void packet_is_control_refuses_unknown_opcodes(void **state)
{
	(void)state;
	static const uint8_t others[] = {0, 1, 2, 12, 13, 31};
	for (size_t i = 0; i < sizeof(others); i++)
		assert_false(packet_is_control(others[i]));
}

static void session_id_compares_all_bytes(void **state)
{
	(void)state;
	struct session_id a = {{0}}, b = {{0}};
	assert_true(session_id_is_zero(&a));
	assert_true(session_id_equal(&a, &b));
	for (unsigned i = 0; i < SESSION_ID_LEN; i++) {
		b.bytes[i] = 0x80;
		assert_false(session_id_is_zero(&b));
		assert_false(session_id_equal(&a, &b));
		b.bytes[i] = 0;
	}
}

/* Bodies as on the wire, each read and written back. */
static const struct {
	const char *what;
	enum opcode op;
	const char *hex;
	uint8_t ack_count;
	uint32_t last_ack, message_id;
	size_t payload_len;
} bodies[] = {
	{"client reset", OPCODE_HARD_RESET_CLIENT_V2, "00 00000000", 0, 0, 0, 0},
	{"server reset", OPCODE_HARD_RESET_SERVER_V2, "01 00000000 0102030405060708 00000000", 1, 0,
	 0, 0},
	{"control", OPCODE_CONTROL_V1, "02 00000001 fffffffe 0102030405060708 00000003 160301", 2,
	 0xfffffffe, 3, 3},
	{"ack", OPCODE_ACK_V1, "01 00000007 0102030405060708", 1, 7, 0, 0},
	{"full ack", OPCODE_ACK_V1,
	 "08 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008"
	 "0102030405060708",
	 8, 8, 0, 0},
	{"ack of nothing", OPCODE_ACK_V1, "00", 0, 0, 0, 0},
};
#define BODY_COUNT (sizeof(bodies) / sizeof(bodies[0]))

static void control_body_is_read_and_written_alike(void **state)
{
	(void)state;
	static const struct session_id sid = {{1, 2, 3, 4, 5, 6, 7, 8}};
	for (size_t i = 0; i < BODY_COUNT; i++) {
		uint8_t wire[64], out[64];
		size_t len = from_hex(bodies[i].hex, wire, sizeof(wire));
		struct reader r = reader_init(wire, len);
		struct control_body b;
		assert_true(control_body_read(&r, bodies[i].op, &b));
		assert_int_equal(b.ack_count, bodies[i].ack_count);
		assert_int_equal(b.message_id, bodies[i].message_id);
		assert_int_equal(b.payload.len, bodies[i].payload_len);
		if (b.ack_count > 0) {
			assert_int_equal(b.acks[b.ack_count - 1], bodies[i].last_ack);
			assert_true(session_id_equal(&b.peer_sid, &sid));
		}
		struct writer w = writer_init(out, len);
		control_body_write(&w, bodies[i].op, &b);
		assert_true(writer_ok(&w));
		assert_int_equal(writer_len(&w), len);
		assert_memory_equal(out, wire, len);
		w = writer_init(out, len - 1);
		control_body_write(&w, bodies[i].op, &b);
		assert_false(writer_ok(&w));
	}
}

/* A cut before the payload is malformed; inside it the payload is shorter. */
static void control_body_refuses_every_truncation(void **state)
{
	(void)state;
	for (size_t i = 0; i < BODY_COUNT; i++) {
		uint8_t wire[64];
		size_t len = from_hex(bodies[i].hex, wire, sizeof(wire));
		for (size_t cut = 0; cut < len - bodies[i].payload_len; cut++) {
			struct reader r = reader_init(wire, cut);
			struct control_body b;
			assert_false(control_body_read(&r, bodies[i].op, &b));
		}
	}
}

static void control_body_refuses_nine_acks(void **state)
{
	(void)state;
	uint8_t wire[1 + 9 * 4 + SESSION_ID_LEN + 4] = {9};
	struct reader r = reader_init(wire, sizeof(wire));
	struct control_body b;
	assert_false(control_body_read(&r, OPCODE_CONTROL_V1, &b));
	wire[0] = 255;
	r = reader_init(wire, sizeof(wire));
	assert_false(control_body_read(&r, OPCODE_ACK_V1, &b));
}

static void control_body_ignores_what_follows_an_ack(void **state)
{
	(void)state;
	uint8_t wire[32];
	size_t len = from_hex("01 00000007 0102030405060708 0000", wire, sizeof(wire));
	struct reader r = reader_init(wire, len);
	struct control_body b;
	assert_true(control_body_read(&r, OPCODE_ACK_V1, &b));
	assert_int_equal(b.payload.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_first_byte_joins_opcode_and_key_id),
		cmocka_unit_test(packet_is_control_refuses_unknown_opcodes),
		cmocka_unit_test(session_id_compares_all_bytes),
		cmocka_unit_test(control_body_is_read_and_written_alike),
		cmocka_unit_test(control_body_refuses_every_truncation),
		cmocka_unit_test(control_body_refuses_nine_acks),
		cmocka_unit_test(control_body_ignores_what_follows_an_ack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
