/* SPDX-License-Identifier: Apache-2.0 */
/* Keys over their whole life, in compressed time: what the unit tests of data_key and replay look
 * at step by step is driven here from the first packet to the last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/data_key.h"
#include "crypto/packet.h"

#define LEN_MAX	    1400
#define ROOM	    (DATA_KEY_HEADROOM + LEN_MAX + DATA_KEY_TAILROOM)
#define GCM_LIMIT   ((UINT64_C(1) << 36) - 1) /* packets + blocks: wire.md, section 12.5 */
#define RENEGOTIATE 0xFF000000u

static struct aead *aead;

struct side {
	struct data_key key;
	struct aead_schedule seal, open;
};

/* Both directions of one key, so that a side opens what it has sealed. */
static void side_init(struct side *s, enum cipher c, uint8_t fill)
{
	struct data_key_material m = {.cipher = c};
	const struct data_key_options o = {.peer_id = 5, .replay_window = 64, .replay_time_s = 15};
	memset(m.seal_key, fill, sizeof(m.seal_key));
	memset(m.open_key, fill, sizeof(m.open_key));
	assert_int_equal(data_key_init(&s->key, aead, &m, &o, &s->seal, &s->open), 0);
}

static uint32_t draw(void)
{
	static uint64_t state = 42;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

struct batch {
	uint8_t room[DATA_KEY_BATCH][ROOM];
	struct data_segment seg[DATA_KEY_BATCH];
};

/* Seal `n` packets; returns how many the key took. Those come first: a key that has ended stays so.
 */
static unsigned seal_batch(struct data_key *k, struct batch *b, unsigned n, uint32_t len)
{
	unsigned taken = 0;
	for (unsigned i = 0; i < n; i++)
		b->seg[i] =
			(struct data_segment){.data = b->room[i] + DATA_KEY_HEADROOM, .len = len};
	data_key_seal(k, aead, b->seg, n);
	while (taken < n && b->seg[taken].drop == DROP_NONE)
		taken++;
	for (unsigned i = taken; i < n; i++)
		assert_int_equal(b->seg[i].drop, DROP_KEY_EXPIRED);
	return taken;
}

static uint32_t id_of(const struct data_segment *s)
{
	const uint8_t *p = s->data + 4;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void key_life_ids_run_out_in_order(void **state)
{
	(void)state;
	static struct batch b;
	struct side s;
	side_init(&s, CIPHER_AES_256_GCM, 1);
	/* Stretches of the whole range of ids; between them time passes unseen. */
	static const uint32_t from[] = {0, 1u << 16, 1u << 31, RENEGOTIATE - 500, UINT32_MAX - 500};
	uint32_t last = 0;
	for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); f++) {
		last = s.key.counter.last = from[f];
		for (unsigned turn = 0; turn < 30; turn++) {
			unsigned n = 1 + draw() % DATA_KEY_BATCH;
			bool was_due = data_key_wants_renegotiation(&s.key);
			unsigned taken = seal_batch(&s.key, &b, n, 16);
			for (unsigned i = 0; i < taken; i++)
				assert_int_equal(id_of(&b.seg[i]), last + i + 1);
			last += taken;
			/* A new key is asked for in the batch that reaches the mark, 16 million
			 * packets before the old one refuses. */
			assert_int_equal(data_key_wants_renegotiation(&s.key), last >= RENEGOTIATE);
			assert_true(taken == n || (was_due && last == UINT32_MAX));
			data_key_open(&s.key, aead, b.seg, taken, 1);
			for (unsigned i = 0; i < taken; i++)
				assert_int_equal(b.seg[i].drop, DROP_NONE);
		}
	}
	assert_int_equal(last, UINT32_MAX);
	assert_int_equal(s.key.replay.highest, UINT32_MAX);
	assert_int_equal(seal_batch(&s.key, &b, 3, 16), 0);
	data_key_fini(&s.key, aead);
}

/* The exact use, packets + blocks, never passes the limit; it is nearly reached; a new key was
 * asked for long before. */
static void key_life_ends_at_the_aead_limit(void **state)
{
	(void)state;
	static const uint32_t lens[] = {1, 16, 17, 500, LEN_MAX};
	static struct batch b;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint64_t each = 1 + (lens[i] + 15) / 16; /* what a packet uses */
		/* The key counts 2 a packet and one for each 16 bytes: just below its limit. */
		uint64_t packets = GCM_LIMIT * 16 / (32 + lens[i]) - 300, before = packets;
		struct side s;
		side_init(&s, CIPHER_AES_128_GCM, 2);
		s.key.sealed_packets = packets;
		s.key.sealed_bytes = packets * lens[i];
		assert_true(data_key_wants_renegotiation(&s.key));
		unsigned taken;
		do {
			taken = seal_batch(&s.key, &b, DATA_KEY_BATCH, lens[i]);
			packets += taken;
			assert_true(packets * each <= GCM_LIMIT);
		} while (taken == DATA_KEY_BATCH && packets < before + (1u << 20));
		assert_true(packets >= before + 299);
		/* What was refused has used no id up. */
		assert_int_equal(s.key.counter.last, packets - before);
		data_key_fini(&s.key, aead);
	}
}

/* Model of a window over all ids: the last one accepted in each place of a ring that is larger than
 * any window. */
struct model {
	uint32_t at[65536];
	uint32_t highest;
	uint32_t window;
};

static enum drop model_commit(struct model *m, uint32_t id)
{
	if (id <= m->highest && m->highest - id >= m->window)
		return DROP_REPLAY_OLD;
	if (m->at[id % 65536] == id)
		return DROP_REPLAY_DUPLICATE;
	m->at[id % 65536] = id;
	if (id > m->highest)
		m->highest = id;
	return DROP_NONE;
}

static int64_t next_step(uint32_t window)
{
	static const int64_t jumps[] = {1, 1, 1, 2, 63, 64, 65, 127, 128, 129};
	switch (draw() % 8) {
	case 0:
		return -(int64_t)(draw() % (2 * window + 2)); /* late, or a copy, or too old */
	case 1:
		return (int64_t)window + draw() % 3 - 1;
	case 2:
		return draw() % 16 ? 0 : draw() >> (4 + draw() % 20);
	default:
		return jumps[draw() % (sizeof(jumps) / sizeof(jumps[0]))];
	}
}

static void check_whole_range(uint32_t window)
{
	static uint64_t bits[REPLAY_WINDOW_MAX / 64];
	static struct model m;
	struct replay r;
	memset(&m, 0, sizeof(m));
	m.window = window;
	replay_init(&r, window, 0, bits);
	for (unsigned i = 0; i < 30000; i++) {
		int64_t id = (int64_t)m.highest + next_step(window);
		/* The last third goes on at the end of the range. */
		if (i == 20000)
			id = (int64_t)UINT32_MAX - 2000;
		if (id < 1 || id > UINT32_MAX)
			continue;
		enum drop expected = model_commit(&m, (uint32_t)id);
		assert_int_equal(replay_check(&r, (uint32_t)id), expected);
		assert_int_equal(replay_commit(&r, (uint32_t)id, 0), expected);
	}
	assert_true(m.highest > UINT32_MAX - 2001u);
}

static void key_life_windows_hold_over_the_whole_range_of_ids(void **state)
{
	(void)state;
	static const uint32_t windows[] = {1, 63, 64, 65, 128, 500, REPLAY_WINDOW_MAX};
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		check_whole_range(windows[i]);
}

/* R35. Ids of a key that only grow are never used twice: through batches of every size, refusals,
 * empty plaintexts, a change of hands and a new generation with ids of its own. */
static void key_life_no_key_seals_an_id_twice(void **state)
{
	(void)state;
	static struct batch b;
	struct side generations[4];
	uint32_t last[4] = {0};
	for (unsigned g = 0; g < 4; g++)
		side_init(&generations[g], CIPHER_CHACHA20_POLY1305, (uint8_t)g);
	generations[1].key.counter.last = last[1] = UINT32_MAX - 1000;
	for (unsigned i = 0; i < 400; i++) {
		unsigned g = draw() % 4, n = 1 + draw() % DATA_KEY_BATCH;
		struct data_key moved = generations[g].key; /* as the slab does when it adopts */
		generations[g].key = moved;
		for (unsigned p = 0; p < n; p++)
			b.seg[p] = (struct data_segment){.data = b.room[p] + DATA_KEY_HEADROOM,
							 .len = draw() % 5 ? 16 : 0};
		data_key_seal(&generations[g].key, aead, b.seg, n);
		for (unsigned p = 0; p < n; p++) {
			if (b.seg[p].drop != DROP_NONE)
				continue;
			assert_true(id_of(&b.seg[p]) > last[g]);
			last[g] = id_of(&b.seg[p]);
		}
	}
	assert_int_equal(last[1], UINT32_MAX);
	for (unsigned g = 0; g < 4; g++)
		data_key_fini(&generations[g].key, aead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_life_ids_run_out_in_order),
		cmocka_unit_test(key_life_ends_at_the_aead_limit),
		cmocka_unit_test(key_life_windows_hold_over_the_whole_range_of_ids),
		cmocka_unit_test(key_life_no_key_seals_an_id_twice),
	};
	if (aead_new(AEAD_AUTO, &aead) != 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	aead_free(aead);
	return failed;
}
