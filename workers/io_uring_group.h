/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_URING_GROUP_H
#define WORKERS_IO_URING_GROUP_H

/* Buffers of the worker's pool that a ring offers to the kernel for multishot receives: the
 * kernel picks one for each packet and names it in the completion. Part of the io_uring engine. */

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "workers/io.h"

struct buffer_group {
	struct io_uring_buf_ring *entries; /* shared with the kernel; NULL: not in use */
	struct buffer *held[IO_BATCH];	   /* by the number the kernel knows it by; NULL: free */
	uint8_t free_ids[IO_BATCH];	   /* stack */
	unsigned free_count;
	uint16_t id;
	uint32_t front; /* the kernel writes this far behind the start of the storage */
	uint32_t len;	/* as much */
};

/* Register an empty group `id` with `ring`. front, len: where in a buffer's storage the kernel
 * writes. Returns 0 or -errno, -EINVAL if the kernel is too old. */
__attribute__((warn_unused_result)) int group_init(struct buffer_group *g, struct io_uring *ring,
						   uint16_t id, uint32_t front, uint32_t len);
/* Take the registration back and give what is held to `pool`. Nothing, if not in use. */
void group_fini(struct buffer_group *g, struct io_uring *ring, struct buffer_pool *pool);
/* Offer buffers of `pool` until `want` (at most IO_BATCH) are offered, or the pool is empty. */
void group_refill(struct buffer_group *g, struct buffer_pool *pool, unsigned want);
/* Buffers that the kernel may still use. */
unsigned group_offered(const struct buffer_group *g);
/* The buffer that a completion names, which is the caller's now; NULL if it names none. */
struct buffer *group_take(struct buffer_group *g, const struct io_uring_cqe *cqe);

#endif
