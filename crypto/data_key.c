/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/data_key.h"

#include <assert.h>
#include <string.h>

#include "crypto/packet.h"
#include "crypto/secret.h"

/* The classic AEAD format (wire.md, section 9.1): head | packet-id | tag | ciphertext. */
#define PACKET_ID_LEN 4
#define V1_HEAD_LEN   1
#define V2_HEAD_LEN   4
#define OVERHEAD_MAX  (V2_HEAD_LEN + PACKET_ID_LEN + AEAD_TAG_LEN)
static_assert(OVERHEAD_MAX <= DATA_KEY_HEADROOM, "seal writes into the head room");
static_assert(PACKET_ID_LEN + DATA_KEY_IV_LEN == AEAD_NONCE_LEN, "nonce: packet-id and IV");

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
	uint64_t blocks, bytes; /* of the texts */
};

static void store_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t load_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
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

static uint64_t blocks(uint32_t len)
{
	return ((uint64_t)len + 15) / 16;
}

static bool has_limit(const struct data_key *k)
{
	return k->cipher != CIPHER_CHACHA20_POLY1305;
}

/* Packets + blocks that may still be sealed. */
static uint64_t seal_room(const struct data_key *k)
{
	return has_limit(k) ? AEAD_LIMIT - (k->sealed_packets + k->sealed_blocks) : UINT64_MAX;
}

/* Nothing here but `n` and the sums is set for all: an initialiser would clear some 4 KiB. */
static void batch_init(struct batch *b)
{
	b->n = 0;
	b->blocks = b->bytes = 0;
}

/* Append one segment: aad, which ends in the packet-id, the tag, and the text stand in a row. */
static inline void batch_add(struct batch *b, struct data_segment *of, uint8_t *tag,
			     uint32_t aad_len, uint32_t text_len, const uint8_t iv[DATA_KEY_IV_LEN])
{
	struct aead_segment *s = &b->aead[b->n];
	s->aad = tag - aad_len;
	s->aad_len = aad_len;
	s->tag = tag;
	s->text = tag + AEAD_TAG_LEN;
	s->len = text_len;
	memcpy(s->nonce, tag - PACKET_ID_LEN, PACKET_ID_LEN);
	memcpy(s->nonce + PACKET_ID_LEN, iv, DATA_KEY_IV_LEN);
	b->of[b->n++] = of;
}

/* P_DATA_V1 authenticates the packet-id only. */
static inline uint32_t aad_len_of(bool is_v1)
{
	return is_v1 ? PACKET_ID_LEN : V2_HEAD_LEN + PACKET_ID_LEN;
}

static inline enum drop seal_prepare(struct data_key *k, struct data_segment *seg, struct batch *b,
				     uint64_t room)
{
	uint32_t packet_id;
	/* Receivers refuse an empty plaintext. */
	if (seg->len == 0)
		return DROP_SHORT;
	uint64_t more = blocks(seg->len);
	if (b->n + b->blocks + 1 + more > room || !send_counter_next(&k->counter, &packet_id))
		return DROP_KEY_EXPIRED;
	bool is_v1 = k->head_len == V1_HEAD_LEN;
	uint8_t *tag = seg->data - AEAD_TAG_LEN;
	store_u32(tag - PACKET_ID_LEN, packet_id);
	/* Not one byte in front of the head: the datagram before this one may end there. */
	if (is_v1)
		tag[-PACKET_ID_LEN - V1_HEAD_LEN] = k->head[0];
	else
		memcpy(tag - PACKET_ID_LEN - V2_HEAD_LEN, k->head, V2_HEAD_LEN);
	batch_add(b, seg, tag, aad_len_of(is_v1), seg->len, k->seal_iv);
	b->blocks += more;
	b->bytes += seg->len;
	return DROP_NONE;
}

void data_key_seal(struct data_key *k, struct aead *a, struct data_segment *seg, unsigned n)
{
	struct batch b;
	batch_init(&b);
	assert(n <= DATA_KEY_BATCH);
	uint64_t room = seal_room(k);
	for (unsigned i = 0; i < n; i++)
		seg[i].drop = seal_prepare(k, &seg[i], &b, room);
	k->sealed_packets += b.n;
	k->sealed_blocks += b.blocks;
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
	if (k->failed_tags > FAILED_MAX)
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
	uint32_t packet_id = load_u32(seg->data + head_len);
	enum drop drop = replay_check(&k->replay, packet_id);
	if (drop != DROP_NONE)
		return drop;
	b->packet_id[b->n] = packet_id;
	batch_add(b, seg, seg->data + head_len + PACKET_ID_LEN, aad_len_of(is_v1),
		  seg->len - overhead, k->open_iv);
	return DROP_NONE;
}

/* One that was opened: is it the first of its id, and what is used of the key. */
static inline enum drop open_finish(struct data_key *k, const struct aead_segment *s,
				    uint32_t packet_id, uint64_t now_ms, struct batch *used)
{
	if (!s->is_ok) {
		k->failed_tags++;
		return DROP_DECRYPT;
	}
	enum drop drop = replay_commit(&k->replay, packet_id, now_ms);
	if (drop != DROP_NONE)
		return drop;
	k->opened_packets++;
	used->blocks += blocks(s->len);
	used->bytes += s->len;
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
	aead_open(a, k->cipher, k->open_schedule, b.aead, b.n);
	for (unsigned i = 0; i < b.n; i++) {
		b.of[i]->drop = open_finish(k, &b.aead[i], b.packet_id[i], now_ms, &b);
		if (b.of[i]->drop != DROP_NONE)
			continue;
		b.of[i]->data = b.aead[i].text;
		b.of[i]->len = b.aead[i].len;
	}
	k->opened_blocks += b.blocks;
	k->opened_bytes += b.bytes;
}

unsigned data_key_overhead(const struct data_key *k)
{
	return k->head_len + PACKET_ID_LEN + AEAD_TAG_LEN;
}

bool data_key_wants_renegotiation(const struct data_key *k)
{
	uint64_t sealed = k->sealed_packets + k->sealed_blocks;
	uint64_t opened = k->opened_packets + k->opened_blocks;
	return send_counter_is_nearly_used(&k->counter) || k->failed_tags > FAILED_RENEGOTIATE ||
	       (has_limit(k) && (sealed >= AEAD_RENEGOTIATE || opened >= AEAD_RENEGOTIATE));
}
