/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/key_slab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "crypto/secret.h"

#define WINDOW_WORDS (REPLAY_WINDOW_MAX / 64)
#define HUGE_PAGE    ((size_t)2 << 20)

struct schedules {
	struct aead_schedule seal, open;
};

/* The key stands first: its address names the entry. */
struct entry {
	struct data_key key;
	uint64_t window[WINDOW_WORDS];
	uint32_t next_free; /* index + 1; 0: last */
};

struct key_slab {
	uint32_t count;
	uint32_t used_once; /* entries from here on were never touched */
	uint32_t first_free;
	size_t schedules_len, entries_len;
	struct schedules *schedules;
	struct entry *entries;
};

static void *reserve(size_t len, bool use_huge_pages)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, len, MADV_DONTDUMP);
	/* A small slab on a huge page would cost more memory than it has use for. */
	if (use_huge_pages && len >= 4 * HUGE_PAGE)
		(void)madvise(p, len, MADV_HUGEPAGE);
	return p;
}

int key_slab_new(uint32_t count, bool use_huge_pages, struct key_slab **out)
{
	struct key_slab *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->count = count;
	s->schedules_len = (size_t)count * sizeof(struct schedules);
	s->entries_len = (size_t)count * sizeof(struct entry);
	s->schedules = reserve(s->schedules_len, use_huge_pages);
	s->entries = reserve(s->entries_len, false);
	if (!s->schedules || !s->entries) {
		key_slab_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void key_slab_free(struct key_slab *s)
{
	if (!s)
		return;
	if (s->schedules)
		munmap(s->schedules, s->schedules_len);
	if (s->entries)
		munmap(s->entries, s->entries_len);
	free(s);
}

static uint32_t take_index(struct key_slab *s)
{
	if (s->first_free) {
		uint32_t i = s->first_free - 1;
		s->first_free = s->entries[i].next_free;
		return i;
	}
	return s->used_once < s->count ? s->used_once++ : s->count;
}

static void move_schedule(struct aead_schedule *to, struct aead_schedule *from)
{
	*to = *from;
	secret_wipe(from, sizeof(*from));
}

struct data_key *key_slab_adopt(struct key_slab *s, struct data_key *from)
{
	uint32_t i = take_index(s);
	if (i == s->count)
		return NULL;
	struct data_key *k = &s->entries[i].key;
	*k = *from;
	move_schedule(&s->schedules[i].seal, from->seal_schedule);
	move_schedule(&s->schedules[i].open, from->open_schedule);
	k->seal_schedule = &s->schedules[i].seal;
	k->open_schedule = &s->schedules[i].open;
	replay_init(&k->replay, from->replay.window, from->replay.time_s, s->entries[i].window);
	return k;
}

void key_slab_drop(struct key_slab *s, struct data_key *k, struct aead *a)
{
	struct entry *e = (struct entry *)(void *)k;
	uint32_t i = (uint32_t)(e - s->entries);
	assert(i < s->count);
	data_key_fini(k, a);
	secret_wipe(e, sizeof(*e));
	e->next_free = s->first_free;
	s->first_free = i + 1;
}
