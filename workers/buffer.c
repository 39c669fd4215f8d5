/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, len)   ((void)(addr), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(addr, len) ((void)(addr), (void)(len))
#endif

/* The mapping holds the storage of all buffers, then their structs, then the slices. Buffers with
 * an id from `fresh` on were never taken, so that neither part of them was touched yet. */
struct buffer_pool {
	uint8_t *map;
	size_t map_len;
	struct buffer *buffers;
	struct buffer *free;
	struct buffer *slices;
	struct buffer *free_slices;
	uint32_t fresh_slices, slice_count;
	uint32_t count, fresh, free_count;
	uint32_t storage;
	uint16_t home;
};

int buffer_pool_new(uint16_t home, uint32_t count, uint32_t storage, struct buffer_pool **out)
{
	assert(count > 0 && count <= UINT16_MAX + 1U);
	assert(storage == BUFFER_SMALL || storage == BUFFER_LARGE);
	struct buffer_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	size_t bytes = (size_t)count * storage;
	p->slice_count = storage == BUFFER_LARGE ? BUFFER_SLICES : 0;
	p->map_len = bytes + (count + p->slice_count) * sizeof(struct buffer);
	void *map = mmap(NULL, p->map_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		free(p);
		return -ENOMEM;
	}
	p->map = map;
	p->buffers = (struct buffer *)(void *)(p->map + bytes);
	p->slices = p->buffers + count;
	p->count = p->free_count = count;
	p->storage = storage;
	p->home = home;
	ASAN_POISON_MEMORY_REGION(p->map, bytes);
	*out = p;
	return 0;
}

void buffer_pool_free(struct buffer_pool *p)
{
	if (!p)
		return;
	ASAN_UNPOISON_MEMORY_REGION(p->map, p->map_len);
	munmap(p->map, p->map_len);
	free(p);
}

static struct buffer *fresh_buffer(struct buffer_pool *p)
{
	struct buffer *b = &p->buffers[p->fresh];
	b->storage = p->map + (size_t)p->fresh * p->storage;
	b->cap = p->storage;
	b->pool = p;
	b->home = p->home;
	b->id = (uint16_t)p->fresh++;
	return b;
}

struct buffer *buffer_take(struct buffer_pool *p)
{
	struct buffer *b = p->free;
	if (b)
		p->free = b->next;
	else if (p->fresh < p->count)
		b = fresh_buffer(p);
	else
		return NULL;
	p->free_count--;
	ASAN_UNPOISON_MEMORY_REGION(b->storage, b->cap);
	b->next = NULL;
	b->data = b->storage + BUFFER_HEADROOM;
	b->len = 0;
	b->parts = 1;
	b->gso_size = 0;
	b->is_frame = false;
	return b;
}

static struct buffer *take_slice(struct buffer_pool *p)
{
	struct buffer *s = p->free_slices;
	if (s) {
		p->free_slices = s->next;
		return s;
	}
	if (p->fresh_slices == p->slice_count)
		return NULL;
	s = &p->slices[p->fresh_slices];
	s->pool = p;
	s->home = p->home;
	s->id = (uint16_t)p->fresh_slices++;
	return s;
}

struct buffer *buffer_slice(struct buffer_pool *p, struct buffer *whole, uint8_t *data,
			    uint32_t len)
{
	assert(whole->pool == p && !whole->whole);
	struct buffer *s = take_slice(p);
	if (!s)
		return NULL;
	s->data = s->storage = data;
	s->len = s->cap = len;
	s->next = NULL;
	s->whole = whole;
	s->gso_size = 0;
	s->is_frame = false;
	s->link = whole->link;
	whole->parts++;
	return s;
}

void buffer_give(struct buffer_pool *p, struct buffer *b)
{
	assert(b->pool == p);
	if (b->whole) {
		struct buffer *whole = b->whole;
		b->next = p->free_slices;
		p->free_slices = b;
		b = whole;
	}
	assert(b->parts > 0 && b == &p->buffers[b->id]);
	if (--b->parts > 0)
		return;
	assert(p->free_count < p->count);
	/* Whoever still reads or writes it is found by the address sanitizer. */
	ASAN_POISON_MEMORY_REGION(b->storage, b->cap);
	b->next = p->free;
	p->free = b;
	p->free_count++;
}

struct buffer *buffer_at(struct buffer_pool *p, uint16_t id)
{
	assert(id < p->fresh);
	return &p->buffers[id];
}

uint32_t buffer_pool_size(const struct buffer_pool *p)
{
	return p->count;
}

uint32_t buffer_pool_free_count(const struct buffer_pool *p)
{
	return p->free_count;
}

uint32_t buffer_pool_payload(const struct buffer_pool *p)
{
	return p->storage - BUFFER_HEADROOM - BUFFER_TAILROOM;
}
