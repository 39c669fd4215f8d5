/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/io_uring_receive.h"

#include <assert.h>
#include <errno.h>

#define OP_READ_MULTISHOT                                                                          \
	49 /* IORING_OP_READ_MULTISHOT, kernel 6.7; liburing 2.3 does not know it */

/* A multishot recvmsg puts into the buffer: io_uring_recvmsg_out, name, control, payload. With a
 * name of 32 bytes the control messages are aligned, and what stands in front of the payload is the
 * head room. */
#define NAME_LEN 32
#define FRONT	 (sizeof(struct io_uring_recvmsg_out) + NAME_LEN + UDP_CONTROL_LEN)
static_assert(NAME_LEN >= sizeof(union sockaddr_any), "room for any name");
static_assert((sizeof(struct io_uring_recvmsg_out) + NAME_LEN) % sizeof(size_t) == 0, "alignment");
static_assert(FRONT >= BUFFER_HEADROOM && FRONT < BUFFER_HEADROOM + BUFFER_TAILROOM, "room");

static bool is_op_known(struct uring *e, int op)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(&e->ring);
	bool is_known = p && io_uring_opcode_supported(p, op);
	io_uring_free_probe(p);
	return is_known;
}

void uring_receive_init(struct uring *e)
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

static void arm_multishot_receive(struct uring *e, unsigned listener)
{
	struct io_uring_sqe *sqe = group_offered(&e->datagrams) ? uring_sqe(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_recvmsg_multishot(sqe, e->io.setup.sockets[listener], &e->multishot_mh, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = e->datagrams.id;
	uring_name(e, sqe, REQUEST_RECEIVE, listener);
	e->sources[listener].is_armed = true;
}

static void arm_single_receive(struct uring *e, unsigned listener)
{
	struct source *s = &e->sources[listener];
	if (!s->buffer)
		s->buffer = buffer_take(e->io.setup.pool);
	struct io_uring_sqe *sqe = s->buffer ? uring_sqe(e) : NULL;
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
	uring_name(e, sqe, REQUEST_RECEIVE, listener);
	s->is_armed = true;
}

static void arm_multishot_read(struct uring *e)
{
	struct io_uring_sqe *sqe = group_offered(&e->packets) ? uring_sqe(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_rw(OP_READ_MULTISHOT, sqe, e->io.setup.tun_fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = e->packets.id;
	uring_name(e, sqe, REQUEST_READ, 0);
	e->is_tun_armed = true;
}

static void arm_single_read(struct uring *e)
{
	if (!e->tun_buffer)
		e->tun_buffer = buffer_take(e->io.setup.pool);
	struct io_uring_sqe *sqe = e->tun_buffer ? uring_sqe(e) : NULL;
	if (!sqe) {
		e->is_starved = true;
		return;
	}
	io_uring_prep_read(sqe, e->io.setup.tun_fd, e->tun_buffer->data,
			   buffer_pool_payload(e->io.setup.pool), 0);
	uring_name(e, sqe, REQUEST_READ, 0);
	e->is_tun_armed = true;
}

static void arm_wake(struct uring *e)
{
	struct io_uring_sqe *sqe = uring_sqe(e);
	if (!sqe)
		return;
	io_uring_prep_read(sqe, e->io.setup.wake_fd, &e->wake_count, sizeof(e->wake_count), 0);
	uring_name(e, sqe, REQUEST_WAKE, 0);
	e->is_wake_armed = true;
}

/* Buffers to offer, so that all of them fit into `ready` beside the `ready_count` there. */
static unsigned room(const struct uring *e, uint32_t mean, unsigned ready_count)
{
	unsigned most = io_hot_room(e->io.setup.pool, mean);
	return most > ready_count ? most - ready_count : 0;
}

void uring_arm(struct uring *e)
{
	struct buffer_pool *pool = e->io.setup.pool;
	e->is_starved = false;
	if (e->has_recv_multishot)
		group_refill(&e->datagrams, pool,
			     room(e, e->mean_datagram, e->ready.datagram_count));
	if (e->has_read_multishot)
		group_refill(&e->packets, pool, room(e, e->mean_packet, e->ready.packet_count));
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

static void deliver_datagram(struct uring *e, unsigned listener, struct buffer *b,
			     const struct msghdr *mh)
{
	assert(e->ready.datagram_count < IO_BATCH);
	io_mean_add(&e->mean_datagram, b->len);
	b->gso_size = udp_msg_from(mh, &b->link);
	b->link.listener = (uint16_t)listener;
	e->ready.datagrams[e->ready.datagram_count++] = b;
}

static void drop_truncated(struct uring *e, struct buffer *b)
{
	e->io.stats.truncated++;
	buffer_give(e->io.setup.pool, b);
}

static void take_multishot_datagram(struct uring *e, unsigned listener, struct buffer *b, int len)
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

static void take_single_datagram(struct uring *e, unsigned listener, int len)
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

void uring_on_receive(struct uring *e, unsigned listener, const struct io_uring_cqe *cqe)
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

static void deliver_packet(struct uring *e, struct buffer *b, int len)
{
	assert(e->ready.packet_count < IO_BATCH);
	b->len = (uint32_t)len;
	io_mean_add(&e->mean_packet, b->len);
	e->ready.packets[e->ready.packet_count++] = b;
}

void uring_on_read(struct uring *e, const struct io_uring_cqe *cqe)
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

void uring_on_wake(struct uring *e, const struct io_uring_cqe *cqe)
{
	e->is_wake_armed = false;
	e->ready.is_woken = e->ready.is_woken || cqe->res > 0;
}

void uring_receive_fini(struct uring *e)
{
	struct buffer_pool *pool = e->io.setup.pool;
	group_fini(&e->datagrams, &e->ring, pool);
	group_fini(&e->packets, &e->ring, pool);
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
}
