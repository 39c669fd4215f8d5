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

/* The mapping holds the storage of all buffers, then their structs. Buffers with an id from
 * `fresh` on were never taken, so that neither part of them was touched yet. */
struct buffer_pool {
	uint8_t *map;
	size_t map_len;
	struct buffer *buffers;
	struct buffer *free;
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
	p->map_len = bytes + count * sizeof(struct buffer);
	void *map = mmap(NULL, p->map_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		free(p);
		return -ENOMEM;
	}
	p->map = map;
	p->buffers = (struct buffer *)(void *)(p->map + bytes);
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
	return b;
}

void buffer_give(struct buffer_pool *p, struct buffer *b)
{
	assert(b->home == p->home && b == &p->buffers[b->id]);
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
