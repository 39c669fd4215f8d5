/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams, decrypted messages and requests into a session of either role, before and after its
 * handshake. First byte: wrapping (2 bits), whether the handshake comes first, which end. Then
 * records: kind, length, bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/session_state.h"
#include "tests/support/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define RECORDS_MAX 64

/* What a peer that holds the wrapping key can build: first byte, then the body. */
static void give_sealed(struct link *l, int to, struct view v)
{
	struct session *peer = l->ends[1 - to].session;
	uint8_t out[CONTROL_PACKET_MAX];
	struct writer w = writer_init(out, sizeof(out));
	uint32_t packet_id = 0, time = 0;
	if (v.len < 1 || !peer)
		return;
	uint8_t key_id = packet_key_id(v.data[0]);
	bool is_dynamic = key_id > 0 && peer->dynamic_keys;
	if (!wrap_state_next(is_dynamic ? &peer->dynamic_wrap : &peer->wrap, link_wall_s(l),
			     &packet_id, &time))
		return;
	wrap_seal(is_dynamic ? peer->dynamic_keys : l->wraps[1 - to],
		  (enum opcode)packet_opcode(v.data[0]), key_id, session_own_sid(peer), packet_id,
		  time, (struct view){v.data + 1, v.len - 1}, &w);
	if (writer_ok(&w))
		(void)!session_receive(l->ends[to].session, writer_done(&w), l->now_ms);
}

/* What a peer that finished TLS can say. */
static void give_plaintext(struct link *l, int to, struct view v)
{
	struct session *peer = l->ends[1 - to].session;
	if (v.len > 0 && peer && !peer->is_dead && key_state_is_open(peer->primary) &&
	    tls_output_left(peer->primary->tls) < 32768)
		(void)!tls_write(peer->primary->tls, v);
}

static void give_command(struct link *l, int end, struct view v)
{
	char text[256];
	size_t n = v.len < sizeof(text) - 1 ? v.len : sizeof(text) - 1;
	memcpy(text, v.data, n);
	text[n] = '\0';
	(void)!session_command(l->ends[end].session, text);
}

static void apply(struct link *l, int to, uint8_t kind, struct view v)
{
	struct session *s = l->ends[to].session;
	switch (kind % 8) {
	case 0:
		(void)!session_receive(s, v, l->now_ms);
		break;
	case 1:
		give_sealed(l, to, v);
		break;
	case 2:
		give_plaintext(l, to, v);
		break;
	case 3:
		link_run(l, v.len ? v.data[0] * UINT64_C(250) : 100, NULL);
		break;
	case 4:
		session_renegotiate(l->ends[kind / 8 % 2].session);
		break;
	case 5:
		session_close(s, SESSION_REASON_LOCAL, l->now_ms, kind * 100u);
		break;
	case 6:
		if (v.len > 0)
			give_command(l, to, v);
		break;
	case 7:
		session_authorize(s, kind / 8, kind & 0x40, NULL, l->now_ms);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader in = reader_init(data, len);
	uint8_t mode = reader_u8(&in);
	int to = mode & 8 ? LINK_CLIENT : LINK_SERVER;
	struct link *l = link_new(&(struct link_setup){
		.wrap = (enum wrap_mode)(mode % 4 % 3),
		.is_held = mode & 16,
		.tls_version = mode & 32 ? 12 : 13,
		.seed = 1,
	});
	if (mode & 4)
		link_run(l, 5000, link_is_up);
	else
		link_accept(l);
	for (unsigned n = 0; n < RECORDS_MAX && reader_left(&in) >= 2; n++) {
		uint8_t kind = reader_u8(&in), size = reader_u8(&in);
		struct view v = reader_bytes(&in, size);
		if (l->ends[to].is_closed || l->ends[1 - to].is_closed)
			break;
		apply(l, to, kind, v);
	}
	link_run(l, 200000, NULL);
	link_free(l);
	return 0;
}
