/* SPDX-License-Identifier: Apache-2.0 */

/* Every case runs on both engines, and with each feature masked:
 *
 *	test sockets (peers) --UDP on loopback--> engine <--socket pair in the tun queue's place-->
 *test
 *
 * The cases named after the device use a real tun queue, in a network namespace of the test's own;
 * without the permission they are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workers/io.h"

#define SOCKETS	 2
#define POOL	 1024
#define TURN_MS	 2000
#define DONE_MAX 4096
#define FOREIGN	 9 /* home of buffers that are not the engine's */

struct variant {
	const char *name;
	enum io_engine_choice choice;
	uint32_t disabled;
};

static const struct variant variants[] = {
	{"epoll", IO_ENGINE_EPOLL, 0},
	{"epoll, single calls", IO_ENGINE_EPOLL, FEATURE_RECVMMSG},
	{"io_uring", IO_ENGINE_URING, 0},
	{"io_uring, single receives", IO_ENGINE_URING, FEATURE_URING_RECV_MULTISHOT},
	{"io_uring, single reads", IO_ENGINE_URING, FEATURE_URING_READ_MULTISHOT},
	{"io_uring, all single", IO_ENGINE_URING,
	 FEATURE_URING_RECV_MULTISHOT | FEATURE_URING_READ_MULTISHOT},
};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

struct rig {
	const struct variant *variant;
	struct io *io;
	struct buffer_pool *pool, *foreign;
	int sockets[SOCKETS];
	bool has_pktinfo[SOCKETS];
	int peer;	/* a client's socket */
	int tun, inner; /* the engine's end, the test's end */
	int wake;
	struct io_batch batch;

	unsigned done_count, done_tun_count;
	int results[DONE_MAX];
};

static bool may_unshare; /* we are in a network namespace of our own */

/* ---- the rig ---- */

static void done(void *ctx, struct buffer *b, bool is_tun, int result)
{
	struct rig *r = ctx;
	assert_true(r->done_count < DONE_MAX);
	r->results[r->done_count++] = result;
	r->done_tun_count += is_tun;
	while (b) {
		struct buffer *next = b->next;
		buffer_give(b->pool, b);
		b = next;
	}
}

static int udp_bound(int family, const char *host)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	int big = 4 << 20, on = 1;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big)), 0);
	union sockaddr_any a = {.sa.sa_family = (sa_family_t)family};
	if (family == AF_INET) {
		assert_int_equal(inet_pton(AF_INET, host, &a.in4.sin_addr), 1);
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)), 0);
	} else {
		assert_int_equal(inet_pton(AF_INET6, host, &a.in6.sin6_addr), 1);
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)),
				 0);
	}
	socklen_t len = family == AF_INET ? sizeof(a.in4) : sizeof(a.in6);
	assert_int_equal(bind(fd, &a.sa, len), 0);
	return fd;
}

static union sockaddr_any name_of(int fd)
{
	union sockaddr_any a = {0};
	socklen_t len = sizeof(a);
	assert_int_equal(getsockname(fd, &a.sa, &len), 0);
	return a;
}

static void start_with(struct rig *r, const int *sockets, unsigned count, int tun)
{
	char note[128];
	struct io_setup s = {
		.choice = r->variant->choice,
		.disabled_features = r->variant->disabled,
		.sockets = sockets,
		.has_pktinfo = r->has_pktinfo,
		.socket_count = count,
		.tun_fd = tun,
		.wake_fd = r->wake,
		.pool = r->pool,
		.done = done,
		.ctx = r,
	};
	int err = io_new(&s, &r->io, note, sizeof(note));
	if (err)
		fail_msg("%s: %s", r->variant->name, note);
	assert_string_equal(note, "");
}

static void start(struct rig *r)
{
	start_with(r, r->sockets, SOCKETS, r->tun);
}

static bool is_runnable(const struct variant *v)
{
#if defined(__SANITIZE_THREAD__)
	return v->choice == IO_ENGINE_EPOLL; /* the sanitizer does not see what the kernel writes */
#else
	struct io *io;
	char note[128];
	int fds[2], wake = eventfd(0, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	bool has_pktinfo = false;
	struct buffer_pool *pool;
	assert_int_equal(buffer_pool_new(1, 64, BUFFER_SMALL, &pool), 0);
	struct io_setup s = {.choice = v->choice,
			     .sockets = &fds[0],
			     .has_pktinfo = &has_pktinfo,
			     .socket_count = 1,
			     .tun_fd = fds[1],
			     .wake_fd = wake,
			     .pool = pool,
			     .done = done};
	int err = io_new(&s, &io, note, sizeof(note));
	if (!err)
		io_free(io);
	else
		print_message("# %s: %s\n", v->name, note);
	buffer_pool_free(pool);
	close(fds[0]);
	close(fds[1]);
	close(wake);
	return !err;
#endif
}

static int rig_up_pool(void **state, uint32_t count, uint32_t storage)
{
	struct rig *r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->variant = *state;
	assert_int_equal(buffer_pool_new(1, count, storage, &r->pool), 0);
	assert_int_equal(buffer_pool_new(FOREIGN, count, storage, &r->foreign), 0);
	for (unsigned i = 0; i < SOCKETS; i++)
		r->sockets[i] = udp_bound(AF_INET, "127.0.0.1");
	r->peer = udp_bound(AF_INET, "127.0.0.1");
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r->tun = pair[0];
	r->inner = pair[1];
	r->wake = eventfd(0, EFD_CLOEXEC);
	assert_true(r->wake >= 0);
	*state = r;
	return 0;
}

static int rig_up(void **state)
{
	return rig_up_pool(state, POOL, BUFFER_SMALL);
}

static int rig_up_scarce(void **state)
{
	return rig_up_pool(state, 16, BUFFER_SMALL);
}

static int rig_up_large(void **state)
{
	return rig_up_pool(state, 64, BUFFER_LARGE);
}

/* Whatever a case did: the engine ends, and every buffer is home. */
static int rig_down(void **state)
{
	struct rig *r = *state;
	io_free(r->io);
	uint32_t lost = buffer_pool_size(r->pool) - buffer_pool_free_count(r->pool);
	uint32_t lost_foreign = buffer_pool_size(r->foreign) - buffer_pool_free_count(r->foreign);
	buffer_pool_free(r->pool);
	buffer_pool_free(r->foreign);
	for (unsigned i = 0; i < SOCKETS; i++)
		close(r->sockets[i]);
	close(r->peer);
	close(r->tun);
	if (r->inner >= 0)
		close(r->inner);
	close(r->wake);
	free(r);
	if (lost || lost_foreign)
		print_error("%u buffers lost, %u foreign\n", lost, lost_foreign);
	return lost || lost_foreign ? -1 : 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void turn(struct rig *r, uint64_t timeout_ms)
{
	assert_int_equal(io_wait(r->io, timeout_ms, &r->batch), 0);
}

static void give_batch(struct rig *r)
{
	for (unsigned i = 0; i < r->batch.datagram_count; i++)
		buffer_give(r->pool, r->batch.datagrams[i]);
	for (unsigned i = 0; i < r->batch.packet_count; i++)
		buffer_give(r->pool, r->batch.packets[i]);
}

/* Turns until a turn brought a datagram or packet. */
static void turn_with_data(struct rig *r)
{
	uint64_t end = now_ms() + TURN_MS;
	do {
		turn(r, 100);
	} while (r->batch.datagram_count + r->batch.packet_count == 0 && now_ms() < end);
	assert_true(r->batch.datagram_count + r->batch.packet_count > 0);
}

static void turns_until_done(struct rig *r, unsigned count)
{
	uint64_t end = now_ms() + TURN_MS;
	while (r->done_count < count && now_ms() < end) {
		turn(r, 10);
		give_batch(r);
	}
	assert_int_equal(r->done_count, count);
}

static void peer_sends(struct rig *r, unsigned listener, const void *data, size_t len)
{
	union sockaddr_any to = name_of(r->sockets[listener]);
	assert_int_equal(sendto(r->peer, data, len, 0, &to.sa, sizeof(to.in4)), (ssize_t)len);
}

static void peer_sends_number(struct rig *r, unsigned listener, uint32_t n)
{
	peer_sends(r, listener, &n, sizeof(n));
}

static void inner_sends_number(struct rig *r, uint32_t n)
{
	assert_int_equal(write(r->inner, &n, sizeof(n)), sizeof(n));
}

static uint32_t number_of(const struct buffer *b)
{
	uint32_t n;
	assert_int_equal(b->len, sizeof(n));
	memcpy(&n, b->data, sizeof(n));
	return n;
}

/* A buffer from `pool` with a number, for the peer's socket. */
static struct buffer *numbered(struct rig *r, struct buffer_pool *pool, uint32_t n)
{
	struct buffer *b = buffer_take(pool);
	assert_non_null(b);
	memcpy(b->data, &n, sizeof(n));
	b->len = sizeof(n);
	b->link = (struct link_addr){.remote = name_of(r->peer)};
	return b;
}

/* The number that arrived at `fd`, or UINT32_MAX. */
static uint32_t number_at(int fd)
{
	uint32_t n = UINT32_MAX;
	ssize_t len = recv(fd, &n, sizeof(n), MSG_DONTWAIT);
	return len == sizeof(n) ? n : UINT32_MAX;
}

/* ---- receiving ---- */

static void io_receives_datagrams_with_source_and_listener(void **state)
{
	struct rig *r = *state;
	start(r);
	for (unsigned listener = 0; listener < SOCKETS; listener++) {
		peer_sends(r, listener, "hello", 5);
		turn_with_data(r);
		assert_int_equal(r->batch.datagram_count, 1);
		struct buffer *b = r->batch.datagrams[0];
		assert_int_equal(b->len, 5);
		assert_memory_equal(b->data, "hello", 5);
		assert_int_equal(b->link.listener, listener);
		union sockaddr_any from = name_of(r->peer);
		assert_memory_equal(&b->link.remote.in4, &from.in4, sizeof(from.in4));
		struct in6_addr local;
		assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &local), 1);
		assert_memory_equal(&b->link.local, &local, sizeof(local));
		assert_true(buffer_headroom(b) >= BUFFER_HEADROOM);
		give_batch(r);
	}
}

static void io_receives_empty_and_longest_datagrams(void **state)
{
	struct rig *r = *state;
	static uint8_t data[BUFFER_SMALL];
	uint32_t longest = buffer_pool_payload(r->pool);
	for (uint32_t i = 0; i < longest; i++)
		data[i] = (uint8_t)(i * 7);
	start(r);
	peer_sends(r, 0, data, longest);
	turn_with_data(r);
	assert_int_equal(r->batch.datagrams[0]->len, longest);
	assert_memory_equal(r->batch.datagrams[0]->data, data, longest);
	give_batch(r);
	peer_sends(r, 0, data, 0);
	turn_with_data(r);
	assert_int_equal(r->batch.datagrams[0]->len, 0);
	give_batch(r);
}

static void io_drops_truncated_datagrams_and_goes_on(void **state)
{
	struct rig *r = *state;
	static const uint8_t data[BUFFER_SMALL + 100];
	start(r);
	peer_sends(r, 0, data, buffer_pool_payload(r->pool) + 1);
	peer_sends(r, 0, data, sizeof(data));
	peer_sends_number(r, 0, 7);
	turn_with_data(r);
	assert_int_equal(r->batch.datagram_count, 1);
	assert_int_equal(number_of(r->batch.datagrams[0]), 7);
	assert_int_equal(io_stats(r->io)->truncated, 2);
	give_batch(r);
}

static void io_receives_the_largest_datagrams_into_large_buffers(void **state)
{
	struct rig *r = *state;
	static uint8_t data[65507];
	memset(data, 0x5a, sizeof(data));
	start(r);
	for (unsigned i = 0; i < 30; i++) {
		peer_sends(r, 1, data, sizeof(data));
		turn_with_data(r);
		assert_int_equal(r->batch.datagrams[0]->len, sizeof(data));
		assert_memory_equal(r->batch.datagrams[0]->data, data, sizeof(data));
		give_batch(r);
	}
}

static void io_loses_nothing_of_many_datagrams_and_packets(void **state)
{
	struct rig *r = *state;
	const uint32_t total = 5 * IO_BATCH;
	uint32_t next[SOCKETS] = {0}, next_packet = 0;
	start(r);
	for (uint32_t i = 0; i < total; i++) {
		for (unsigned s = 0; s < SOCKETS; s++)
			peer_sends_number(r, s, i);
		if (i < 100) /* the pair holds not many more */
			inner_sends_number(r, i);
	}
	while (next[0] < total || next[1] < total || next_packet < 100) {
		turn_with_data(r);
		for (unsigned i = 0; i < r->batch.datagram_count; i++) {
			struct buffer *b = r->batch.datagrams[i];
			assert_int_equal(number_of(b), next[b->link.listener]++);
		}
		for (unsigned i = 0; i < r->batch.packet_count; i++)
			assert_int_equal(number_of(r->batch.packets[i]), next_packet++);
		give_batch(r);
	}
	turn(r, 0);
	assert_int_equal(r->batch.datagram_count + r->batch.packet_count, 0);
}

/* Gathering may come and go with any turn. */
static void io_loses_nothing_while_it_gathers(void **state)
{
	struct rig *r = *state;
	const uint32_t total = 3 * IO_BATCH;
	uint32_t sent = 0, next = 0, next_packet = 0;
	start(r);
	while (next < total || next_packet < total) {
		for (unsigned i = 0; i < 7 && sent < total; i++, sent++) {
			peer_sends_number(r, 0, sent);
			inner_sends_number(r, sent);
		}
		io_gather(r->io, sent % 3 ? 1000 : 0);
		turn_with_data(r);
		for (unsigned i = 0; i < r->batch.datagram_count; i++)
			assert_int_equal(number_of(r->batch.datagrams[i]), next++);
		for (unsigned i = 0; i < r->batch.packet_count; i++)
			assert_int_equal(number_of(r->batch.packets[i]), next_packet++);
		give_batch(r);
	}
	assert_int_equal(eventfd_write(r->wake, 1), 0);
	io_gather(r->io, 1000);
	turn(r, UINT64_MAX); /* a wake-up is not lost in the gathering either */
	assert_true(r->batch.is_woken);
	turn(r, 0);
	assert_int_equal(r->batch.datagram_count + r->batch.packet_count, 0);
}

/* A flood on one source must not keep the others waiting for more than a few turns. */
static void io_serves_every_source_in_a_few_turns(void **state)
{
	struct rig *r = *state;
	bool is_seen[SOCKETS] = {false}, is_packet_seen = false, is_woken = false;
	start(r);
	for (uint32_t i = 0; i < 10 * IO_BATCH; i++)
		peer_sends_number(r, 0, i);
	peer_sends_number(r, 1, 0);
	inner_sends_number(r, 0);
	assert_int_equal(eventfd_write(r->wake, 1), 0);
	for (unsigned i = 0; i < 5; i++) {
		turn(r, 100);
		for (unsigned d = 0; d < r->batch.datagram_count; d++)
			is_seen[r->batch.datagrams[d]->link.listener] = true;
		is_packet_seen = is_packet_seen || r->batch.packet_count > 0;
		is_woken = is_woken || r->batch.is_woken;
		give_batch(r);
	}
	assert_true(is_seen[0] && is_seen[1] && is_packet_seen && is_woken);
}

static void io_goes_on_after_its_buffers_ran_out(void **state)
{
	struct rig *r = *state;
	struct buffer *held[16];
	unsigned count = 0;
	uint32_t next = 0;
	start(r);
	for (uint32_t i = 0; i < 64; i++)
		peer_sends_number(r, 0, i);
	inner_sends_number(r, 0);
	for (unsigned i = 0; i < 100 && io_stats(r->io)->buffers_exhausted == 0; i++) {
		turn(r, 20);
		for (unsigned d = 0; d < r->batch.datagram_count; d++) {
			held[count] = r->batch.datagrams[d];
			assert_int_equal(number_of(held[count++]), next++);
		}
		for (unsigned d = 0; d < r->batch.packet_count; d++)
			held[count++] = r->batch.packets[d];
	}
	assert_true(io_stats(r->io)->buffers_exhausted > 0);
	assert_true(next < 64);
	while (count > 0)
		buffer_give(r->pool, held[--count]);
	while (next < 64) {
		turn_with_data(r);
		for (unsigned d = 0; d < r->batch.datagram_count; d++)
			assert_int_equal(number_of(r->batch.datagrams[d]), next++);
		give_batch(r);
	}
}

static void io_does_not_spin_without_buffers(void **state)
{
	struct rig *r = *state;
	struct buffer *held[16];
	unsigned count = 0, turns = 0;
	start(r);
	for (uint32_t i = 0; i < 64; i++)
		peer_sends_number(r, 0, i);
	while (io_stats(r->io)->buffers_exhausted == 0) {
		turn(r, 20);
		for (unsigned d = 0; d < r->batch.datagram_count; d++)
			held[count++] = r->batch.datagrams[d];
	}
	for (uint64_t end = now_ms() + 100; now_ms() < end; turns++) {
		turn(r, UINT64_MAX);
		assert_int_equal(r->batch.datagram_count, 0);
	}
	assert_in_range(turns, 1, 110);
	while (count > 0)
		buffer_give(r->pool, held[--count]);
}

static void io_tolerates_stray_errors_of_its_sockets(void **state)
{
	struct rig *r = *state;
	int gone = udp_bound(AF_INET, "127.0.0.1");
	union sockaddr_any nobody = name_of(gone), peer = name_of(r->peer);
	close(gone);
	start(r);
	/* Only a connected socket hears of ICMP errors. */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(connect(r->sockets[0], &nobody.sa, sizeof(nobody.in4)), 0);
		assert_int_equal(send(r->sockets[0], "x", 1, 0), 1);
		for (unsigned t = 0; t < 20 && io_stats(r->io)->receive_errors <= i; t++)
			turn(r, 5);
		assert_int_equal(io_stats(r->io)->receive_errors, i + 1);
		assert_int_equal(connect(r->sockets[0], &peer.sa, sizeof(peer.in4)), 0);
		peer_sends_number(r, 0, i);
		turn_with_data(r);
		assert_int_equal(number_of(r->batch.datagrams[0]), i);
		give_batch(r);
	}
}

/* ---- waiting ---- */

static void io_wait_ends_after_its_timeout(void **state)
{
	struct rig *r = *state;
	start(r);
	turn(r, 0); /* arms */
	uint64_t before = now_ms();
	for (unsigned i = 0; i < 100; i++)
		turn(r, 0);
	assert_in_range(now_ms() - before, 0, 900);
	before = now_ms();
	turn(r, 30);
	assert_in_range(now_ms() - before, 29, 500);
	assert_int_equal(r->batch.datagram_count + r->batch.packet_count, 0);
	assert_false(r->batch.is_woken);
}

static void io_wait_ends_when_woken_once_a_write(void **state)
{
	struct rig *r = *state;
	start(r);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(eventfd_write(r->wake, 1), 0);
		turn(r, UINT64_MAX);
		assert_true(r->batch.is_woken);
		turn(r, 0);
		assert_false(r->batch.is_woken);
	}
}

static void io_wait_without_limit_does_not_tick(void **state)
{
	struct rig *r = *state;
	start(r);
	turn(r, 0);
	uint64_t before = io_stats(r->io)->system_calls;
	turn(r, 50);
	assert_in_range(io_stats(r->io)->system_calls - before, 1, 2);
}

static void io_wait_reports_a_tun_queue_that_is_gone(void **state)
{
	struct rig *r = *state;
	int err = 0;
	start(r);
	turn(r, 0);
	close(r->inner);
	r->inner = -1;
	for (unsigned i = 0; i < 10 && !err; i++)
		err = io_wait(r->io, 100, &r->batch);
	assert_true(err < 0);
}

/* ---- sending ---- */

/* `n` buffers with the numbers from 0 on. */
static struct buffer *numbered_chain(struct rig *r, unsigned n)
{
	struct buffer *chain = NULL;
	while (n-- > 0) {
		struct buffer *b = numbered(r, n % 2 ? r->foreign : r->pool, n);
		b->next = chain;
		chain = b;
	}
	return chain;
}

static void io_sends_a_chain_as_a_burst_of_datagrams(void **state)
{
	struct rig *r = *state;
	start(r);
	struct buffer *chain = numbered_chain(r, IO_CHAIN_MAX);
	chain->gso_size = sizeof(uint32_t);
	io_send(r->io, chain);
	io_send(r->io, numbered(r, r->pool, IO_CHAIN_MAX));
	turns_until_done(r, 2);
	assert_int_equal(r->results[0], 0);
	for (uint32_t i = 0; i <= IO_CHAIN_MAX; i++)
		assert_int_equal(number_at(r->peer), i);
	assert_int_equal(number_at(r->peer), UINT32_MAX);
}

static void io_tells_of_a_burst_that_is_refused(void **state)
{
	struct rig *r = *state;
	start(r);
	struct buffer *chain = numbered_chain(r, 2);
	chain->gso_size = 1; /* more datagrams than the kernel splits into at once: none */
	chain->len = 4;
	chain->link.remote.in4.sin_port = 0;
	io_send(r->io, chain);
	io_send(r->io, numbered(r, r->pool, 5));
	turns_until_done(r, 2);
	assert_true(r->results[0] < 0 || r->results[1] < 0);
	assert_int_equal(number_at(r->peer), 5);
}

static void io_writes_a_chain_as_one_frame(void **state)
{
	struct rig *r = *state;
	uint32_t got[IO_CHAIN_MAX + 1];
	start(r);
	io_write_tun(r->io, numbered_chain(r, IO_CHAIN_MAX));
	turns_until_done(r, 1);
	assert_int_equal(r->done_tun_count, 1);
	assert_int_equal(recv(r->inner, got, sizeof(got), MSG_DONTWAIT), 4 * IO_CHAIN_MAX);
	for (uint32_t i = 0; i < IO_CHAIN_MAX; i++)
		assert_int_equal(got[i], i);
}

/* More pieces than an engine holds at a time: it submits on its own. */
static void io_takes_more_chains_than_it_has_room_for(void **state)
{
	struct rig *r = *state;
	uint32_t got[8];
	start(r);
	for (unsigned i = 0; i < 200; i++) {
		io_write_tun(r->io, numbered_chain(r, 8));
		for (ssize_t n; (n = recv(r->inner, got, sizeof(got), MSG_DONTWAIT)) > 0;)
			assert_int_equal(n, sizeof(got));
	}
	turns_until_done(r, 200);
}

static void io_sends_from_the_named_listener_and_gives_back(void **state)
{
	struct rig *r = *state;
	start(r);
	for (uint32_t i = 0; i < 20; i++) {
		struct buffer *b = numbered(r, r->pool, i);
		b->link.listener = (uint16_t)(i % SOCKETS);
		io_send(r->io, b);
	}
	io_submit(r->io);
	turns_until_done(r, 20);
	bool is_seen[20] = {false};
	for (unsigned i = 0; i < 20; i++) {
		union sockaddr_any from, want;
		socklen_t len = sizeof(from);
		uint32_t n = 0;
		assert_int_equal(recvfrom(r->peer, &n, sizeof(n), MSG_DONTWAIT, &from.sa, &len), 4);
		assert_true(n < 20 && !is_seen[n]);
		is_seen[n] = true;
		want = name_of(r->sockets[n % SOCKETS]);
		assert_int_equal(from.in4.sin_port, want.in4.sin_port);
		assert_int_equal(r->results[i], 0);
	}
	assert_int_equal(r->done_tun_count, 0);
}

static void io_wait_submits_what_is_queued(void **state)
{
	struct rig *r = *state;
	start(r);
	io_send(r->io, numbered(r, r->pool, 5));
	io_write_tun(r->io, numbered(r, r->pool, 6));
	turn(r, 0);
	assert_int_equal(number_at(r->peer), 5);
	assert_int_equal(number_at(r->inner), 6);
	turns_until_done(r, 2);
	assert_int_equal(r->done_tun_count, 1);
}

static void io_keeps_order_of_packets_and_of_each_socket(void **state)
{
	struct rig *r = *state;
	start(r);
	for (uint32_t i = 0; i < 100; i++) {
		io_send(r->io, numbered(r, r->pool, i));
		io_write_tun(r->io, numbered(r, r->pool, i));
	}
	io_submit(r->io);
	turns_until_done(r, 200);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(number_at(r->peer), i);
		assert_int_equal(number_at(r->inner), i);
	}
}

static void io_gives_back_what_does_not_fit_its_queues(void **state)
{
	struct rig *r = *state;
	const unsigned total = POOL - 200;
	unsigned arrived = 0, ok = 0;
	start(r);
	for (uint32_t i = 0; i < total; i++)
		io_send(r->io, numbered(r, r->foreign, i));
	turns_until_done(r, total);
	for (unsigned i = 0; i < total; i++) {
		assert_true(r->results[i] == 0 || r->results[i] == -EAGAIN);
		ok += r->results[i] == 0;
	}
	while (number_at(r->peer) != UINT32_MAX)
		arrived++;
	assert_int_equal(arrived, ok);
	assert_true(ok >= 2 * IO_BATCH);
}

/* Sends that the kernel refuses, each between two that must arrive. */
static void io_error_of_one_peer_is_its_own(void **state)
{
	struct rig *r = *state;
	static const struct {
		const char *host;
		uint16_t port;
		uint32_t len;
	} bad[] = {
		{"127.0.0.1", 0, 4},	   /* EINVAL */
		{"255.255.255.255", 9, 4}, /* EACCES or ENETUNREACH */
		{"127.0.0.1", 9, 65536},   /* EMSGSIZE */
	};
	start(r);
	for (unsigned i = 0; i < 3; i++) {
		struct buffer *b = numbered(r, r->pool, 99);
		assert_int_equal(inet_pton(AF_INET, bad[i].host, &b->link.remote.in4.sin_addr), 1);
		b->link.remote.in4.sin_port = htons(bad[i].port);
		b->len = bad[i].len;
		io_send(r->io, numbered(r, r->pool, 2 * i));
		io_send(r->io, b);
		io_send(r->io, numbered(r, r->pool, 2 * i + 1));
	}
	io_submit(r->io);
	turns_until_done(r, 9);
	unsigned failed = 0;
	for (unsigned i = 0; i < 9; i++)
		failed += r->results[i] < 0;
	assert_int_equal(failed, 3);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(number_at(r->peer), i);
}

/* The engine waits for a full queue, or gives back, but serves the rest meanwhile. */
static void io_full_tun_queue_stops_nobody(void **state)
{
	struct rig *r = *state;
	int small = 1;
	assert_int_equal(setsockopt(r->tun, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	start(r);
	for (uint32_t i = 0; i < 100; i++)
		io_write_tun(r->io, numbered(r, r->pool, i));
	io_send(r->io, numbered(r, r->pool, 5));
	io_submit(r->io);
	assert_int_equal(number_at(r->peer), 5);
	peer_sends_number(r, 0, 6);
	turn_with_data(r);
	assert_int_equal(number_of(r->batch.datagrams[0]), 6);
	give_batch(r);
	assert_true(r->done_count < 101 || r->results[r->done_count - 2] == -EAGAIN ||
		    r->results[r->done_count - 1] == -EAGAIN);
	for (unsigned i = 0; i < 100 && r->done_count < 101; i++) {
		while (number_at(r->inner) != UINT32_MAX)
			;
		turn(r, 10);
	}
	assert_int_equal(r->done_count, 101);
}

static void io_free_gives_back_what_was_queued(void **state)
{
	struct rig *r = *state;
	int small = 1;
	assert_int_equal(setsockopt(r->tun, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	start(r);
	turn(r, 0);
	for (uint32_t i = 0; i < 50; i++) {
		io_send(r->io, numbered(r, r->foreign, i));
		io_write_tun(r->io, numbered(r, r->foreign, i));
		io_write_tun(r->io, numbered(r, r->pool, i));
		peer_sends_number(r, 0, i);
	}
	io_free(r->io);
	r->io = NULL;
	assert_int_equal(r->done_count, 150);
	assert_int_equal(buffer_pool_free_count(r->pool), POOL);
	assert_int_equal(buffer_pool_free_count(r->foreign), POOL);
}

static void io_free_lets_go_of_sockets_at_once(void **state)
{
	struct rig *r = *state;
	for (unsigned i = 0; i < 30; i++) {
		start(r);
		peer_sends_number(r, 0, i);
		turn_with_data(r);
		give_batch(r);
		io_free(r->io);
		r->io = NULL;
		union sockaddr_any a = name_of(r->sockets[0]);
		close(r->sockets[0]);
		r->sockets[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(r->sockets[0], &a.sa, sizeof(a.in4)), 0);
	}
}

static void io_free_accepts_null(void **state)
{
	(void)state;
	io_free(NULL);
}

/* ---- addresses ---- */

static void io_answers_from_the_address_that_was_asked(void **state)
{
	struct rig *r = *state;
	static const struct {
		int family;
		const char *bind, *peer, *to, *local;
	} cases[] = {
		{AF_INET, "0.0.0.0", "127.0.0.1", "127.0.0.3", "::ffff:127.0.0.3"},
		{AF_INET6, "::", "::1", "::1", "::1"},
		{AF_INET6, "::", "::ffff:127.0.0.1", "::ffff:127.0.0.4", "::ffff:127.0.0.4"},
	};
	r->has_pktinfo[0] = true;
	for (unsigned i = 0; i < 3; i++) {
		int ours = udp_bound(cases[i].family, cases[i].bind);
		int peer = udp_bound(cases[i].family, cases[i].peer);
		union sockaddr_any to = name_of(ours), from = {0};
		bool is_v4 = cases[i].family == AF_INET;
		void *host = is_v4 ? (void *)&to.in4.sin_addr : (void *)&to.in6.sin6_addr;
		assert_int_equal(inet_pton(cases[i].family, cases[i].to, host), 1);
		start_with(r, &ours, 1, r->tun);
		socklen_t len = is_v4 ? sizeof(to.in4) : sizeof(to.in6);
		assert_int_equal(sendto(peer, "ask", 3, 0, &to.sa, len), 3);
		turn_with_data(r);
		struct buffer *b = r->batch.datagrams[0];
		struct in6_addr local;
		assert_int_equal(inet_pton(AF_INET6, cases[i].local, &local), 1);
		assert_memory_equal(&b->link.local, &local, sizeof(local));
		unsigned before = r->done_count;
		io_send(r->io, b);
		turns_until_done(r, before + 1);
		assert_int_equal(r->results[before], 0);
		char text[8];
		assert_int_equal(recvfrom(peer, text, 8, MSG_DONTWAIT, &from.sa, &len), 3);
		assert_memory_equal(&from, &to, len);
		io_free(r->io);
		r->io = NULL;
		close(ours);
		close(peer);
	}
}

/* ---- a real tun queue ---- */

static int tun_device(const char *name)
{
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE};
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	int ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = ioctl(fd, TUNSETIFF, &ifr);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a630001)};
	memcpy(&ifr.ifr_addr, &a, sizeof(a));
	rc = rc ? rc : ioctl(ctl, SIOCSIFADDR, &ifr);
	a.sin_addr.s_addr = htonl(0xffffff00);
	memcpy(&ifr.ifr_netmask, &a, sizeof(a));
	rc = rc ? rc : ioctl(ctl, SIOCSIFNETMASK, &ifr);
	ifr.ifr_flags = IFF_UP;
	rc = rc ? rc : ioctl(ctl, SIOCSIFFLAGS, &ifr);
	close(ctl);
	if (rc) {
		close(fd);
		return -1;
	}
	return fd;
}

static uint16_t checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Turn a packet 10.99.0.1 -> 10.99.0.2 round, so that the sender gets it as an answer. */
static void turn_round(uint8_t *ip)
{
	uint8_t keep[4];
	memcpy(keep, ip + 12, 4);
	memcpy(ip + 12, ip + 16, 4);
	memcpy(ip + 16, keep, 4);
	uint8_t *udp = ip + 20;
	memcpy(keep, udp, 2);
	memcpy(udp, udp + 2, 2);
	memcpy(udp + 2, keep, 2);
	udp[6] = udp[7] = 0; /* IPv4 may go without */
	ip[10] = ip[11] = 0;
	uint16_t sum = checksum(ip, 20);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void device_packets_come_and_go(void **state)
{
	struct rig *r = *state;
	int tun = may_unshare ? tun_device("iotest0") : -1;
	if (tun < 0)
		skip();
	start_with(r, r->sockets, SOCKETS, tun);
	int host = udp_bound(AF_INET, "10.99.0.1");
	struct sockaddr_in far = {
		.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0x0a630002)};
	uint32_t seen = 0;
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(sendto(host, &i, 4, 0, (struct sockaddr *)&far, sizeof(far)), 4);
	while (seen < 200) {
		turn_with_data(r);
		for (unsigned i = 0; i < r->batch.packet_count; i++) {
			struct buffer *b = r->batch.packets[i];
			if (b->data[0] != 0x45) { /* IPv6 chatter of a new device */
				buffer_give(r->pool, b);
				continue;
			}
			assert_int_equal(b->len, 32);
			assert_int_equal(b->data[28], seen++);
			turn_round(b->data);
			io_write_tun(r->io, b);
		}
		io_submit(r->io);
	}
	turns_until_done(r, 200);
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(r->results[i], 0);
		assert_int_equal(number_at(host), i);
	}
	io_free(r->io);
	r->io = NULL;
	close(host);
	/* The name is free at once. */
	close(tun);
	tun = tun_device("iotest0");
	assert_true(tun >= 0);
	close(tun);
}

static void device_removed_ends_the_engine(void **state)
{
	struct rig *r = *state;
	int tun = may_unshare ? tun_device("iotest1") : -1;
	if (tun < 0)
		skip();
	start_with(r, r->sockets, SOCKETS, tun);
	turn(r, 0);
	give_batch(r);
	assert_int_equal(system("ip link del iotest1"), 0);
	int err = 0;
	for (unsigned i = 0; i < 50 && !err; i++) {
		err = io_wait(r->io, 100, &r->batch);
		give_batch(r);
	}
	assert_true(err < 0);
	io_free(r->io);
	r->io = NULL;
	close(tun);
}

/* ---- choosing ---- */

static void io_new_says_why_it_is_not_io_uring(void **state)
{
	(void)state;
	void *own = (void *)(uintptr_t)&variants[0];
	rig_up(&own);
	struct rig *r = own;
	char note[128];
	struct io_setup s = {
		.choice = IO_ENGINE_AUTO,
		.disabled_features = FEATURE_URING,
		.sockets = r->sockets,
		.has_pktinfo = r->has_pktinfo,
		.socket_count = SOCKETS,
		.tun_fd = r->tun,
		.wake_fd = r->wake,
		.pool = r->pool,
		.done = done,
		.ctx = r,
	};
	assert_int_equal(io_new(&s, &r->io, note, sizeof(note)), 0);
	assert_string_equal(io_name(r->io), "epoll");
	assert_string_equal(note, "io_uring is switched off by disable-feature");
	io_free(r->io);
	r->io = NULL;
	s.choice = IO_ENGINE_URING;
	assert_true(io_new(&s, &r->io, note, sizeof(note)) < 0);
	assert_string_not_equal(note, "");
	assert_int_equal(rig_down(&own), 0);
}

/* What a container's seccomp profile does. */
static void forbid_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(77);
}

/* In a child, since a filter stays: exit code 0 if the engine is epoll and the note says why. */
static void choose_where_uring_is_forbidden(const struct rig *r)
{
	char note[128];
	struct io *io;
	struct io_setup s = {
		.choice = IO_ENGINE_AUTO,
		.sockets = r->sockets,
		.has_pktinfo = r->has_pktinfo,
		.socket_count = SOCKETS,
		.tun_fd = r->tun,
		.wake_fd = r->wake,
		.pool = r->pool,
		.done = done,
	};
	forbid_uring();
	if (io_new(&s, &io, note, sizeof(note)) != 0)
		_exit(1);
	bool is_said = strstr(note, "io_uring is forbidden here") != NULL;
	_exit(strcmp(io_name(io), "epoll") == 0 && is_said ? 0 : 2);
}

static void io_new_falls_back_where_io_uring_is_forbidden(void **state)
{
	(void)state;
	int status;
	void *own = (void *)(uintptr_t)&variants[0];
	rig_up(&own);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		choose_where_uring_is_forbidden(own);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rig_down(&own), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- running ---- */

struct test_case {
	const char *name;
	CMUnitTestFunction run;
	CMFixtureFunction up;
};

#define CASE(f)                                                                                    \
	{                                                                                          \
#f, f, rig_up                                                                      \
	}
#define CASE_ON(up, f)                                                                             \
	{                                                                                          \
#f, f, up                                                                          \
	}

static const struct test_case cases[] = {
	CASE(io_receives_datagrams_with_source_and_listener),
	CASE(io_receives_empty_and_longest_datagrams),
	CASE(io_drops_truncated_datagrams_and_goes_on),
	CASE_ON(rig_up_large, io_receives_the_largest_datagrams_into_large_buffers),
	CASE(io_loses_nothing_of_many_datagrams_and_packets),
	CASE(io_loses_nothing_while_it_gathers),
	CASE(io_serves_every_source_in_a_few_turns),
	CASE_ON(rig_up_scarce, io_goes_on_after_its_buffers_ran_out),
	CASE_ON(rig_up_scarce, io_does_not_spin_without_buffers),
	CASE(io_tolerates_stray_errors_of_its_sockets),
	CASE(io_wait_ends_after_its_timeout),
	CASE(io_wait_ends_when_woken_once_a_write),
	CASE(io_wait_without_limit_does_not_tick),
	CASE(io_wait_reports_a_tun_queue_that_is_gone),
	CASE(io_sends_from_the_named_listener_and_gives_back),
	CASE(io_sends_a_chain_as_a_burst_of_datagrams),
	CASE(io_tells_of_a_burst_that_is_refused),
	CASE(io_writes_a_chain_as_one_frame),
	CASE(io_takes_more_chains_than_it_has_room_for),
	CASE(io_wait_submits_what_is_queued),
	CASE(io_keeps_order_of_packets_and_of_each_socket),
	CASE(io_gives_back_what_does_not_fit_its_queues),
	CASE_ON(rig_up_large, io_error_of_one_peer_is_its_own),
	CASE(io_full_tun_queue_stops_nobody),
	CASE(io_free_gives_back_what_was_queued),
	CASE(io_free_lets_go_of_sockets_at_once),
	CASE(io_free_accepts_null),
	CASE(io_answers_from_the_address_that_was_asked),
	CASE(device_packets_come_and_go),
	CASE(device_removed_ends_the_engine),
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void engine_cannot_run_here(void **state)
{
	(void)state;
	skip();
}

static bool enter_namespace(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		return false;
	int ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int rc = ioctl(ctl, SIOCSIFFLAGS, &ifr);
	close(ctl);
	return rc == 0;
}

int main(void)
{
	static struct CMUnitTest tests[VARIANTS * CASES + 2];
	static char names[VARIANTS * CASES][128];
	size_t count = 0;
	may_unshare = enter_namespace();
	for (size_t v = 0; v < VARIANTS; v++) {
		if (!is_runnable(&variants[v])) {
			tests[count++] = (struct CMUnitTest){.name = variants[v].name,
							     .test_func = engine_cannot_run_here};
			continue;
		}
		for (size_t c = 0; c < CASES; c++) {
			snprintf(names[count], sizeof(names[0]), "%s (%s)", cases[c].name,
				 variants[v].name);
			tests[count] = (struct CMUnitTest){
				.name = names[count],
				.test_func = cases[c].run,
				.setup_func = cases[c].up,
				.teardown_func = rig_down,
				.initial_state = (void *)(uintptr_t)&variants[v],
			};
			count++;
		}
	}
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(io_new_says_why_it_is_not_io_uring);
	tests[count++] =
		(struct CMUnitTest)cmocka_unit_test(io_new_falls_back_where_io_uring_is_forbidden);
	return _cmocka_run_group_tests("io", tests, count, NULL, NULL);
}
