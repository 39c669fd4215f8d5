/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/packet.h"

#include <string.h>

bool packet_is_control(uint8_t opcode)
{
	return opcode >= OPCODE_SOFT_RESET_V1 && opcode <= OPCODE_CONTROL_WKC_V1 &&
	       opcode != OPCODE_DATA_V1 && opcode != OPCODE_DATA_V2;
}

bool session_id_is_zero(const struct session_id *sid)
{
	static const struct session_id zero;
	return session_id_equal(sid, &zero);
}

bool session_id_equal(const struct session_id *a, const struct session_id *b)
{
	return memcmp(a->bytes, b->bytes, SESSION_ID_LEN) == 0;
}

bool control_body_read(struct reader *r, enum opcode op, struct control_body *out)
{
	*out = (struct control_body){0};
	out->ack_count = reader_u8(r);
	if (out->ack_count > ACK_MAX)
		return false;
	for (unsigned i = 0; i < out->ack_count; i++)
		out->acks[i] = reader_u32(r);
	if (out->ack_count > 0)
		reader_copy(r, out->peer_sid.bytes, SESSION_ID_LEN);
	/* Bytes behind the acks of an ACK mean nothing; stock ignores them too. */
	if (op == OPCODE_ACK_V1)
		return reader_ok(r);
	out->message_id = reader_u32(r);
	out->payload = reader_rest(r);
	return reader_done(r);
}

void control_body_write(struct writer *w, enum opcode op, const struct control_body *body)
{
	writer_u8(w, body->ack_count);
	for (unsigned i = 0; i < body->ack_count; i++)
		writer_u32(w, body->acks[i]);
	if (body->ack_count > 0)
		writer_bytes(w, body->peer_sid.bytes, SESSION_ID_LEN);
	if (op == OPCODE_ACK_V1)
		return;
	writer_u32(w, body->message_id);
	writer_view(w, body->payload);
}
