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
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "workers/io_engine.h"
#include "workers/io_uring_group.h"
#include "workers/udp.h"

#define OUTS	   512 /* sends and writes in flight */
#define SQ_ENTRIES 512
#define CQ_ENTRIES 2048
#define STARVED_MS 1 /* when to look again whether the pool has buffers */
#define OP_READ_MULTISHOT                                                                          \
	49 /* IORING_OP_READ_MULTISHOT, kernel 6.7; liburing 2.3 does not know it */
#define CANCEL_MS    100
#define CANCEL_TRIES 50
#define NS_PER_MS    1000000

/* A multishot recvmsg puts into the buffer: io_uring_recvmsg_out, name, control, payload. With a
 * name of 32 bytes the control messages are aligned, and what stands in front of the payload is the
 * head room. */
#define NAME_LEN 32
#define FRONT	 (sizeof(struct io_uring_recvmsg_out) + NAME_LEN + UDP_CONTROL_LEN)
static_assert(NAME_LEN >= sizeof(union sockaddr_any), "room for any name");
static_assert((sizeof(struct io_uring_recvmsg_out) + NAME_LEN) % sizeof(size_t) == 0, "alignment");
static_assert(FRONT >= BUFFER_HEADROOM && FRONT < BUFFER_HEADROOM + BUFFER_TAILROOM, "room");
static_assert(CQ_ENTRIES > OUTS + 2 * IO_BATCH + 2 * IO_SOCKETS_MAX + 2 * CANCEL_TRIES, "room");

enum request { REQUEST_RECEIVE, REQUEST_READ, REQUEST_WAKE, REQUEST_OUT, REQUEST_CANCEL };

/* One socket. The buffer and the headers are of a single receive. */
struct source {
	bool is_armed;
	struct buffer *buffer;
	struct msghdr mh;
	struct iovec iov;
	union sockaddr_any name;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
};

/* A send or write, until its completion. */
struct out {
	struct buffer *buffer; /* NULL: free */
	bool is_tun;
	struct msghdr mh;
	struct iovec iov;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
};

struct engine {
	struct io io;
	struct io_uring ring;
	unsigned in_flight; /* requests that will complete yet */
	int error;	    /* why the engine cannot go on */
	bool is_starved;    /* something is not armed for want of buffers */
	struct io_batch ready;

	bool has_recv_multishot;
	struct msghdr multishot_mh;
	struct buffer_group datagrams;
	struct source sources[IO_SOCKETS_MAX];

	bool has_read_multishot;
	struct buffer_group packets;
	bool is_tun_armed;
	struct buffer *tun_buffer; /* of a single read */

	bool is_wake_armed;
	eventfd_t wake_count;

	struct out outs[OUTS];
	uint16_t free_outs[OUTS]; /* stack, so that few stay hot */
	unsigned free_out_count;
};

static struct engine *engine_of(struct io *io)
{
	return (struct engine *)io;
}

/* ---- entering the kernel ---- */

static void count_entry(struct engine *e, unsigned queued)
{
	e->io.stats.system_calls++;
	e->io.stats.submissions += queued - io_uring_sq_ready(&e->ring);
}

/* What the kernel does not take now stays queued. */
static void submit(struct engine *e)
{
	unsigned queued = io_uring_sq_ready(&e->ring);
	if (queued == 0)
		return;
	(void)io_uring_submit(&e->ring);
	count_entry(e, queued);
}

/* Submit, and wait for a completion. Returns 0, -ETIME, or -errno if the ring is broken. */
static int enter(struct engine *e, uint64_t timeout_ms)
{
	unsigned queued = io_uring_sq_ready(&e->ring);
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts = {.tv_sec = (int64_t)(timeout_ms / 1000),
				       .tv_nsec = (int64_t)(timeout_ms % 1000) * NS_PER_MS};
	int rc = timeout_ms == 0
			 ? io_uring_submit_and_get_events(&e->ring)
			 : io_uring_submit_and_wait_timeout(
				   &e->ring, &cqe, 1, timeout_ms == UINT64_MAX ? NULL : &ts, NULL);
	count_entry(e, queued);
	bool is_passing = rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
	return rc >= 0 || is_passing ? 0 : rc;
}

/* NULL if the queue stays full. */
static struct io_uring_sqe *sqe_get(struct engine *e)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);
	if (sqe)
		return sqe;
	submit(e);
	return io_uring_get_sqe(&e->ring);
}

static void name_request(struct engine *e, struct io_uring_sqe *sqe, enum request r, unsigned index)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)r | (uint64_t)index << 8);
	e->in_flight++;
}

/* ---- arming what receives ---- */

static void arm_multishot_receive(struct engine *e, unsigned listener)
{
	struct io_uring_sqe *sqe = group_offered(&e->datagrams) ? sqe_get(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_recvmsg_multishot(sqe, e->io.setup.sockets[listener], &e->multishot_mh, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = e->datagrams.id;
	name_request(e, sqe, REQUEST_RECEIVE, listener);
	e->sources[listener].is_armed = true;
}

static void arm_single_receive(struct engine *e, unsigned listener)
{
	struct source *s = &e->sources[listener];
	if (!s->buffer)
		s->buffer = buffer_take(e->io.setup.pool);
	struct io_uring_sqe *sqe = s->buffer ? sqe_get(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	s->iov = (struct iovec){s->buffer->data, buffer_pool_payload(e->io.setup.pool)};
	s->mh = (struct msghdr){
		.msg_name = &s->name,
		.msg_namelen = sizeof(s->name),
		.msg_iov = &s->iov,
		.msg_iovlen = 1,
		.msg_control = s->control,
		.msg_controllen = sizeof(s->control),
	};
	io_uring_prep_recvmsg(sqe, e->io.setup.sockets[listener], &s->mh, 0);
	name_request(e, sqe, REQUEST_RECEIVE, listener);
	s->is_armed = true;
}

static void arm_multishot_read(struct engine *e)
{
	struct io_uring_sqe *sqe = group_offered(&e->packets) ? sqe_get(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_rw(OP_READ_MULTISHOT, sqe, e->io.setup.tun_fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = e->packets.id;
	name_request(e, sqe, REQUEST_READ, 0);
	e->is_tun_armed = true;
}

static void arm_single_read(struct engine *e)
{
	if (!e->tun_buffer)
		e->tun_buffer = buffer_take(e->io.setup.pool);
	struct io_uring_sqe *sqe = e->tun_buffer ? sqe_get(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_read(sqe, e->io.setup.tun_fd, e->tun_buffer->data,
			   buffer_pool_payload(e->io.setup.pool), 0);
	name_request(e, sqe, REQUEST_READ, 0);
	e->is_tun_armed = true;
}

static void arm_wake(struct engine *e)
{
	struct io_uring_sqe *sqe = sqe_get(e);
	if (!sqe)
		return;
	io_uring_prep_read(sqe, e->io.setup.wake_fd, &e->wake_count, sizeof(e->wake_count), 0);
	name_request(e, sqe, REQUEST_WAKE, 0);
	e->is_wake_armed = true;
}

/* Buffers to offer, so that all of them fit into `ready` beside the `ready_count` there. */
static unsigned room(const struct engine *e, unsigned ready_count)
{
	unsigned most = io_receive_room(e->io.setup.pool);
	return most > ready_count ? most - ready_count : 0;
}

static void arm_all(struct engine *e)
{
	struct buffer_pool *pool = e->io.setup.pool;
	e->is_starved = false;
	if (e->has_recv_multishot)
		group_refill(&e->datagrams, pool, room(e, e->ready.datagram_count));
	if (e->has_read_multishot)
		group_refill(&e->packets, pool, room(e, e->ready.packet_count));
	for (unsigned i = 0; i < e->io.setup.socket_count; i++) {
		if (e->sources[i].is_armed)
			continue;
		if (e->has_recv_multishot)
			arm_multishot_receive(e, i);
		else
			arm_single_receive(e, i);
	}
	if (!e->is_tun_armed && e->has_read_multishot)
		arm_multishot_read(e);
	else if (!e->is_tun_armed)
		arm_single_read(e);
	if (!e->is_wake_armed)
		arm_wake(e);
	e->io.stats.buffers_exhausted += e->is_starved;
}

/* ---- completions ---- */

static void deliver_datagram(struct engine *e, unsigned listener, struct buffer *b,
			     const struct msghdr *mh)
{
	assert(e->ready.datagram_count < IO_BATCH);
	udp_msg_from(mh, &b->link);
	b->link.listener = (uint16_t)listener;
	e->ready.datagrams[e->ready.datagram_count++] = b;
}

static void drop_truncated(struct engine *e, struct buffer *b)
{
	e->io.stats.truncated++;
	buffer_give(e->io.setup.pool, b);
}

static void take_multishot_datagram(struct engine *e, unsigned listener, struct buffer *b, int len)
{
	struct io_uring_recvmsg_out *o =
		io_uring_recvmsg_validate(b->storage, len, &e->multishot_mh);
	if (!o || (o->flags & MSG_TRUNC)) {
		drop_truncated(e, b);
		return;
	}
	uint8_t *name = io_uring_recvmsg_name(o);
	struct msghdr mh = {
		.msg_name = name,
		.msg_namelen = o->namelen,
		.msg_control = name + NAME_LEN,
		.msg_controllen = o->controllen,
	};
	b->data = io_uring_recvmsg_payload(o, &e->multishot_mh);
	b->len = io_uring_recvmsg_payload_length(o, len, &e->multishot_mh);
	deliver_datagram(e, listener, b, &mh);
}

static void take_single_datagram(struct engine *e, unsigned listener, int len)
{
	struct source *s = &e->sources[listener];
	struct buffer *b = s->buffer;
	s->buffer = NULL;
	if (s->mh.msg_flags & MSG_TRUNC) {
		drop_truncated(e, b);
		return;
	}
	b->len = (uint32_t)len;
	deliver_datagram(e, listener, b, &s->mh);
}

/* ENOBUFS: the group ran dry, and is filled by the next io_wait. */
static bool is_harmless(int err)
{
	return err == -ENOBUFS || err == -EINTR || err == -EAGAIN || err == -ECANCELED;
}

static void on_receive(struct engine *e, unsigned listener, const struct io_uring_cqe *cqe)
{
	struct buffer *b = group_take(&e->datagrams, cqe);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		e->sources[listener].is_armed = false;
	if (cqe->res >= 0) {
		if (b)
			take_multishot_datagram(e, listener, b, cqe->res);
		else
			take_single_datagram(e, listener, cqe->res);
		return;
	}
	if (b)
		buffer_give(e->io.setup.pool, b);
	if (cqe->res == -EINVAL && e->has_recv_multishot)
		e->has_recv_multishot = false; /* before kernel 6.0 */
	else if (!is_harmless(cqe->res))
		e->io.stats.receive_errors++;
}

static void deliver_packet(struct engine *e, struct buffer *b, int len)
{
	assert(e->ready.packet_count < IO_BATCH);
	b->len = (uint32_t)len;
	e->ready.packets[e->ready.packet_count++] = b;
}

static void on_read(struct engine *e, const struct io_uring_cqe *cqe)
{
	struct buffer *b = group_take(&e->packets, cqe);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		e->is_tun_armed = false;
	if (cqe->res > 0) {
		deliver_packet(e, b ? b : e->tun_buffer, cqe->res);
		e->tun_buffer = b ? e->tun_buffer : NULL;
		return;
	}
	if (b)
		buffer_give(e->io.setup.pool, b);
	if (e->has_read_multishot && (cqe->res == -EINVAL || cqe->res == -EBADFD))
		e->has_read_multishot =
			false; /* not on this kernel or file: the single read will tell */
	else if (cqe->res == 0)
		e->error = -EPIPE;
	else if (!is_harmless(cqe->res))
		e->error = cqe->res;
}

static void on_out(struct engine *e, unsigned index, int res)
{
	struct out *o = &e->outs[index];
	struct buffer *b = o->buffer;
	o->buffer = NULL;
	e->free_outs[e->free_out_count++] = (uint16_t)index;
	io_done(&e->io, b, o->is_tun, res < 0 ? res : 0);
}

static void on_completion(struct engine *e, const struct io_uring_cqe *cqe)
{
	unsigned index = (unsigned)(cqe->user_data >> 8);
	e->io.stats.completions++;
	e->in_flight -= !(cqe->flags & IORING_CQE_F_MORE);
	switch ((enum request)(cqe->user_data & 0xff)) {
	case REQUEST_RECEIVE:
		on_receive(e, index, cqe);
		break;
	case REQUEST_READ:
		on_read(e, cqe);
		break;
	case REQUEST_WAKE:
		e->is_wake_armed = false;
		e->ready.is_woken = e->ready.is_woken || cqe->res > 0;
		break;
	case REQUEST_OUT:
		on_out(e, index, cqe->res);
		break;
	case REQUEST_CANCEL:
		break;
	}
}

static void reap(struct engine *e)
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

/* A free place, and a queue entry for it; NULL if there is none even after submitting. */
static struct out *out_new(struct engine *e, struct buffer *b, struct io_uring_sqe **sqe)
{
	if (e->free_out_count == 0) {
		submit(e);
		reap(e);
	}
	*sqe = e->free_out_count ? sqe_get(e) : NULL;
	if (!*sqe)
		return NULL;
	struct out *o = &e->outs[e->free_outs[--e->free_out_count]];
	o->buffer = b;
	return o;
}

static void uring_send(struct io *io, struct buffer *b)
{
	struct engine *e = engine_of(io);
	unsigned listener = b->link.listener;
	struct io_uring_sqe *sqe;
	assert(listener < io->setup.socket_count);
	struct out *o = out_new(e, b, &sqe);
	if (!o) {
		io_done(io, b, false, -EAGAIN);
		return;
	}
	o->is_tun = false;
	o->iov = (struct iovec){b->data, b->len};
	o->mh = (struct msghdr){.msg_iov = &o->iov, .msg_iovlen = 1};
	udp_msg_to(&o->mh, &b->link, io->setup.has_pktinfo[listener], o->control);
	io_uring_prep_sendmsg(sqe, io->setup.sockets[listener], &o->mh, MSG_DONTWAIT);
	name_request(e, sqe, REQUEST_OUT, (unsigned)(o - e->outs));
}

static void uring_write_tun(struct io *io, struct buffer *b)
{
	struct engine *e = engine_of(io);
	struct io_uring_sqe *sqe;
	struct out *o = out_new(e, b, &sqe);
	if (!o) {
		io_done(io, b, true, -EAGAIN);
		return;
	}
	o->is_tun = true;
	io_uring_prep_write(sqe, io->setup.tun_fd, b->data, b->len, 0);
	name_request(e, sqe, REQUEST_OUT, (unsigned)(o - e->outs));
}

static void uring_submit(struct io *io)
{
	submit(engine_of(io));
}

/* ---- waiting ---- */

static bool is_ready(const struct engine *e)
{
	return e->ready.datagram_count || e->ready.packet_count || e->ready.is_woken || e->error;
}

static int uring_wait(struct io *io, uint64_t timeout_ms, struct io_batch *batch)
{
	struct engine *e = engine_of(io);
	int rc = 0;
	reap(e);
	/* The first entry may end by nothing but sends that it submitted, or by a source that has
	 * to be armed again. */
	for (unsigned i = 0; i < 2; i++) {
		arm_all(e);
		uint64_t limit = e->is_starved && timeout_ms > STARVED_MS ? STARVED_MS : timeout_ms;
		rc = enter(e, is_ready(e) ? 0 : limit);
		reap(e);
		if (rc || timeout_ms == 0 || is_ready(e))
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
static void cancel_all(struct engine *e)
{
	for (unsigned i = 0; e->in_flight > 0 && i < CANCEL_TRIES; i++) {
		struct io_uring_sqe *sqe = sqe_get(e);
		if (sqe) {
			io_uring_prep_cancel64(sqe, 0,
					       IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
			name_request(e, sqe, REQUEST_CANCEL, 0);
		}
		int rc = 0;
		while (e->in_flight > 0 && rc == 0) {
			rc = enter(e, CANCEL_MS);
			reap(e);
		}
	}
}

static void give_all(struct engine *e)
{
	struct buffer_pool *pool = e->io.setup.pool;
	for (unsigned i = 0; i < e->ready.datagram_count; i++)
		buffer_give(pool, e->ready.datagrams[i]);
	for (unsigned i = 0; i < e->ready.packet_count; i++)
		buffer_give(pool, e->ready.packets[i]);
	for (unsigned i = 0; i < IO_SOCKETS_MAX; i++) {
		if (e->sources[i].buffer)
			buffer_give(pool, e->sources[i].buffer);
	}
	if (e->tun_buffer)
		buffer_give(pool, e->tun_buffer);
	for (unsigned i = 0; i < OUTS; i++) {
		if (e->outs[i].buffer)
			on_out(e, i, -ECANCELED);
	}
}

static void uring_fini(struct io *io)
{
	struct engine *e = engine_of(io);
	submit(e);
	reap(e);
	cancel_all(e);
	group_fini(&e->datagrams, &e->ring, io->setup.pool);
	group_fini(&e->packets, &e->ring, io->setup.pool);
	io_uring_queue_exit(&e->ring);
	give_all(e);
}

static const struct io_ops uring_ops = {
	.name = "io_uring",
	.wait = uring_wait,
	.send = uring_send,
	.write_tun = uring_write_tun,
	.submit = uring_submit,
	.fini = uring_fini,
};

/* Completions only when asked for, which costs no interrupt (kernel 6.1); else the next best. An
 * older kernel than these cannot cancel everything at the end. */
static int ring_init(struct io_uring *ring)
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
		err = io_uring_queue_init_params(SQ_ENTRIES, ring, &p);
	}
	return err;
}

static bool is_op_known(struct engine *e, int op)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(&e->ring);
	bool is_known = p && io_uring_opcode_supported(p, op);
	io_uring_free_probe(p);
	return is_known;
}

static void groups_init(struct engine *e)
{
	uint32_t payload = buffer_pool_payload(e->io.setup.pool);
	e->multishot_mh =
		(struct msghdr){.msg_namelen = NAME_LEN, .msg_controllen = UDP_CONTROL_LEN};
	if (io_has_feature(&e->io, FEATURE_URING_RECV_MULTISHOT))
		e->has_recv_multishot =
			group_init(&e->datagrams, &e->ring, 0, 0, FRONT + payload) == 0;
	if (io_has_feature(&e->io, FEATURE_URING_READ_MULTISHOT) &&
	    is_op_known(e, OP_READ_MULTISHOT))
		e->has_read_multishot =
			group_init(&e->packets, &e->ring, 1, BUFFER_HEADROOM, payload) == 0;
}

int io_uring_engine_new(const struct io_setup *s, struct io **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->io = (struct io){.ops = &uring_ops, .setup = *s};
	int err = ring_init(&e->ring);
	if (err) {
		free(e);
		return err;
	}
	while (e->free_out_count < OUTS) {
		e->free_outs[e->free_out_count] = (uint16_t)(OUTS - 1 - e->free_out_count);
		e->free_out_count++;
	}
	groups_init(e);
	*out = &e->io;
	return 0;
}
