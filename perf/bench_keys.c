/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing for many peers: ns of CPU a packet when every packet of a batch goes to a random one of 1
 * to 10,000 keys, which stand in a worker's slab. Shows what sorting and prefetching bring. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/data_key.h"
#include "perf/bench.h"
#include "workers/key_slab.h"

#define NAME	 "bench_keys"
#define BATCH	 DATA_KEY_BATCH
#define ROOM	 2048
#define KEYS_MAX 10000
#define ORDERS	 256 /* batches of random keys made beforehand */

enum prefetch { PREFETCH_NONE, PREFETCH_FIRST_LINE, PREFETCH_ALL, PREFETCH_COUNT };
static const char *const prefetch_names[] = {"none", "first-line", "all"};

struct keys {
	struct aead *aead;
	struct key_slab *slab;
	struct data_key *key[KEYS_MAX];
	unsigned count;
	uint16_t order[ORDERS][BATCH]; /* sorted within each batch */
	uint32_t len;
	enum prefetch prefetch;
	uint8_t (*room)[ROOM];
};

static struct data_key *key_add(struct keys *k, unsigned i)
{
	struct aead_schedule seal, open;
	struct data_key made;
	struct data_key_material m = {.cipher = CIPHER_AES_256_GCM};
	const struct data_key_options o = {.peer_id = i, .replay_window = 64, .replay_time_s = 15};
	memset(m.seal_key, (int)(i & 0xFF), sizeof(m.seal_key));
	if (data_key_init(&made, k->aead, &m, &o, &seal, &open) != 0)
		abort();
	struct data_key *kept = key_slab_adopt(k->slab, &made);
	assert(kept);
	return kept;
}

static void keys_init(struct keys *k, enum aead_choice engine)
{
	memset(k, 0, sizeof(*k));
	k->room = aligned_alloc(64, BATCH * sizeof(*k->room));
	if (!k->room || aead_new(engine, &k->aead) != 0 ||
	    key_slab_new(KEYS_MAX, true, &k->slab) != 0)
		abort();
	memset(k->room, 0, BATCH * sizeof(*k->room));
	for (unsigned i = 0; i < KEYS_MAX; i++)
		k->key[i] = key_add(k, i);
}

static void keys_fini(struct keys *k)
{
	for (unsigned i = 0; i < KEYS_MAX; i++)
		key_slab_drop(k->slab, k->key[i], k->aead);
	key_slab_free(k->slab);
	aead_free(k->aead);
	free(k->room);
}

static int compare(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void keys_order(struct keys *k, unsigned count)
{
	uint64_t random = 1;
	k->count = count;
	for (unsigned o = 0; o < ORDERS; o++) {
		for (unsigned i = 0; i < BATCH; i++)
			k->order[o][i] = (uint16_t)(bench_random(&random) % count);
		qsort(k->order[o], BATCH, sizeof(k->order[o][0]), compare);
	}
}

static void prefetch(const struct keys *k, const uint16_t *order, unsigned i)
{
	if (k->prefetch == PREFETCH_FIRST_LINE && i + 1 < BATCH)
		__builtin_prefetch(k->key[order[i + 1]]->seal_schedule);
	if (k->prefetch != PREFETCH_ALL)
		return;
	if (i + 4 < BATCH)
		data_key_prefetch_seal(k->key[order[i + 4]]);
	if (i + 2 < BATCH)
		data_key_prefetch_seal_schedule(k->key[order[i + 2]], k->aead, k->len);
}

static void run(void *context, unsigned rounds)
{
	struct keys *k = context;
	static unsigned turn;
	for (unsigned r = 0; r < rounds; r++, turn++) {
		const uint16_t *order = k->order[turn % ORDERS];
		for (unsigned i = 0; i < BATCH; i++) {
			struct data_segment seg = {.data = k->room[i] + DATA_KEY_HEADROOM,
						   .len = k->len};
			prefetch(k, order, i);
			data_key_seal(k->key[order[i]], k->aead, &seg, 1);
			assert(seg.drop == DROP_NONE);
		}
	}
}

static void run_none(void *context, unsigned rounds)
{
	((struct keys *)context)->prefetch = PREFETCH_NONE;
	run(context, rounds);
}

static void run_first_line(void *context, unsigned rounds)
{
	((struct keys *)context)->prefetch = PREFETCH_FIRST_LINE;
	run(context, rounds);
}

static void run_all(void *context, unsigned rounds)
{
	((struct keys *)context)->prefetch = PREFETCH_ALL;
	run(context, rounds);
}

static void measure(struct keys *k, const char *engine, uint32_t len)
{
	static const unsigned counts[] = {1, 10, 1000, 10000};
	k->len = len;
	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct bench_subject ways[PREFETCH_COUNT] = {
			{.run = run_none, .context = k},
			{.run = run_first_line, .context = k},
			{.run = run_all, .context = k},
		};
		keys_order(k, counts[c]);
		bench_measure(ways, PREFETCH_COUNT);
		for (unsigned w = 0; w < PREFETCH_COUNT; w++) {
			char which[96];
			snprintf(which, sizeof(which), "%s/seal/%u/keys-%u/prefetch-%s", engine,
				 len, counts[c], prefetch_names[w]);
			bench_print(NAME, which, ways[w].ns / BATCH, "ns");
		}
	}
}

static void measure_engine(enum aead_choice engine, const char *name)
{
	static struct keys keys;
	keys_init(&keys, engine);
	measure(&keys, name, 64);
	measure(&keys, name, 1400);
	keys_fini(&keys);
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
