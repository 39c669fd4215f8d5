/* SPDX-License-Identifier: Apache-2.0 */

/* The plain engine: level-triggered epoll, recvmmsg and sendmmsg, read and write. It is there for
 * hosts that forbid io_uring, and for sanitizers that cannot see through it. What one turn leaves
 * behind is reported again by the next epoll_wait, so that nothing is lost. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "workers/io_engine.h"
#include "workers/udp.h"

#define QUEUE_LEN  256 /* datagrams, and packets, that may wait for io_submit */
#define EVENTS	   32
#define ERRORS_MAX 8 /* stray errors that one socket may report in a turn */
#define STARVED_MS 1 /* pause when no buffer was left for what waits in the kernel */

#define PIECES (4 * IO_BATCH) /* of the chains that one sendmmsg takes */
static_assert(PIECES >= IO_CHAIN_MAX, "any chain fits");

/* Message headers of a batch, with their iovecs and room for a control message each. */
struct headers {
	struct mmsghdr mm[IO_BATCH];
	struct iovec iov[PIECES];
	_Alignas(struct cmsghdr) uint8_t control[IO_BATCH][UDP_CONTROL_LEN];
};

struct engine {
	struct io io;
	int epoll_fd;
	int tun_flags; /* to be restored */
	unsigned turn;
	bool is_starved; /* the last turn brought nothing for want of buffers */

	struct headers in;
	union sockaddr_any in_name[IO_BATCH];
	struct buffer *offered[IO_BATCH]; /* taken from the pool, in the headers of `in` */
	unsigned offered_count;
	uint32_t mean_len; /* of what was received */

	struct headers out;
	struct buffer *sends[QUEUE_LEN];
	unsigned send_count;
	struct buffer *writes[QUEUE_LEN];
	unsigned write_count;
};

static struct engine *engine_of(struct io *io)
{
	return (struct engine *)io;
}

/* ---- receiving ---- */

static void offer(struct engine *e, unsigned i, struct buffer *b)
{
	struct msghdr *mh = &e->in.mm[i].msg_hdr;
	e->offered[i] = b;
	e->in.iov[i] = (struct iovec){b->data, buffer_pool_payload(e->io.setup.pool)};
	*mh = (struct msghdr){
		.msg_name = &e->in_name[i],
		.msg_namelen = sizeof(e->in_name[i]),
		.msg_iov = &e->in.iov[i],
		.msg_iovlen = 1,
		.msg_control = e->in.control[i],
		.msg_controllen = UDP_CONTROL_LEN,
	};
}

static void offer_more(struct engine *e)
{
	while (e->offered_count < io_hot_room(e->io.setup.pool, e->mean_len)) {
		struct buffer *b = buffer_take(e->io.setup.pool);
		if (!b)
			return;
		offer(e, e->offered_count++, b);
	}
}

/* The first `used` were delivered. The next batch fills the front first, so it gets the buffers
 * that the pool gave last; if the pool is empty the rest moves up. */
static void offer_again(struct engine *e, unsigned used)
{
	unsigned i = 0;
	for (; i < used; i++) {
		struct buffer *b = buffer_take(e->io.setup.pool);
		if (!b)
			break;
		offer(e, i, b);
	}
	if (i == used)
		return;
	for (unsigned from = used; from < e->offered_count; from++)
		offer(e, i++, e->offered[from]);
	e->offered_count = i;
}

static void deliver(struct engine *e, unsigned i, unsigned listener, struct io_batch *batch)
{
	const struct mmsghdr *mm = &e->in.mm[i];
	struct buffer *b = e->offered[i];
	if (mm->msg_hdr.msg_flags & MSG_TRUNC) {
		e->io.stats.truncated++;
		buffer_give(e->io.setup.pool, b);
		return;
	}
	b->len = mm->msg_len;
	io_mean_add(&e->mean_len, b->len);
	b->gso_size = udp_msg_from(&mm->msg_hdr, &b->link);
	b->link.listener = (uint16_t)listener;
	batch->datagrams[batch->datagram_count++] = b;
}

/* Up to `max` datagrams into the offered buffers; their number, or -errno. */
static int receive_some(struct engine *e, int fd, unsigned max)
{
	e->io.stats.system_calls++;
	if (io_has_feature(&e->io, FEATURE_RECVMMSG)) {
		int n = recvmmsg(fd, e->in.mm, max, MSG_DONTWAIT, NULL);
		return n < 0 ? -errno : n;
	}
	ssize_t len = recvmsg(fd, &e->in.mm[0].msg_hdr, MSG_DONTWAIT);
	if (len < 0)
		return -errno;
	e->in.mm[0].msg_len = (unsigned)len;
	return 1;
}

/* Until the socket is empty or the batch is full. */
static void receive(struct engine *e, unsigned listener, struct io_batch *batch)
{
	unsigned errors = 0;
	while (batch->datagram_count < IO_BATCH && errors < ERRORS_MAX) {
		offer_more(e);
		unsigned room = IO_BATCH - batch->datagram_count;
		unsigned max = room < e->offered_count ? room : e->offered_count;
		if (max == 0) {
			e->io.stats.buffers_exhausted++;
			e->is_starved = true;
			return;
		}
		int n = receive_some(e, e->io.setup.sockets[listener], max);
		if (n == -EAGAIN)
			return;
		if (n < 0) {
			e->io.stats.receive_errors += n != -EINTR;
			errors++;
			continue;
		}
		for (unsigned i = 0; i < (unsigned)n; i++)
			deliver(e, i, listener, batch);
		offer_again(e, (unsigned)n);
		if ((unsigned)n < max && io_has_feature(&e->io, FEATURE_RECVMMSG))
			return;
	}
}

/* One packet from the tun queue: 1, 0 if there is none, or -errno. */
static int read_packet(struct engine *e, struct buffer *b)
{
	ssize_t len;
	do {
		e->io.stats.system_calls++;
		len = read(e->io.setup.tun_fd, b->data, buffer_pool_payload(e->io.setup.pool));
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (len == 0)
		return -EPIPE;
	b->len = (uint32_t)len;
	return 1;
}

static int read_tun(struct engine *e, struct io_batch *batch)
{
	while (batch->packet_count < IO_BATCH) {
		struct buffer *b = buffer_take(e->io.setup.pool);
		if (!b) {
			e->io.stats.buffers_exhausted++;
			e->is_starved = true;
			return 0;
		}
		int n = read_packet(e, b);
		if (n <= 0) {
			buffer_give(e->io.setup.pool, b);
			return n;
		}
		batch->packets[batch->packet_count++] = b;
	}
	return 0;
}

/* ---- sending ---- */

/* Some of the messages from `first` on; the number of those that were sent, or -errno of the
 * first. */
static int send_some(struct engine *e, int fd, unsigned first, unsigned count)
{
	e->io.stats.system_calls++;
	if (io_has_feature(&e->io, FEATURE_RECVMMSG)) {
		int n = sendmmsg(fd, &e->out.mm[first], count - first, MSG_DONTWAIT);
		return n < 0 ? -errno : n;
	}
	return sendmsg(fd, &e->out.mm[first].msg_hdr, MSG_DONTWAIT) < 0 ? -errno : 1;
}

/* One peer's error is that chain's alone; only a full socket ends the batch. */
static void send_batch(struct engine *e, int fd, struct buffer *const *batch, unsigned count)
{
	unsigned i = 0;
	while (i < count) {
		int n = send_some(e, fd, i, count);
		if (n == -EINTR)
			continue;
		int result = n < 0 ? n : 0;
		unsigned end = n == -EAGAIN ? count : n < 0 ? i + 1 : i + (unsigned)n;
		for (; i < end; i++)
			io_done(&e->io, batch[i], false, result);
	}
}

/* Message `i`, with its pieces from `first` on; their number. */
static unsigned prepare_send(struct engine *e, unsigned i, unsigned first, struct buffer *chain)
{
	struct msghdr *mh = &e->out.mm[i].msg_hdr;
	unsigned n = io_pieces(chain, &e->out.iov[first]);
	*mh = (struct msghdr){.msg_iov = &e->out.iov[first], .msg_iovlen = n};
	bool has_pktinfo = e->io.setup.has_pktinfo[chain->link.listener];
	udp_msg_to(mh, &chain->link, has_pktinfo, e->out.control[i]);
	if (io_is_burst(chain))
		udp_msg_segment(mh, e->out.control[i], chain->gso_size);
	return n;
}

static void send_from(struct engine *e, unsigned listener)
{
	struct buffer *batch[IO_BATCH];
	unsigned n = 0, pieces = 0;
	int fd = e->io.setup.sockets[listener];
	for (unsigned i = 0; i < e->send_count; i++) {
		struct buffer *chain = e->sends[i];
		if (!chain || chain->link.listener != listener)
			continue;
		e->sends[i] =
			NULL; /* not ours after done, so the next socket must not look at it */
		if (n == IO_BATCH || pieces > PIECES - IO_CHAIN_MAX) {
			send_batch(e, fd, batch, n);
			n = pieces = 0;
		}
		pieces += prepare_send(e, n, pieces, chain);
		batch[n++] = chain;
	}
	send_batch(e, fd, batch, n);
}

static void write_packet(struct engine *e, struct buffer *chain)
{
	struct iovec iov[IO_CHAIN_MAX];
	int count = (int)io_pieces(chain, iov);
	ssize_t n;
	do {
		e->io.stats.system_calls++;
		n = writev(e->io.setup.tun_fd, iov, count);
	} while (n < 0 && errno == EINTR);
	io_done(&e->io, chain, true, n < 0 ? -errno : 0);
}

static void epoll_submit(struct io *io)
{
	struct engine *e = engine_of(io);
	for (unsigned i = 0; e->send_count > 0 && i < io->setup.socket_count; i++)
		send_from(e, i);
	e->send_count = 0;
	for (unsigned i = 0; i < e->write_count; i++)
		write_packet(e, e->writes[i]);
	e->write_count = 0;
}

static void epoll_send(struct io *io, struct buffer *b)
{
	struct engine *e = engine_of(io);
	assert(b->link.listener < io->setup.socket_count);
	if (e->send_count == QUEUE_LEN)
		epoll_submit(io);
	e->sends[e->send_count++] = b;
}

static void epoll_write_tun(struct io *io, struct buffer *b)
{
	struct engine *e = engine_of(io);
	if (e->write_count == QUEUE_LEN)
		epoll_submit(io);
	e->writes[e->write_count++] = b;
}

/* ---- waiting ---- */

/* Events are numbered: the sockets, then the tun queue, then the eventfd. */
static int serve(struct engine *e, unsigned n, struct io_batch *batch)
{
	unsigned socket_count = e->io.setup.socket_count;
	if (n < socket_count) {
		receive(e, n, batch);
		return 0;
	}
	if (n == socket_count)
		return read_tun(e, batch);
	eventfd_t count;
	e->io.stats.system_calls++;
	batch->is_woken = eventfd_read(e->io.setup.wake_fd, &count) == 0;
	return 0;
}

/* What waits in the kernel cannot be taken yet, and epoll would report it at once, again and
 * again. Buffers come home by messages, so the eventfd may end the pause. */
static void pause_starved(struct engine *e, uint64_t timeout_ms)
{
	struct pollfd p = {.fd = e->io.setup.wake_fd, .events = POLLIN};
	e->io.stats.system_calls++;
	if (poll(&p, 1, timeout_ms < STARVED_MS ? 0 : STARVED_MS) < 0)
		return; /* EINTR: a shorter pause */
}

static int epoll_engine_wait(struct io *io, uint64_t timeout_ms, struct io_batch *batch)
{
	struct engine *e = engine_of(io);
	struct epoll_event events[EVENTS];
	epoll_submit(io);
	if (e->is_starved) {
		pause_starved(e, timeout_ms);
		timeout_ms = 0;
	}
	e->is_starved = false;
	e->io.stats.system_calls++;
	int n = epoll_wait(e->epoll_fd, events, EVENTS,
			   timeout_ms > INT_MAX ? (timeout_ms == UINT64_MAX ? -1 : INT_MAX)
						: (int)timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n > 0 && e->io.gather_us && timeout_ms > 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)e->io.gather_us * 1000}, NULL);
	/* A full socket must not keep the others from their share of the batch for ever. */
	unsigned count = (unsigned)n;
	unsigned first = count ? e->turn++ % count : 0;
	int err = 0;
	for (unsigned i = 0; i < count; i++) {
		int one = serve(e, events[(first + i) % count].data.u32, batch);
		err = one < 0 ? one : err;
	}
	if (batch->datagram_count + batch->packet_count > 0)
		e->is_starved = false;
	return err;
}

/* ---- making and ending ---- */

static void epoll_fini(struct io *io)
{
	struct engine *e = engine_of(io);
	epoll_submit(io);
	for (unsigned i = 0; i < e->offered_count; i++)
		buffer_give(io->setup.pool, e->offered[i]);
	if (e->tun_flags >= 0)
		(void)fcntl(io->setup.tun_fd, F_SETFL, e->tun_flags);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
}

static int watch(struct engine *e, int fd, uint32_t number)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = number};
	return epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int watch_all(struct engine *e)
{
	const struct io_setup *s = &e->io.setup;
	for (unsigned i = 0; i < s->socket_count; i++) {
		int err = watch(e, s->sockets[i], i);
		if (err)
			return err;
	}
	int err = watch(e, s->tun_fd, s->socket_count);
	return err ? err : watch(e, s->wake_fd, s->socket_count + 1);
}

/* read() has no flag like MSG_DONTWAIT. */
static int unblock_tun(struct engine *e)
{
	e->tun_flags = fcntl(e->io.setup.tun_fd, F_GETFL);
	if (e->tun_flags < 0)
		return -errno;
	return fcntl(e->io.setup.tun_fd, F_SETFL, e->tun_flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static const struct io_ops epoll_ops = {
	.name = "epoll",
	.wait = epoll_engine_wait,
	.send = epoll_send,
	.write_tun = epoll_write_tun,
	.submit = epoll_submit,
	.fini = epoll_fini,
};

int io_epoll_new(const struct io_setup *s, struct io **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	io_init(&e->io, &epoll_ops, s);
	e->tun_flags = -1;
	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int err = e->epoll_fd < 0 ? -errno : unblock_tun(e);
	if (!err)
		err = watch_all(e);
	if (err) {
		epoll_fini(&e->io);
		free(e);
		return err;
	}
	*out = &e->io;
	return 0;
}
