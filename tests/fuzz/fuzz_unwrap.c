/* SPDX-License-Identifier: Apache-2.0 */
/* Control packets under every wrapping. The first input byte chooses keys and what is done:
 *   0x80 clear: the rest is a datagram of a stranger. It may be opened (the seeds are the vectors
 * of the protocol), and then its body must lie in the datagram or in scratch, and sealing it again
 * gives the same datagram. 0x80 set:   the rest is a body that we seal ourselves. It must come back
 * whole, and must not once a bit of it is changed. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/wrap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

struct pair {
	struct wrap_keys *client, *server;
};
#define PAIR_COUNT 5
static struct pair pairs[PAIR_COUNT];

static void make(struct pair *p, enum wrap_mode mode, bool is_directed, const char *digest)
{
	struct static_key key;
	for (unsigned i = 0; i < STATIC_KEY_LEN; i++)
		key.bytes[i] = (uint8_t)i;
	enum key_direction client = is_directed ? KEY_DIRECTION_1 : KEY_DIRECTION_NONE;
	enum key_direction server = is_directed ? KEY_DIRECTION_0 : KEY_DIRECTION_NONE;
	require(wrap_keys_new(mode, &key, client, digest, &p->client) == 0);
	require(wrap_keys_new(mode, &key, server, digest, &p->server) == 0);
}

static void make_all(void)
{
	if (pairs[0].client)
		return;
	make(&pairs[0], WRAP_NONE, false, NULL);
	make(&pairs[1], WRAP_TLS_AUTH, true, "SHA1");
	make(&pairs[2], WRAP_TLS_AUTH, false, "SHA1");
	make(&pairs[3], WRAP_TLS_CRYPT, true, NULL);
	make(&pairs[4], WRAP_TLS_AUTH, true, "SHA512");
}

static bool lies_in(struct view inner, const uint8_t *outer, size_t len)
{
	return inner.len == 0 || (inner.data >= outer && inner.data + inner.len <= outer + len);
}

static void check_datagram(const struct pair *p, struct view datagram)
{
	static uint8_t scratch[CONTROL_PACKET_MAX];
	uint8_t again[CONTROL_PACKET_MAX];
	struct wrapped got;
	enum drop drop = wrap_open(p->server, datagram, scratch, &got);
	require(drop < DROP_COUNT);
	if (drop != DROP_NONE)
		return;
	require(packet_is_control((uint8_t)got.opcode) && got.key_id <= 7);
	require(lies_in(got.body, datagram.data, datagram.len) ||
		lies_in(got.body, scratch, sizeof(scratch)));
	struct writer w = writer_init(again, sizeof(again));
	wrap_seal(p->client, got.opcode, got.key_id, &got.sid, got.packet_id, got.time, got.body,
		  &w);
	require(writer_ok(&w) && writer_len(&w) == datagram.len);
	require(memcmp(again, datagram.data, datagram.len) == 0);
}

static void check_body(const struct pair *p, struct view body)
{
	static uint8_t scratch[CONTROL_PACKET_MAX];
	uint8_t out[CONTROL_PACKET_MAX];
	const struct session_id sid = {{1, 2, 3}};
	struct wrapped got;
	struct writer w = writer_init(out, sizeof(out));
	wrap_seal(p->client, OPCODE_CONTROL_V1, 2, &sid, 5, 6, body, &w);
	size_t room = sizeof(out) - CONTROL_HEAD_LEN - wrap_overhead(p->client);
	require(writer_ok(&w) == (body.len <= room));
	if (!writer_ok(&w))
		return;
	require(wrap_open(p->server, writer_done(&w), scratch, &got) == DROP_NONE);
	require(got.body.len == body.len && got.key_id == 2);
	require(body.len == 0 || memcmp(got.body.data, body.data, body.len) == 0);
	if (wrap_keys_mode(p->server) == WRAP_NONE)
		return;
	require(got.packet_id == 5 && got.time == 6);
	size_t bit = body.len ? body.data[0] * 31u % (8 * writer_len(&w)) : 0;
	out[bit / 8] ^= (uint8_t)(1u << bit % 8);
	require(wrap_open(p->server, writer_done(&w), scratch, &got) != DROP_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	make_all();
	if (len == 0)
		return 0;
	const struct pair *p = &pairs[(data[0] & 0x7fu) % PAIR_COUNT];
	const struct view rest = {data + 1, len - 1};
	if (data[0] & 0x80)
		check_body(p, rest);
	else
		check_datagram(p, rest);
	return 0;
}
