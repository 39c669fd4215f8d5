/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies: what is read can be written, and is the same bytes. Data packets: nothing forged
 * is opened, nothing is touched behind the datagram, and no trace is left. First byte of the input:
 * the packet's. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/data_key.h"
#include "crypto/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

static void check_control(enum opcode op, const uint8_t *data, size_t len)
{
	struct reader r = reader_init(data, len);
	struct control_body body;
	if (!control_body_read(&r, op, &body))
		return;
	require(body.ack_count <= ACK_MAX);
	require(body.payload.len <= len);
	uint8_t *copy = malloc(len);
	require(copy != NULL);
	struct writer w = writer_init(copy, len);
	control_body_write(&w, op, &body);
	require(writer_ok(&w));
	/* An ACK may be followed by bytes that mean nothing. */
	require(op == OPCODE_ACK_V1 || writer_len(&w) == len);
	require(memcmp(copy, data, writer_len(&w)) == 0);
	free(copy);
}

static struct data_key *test_key(struct aead *a, enum cipher c)
{
	static struct data_key keys[CIPHER_COUNT];
	static struct aead_schedule slots[CIPHER_COUNT][2];
	const struct data_key_material m = {.cipher = c, .seal_key = {1}, .open_key = {2}};
	const struct data_key_options o = {.peer_id = 1, .replay_window = 64};
	if (!keys[c].seal_schedule)
		require(data_key_init(&keys[c], a, &m, &o, &slots[c][0], &slots[c][1]) == 0);
	return &keys[c];
}

static void check_data(const uint8_t *data, size_t len)
{
	static struct aead *aead;
	if (!aead)
		require(aead_new(AEAD_AUTO, &aead) == 0);
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++) {
		uint8_t *copy = malloc(len ? len : 1);
		require(copy != NULL);
		if (len)
			memcpy(copy, data, len);
		struct data_key *k = test_key(aead, (enum cipher)c);
		struct data_segment seg = {copy, (uint32_t)len, DROP_NONE};
		data_key_open(k, aead, &seg, 1, 0);
		require(seg.drop != DROP_NONE && seg.drop < DROP_COUNT);
		require(seg.data == copy && seg.len == len);
		require(k->replay.highest == 0 && k->opened_packets == 0);
		free(copy);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > 65535)
		return 0;
	check_data(data, len);
	if (len > 0 && packet_is_control(packet_opcode(data[0])))
		check_control((enum opcode)packet_opcode(data[0]), data + 1, len - 1);
	return 0;
}
