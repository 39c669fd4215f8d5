/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_ENGINE_H
#define WORKERS_IO_ENGINE_H

/* What io_choice.c and the two engines share; nobody else includes it. */

#include "workers/io.h"

struct io_ops {
	const char *name;
	int (*wait)(struct io *io, uint64_t timeout_ms, struct io_batch *batch);
	void (*send)(struct io *io, struct buffer *b);
	void (*write_tun)(struct io *io, struct buffer *b);
	void (*submit)(struct io *io);
	/* Gives back every buffer, and frees all but struct io itself. */
	void (*fini)(struct io *io);
};

/* The head of each engine's own struct. */
struct io {
	const struct io_ops *ops;
	struct io_setup setup; /* its arrays are the two here */
	int sockets[IO_SOCKETS_MAX];
	bool has_pktinfo[IO_SOCKETS_MAX];
	struct io_stats stats;
	uint32_t gather_us;
};

/* Both return 0 and an engine whose `ops` and `setup` are set, or -errno. */
__attribute__((warn_unused_result)) int io_epoll_new(const struct io_setup *s, struct io **out);
__attribute__((warn_unused_result)) int io_uring_engine_new(const struct io_setup *s,
							    struct io **out);

/* Fill the head of a new engine; `s` and its arrays are copied. */
static inline void io_init(struct io *io, const struct io_ops *ops, const struct io_setup *s)
{
	*io = (struct io){.ops = ops, .setup = *s};
	for (unsigned i = 0; i < s->socket_count; i++) {
		io->sockets[i] = s->sockets[i];
		io->has_pktinfo[i] = s->has_pktinfo[i];
	}
	io->setup.sockets = io->sockets;
	io->setup.has_pktinfo = io->has_pktinfo;
}

static inline void io_done(struct io *io, struct buffer *b, bool is_tun, int result)
{
	io->setup.done(io->setup.ctx, b, is_tun, result);
}

static inline bool io_has_feature(const struct io *io, enum feature f)
{
	return !(io->setup.disabled_features & (uint32_t)f);
}

/* Buffers that one kind of receive may hold in advance: few of a small or large-buffered pool. */
static inline uint32_t io_receive_room(const struct buffer_pool *p)
{
	uint32_t share = buffer_pool_size(p) / 8;
	return share < 1 ? 1 : share > IO_BATCH ? IO_BATCH : share;
}

#endif
