/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_PACKET_H
#define CRYPTO_PACKET_H

/* Packet headers: opcode, key-id, peer-id, session-id, and the body of a control packet. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/bytes.h"

enum opcode {
	OPCODE_SOFT_RESET_V1 = 3,
	OPCODE_CONTROL_V1 = 4,
	OPCODE_ACK_V1 = 5,
	OPCODE_DATA_V1 = 6,
	OPCODE_HARD_RESET_CLIENT_V2 = 7,
	OPCODE_HARD_RESET_SERVER_V2 = 8,
	OPCODE_DATA_V2 = 9,
	OPCODE_HARD_RESET_CLIENT_V3 = 10,
	OPCODE_CONTROL_WKC_V1 = 11,
};

#define SESSION_ID_LEN	 8
#define ACK_MAX		 8	   /* acks in one control packet */
#define PEER_ID_NONE	 0xFFFFFFu /* "no peer-id" of a P_DATA_V2 header */
#define CONTROL_HEAD_LEN 9	   /* opcode byte and session-id */

struct session_id {
	uint8_t bytes[SESSION_ID_LEN];
};

/* Body of a control packet, in clear. For OPCODE_ACK_V1 there is no message id and no payload. */
struct control_body {
	uint8_t ack_count; /* 0..ACK_MAX */
	uint32_t acks[ACK_MAX];
	struct session_id peer_sid; /* valid if ack_count > 0: session-id of the receiver */
	uint32_t message_id;
	struct view payload;
};

static inline uint8_t packet_opcode(uint8_t first)
{
	return first >> 3;
}

static inline uint8_t packet_key_id(uint8_t first)
{
	return first & 7;
}

static inline uint8_t packet_first_byte(enum opcode op, uint8_t key_id)
{
	return (uint8_t)((unsigned)op << 3 | (key_id & 7u));
}

/* Opcodes 3..11 without the two data opcodes. */
bool packet_is_control(uint8_t opcode);
bool session_id_is_zero(const struct session_id *sid);
bool session_id_equal(const struct session_id *a, const struct session_id *b);

/* Read the body of a control packet with opcode `op` (wire.md, section 2). The payload is a view
 * into the reader's input. Returns false if malformed; `out` is then unspecified. */
bool control_body_read(struct reader *r, enum opcode op, struct control_body *out);
/* Write it; the writer fails if there is no room. */
void control_body_write(struct writer *w, enum opcode op, const struct control_body *body);

#endif
