/* SPDX-License-Identifier: Apache-2.0 */
#include "config/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

#define BLOCK_LEN 16384
#define ALIGN	  alignof(max_align_t)
#define GROW_MIN  8

struct block {
	struct block *next;
	size_t cap, used;
	alignas(max_align_t) unsigned char bytes[];
};

struct arena {
	struct block *blocks; /* newest first */
	bool is_failed;
};

struct arena *arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->blocks) {
		struct block *b = a->blocks;
		a->blocks = b->next;
		secret_wipe(b->bytes, b->used);
		free(b);
	}
	free(a);
}

bool arena_ok(const struct arena *a)
{
	return !a->is_failed;
}

static struct block *add_block(struct arena *a, size_t size)
{
	size_t cap = size > BLOCK_LEN ? size : BLOCK_LEN;
	size_t total;
	if (__builtin_add_overflow(cap, sizeof(struct block), &total))
		return NULL;
	struct block *b = calloc(1, total);
	if (!b)
		return NULL;
	b->cap = cap;
	b->next = a->blocks;
	a->blocks = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->blocks;
	size_t rounded;
	if (a->is_failed || __builtin_add_overflow(size, ALIGN - 1, &rounded))
		return NULL;
	rounded &= ~(size_t)(ALIGN - 1);
	if (!b || b->cap - b->used < rounded)
		b = add_block(a, rounded);
	if (!b) {
		a->is_failed = true;
		return NULL;
	}
	void *p = b->bytes + b->used;
	b->used += rounded;
	return p;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
	if (copy && len > 0)
		memcpy(copy, text, len);
	return copy;
}

char *arena_strdup(struct arena *a, const char *text)
{
	return arena_strndup(a, text, strlen(text));
}

void *arena_grow(struct arena *a, const void *items, size_t count, size_t size)
{
	/* Arrays stand in pieces of GROW_MIN, twice that and so on: a full one moves. */
	bool is_full = count == 0 || (count >= GROW_MIN && (count & (count - 1)) == 0);
	if (!is_full)
		return (void *)(uintptr_t)items;
	size_t bytes;
	if (__builtin_mul_overflow(count ? count * 2 : GROW_MIN, size, &bytes)) {
		a->is_failed = true;
		return NULL;
	}
	void *grown = arena_alloc(a, bytes);
	if (grown && count > 0)
		memcpy(grown, items, count * size);
	return grown;
}
