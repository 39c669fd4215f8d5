/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/io_uring_group.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define ENTRIES_LEN (IO_BATCH * sizeof(struct io_uring_buf))
static_assert((IO_BATCH & (IO_BATCH - 1)) == 0, "the kernel wants a power of two");

int group_init(struct buffer_group *g, struct io_uring *ring, uint16_t id, uint32_t front,
	       uint32_t len)
{
	/* The kernel wants it page-aligned. */
	void *entries =
		mmap(NULL, ENTRIES_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (entries == MAP_FAILED)
		return -ENOMEM;
	struct io_uring_buf_reg reg = {
		.ring_addr = (uintptr_t)entries, .ring_entries = IO_BATCH, .bgid = id};
	int err = io_uring_register_buf_ring(ring, &reg, 0);
	if (err) {
		munmap(entries, ENTRIES_LEN);
		return err;
	}
	*g = (struct buffer_group){.entries = entries, .id = id, .front = front, .len = len};
	io_uring_buf_ring_init(g->entries);
	while (g->free_count < IO_BATCH) {
		g->free_ids[g->free_count] = (uint8_t)g->free_count;
		g->free_count++;
	}
	return 0;
}

void group_fini(struct buffer_group *g, struct io_uring *ring, struct buffer_pool *pool)
{
	if (!g->entries)
		return;
	/* Fails only if the ring is gone, and the registration with it. */
	(void)io_uring_unregister_buf_ring(ring, g->id);
	munmap(g->entries, ENTRIES_LEN);
	g->entries = NULL;
	for (unsigned i = 0; i < IO_BATCH; i++) {
		if (g->held[i])
			buffer_give(pool, g->held[i]);
		g->held[i] = NULL;
	}
}

void group_refill(struct buffer_group *g, struct buffer_pool *pool, unsigned want)
{
	int added = 0;
	assert(want <= IO_BATCH);
	while (group_offered(g) < want) {
		struct buffer *b = buffer_take(pool);
		if (!b)
			break;
		uint8_t id = g->free_ids[--g->free_count];
		g->held[id] = b;
		io_uring_buf_ring_add(g->entries, b->storage + g->front, g->len, id,
				      io_uring_buf_ring_mask(IO_BATCH), added++);
	}
	if (added)
		io_uring_buf_ring_advance(g->entries, added);
}

unsigned group_offered(const struct buffer_group *g)
{
	return IO_BATCH - g->free_count;
}

struct buffer *group_take(struct buffer_group *g, const struct io_uring_cqe *cqe)
{
	if (!(cqe->flags & IORING_CQE_F_BUFFER))
		return NULL;
	unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
	assert(id < IO_BATCH && g->held[id]);
	struct buffer *b = g->held[id];
	g->held[id] = NULL;
	g->free_ids[g->free_count++] = (uint8_t)id;
	return b;
}
