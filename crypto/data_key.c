/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/data_key.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "crypto/packet.h"
#include "crypto/secret.h"

typedef uint32_t u32x4 __attribute__((vector_size(16)));

/* The classic AEAD format (wire.md, section 9.1): head | packet-id | tag | ciphertext. */
#define PACKET_ID_LEN 4
#define V1_HEAD_LEN   1
#define V2_HEAD_LEN   4
#define OVERHEAD_MAX  (V2_HEAD_LEN + PACKET_ID_LEN + AEAD_TAG_LEN)
static_assert(OVERHEAD_MAX <= DATA_KEY_HEADROOM, "seal writes into the head room");
static_assert(PACKET_ID_LEN + DATA_KEY_IV_LEN == AEAD_NONCE_LEN, "nonce: packet-id and IV");
static_assert(sizeof(u32x4) - V2_HEAD_LEN - PACKET_ID_LEN <= AEAD_TAG_LEN, "ends in the tag");

/* wire.md, section 12.5: packets + blocks of one GCM key and direction. */
#define AEAD_LIMIT	   ((UINT64_C(1) << 36) - 1)
#define AEAD_RENEGOTIATE   (AEAD_LIMIT / 8 * 7)
#define FAILED_MAX	   (UINT64_C(1) << 36)
#define FAILED_RENEGOTIATE (UINT64_C(1) << 35)

/* A batch on its way through the AEAD engine; `of` names the caller's segment. */
struct batch {
	struct aead_segment aead[DATA_KEY_BATCH];
	struct data_segment *of[DATA_KEY_BATCH];
	uint32_t packet_id[DATA_KEY_BATCH];
	unsigned n;
	uint64_t bytes; /* of the texts */
};

static void store_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void init_head(struct data_key *k, uint32_t peer_id)
{
	if (peer_id == PEER_ID_NONE) {
		k->head_len = V1_HEAD_LEN;
		k->head[0] = packet_first_byte(OPCODE_DATA_V1, k->key_id);
		return;
	}
	k->head_len = V2_HEAD_LEN;
	store_u32(k->head, peer_id & 0xFFFFFFu);
	k->head[0] = packet_first_byte(OPCODE_DATA_V2, k->key_id);
}

int data_key_init(struct data_key *k, struct aead *a, const struct data_key_material *m,
		  const struct data_key_options *o, struct aead_schedule *seal_slot,
		  struct aead_schedule *open_slot)
{
	int err = aead_schedule_init(a, m->cipher, m->seal_key, seal_slot);
	if (err)
		return err;
	err = aead_schedule_init(a, m->cipher, m->open_key, open_slot);
	if (err) {
		aead_schedule_fini(a, seal_slot);
		return err;
	}
	*k = (struct data_key){.seal_schedule = seal_slot,
			       .open_schedule = open_slot,
			       .cipher = m->cipher,
			       .open_cipher = m->cipher,
			       .key_id = m->key_id};
	init_head(k, o->peer_id);
	memcpy(k->seal_iv, m->seal_iv, DATA_KEY_IV_LEN);
	memcpy(k->open_iv, m->open_iv, DATA_KEY_IV_LEN);
	replay_init(&k->replay, o->replay_window, o->replay_time_s, o->replay_bits);
	return 0;
}

void data_key_fini(struct data_key *k, struct aead *a)
{
	if (k->seal_schedule)
		aead_schedule_fini(a, k->seal_schedule);
	if (k->open_schedule)
		aead_schedule_fini(a, k->open_schedule);
	secret_wipe(k, sizeof(*k));
}

/* Packets and blocks, at most: the last block of each packet counts as full. */
static uint64_t usage(uint64_t packets, uint64_t bytes)
{
	return 2 * packets + bytes / 16;
}

static bool has_limit(const struct data_key *k)
{
	return k->cipher != CIPHER_CHACHA20_POLY1305;
}

/* Not by an initialiser, which would clear some 4 KiB. */
static inline void batch_init(struct batch *b)
{
	b->n = 0;
	b->bytes = 0;
}

/* Packet-id, as on the wire, and IV, by one store: the engine loads them together, and a load that
 * needs two stores waits for both. */
static inline void put_nonce(uint8_t nonce[16], uint32_t id_be, const uint8_t iv[DATA_KEY_IV_LEN])
{
	uint32_t half[2];
	memcpy(half, iv, sizeof(half));
	u32x4 all = {id_be, half[0], half[1], 0};
	memcpy(nonce, &all, sizeof(all));
}

/* Append one segment: aad, which ends in the packet-id, the tag, and the text stand in a row. */
static inline void batch_add(struct batch *b, struct data_segment *of, uint8_t *tag, bool is_v1,
			     uint32_t text_len)
{
	struct aead_segment *s = &b->aead[b->n];
	/* P_DATA_V1 authenticates the packet-id only. */
	s->aad_len = is_v1 ? PACKET_ID_LEN : V2_HEAD_LEN + PACKET_ID_LEN;
	s->aad = tag - s->aad_len;
	s->tag = tag;
	s->text = tag + AEAD_TAG_LEN;
	s->len = text_len;
	b->of[b->n++] = of;
	b->bytes += text_len;
}

/* Head and packet-id in front of the tag. Not one byte in front of the head: the datagram before
 * this one may end there. V2's eight are the engine's aad, which it loads as sixteen: so the first
 * half of the tag's place, to be written later, is cleared by the same store. */
static inline void put_head(const struct data_key *k, uint8_t *tag, uint32_t id_be)
{
	uint32_t head;
	if (k->head_len == V2_HEAD_LEN) {
		memcpy(&head, k->head, sizeof(head));
		u32x4 all = {head, id_be, 0, 0};
		memcpy(tag - V2_HEAD_LEN - PACKET_ID_LEN, &all, sizeof(all));
		return;
	}
	memcpy(tag - PACKET_ID_LEN, &id_be, PACKET_ID_LEN);
	tag[-PACKET_ID_LEN - V1_HEAD_LEN] = k->head[0];
}

/* Would one more of `len` bytes, behind those of the batch, be too much for the key? */
static inline bool is_seal_limit_reached(const struct data_key *k, const struct batch *b,
					 uint32_t len)
{
	return has_limit(k) &&
	       usage(k->sealed_packets + b->n + 1, k->sealed_bytes + b->bytes + len) > AEAD_LIMIT;
}

static inline enum drop seal_prepare(struct data_key *k, struct data_segment *seg, struct batch *b)
{
	uint32_t packet_id;
	/* Receivers refuse an empty plaintext. */
	if (seg->len == 0)
		return DROP_SHORT;
	if (is_seal_limit_reached(k, b, seg->len) || !send_counter_next(&k->counter, &packet_id))
		return DROP_KEY_EXPIRED;
	uint8_t *tag = seg->data - AEAD_TAG_LEN;
	uint32_t id_be = htobe32(packet_id);
	put_nonce(b->aead[b->n].nonce, id_be, k->seal_iv);
	put_head(k, tag, id_be);
	batch_add(b, seg, tag, k->head_len == V1_HEAD_LEN, seg->len);
	return DROP_NONE;
}

void data_key_seal(struct data_key *k, struct aead *a, struct data_segment *seg, unsigned n)
{
	struct batch b;
	batch_init(&b);
	assert(n <= DATA_KEY_BATCH);
	for (unsigned i = 0; i < n; i++)
		seg[i].drop = seal_prepare(k, &seg[i], &b);
	k->sealed_packets += b.n;
	k->sealed_bytes += b.bytes;
	aead_seal(a, k->cipher, k->seal_schedule, b.aead, b.n);
	uint32_t overhead = data_key_overhead(k);
	for (unsigned i = 0; i < b.n; i++) {
		/* An engine that fails to seal makes its key unusable, and has used the id up. */
		if (!b.aead[i].is_ok)
			b.of[i]->drop = DROP_KEY_EXPIRED;
		b.of[i]->data -= overhead;
		b.of[i]->len += overhead;
	}
}

static inline enum drop open_prepare(const struct data_key *k, struct data_segment *seg,
				     struct batch *b)
{
	if (k->is_open_ended)
		return DROP_KEY_EXPIRED;
	if (seg->len == 0)
		return DROP_SHORT;
	uint8_t opcode = packet_opcode(seg->data[0]);
	if (opcode != OPCODE_DATA_V1 && opcode != OPCODE_DATA_V2)
		return DROP_BAD_OPCODE;
	bool is_v1 = opcode == OPCODE_DATA_V1;
	uint32_t head_len = is_v1 ? V1_HEAD_LEN : V2_HEAD_LEN;
	/* The one length check of all accesses below: at least one byte of ciphertext. */
	uint32_t overhead = head_len + PACKET_ID_LEN + AEAD_TAG_LEN;
	if (seg->len <= overhead)
		return DROP_SHORT;
	uint8_t *tag = seg->data + head_len + PACKET_ID_LEN;
	uint32_t id_be, packet_id;
	memcpy(&id_be, tag - PACKET_ID_LEN, PACKET_ID_LEN);
	packet_id = be32toh(id_be);
	enum drop drop = replay_check(&k->replay, packet_id);
	if (drop != DROP_NONE)
		return drop;
	b->packet_id[b->n] = packet_id;
	put_nonce(b->aead[b->n].nonce, id_be, k->open_iv);
	batch_add(b, seg, tag, is_v1, seg->len - overhead);
	return DROP_NONE;
}

static inline enum drop open_finish(struct data_key *k, const struct aead_segment *s,
				    uint32_t packet_id, uint64_t now_ms)
{
	if (!s->is_ok) {
		k->is_open_ended = ++k->failed_tags > FAILED_MAX;
		return DROP_DECRYPT;
	}
	enum drop drop = replay_commit(&k->replay, packet_id, now_ms);
	if (drop != DROP_NONE)
		return drop;
	k->opened_packets++;
	k->opened_bytes += s->len;
	return DROP_NONE;
}

void data_key_open(struct data_key *k, struct aead *a, struct data_segment *seg, unsigned n,
		   uint64_t now_ms)
{
	struct batch b;
	batch_init(&b);
	assert(n <= DATA_KEY_BATCH);
	for (unsigned i = 0; i < n; i++)
		seg[i].drop = open_prepare(k, &seg[i], &b);
	aead_open(a, k->open_cipher, k->open_schedule, b.aead, b.n);
	for (unsigned i = 0; i < b.n; i++) {
		b.of[i]->drop = open_finish(k, &b.aead[i], b.packet_id[i], now_ms);
		if (b.of[i]->drop != DROP_NONE)
			continue;
		b.of[i]->data = b.aead[i].text;
		b.of[i]->len = b.aead[i].len;
	}
}

unsigned data_key_overhead(const struct data_key *k)
{
	return k->head_len + PACKET_ID_LEN + AEAD_TAG_LEN;
}

bool data_key_wants_renegotiation(const struct data_key *k)
{
	uint64_t sealed = usage(k->sealed_packets, k->sealed_bytes);
	uint64_t opened = usage(k->opened_packets, k->opened_bytes);
	return send_counter_is_nearly_used(&k->counter) || k->failed_tags > FAILED_RENEGOTIATE ||
	       (has_limit(k) && (sealed >= AEAD_RENEGOTIATE || opened >= AEAD_RENEGOTIATE));
}
