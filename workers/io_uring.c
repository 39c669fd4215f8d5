/* SPDX-License-Identifier: Apache-2.0 */

/* The io_uring engine. Everything is a request: datagrams come by one multishot recvmsg a socket,
 * packets by one multishot read, both into groups of offered buffers; the eventfd by a read; sends
 * and writes go out with the next entry into the kernel, many at a time. Where the kernel has no
 * multishot, one receive a source is armed again and again: many would all be woken by each packet.
 *
 * Completions are taken at any time into `ready`, which the next io_wait hands over. It cannot
 * overflow: a source is armed and its group filled only by io_wait, and no further than what
 * `ready` has room for. Neither can the completion queue, being larger than all that is in flight.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "workers/io_uring_receive.h"

#define OUTS_MS	     10 /* how long sends may hold up a wait */
#define WAITS_MAX    3
#define GATHER_COUNT (IO_BATCH / 2)
#define STARVED_MS   1 /* when to look again whether the pool has buffers */
#define CANCEL_MS    100
#define CANCEL_TRIES 50

static struct uring *uring_of(struct io *io)
{
	return (struct uring *)io;
}

/* ---- completions ---- */

static void on_out(struct uring *e, unsigned index, int res)
{
	struct out *o = &e->outs[index];
	struct buffer *chain = o->chain;
	o->chain = NULL;
	e->free_outs[e->free_out_count++] = (uint16_t)index;
	io_done(&e->io, chain, o->is_tun, res < 0 ? res : 0);
}

static void on_completion(struct uring *e, const struct io_uring_cqe *cqe)
{
	unsigned index = (unsigned)(cqe->user_data >> 8);
	e->io.stats.completions++;
	e->in_flight -= !(cqe->flags & IORING_CQE_F_MORE);
	switch ((enum request)(cqe->user_data & 0xff)) {
	case REQUEST_RECEIVE:
		uring_on_receive(e, index, cqe);
		break;
	case REQUEST_READ:
		uring_on_read(e, cqe);
		break;
	case REQUEST_WAKE:
		uring_on_wake(e, cqe);
		break;
	case REQUEST_OUT:
		on_out(e, index, cqe->res);
		break;
	case REQUEST_CANCEL:
		break;
	}
}

static void reap(struct uring *e)
{
	struct io_uring_cqe *cqe;
	unsigned head, count = 0;
	io_uring_for_each_cqe(&e->ring, head, cqe)
	{
		on_completion(e, cqe);
		count++;
	}
	io_uring_cq_advance(&e->ring, count);
}

/* ---- sending ---- */

static void submit(struct uring *e)
{
	uring_submit(e);
	reap(e);
}

/* A free place, and a queue entry for it; NULL if there is none even after submitting. */
static struct out *out_new(struct uring *e, struct buffer *chain, struct io_uring_sqe **sqe)
{
	if (e->free_out_count == 0 || e->piece_count > URING_PIECES - IO_CHAIN_MAX)
		submit(e);
	bool is_free = e->free_out_count && e->piece_count <= URING_PIECES - IO_CHAIN_MAX;
	*sqe = is_free ? uring_sqe(e) : NULL;
	if (!*sqe)
		return NULL;
	struct out *o = &e->outs[e->free_outs[--e->free_out_count]];
	o->chain = chain;
	return o;
}

/* The pieces of `chain`, which the kernel reads when they are submitted. */
static struct iovec *pieces_of(struct uring *e, const struct buffer *chain, unsigned *count)
{
	struct iovec *first = &e->pieces[e->piece_count];
	*count = io_pieces(chain, first);
	e->piece_count += *count;
	return first;
}

static void ops_send(struct io *io, struct buffer *chain)
{
	struct uring *e = uring_of(io);
	unsigned listener = chain->link.listener;
	struct io_uring_sqe *sqe;
	unsigned count;
	assert(listener < io->setup.socket_count);
	struct out *o = out_new(e, chain, &sqe);
	if (!o) {
		io_done(io, chain, false, -EAGAIN);
		return;
	}
	o->is_tun = false;
	o->mh = (struct msghdr){.msg_iov = pieces_of(e, chain, &count)};
	o->mh.msg_iovlen = count;
	udp_msg_to(&o->mh, &chain->link, io->setup.has_pktinfo[listener], o->control);
	if (io_is_burst(chain))
		udp_msg_segment(&o->mh, o->control, chain->gso_size);
	io_uring_prep_sendmsg(sqe, io->setup.sockets[listener], &o->mh, MSG_DONTWAIT);
	uring_name(e, sqe, REQUEST_OUT, (unsigned)(o - e->outs));
}

static void ops_write_tun(struct io *io, struct buffer *chain)
{
	struct uring *e = uring_of(io);
	struct io_uring_sqe *sqe;
	unsigned count;
	struct out *o = out_new(e, chain, &sqe);
	if (!o) {
		io_done(io, chain, true, -EAGAIN);
		return;
	}
	o->is_tun = true;
	if (chain->next) {
		struct iovec *pieces = pieces_of(e, chain, &count);
		io_uring_prep_writev(sqe, io->setup.tun_fd, pieces, count, 0);
	} else {
		io_uring_prep_write(sqe, io->setup.tun_fd, chain->data, chain->len, 0);
	}
	uring_name(e, sqe, REQUEST_OUT, (unsigned)(o - e->outs));
}

static void ops_submit(struct io *io)
{
	submit(uring_of(io));
}

/* ---- waiting ---- */

static bool is_ready(const struct uring *e)
{
	return e->ready.datagram_count || e->ready.packet_count || e->ready.is_woken || e->error;
}

/* Sends and writes complete as they are submitted, and would end the wait at once: so as many
 * completions are waited for, and one that brings something. One that is late all the same must not
 * hold up what arrives. */
static int wait_once(struct uring *e, uint64_t limit_ms)
{
	unsigned outs = URING_OUTS - e->free_out_count;
	if (outs && limit_ms > OUTS_MS)
		limit_ms = OUTS_MS;
	return uring_enter(e, outs + 1, limit_ms == UINT64_MAX ? limit_ms : limit_ms * 1000);
}

/* Before the wait proper: until a good part of a batch is there, or the time to gather is over. */
static int gather(struct uring *e)
{
	int rc = uring_enter(e, URING_OUTS - e->free_out_count + GATHER_COUNT, e->io.gather_us);
	reap(e);
	return rc == -ETIME ? 0 : rc;
}

static int ops_wait(struct io *io, uint64_t timeout_ms, struct io_batch *batch)
{
	struct uring *e = uring_of(io);
	int rc = 0;
	reap(e);
	uring_arm(e);
	if (is_ready(e))
		rc = uring_enter(e, 0, 0);
	else if (e->io.gather_us && timeout_ms > 0)
		rc = gather(e);
	/* An entry may end with nothing but sends, or by a source that has to be armed again. */
	for (unsigned i = 0; rc == 0 && !is_ready(e) && i < WAITS_MAX; i++) {
		uring_arm(e);
		uint64_t limit = e->is_starved && timeout_ms > STARVED_MS ? STARVED_MS : timeout_ms;
		rc = wait_once(e, limit);
		reap(e);
		if (timeout_ms == 0)
			break;
	}
	*batch = e->ready;
	e->ready.datagram_count = e->ready.packet_count = 0;
	e->ready.is_woken = false;
	return e->error ? e->error : rc == -ETIME ? 0 : rc;
}

/* ---- making and ending ---- */

/* An armed request holds its descriptor beyond the end of the ring: an address or device would
 * stay taken for a while. So every one is cancelled, and its completion awaited. */
static void cancel_all(struct uring *e)
{
	for (unsigned i = 0; e->in_flight > 0 && i < CANCEL_TRIES; i++) {
		struct io_uring_sqe *sqe = uring_sqe(e);
		if (sqe) {
			io_uring_prep_cancel64(sqe, 0,
					       IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
			uring_name(e, sqe, REQUEST_CANCEL, 0);
		}
		int rc = 0;
		while (e->in_flight > 0 && rc == 0) {
			rc = uring_enter(e, 1, CANCEL_MS * 1000);
			reap(e);
		}
	}
}

static void ops_fini(struct io *io)
{
	struct uring *e = uring_of(io);
	uring_submit(e);
	reap(e);
	cancel_all(e);
	uring_receive_fini(e);
	io_uring_queue_exit(&e->ring);
	for (unsigned i = 0; i < URING_OUTS; i++) {
		if (e->outs[i].chain)
			on_out(e, i, -ECANCELED);
	}
}

static const struct io_ops uring_ops = {
	.name = "io_uring",
	.wait = ops_wait,
	.send = ops_send,
	.write_tun = ops_write_tun,
	.submit = ops_submit,
	.fini = ops_fini,
};

int io_uring_engine_new(const struct io_setup *s, struct io **out)
{
	struct uring *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	io_init(&e->io, &uring_ops, s);
	int err = uring_init(e);
	if (err) {
		free(e);
		return err;
	}
	while (e->free_out_count < URING_OUTS) {
		e->free_outs[e->free_out_count] = (uint16_t)(URING_OUTS - 1 - e->free_out_count);
		e->free_out_count++;
	}
	uring_receive_init(e);
	*out = &e->io;
	return 0;
}
