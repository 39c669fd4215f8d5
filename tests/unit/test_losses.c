/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/losses.h"

#define DATAGRAMS 500

/* A socket whose buffer is far too small for what it sends to itself. */
static int small_socket(int family)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = {.sa.sa_family = (sa_family_t)family};
	socklen_t len = family == AF_INET ? sizeof(a.in) : sizeof(a.in6);
	int size = 4096, fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (family == AF_INET)
		a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a.in6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	if (fd < 0 || bind(fd, &a.sa, len) != 0)
		return -1;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
	assert_int_equal(getsockname(fd, &a.sa, &len), 0);
	assert_int_equal(connect(fd, &a.sa, len), 0);
	return fd;
}

static void check(int family)
{
	char datagram[512] = "";
	struct losses before = losses_of_sockets(0);
	int fd = small_socket(family), got = 0;

	if (fd < 0)
		skip();
	for (int i = 0; i < DATAGRAMS; i++)
		assert_int_equal(send(fd, datagram, sizeof(datagram), 0), sizeof(datagram));
	while (recv(fd, datagram, sizeof(datagram), 0) > 0)
		got++;
	close(fd);
	struct losses after = losses_of_sockets(getpid());
	assert_true(got > 0 && got < DATAGRAMS);
	assert_true(after.lost - before.lost >= (uint64_t)(DATAGRAMS - got));
	assert_true(after.passed - before.passed >= (uint64_t)got);
}

static void full_socket_buffers_are_seen(void **state)
{
	(void)state;
	check(AF_INET);
}

static void ipv6_counts_too(void **state)
{
	(void)state;
	check(AF_INET6);
}

static void what_a_device_sent_is_seen(void **state)
{
	struct losses before = losses_of_device("lo");
	int fd = small_socket(AF_INET);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(send(fd, "x", 1, 0), 1);
	close(fd);
	assert_true(losses_of_device("lo").passed > before.passed);
}

static void what_is_not_there_counts_nothing(void **state)
{
	(void)state;
	assert_int_equal(losses_of_device("l").passed, 0);
	assert_int_equal(losses_of_device("nosuchdevice0").passed, 0);
	assert_int_equal(losses_of_sockets(0x7ffffffe).passed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_socket_buffers_are_seen),
		cmocka_unit_test(ipv6_counts_too),
		cmocka_unit_test(what_a_device_sent_is_seen),
		cmocka_unit_test(what_is_not_there_counts_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
