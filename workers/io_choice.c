/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/io.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workers/io_engine.h"

#define RETRIES	  150 /* of RETRY_MS each: a ring that died holds its descriptors for a while */
#define RETRY_MS  20
#define NS_PER_MS 1000000L

static int uring_new(const struct io_setup *s, struct io **out)
{
	if (s->disabled_features & FEATURE_URING)
		return -ECANCELED;
	int err = io_uring_engine_new(s, out);
	for (int i = 0; err == -EBUSY && i < RETRIES; i++) {
		nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * NS_PER_MS}, NULL);
		err = io_uring_engine_new(s, out);
	}
	return err;
}

static void note_why(int err, char *note, size_t note_len)
{
	const char *why = NULL;
	if (err == -ECANCELED)
		why = "io_uring is switched off by disable-feature";
	else if (err == -EPERM || err == -EACCES)
		why = "io_uring is forbidden here (kernel.io_uring_disabled or seccomp)";
	else if (err == -ENOSYS)
		why = "this kernel has no io_uring";
	else if (err == -EINVAL || err == -EOPNOTSUPP)
		why = "this kernel's io_uring is too old";
	else if (err == -ENOMEM)
		why = "there is not enough memory for io_uring (RLIMIT_MEMLOCK may be too small)";
	if (why)
		(void)snprintf(note, note_len, "%s", why);
	else
		(void)snprintf(note, note_len, "io_uring failed: %s", strerrordesc_np(-err));
}

int io_new(const struct io_setup *s, struct io **out, char *note, size_t note_len)
{
	assert(s->socket_count >= 1 && s->socket_count <= IO_SOCKETS_MAX);
	note[0] = '\0';
	if (s->choice == IO_ENGINE_EPOLL)
		return io_epoll_new(s, out);
	int err = uring_new(s, out);
	if (!err)
		return 0;
	note_why(err, note, note_len);
	return s->choice == IO_ENGINE_URING ? err : io_epoll_new(s, out);
}

void io_free(struct io *io)
{
	if (!io)
		return;
	io->ops->fini(io);
	free(io);
}

const char *io_name(const struct io *io)
{
	return io->ops->name;
}

void io_gather(struct io *io, uint32_t gather_us)
{
	io->gather_us = gather_us;
}

static int wait_once(struct io *io, uint64_t timeout_ms, struct io_batch *batch)
{
	batch->datagram_count = 0;
	batch->packet_count = 0;
	batch->is_woken = false;
	io->queued_bytes = 0;
	return io->ops->wait(io, timeout_ms, batch);
}

static bool is_empty(const struct io_batch *batch)
{
	return batch->datagram_count + batch->packet_count == 0 && !batch->is_woken;
}

static uint64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int io_wait(struct io *io, uint64_t timeout_ms, struct io_batch *batch)
{
	uint64_t end_us =
		io->setup.busy_poll_us && timeout_ms > 0 ? now_us() + io->setup.busy_poll_us : 0;
	while (end_us && now_us() < end_us) {
		int rc = wait_once(io, 0, batch);
		if (rc != 0 || !is_empty(batch))
			return rc;
	}
	return wait_once(io, timeout_ms, batch);
}

/* What was queued is handed over before it has left the cache, and its buffers come back hot. */
static void count_queued(struct io *io, uint32_t len)
{
	io->queued_bytes += len;
	if (io->queued_bytes > IO_HOT_BYTES)
		io_submit(io);
}

void io_send(struct io *io, struct buffer *chain)
{
	uint32_t len = buffer_chain_len(chain);
	io->ops->send(io, chain);
	count_queued(io, len);
}

void io_write_tun(struct io *io, struct buffer *chain)
{
	uint32_t len = buffer_chain_len(chain);
	io->ops->write_tun(io, chain);
	count_queued(io, len);
}

void io_submit(struct io *io)
{
	io->queued_bytes = 0;
	io->ops->submit(io);
}

const struct io_stats *io_stats(const struct io *io)
{
	return &io->stats;
}
