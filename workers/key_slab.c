/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/key_slab.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "crypto/secret.h"

#define WINDOW_WORDS (REPLAY_WINDOW_MAX / 64)
#define HUGE_PAGE    ((size_t)2 << 20)

/* The key stands first: its address names the entry. An odd number of cache lines, so that the
 * parts that small packets touch of many keys spread over all sets of the caches. */
struct entry {
	struct data_key key;
	struct aead_schedule seal, open;
};
static_assert(sizeof(struct entry) % 64 == 0 && sizeof(struct entry) / 64 % 2 == 1, "odd lines");

struct key_slab {
	uint32_t count;
	uint32_t used_once; /* entries from here on were never touched */
	uint32_t first_free;
	enum key_slab_pages pages;
	size_t entries_len, windows_len, next_free_len;
	struct entry *entries;
	uint64_t (*windows)[WINDOW_WORDS]; /* touched only by large ones */
	uint32_t *next_free;		   /* index + 1; 0: last */
};

/* Memory that is there when it is touched, and not in a core dump. */
static void *reserve(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, len, MADV_DONTDUMP);
	return p;
}

/* The same on the boundary of a huge page. */
static void *reserve_aligned(size_t len)
{
	uint8_t *p = reserve(len + HUGE_PAGE);
	if (!p)
		return NULL;
	size_t front = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (front)
		munmap(p, front);
	munmap(p + front + len, HUGE_PAGE - front);
	return p + front;
}

static size_t page_up(size_t len)
{
	return (len + 4095) / 4096 * 4096;
}

/* What stands behind `name` in the paragraph of smaps for the mapping that begins at `start`, in
 * KiB; -1: not to be had. */
static long smaps_kib(uintptr_t start, const char *name)
{
	char line[256];
	bool is_ours = false;
	long kib = -1;
	FILE *f = fopen("/proc/self/smaps", "re");
	if (!f)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char word[64];
		long value;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_ours = from <= start && start < to;
		else if (is_ours && sscanf(line, "%63[^:]: %ld kB", word, &value) == 2 &&
			 strcmp(word, name) == 0)
			kib = value;
	}
	fclose(f);
	return kib;
}

/* The kernel takes the advice and yet gives plain pages where they are forbidden, or memory is in
 * pieces. The first entry shows it. */
static enum key_slab_pages try_huge(void *p, size_t len)
{
	/* A small slab on a huge page would cost more memory than it has use for. */
	if (len < 4 * HUGE_PAGE)
		return KEY_SLAB_PAGES_PLAIN;
	if (madvise(p, len, MADV_HUGEPAGE) != 0)
		return KEY_SLAB_PAGES_REFUSED;
	*(volatile uint8_t *)p = 0;
	long kib = smaps_kib((uintptr_t)p, "AnonHugePages");
	if (kib < 0)
		return KEY_SLAB_PAGES_UNKNOWN;
	return kib > 0 ? KEY_SLAB_PAGES_HUGE : KEY_SLAB_PAGES_REFUSED;
}

int key_slab_new(uint32_t count, bool use_huge_pages, struct key_slab **out)
{
	struct key_slab *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->count = count;
	s->entries_len = page_up(count * sizeof(*s->entries));
	s->windows_len = page_up(count * sizeof(*s->windows));
	s->next_free_len = page_up(count * sizeof(*s->next_free));
	s->entries = reserve_aligned(s->entries_len);
	s->windows = reserve(s->windows_len);
	s->next_free = reserve(s->next_free_len);
	if (!s->entries || !s->windows || !s->next_free) {
		key_slab_free(s);
		return -ENOMEM;
	}
	if (use_huge_pages)
		s->pages = try_huge(s->entries, s->entries_len);
	*out = s;
	return 0;
}

static void release(void *p, size_t len)
{
	if (p)
		munmap(p, len);
}

void key_slab_free(struct key_slab *s)
{
	if (!s)
		return;
	release(s->entries, s->entries_len);
	release(s->windows, s->windows_len);
	release(s->next_free, s->next_free_len);
	free(s);
}

enum key_slab_pages key_slab_pages(const struct key_slab *s)
{
	return s->pages;
}

static uint32_t take_index(struct key_slab *s)
{
	if (s->first_free) {
		uint32_t i = s->first_free - 1;
		s->first_free = s->next_free[i];
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
	struct entry *e = &s->entries[i];
	e->key = *from;
	move_schedule(&e->seal, from->seal_schedule);
	move_schedule(&e->open, from->open_schedule);
	e->key.seal_schedule = &e->seal;
	e->key.open_schedule = &e->open;
	replay_init(&e->key.replay, from->replay.window, from->replay.time_s, s->windows[i]);
	return &e->key;
}

void key_slab_drop(struct key_slab *s, struct data_key *k, struct aead *a)
{
	struct entry *e = (struct entry *)(void *)k;
	uint32_t i = (uint32_t)(e - s->entries);
	assert(i < s->count);
	data_key_fini(k, a);
	s->next_free[i] = s->first_free;
	s->first_free = i + 1;
}
