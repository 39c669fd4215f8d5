/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's datagram. First byte: wrapping, and whether the rest is a whole datagram, or is to
 * be wrapped with the right key, or also carries the right cookie. */
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/hmac.h"
#include "server/control/initial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define BOOT_S 1000000

static struct wrap_keys *server_keys[3], *client_keys[3];
static struct hmac *cookie_key;
static union sockaddr_any from;

static void expect(bool is_so)
{
	if (!is_so)
		abort();
}

static void prepare(void)
{
	struct static_key key;
	if (server_keys[0])
		return;
	for (size_t i = 0; i < sizeof(key.bytes); i++)
		key.bytes[i] = (uint8_t)(i + 1);
	for (int m = 0; m < 3; m++) {
		expect(wrap_keys_new((enum wrap_mode)m, &key, KEY_DIRECTION_0, "SHA1",
				     &server_keys[m]) == 0);
		expect(wrap_keys_new((enum wrap_mode)m, &key, KEY_DIRECTION_1, "SHA1",
				     &client_keys[m]) == 0);
	}
	static const uint8_t bytes[COOKIE_KEY_LEN] = {0};
	expect(hmac_new(bytes, sizeof(bytes), &cookie_key) == 0);
	from.in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1000)};
}

static bool nobody_is_live(void *ctx, const struct session_id *sid)
{
	(void)ctx;
	(void)sid;
	return false;
}

/* The session-id of our answer is in clear behind its first byte. */
static void put_cookie(const struct initial_settings *s, const uint8_t *client_sid, uint8_t *out)
{
	struct initial_result r = {.verdict = INITIAL_RESET};
	uint8_t reply[256];
	memcpy(r.client_sid.bytes, client_sid, SESSION_ID_LEN);
	expect(initial_reply(s, &r, &from, 0, BOOT_S, 1, reply, sizeof(reply)) > 9);
	memcpy(out, reply + 1, SESSION_ID_LEN);
}

static size_t wrap(int mode, bool has_cookie, const struct initial_settings *s, const uint8_t *data,
		   size_t len, uint8_t *out)
{
	uint8_t body[CONTROL_PACKET_MAX];
	struct session_id sid;
	if (len < CONTROL_HEAD_LEN || len > 2048)
		return 0;
	memcpy(sid.bytes, data + 1, SESSION_ID_LEN);
	memcpy(body, data + CONTROL_HEAD_LEN, len - CONTROL_HEAD_LEN);
	/* one ack: count, id, our session-id */
	if (has_cookie && len >= CONTROL_HEAD_LEN + 13 && body[0] == 1)
		put_cookie(s, sid.bytes, body + 5);
	struct writer w = writer_init(out, CONTROL_PACKET_MAX);
	wrap_seal(client_keys[mode], (enum opcode)packet_opcode(data[0]), packet_key_id(data[0]),
		  &sid, 1, 1, (struct view){body, len - CONTROL_HEAD_LEN}, &w);
	return writer_ok(&w) ? writer_len(&w) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	prepare();
	if (len < 1)
		return 0;
	int mode = data[0] % 3;
	bool is_wrapped = data[0] & 0x10, has_cookie = data[0] & 0x20;
	struct initial_settings s = {
		.wrap = server_keys[mode], .cookie_key = cookie_key, .hand_window_s = 60};
	uint8_t buf[CONTROL_PACKET_MAX];
	struct view datagram = {data + 1, len - 1};
	if (is_wrapped)
		datagram = (struct view){buf, wrap(mode, has_cookie, &s, data + 1, len - 1, buf)};
	struct initial_result r =
		initial_judge(&s, datagram, &from, 0, BOOT_S, nobody_is_live, NULL);
	expect((r.verdict == INITIAL_DROP) == (r.drop != DROP_NONE));
	/* without the key nothing passes, without the cookie no session is made */
	if (mode != WRAP_NONE && !is_wrapped)
		expect(r.verdict == INITIAL_DROP);
	if (r.verdict == INITIAL_ACCEPT)
		expect(has_cookie && is_wrapped);
	if (r.verdict == INITIAL_RESET) {
		uint8_t out[256];
		size_t answer = initial_reply(&s, &r, &from, 0, BOOT_S, 1, out, sizeof(out));
		expect(answer > 0 && answer <= 2 * datagram.len);
	}
	return 0;
}
