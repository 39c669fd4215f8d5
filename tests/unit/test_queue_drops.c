/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/queue_drops.h"
#include "tests/support/netns.h"
#include "tun/netlink.h"
#include "workers/udp.h"

/* A group of two sockets on lo with the smallest receive buffers; fds[1] gets what is sent. */
struct fixture {
	struct udp_group group;
	struct queue_drops drops;
	int sender;
};

static int small_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
	struct sockaddr_in lo = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&lo, sizeof(lo)), 0);
	return fd;
}

static int set_up(void **state)
{
	static struct fixture f;
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	memset(&f, 0, sizeof(f));
	f.group.count = 2;
	f.group.fds[0] = small_socket();
	f.group.fds[1] = small_socket();
	f.sender = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(getsockname(f.group.fds[1], (struct sockaddr *)&to, &len), 0);
	assert_int_equal(connect(f.sender, (struct sockaddr *)&to, sizeof(to)), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	close(f->group.fds[0]);
	close(f->group.fds[1]);
	close(f->sender);
	return 0;
}

/* Send `n` datagrams, and read those that found room; returns how many did not. */
static uint64_t overflow(struct fixture *f, unsigned n)
{
	uint8_t bytes[1000] = {0};
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(send(f->sender, bytes, sizeof(bytes), 0), sizeof(bytes));
	unsigned got = 0;
	while (recv(f->group.fds[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		got++;
	return n - got;
}

static void what_a_full_buffer_lost_is_counted_by_thread(void **state)
{
	struct fixture *f = *state;
	queue_drops_read_group(&f->drops, 0, &f->group);
	assert_int_equal(f->drops.sockets[1], 0);
	uint64_t lost = overflow(f, 50);
	assert_true(lost > 0);
	queue_drops_read_group(&f->drops, 0, &f->group);
	assert_int_equal(f->drops.sockets[1], lost);
	assert_int_equal(f->drops.sockets[0], 0);
	/* Asking again counts nothing twice; two groups add up. */
	queue_drops_read_group(&f->drops, 0, &f->group);
	assert_int_equal(f->drops.sockets[1], lost);
	lost += overflow(f, 30);
	queue_drops_read_group(&f->drops, 0, &f->group);
	assert_int_equal(f->drops.sockets[1], lost);
	queue_drops_read_group(&f->drops, 1, &f->group);
	assert_int_equal(f->drops.sockets[1], 2 * lost);
}

static void the_kernels_count_may_wrap(void **state)
{
	struct fixture *f = *state;
	uint64_t lost = overflow(f, 20);
	f->drops.last[0][1] = UINT32_MAX - 4;
	queue_drops_read_group(&f->drops, 0, &f->group);
	assert_int_equal(f->drops.sockets[1], lost + 5);
}

static void what_cannot_be_asked_keeps_its_count(void **state)
{
	struct fixture *f = *state;
	struct udp_group closed = {.count = 1, .fds = {-1}};
	f->drops.sockets[0] = 7;
	f->drops.tun = 9;
	queue_drops_read_group(&f->drops, 0, &closed);
	queue_drops_read_group(&f->drops, QUEUE_DROPS_GROUPS, &f->group);
	queue_drops_read_tun(&f->drops, NULL, 1);
	assert_int_equal(f->drops.sockets[0], 7);
	assert_int_equal(f->drops.tun, 9);
	struct netlink *n;
	assert_int_equal(netlink_new(&n), 0);
	queue_drops_read_tun(&f->drops, n, 4711);
	assert_int_equal(f->drops.tun, 9);
	queue_drops_read_tun(&f->drops, n, (int)if_nametoindex("lo"));
	assert_int_equal(f->drops.tun, 0);
	netlink_free(n);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const char *why = netns_enter();
	if (why)
		return netns_skip(why);
	const struct CMUnitTest tests[] = {
		TEST(what_a_full_buffer_lost_is_counted_by_thread),
		TEST(the_kernels_count_may_wrap),
		TEST(what_cannot_be_asked_keeps_its_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
