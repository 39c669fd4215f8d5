/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_H
#define WORKERS_IO_H

/* A worker's I/O engine: two of them (io_uring, epoll), chosen at run time; nobody else sees which
 * one runs. One engine belongs to one worker thread and is made and used on it.
 *
 * Buffers: received ones come from the worker's pool and belong to the caller after io_wait. Sent
 * ones belong to the engine until it gives them back by io_ops.done (home or not), at the latest in
 * io_free. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "workers/buffer.h"

#define IO_BATCH       64 /* most packets of one kind that one turn delivers */
#define IO_SOCKETS_MAX 32
#define IO_CHAIN_MAX   64 /* buffers of one send or write */

struct io;

struct io_setup {
	enum io_engine_choice choice;
	uint32_t disabled_features; /* enum feature */
	const int *sockets;	    /* UDP sockets; index is the listener */
	const bool *has_pktinfo;    /* for each: send with the local address of buffer->link */
	unsigned socket_count;	    /* 1..IO_SOCKETS_MAX */
	int tun_fd;		    /* one packet a read and write; the epoll engine sets O_NONBLOCK
				       on it until io_free */
	int wake_fd;		    /* eventfd of the mailbox; the engine reads it */
	struct buffer_pool *pool;   /* where received packets go; must outlive the engine */
	uint32_t busy_poll_us;	    /* look again and again for so long before sleeping; 0: sleep */
	/* A chain that was sent or written; result: 0 or -errno. Called inside any io function but
	 * io_new; calls none itself. */
	void (*done)(void *ctx, struct buffer *chain, bool is_tun, int result);
	void *ctx;
};

/* What one turn brought. The buffers belong to the caller. */
struct io_batch {
	/* data, len, gso_size, link (remote, local, listener) are set */
	struct buffer *datagrams[IO_BATCH];
	unsigned datagram_count;
	struct buffer *packets[IO_BATCH]; /* from the tun queue */
	unsigned packet_count;
	bool is_woken; /* the eventfd fired */
};

struct io_stats {
	uint64_t system_calls; /* enters or calls of the data path */
	uint64_t submissions, completions;
	uint64_t buffers_exhausted; /* a receive had no buffer */
	uint64_t receive_errors;    /* stray errors on a shared socket, tolerated */
	uint64_t truncated;	    /* datagrams larger than a buffer, dropped */
};

/* Make an engine. IO_ENGINE_AUTO tries io_uring and falls back to epoll; `note` (at least 128
 * bytes) then says why in half a sentence, else "". Retries EBUSY. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int io_new(const struct io_setup *s, struct io **out,
					       char *note, size_t note_len);
/* Cancel everything, wait for completions, close. */
void io_free(struct io *io);
/* "io_uring" or "epoll". */
const char *io_name(const struct io *io);

/* From the next io_wait on: when it would sleep, let up to `gather_us` pass even if something
 * arrives, so that more is taken at once (what a network card calls interrupt moderation). 0, the
 * default: come back with the first. */
void io_gather(struct io *io, uint32_t gather_us);
/* Submit what is queued, wait until something arrives or `timeout_ms` passed (UINT64_MAX: for
 * ever, 0: only look), and fill `batch`; it may also come back early and empty-handed. Returns 0
 * or -errno if the engine cannot go on, the tun device being gone for one; what `batch` holds is
 * the caller's then, too. */
__attribute__((warn_unused_result)) int io_wait(struct io *io, uint64_t timeout_ms,
						struct io_batch *batch);
/* Queue what is in `chain` (at most IO_CHAIN_MAX buffers by ->next) to chain->link.remote from
 * socket chain->link.listener: one datagram, or with chain->gso_size datagrams of so many bytes,
 * the last one shorter or equal. Never blocks; a full queue or socket gives the chain back with
 * -EAGAIN through done, possibly before this returns. */
void io_send(struct io *io, struct buffer *chain);
/* Queue a frame for the tun queue, likewise. */
void io_write_tun(struct io *io, struct buffer *chain);
/* Hand over everything queued, in as few system calls as possible, without waiting. io_wait does,
 * and io_send and io_write_tun do when so much is queued that it would fall out of the cache. */
void io_submit(struct io *io);
const struct io_stats *io_stats(const struct io *io);

/* Is there more than one datagram in what is to be sent? */
static inline bool io_is_burst(const struct buffer *chain)
{
	return chain->gso_size && (chain->next || chain->len > chain->gso_size);
}

#endif
