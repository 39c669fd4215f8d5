/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_ENGINE_H
#define WORKERS_IO_ENGINE_H

/* What io_choice.c and the two engines share; nobody else includes it. */

#include <assert.h>
#include <sys/uio.h>

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
	uint32_t queued_bytes; /* since the last submit */
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

static inline void io_done(struct io *io, struct buffer *chain, bool is_tun, int result)
{
	io->setup.done(io->setup.ctx, chain, is_tun, result);
}

/* The pieces of `chain` into `iov`, which has room for IO_CHAIN_MAX; their number. */
static inline unsigned io_pieces(const struct buffer *chain, struct iovec *iov)
{
	unsigned n = 0;
	for (; chain; chain = chain->next) {
		assert(n < IO_CHAIN_MAX);
		iov[n++] = (struct iovec){chain->data, chain->len};
	}
	return n;
}

static inline bool io_has_feature(const struct io *io, enum feature f)
{
	return !(io->setup.disabled_features & (uint32_t)f);
}

/* Buffers that one kind of receive may hold in advance: a part of the pool, since there are two
 * kinds and what they brought is still on its way out when they are filled again. */
static inline uint32_t io_receive_room(const struct buffer_pool *p)
{
	uint32_t share = buffer_pool_size(p) * 3 / 8;
	return share < 1 ? 1 : share > IO_BATCH ? IO_BATCH : share;
}

#define IO_HOT_BYTES (256u << 10) /* of what one kind of receive takes in a turn */
#define IO_HOT_MIN   8

/* Fewer than that when what comes is large, so that all of it stays in the cache. `mean` follows
 * the bytes a buffer brings. */
static inline uint32_t io_hot_room(const struct buffer_pool *p, uint32_t mean)
{
	uint32_t room = io_receive_room(p), hot = mean ? IO_HOT_BYTES / mean : room;
	hot = hot < IO_HOT_MIN ? IO_HOT_MIN : hot;
	return hot < room ? hot : room;
}

static inline void io_mean_add(uint32_t *mean, uint32_t len)
{
	*mean = (*mean * 15 + len) / 16;
}

#endif
