/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/io_uring_engine.h"

#include <assert.h>
#include <errno.h>

#define SQ_ENTRIES 512
#define CQ_ENTRIES 2048
#define NS_PER_US  1000

static_assert(CQ_ENTRIES > URING_OUTS + 4 * IO_BATCH + 4 * IO_SOCKETS_MAX,
	      "the completion queue holds all that is in flight");

/* Completions only when asked for, which costs no interrupt (kernel 6.1); else the next best. An
 * older kernel than these cannot cancel everything at the end. */
int uring_init(struct uring *e)
{
	static const unsigned flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN,
	};
	int err = -EINVAL;
	for (size_t i = 0; err == -EINVAL && i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct io_uring_params p = {
			.flags = flags[i] | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL,
			.cq_entries = CQ_ENTRIES,
		};
		err = io_uring_queue_init_params(SQ_ENTRIES, &e->ring, &p);
	}
	return err;
}

static void count_entry(struct uring *e, unsigned queued)
{
	e->io.stats.system_calls++;
	e->io.stats.submissions += queued - io_uring_sq_ready(&e->ring);
	if (io_uring_sq_ready(&e->ring) == 0)
		e->piece_count = 0;
}

void uring_submit(struct uring *e)
{
	unsigned queued = io_uring_sq_ready(&e->ring);
	if (queued == 0)
		return;
	(void)io_uring_submit(&e->ring);
	count_entry(e, queued);
}

int uring_enter(struct uring *e, unsigned count, uint64_t timeout_us)
{
	unsigned queued = io_uring_sq_ready(&e->ring);
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts = {.tv_sec = (int64_t)(timeout_us / 1000000),
				       .tv_nsec = (int64_t)(timeout_us % 1000000) * NS_PER_US};
	int rc = timeout_us == 0
			 ? io_uring_submit_and_get_events(&e->ring)
			 : io_uring_submit_and_wait_timeout(&e->ring, &cqe, count,
							    timeout_us == UINT64_MAX ? NULL : &ts,
							    NULL);
	count_entry(e, queued);
	bool is_passing = rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
	return rc >= 0 || is_passing ? 0 : rc;
}

struct io_uring_sqe *uring_sqe(struct uring *e)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);
	if (sqe)
		return sqe;
	uring_submit(e);
	return io_uring_get_sqe(&e->ring);
}

void uring_name(struct uring *e, struct io_uring_sqe *sqe, enum request r, unsigned index)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)r | (uint64_t)index << 8);
	e->in_flight++;
}
