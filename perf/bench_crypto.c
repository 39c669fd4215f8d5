/* SPDX-License-Identifier: Apache-2.0 */
/* AEAD by our interfaces, beside the libraries' bare calls: ns of CPU a packet, in batches of 64
 * packets of one key. Opening succeeds each time: a stream cipher gives the ciphertext back when it
 * opens the plaintext, so each packet has two tags that take turns, and the replay window is set
 * anew. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/data_key.h"
#include "crypto/packet.h"
#include "perf/bare_aead.h"
#include "perf/bench.h"

#define NAME	 "bench_crypto"
#define BATCH	 DATA_KEY_BATCH
#define ROOM	 2048
#define HEAD_LEN 8 /* P_DATA_V2: opcode, peer-id, packet-id */

struct packets {
	uint8_t (*room)[ROOM];
	uint8_t tags[2][BATCH][AEAD_TAG_LEN];
	unsigned turn; /* which tag comes next */
	uint32_t len;
	struct aead_segment aead[BATCH];
};

struct subject {
	struct packets packets;
	struct aead *aead;
	enum cipher cipher;
	bool is_seal;
	struct data_key key;
	struct aead_schedule seal, open;
	struct bare_aead *bare;
};

static const struct data_key_options options = {
	.peer_id = 7, .replay_window = 64, .replay_time_s = 15};

/* --- packets that can be opened again and again --- */

static void packets_layout(struct packets *p, uint32_t len, const uint8_t iv[DATA_KEY_IV_LEN])
{
	p->len = len;
	for (unsigned i = 0; i < BATCH; i++) {
		struct aead_segment *s = &p->aead[i];
		uint8_t *at = p->room[i] + DATA_KEY_HEADROOM;
		at[0] = packet_first_byte(OPCODE_DATA_V2, 0);
		at[7] = (uint8_t)(i + 1); /* packet-id */
		*s = (struct aead_segment){.aad = at, .aad_len = HEAD_LEN, .len = len};
		s->tag = at + HEAD_LEN;
		s->text = s->tag + AEAD_TAG_LEN;
		memcpy(s->nonce, at + 4, 4);
		memcpy(s->nonce + 4, iv, DATA_KEY_IV_LEN);
	}
}

/* Both tags of each packet; sealing twice restores the text. */
static void packets_make(struct subject *s, uint32_t len)
{
	struct packets *p = &s->packets;
	p->room = aligned_alloc(64, BATCH * sizeof(*p->room));
	if (!p->room)
		abort();
	memset(p->room, 0, BATCH * sizeof(*p->room));
	packets_layout(p, len, s->key.open_iv);
	for (unsigned turn = 0; turn < 2; turn++) {
		aead_seal(s->aead, s->cipher, &s->open, p->aead, BATCH);
		for (unsigned i = 0; i < BATCH; i++)
			memcpy(p->tags[turn][i], p->aead[i].tag, AEAD_TAG_LEN);
	}
	/* The plaintext stands there now: opening it needs the second tag. */
	p->turn = 1;
}

static void packets_turn(struct packets *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		memcpy(p->aead[i].tag, p->tags[p->turn][i], AEAD_TAG_LEN);
	p->turn ^= 1;
}

/* --- what is measured; a round is a batch --- */

static void run_bare(void *context, unsigned rounds)
{
	struct subject *s = context;
	for (unsigned r = 0; r < rounds; r++) {
		if (!s->is_seal)
			packets_turn(&s->packets);
		for (unsigned i = 0; i < BATCH; i++)
			bare_aead_run(s->bare, s->is_seal, &s->packets.aead[i]);
	}
}

static void run_aead(void *context, unsigned rounds)
{
	struct subject *s = context;
	for (unsigned r = 0; r < rounds; r++) {
		if (s->is_seal) {
			aead_seal(s->aead, s->cipher, &s->seal, s->packets.aead, BATCH);
		} else {
			packets_turn(&s->packets);
			aead_open(s->aead, s->cipher, &s->open, s->packets.aead, BATCH);
		}
		assert(s->packets.aead[BATCH - 1].is_ok);
	}
}

static void run_key(void *context, unsigned rounds)
{
	struct subject *s = context;
	struct packets *p = &s->packets;
	struct data_segment seg[BATCH];
	for (unsigned r = 0; r < rounds; r++) {
		uint32_t front = s->is_seal ? 0 : HEAD_LEN + AEAD_TAG_LEN;
		for (unsigned i = 0; i < BATCH; i++) {
			seg[i].data = p->aead[i].text - front;
			seg[i].len = p->len + front;
		}
		if (s->is_seal) {
			data_key_seal(&s->key, s->aead, seg, BATCH);
		} else {
			packets_turn(p);
			replay_init(&s->key.replay, 64, 15, NULL);
			data_key_open(&s->key, s->aead, seg, BATCH, 1);
		}
		assert(seg[BATCH - 1].drop == DROP_NONE);
	}
}

/* --- cases --- */

static struct data_key_material material(enum cipher c)
{
	struct data_key_material m = {.cipher = c};
	memset(m.seal_key, 1, sizeof(m.seal_key));
	memset(m.open_key, 2, sizeof(m.open_key));
	return m;
}

static struct subject *subject_new(enum aead_choice engine, enum cipher c, uint32_t len,
				   bool is_seal)
{
	const struct data_key_material m = material(c);
	struct subject *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	if (!s)
		abort();
	memset(s, 0, sizeof(*s));
	s->cipher = c;
	s->is_seal = is_seal;
	if (aead_new(engine, &s->aead) != 0 ||
	    data_key_init(&s->key, s->aead, &m, &options, &s->seal, &s->open) != 0)
		abort();
	s->bare = bare_aead_new(engine, c, is_seal ? m.seal_key : m.open_key);
	packets_make(s, len);
	return s;
}

static void subject_free(struct subject *s)
{
	data_key_fini(&s->key, s->aead);
	bare_aead_free(s->bare);
	aead_free(s->aead);
	free(s->packets.room);
	free(s);
}

static void print(const char *engine, const struct subject *s, const char *through, double value,
		  const char *unit)
{
	char which[96];
	snprintf(which, sizeof(which), "%s/%s/%s/%u/%s", engine, s->is_seal ? "seal" : "open",
		 cipher_name(s->cipher), s->packets.len, through);
	bench_print(NAME, which, value, unit);
}

static void measure(enum aead_choice engine, const char *name, enum cipher c, uint32_t len,
		    bool is_seal)
{
	static const char *const through[] = {"bare", "aead", "data_key"};
	struct subject *s[3];
	struct bench_subject b[3] = {{.run = run_bare}, {.run = run_aead}, {.run = run_key}};
	for (unsigned i = 0; i < 3; i++)
		b[i].context = s[i] = subject_new(engine, c, len, is_seal);
	bench_measure(b, 3);
	for (unsigned i = 0; i < 3; i++)
		print(name, s[i], through[i], b[i].ns / BATCH, "ns");
	print(name, s[2], "data_key:bare", b[2].ns / b[0].ns, "ratio");
	for (unsigned i = 0; i < 3; i++)
		subject_free(s[i]);
}

static void measure_engine(enum aead_choice engine, const char *name)
{
	static const enum cipher ciphers[] = {CIPHER_AES_128_GCM, CIPHER_AES_256_GCM,
					      CIPHER_CHACHA20_POLY1305};
	static const uint32_t lens[] = {64, 500, 1400};
	for (unsigned c = 0; c < 3; c++)
		for (unsigned l = 0; l < 3; l++)
			for (unsigned seal = 0; seal < 2; seal++)
				measure(engine, name, ciphers[c], lens[l], seal);
}

int main(int argc, char **argv)
{
	struct aead *mb = NULL;
	bench_start(argc, argv);
	measure_engine(AEAD_OPENSSL, "openssl");
	if (aead_new(AEAD_IPSEC_MB, &mb) == 0)
		measure_engine(AEAD_IPSEC_MB, "ipsec-mb");
	aead_free(mb);
	return 0;
}
