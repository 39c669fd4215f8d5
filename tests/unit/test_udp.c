/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/netns.h"
#include "tests/support/process.h"
#include "workers/udp.h"

static int open_on(const char *host, uint16_t port, enum listen_family family, unsigned workers,
		   struct udp_group *g, char why[256])
{
	struct listen_spec spec = {.host = host, .port = port, .family = family};

	why[0] = 0;
	return udp_group_open(&spec, workers, 0, 0, g, why, 256);
}

static void open_good(const char *host, enum listen_family family, unsigned workers,
		      struct udp_group *g)
{
	char why[256];

	if (open_on(host, 0, family, workers, g, why) != 0)
		fail_msg("%s", why);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);
	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void group_has_a_socket_per_thread_on_one_port(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		enum listen_family family;
		int af, v6only;
		bool has_pktinfo;
	} rows[] = {
		{NULL, LISTEN_IPV4, AF_INET, 0, true},
		{"0.0.0.0", LISTEN_IPV4, AF_INET, 0, true},
		{"127.0.0.3", LISTEN_IPV4, AF_INET, 0, false},
		{NULL, LISTEN_IPV6_DUAL, AF_INET6, 0, true},
		{NULL, LISTEN_IPV6_ONLY, AF_INET6, 1, true},
		{"fd00::5", LISTEN_IPV6_ONLY, AF_INET6, 1, false},
		{"::", LISTEN_IPV6_DUAL, AF_INET6, 0, true},
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (unsigned workers = 1; workers <= 4; workers += 3) {
			struct udp_group g;
			open_good(rows[r].host, rows[r].family, workers, &g);
			assert_int_equal(g.count, workers + 1);
			assert_int_equal(g.has_pktinfo, rows[r].has_pktinfo);
			assert_int_not_equal(endpoint_port(&g.local), 0);
			for (unsigned i = 0; i < g.count; i++) {
				union sockaddr_any local;
				socklen_t len = sizeof(local);
				assert_int_equal(getsockname(g.fds[i], &local.sa, &len), 0);
				assert_true(endpoint_equal(&local, &g.local));
				assert_int_equal(option(g.fds[i], SOL_SOCKET, SO_DOMAIN),
						 rows[r].af);
				assert_int_equal(option(g.fds[i], SOL_SOCKET, SO_REUSEPORT), 1);
				if (rows[r].af == AF_INET6)
					assert_int_equal(
						option(g.fds[i], IPPROTO_IPV6, IPV6_V6ONLY),
						rows[r].v6only);
				assert_int_equal(fcntl(g.fds[i], F_GETFL) & O_NONBLOCK, 0);
				assert_int_not_equal(fcntl(g.fds[i], F_GETFD) & FD_CLOEXEC, 0);
			}
			udp_group_close(&g);
			assert_int_equal(g.count, 0);
		}
}

static void ipv4_and_ipv6_only_share_a_port(void **state)
{
	(void)state;
	struct udp_group g4, g6;
	char why[256];

	open_good(NULL, LISTEN_IPV4, 2, &g4);
	assert_int_equal(open_on(NULL, endpoint_port(&g4.local), LISTEN_IPV6_ONLY, 2, &g6, why), 0);
	udp_group_close(&g4);
	udp_group_close(&g6);
}

static void buffers_are_as_configured_or_large(void **state)
{
	(void)state;
	struct listen_spec spec = {.family = LISTEN_IPV4};
	struct udp_group g;
	char why[256];
	int plain = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(udp_group_open(&spec, 1, 30000, 50000, &g, why, sizeof(why)), 0);
	for (unsigned i = 0; i < g.count; i++) { /* the kernel doubles what it is told */
		assert_int_equal(option(g.fds[i], SOL_SOCKET, SO_SNDBUF), 60000);
		assert_int_equal(option(g.fds[i], SOL_SOCKET, SO_RCVBUF), 100000);
	}
	udp_group_close(&g);
	open_good(NULL, LISTEN_IPV4, 1, &g);
	assert_true(option(g.fds[1], SOL_SOCKET, SO_RCVBUF) > option(plain, SOL_SOCKET, SO_RCVBUF));
	assert_true(option(g.fds[1], SOL_SOCKET, SO_SNDBUF) > option(plain, SOL_SOCKET, SO_SNDBUF));
	udp_group_close(&g);
	close(plain);
}

/* Another process of the same user, which shares its port as we do: it must not be joined. */
static int stranger(bool is_shared, uint16_t *port)
{
	struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
	socklen_t len = sizeof(local);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = is_shared;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&local, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&local, &len), 0);
	*port = ntohs(local.sin_port);
	return fd;
}

static void port_of_another_process_is_explained(void **state)
{
	(void)state;
	struct udp_group g;
	char why[256];
	uint16_t port;

	int fd = stranger(true, &port);
	assert_int_equal(open_on(NULL, port, LISTEN_IPV4, 2, &g, why), -EADDRINUSE);
	assert_non_null(strstr(why, "in use by another process"));
	close(fd);
}

static void port_that_becomes_free_is_waited_for(void **state)
{
	(void)state;
	struct udp_group g;
	char why[256];
	uint16_t port;

	int fd = stranger(false, &port);
	pthread_t thread = process_close_later(&fd);
	assert_int_equal(open_on(NULL, port, LISTEN_IPV4, 2, &g, why), 0);
	pthread_join(thread, NULL);
	udp_group_close(&g);
}

static void impossible_addresses_are_explained(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		enum listen_family family;
		const char *says;
	} rows[] = {
		{"192.0.2.1", LISTEN_IPV4, "no address for UDP 192.0.2.1:7777"},
		{"fd77::1", LISTEN_IPV6_ONLY, "no address for UDP [fd77::1]:7777"},
		{"fd00::5", LISTEN_IPV4, "cannot resolve fd00::5 to an IPv4 address"},
		{"127.0.0.1", LISTEN_IPV6_DUAL, "cannot resolve 127.0.0.1 to an IPv6 address"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct udp_group g = {.count = 99};
		char why[256];
		assert_int_equal(open_on(rows[i].host, 7777, rows[i].family, 1, &g, why),
				 -EADDRNOTAVAIL);
		assert_non_null(strstr(why, rows[i].says));
		assert_int_equal(g.count, 99);
	}
}

static int open_low_port(void)
{
	struct udp_group g;
	char why[256];

	if (!process_drop_capabilities())
		return 2;
	int error = open_on(NULL, 80, LISTEN_IPV4, 1, &g, why);
	return error == -EACCES && strstr(why, "CAP_NET_BIND_SERVICE") ? 0 : 1;
}

static void low_port_without_privilege_is_explained(void **state)
{
	(void)state;
	process_in_child(open_low_port);
}

static union sockaddr_any address(const char *text, uint16_t port, uint32_t scope)
{
	union sockaddr_any a;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.in4.sin_addr) == 1) {
		a.sa.sa_family = AF_INET;
		a.in4.sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
		a.sa.sa_family = AF_INET6;
		a.in6.sin6_port = htons(port);
		a.in6.sin6_scope_id = scope;
	}
	return a;
}

/* A socket that takes answers only from `server`. */
static int client(const char *server, const struct udp_group *g)
{
	union sockaddr_any to = address(server, endpoint_port(&g->local), if_nametoindex("lo"));
	int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (to.sa.sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&to.in6.sin6_addr))
		to.in6.sin6_scope_id = 0;
	assert_int_equal(connect(fd, &to.sa, endpoint_len(&to)), 0);
	return fd;
}

/* Receive at whichever socket; returns it. */
static int receive(const struct udp_group *g, struct link_addr *l)
{
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
	struct pollfd ready[8];
	union sockaddr_any name;
	uint8_t data[64];
	struct iovec iov = {.iov_base = data, .iov_len = sizeof(data)};
	struct msghdr mh = {.msg_name = &name,
			    .msg_namelen = sizeof(name),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control)};
	unsigned i = 0;

	for (unsigned k = 0; k < g->count; k++)
		ready[k] = (struct pollfd){.fd = g->fds[k], .events = POLLIN};
	assert_int_equal(poll(ready, g->count, 2000), 1);
	while (!(ready[i].revents & POLLIN))
		i++;
	assert_int_equal(recvmsg(g->fds[i], &mh, MSG_DONTWAIT), 5);
	assert_int_equal(mh.msg_flags & MSG_CTRUNC, 0);
	udp_msg_from(&mh, l);
	return g->fds[i];
}

static bool hears(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	uint8_t data[16];
	return poll(&ready, 1, 300) == 1 && recv(fd, data, sizeof(data), MSG_DONTWAIT) == 6 &&
	       memcmp(data, "answer", 6) == 0;
}

static void answers_come_from_the_address_that_was_asked(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		enum listen_family family;
		const char *server, *local; /* local: what the datagram is said to have come to */
	} rows[] = {
		{NULL, LISTEN_IPV4, "127.0.0.5", "::ffff:127.0.0.5"},
		{NULL, LISTEN_IPV4, "127.9.9.9", "::ffff:127.9.9.9"},
		{NULL, LISTEN_IPV6_DUAL, "127.0.0.5", "::ffff:127.0.0.5"},
		{NULL, LISTEN_IPV6_DUAL, "fd00::5", "fd00::5"},
		{NULL, LISTEN_IPV6_ONLY, "fd00::5", "fd00::5"},
		{NULL, LISTEN_IPV6_ONLY, "fe80::5", "fe80::5"},
		{"127.0.0.5", LISTEN_IPV4, "127.0.0.5", "::"},
		{"fd00::5", LISTEN_IPV6_ONLY, "fd00::5", "::"},
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct udp_group g;
		struct link_addr l = {.local_ifindex = 99, .listener = 3};
		char text[INET6_ADDRSTRLEN];
		open_good(rows[r].host, rows[r].family, 2, &g);
		int fd = client(rows[r].server, &g);
		assert_int_equal(send(fd, "hello", 5, 0), 5);
		int at = receive(&g, &l);
		assert_string_equal(inet_ntop(AF_INET6, &l.local, text, sizeof(text)),
				    rows[r].local);
		bool is_link_local = IN6_IS_ADDR_LINKLOCAL(&l.local);
		assert_int_equal(l.local_ifindex, is_link_local ? if_nametoindex("lo") : 0);
		assert_int_equal(l.listener, 3);
		assert_int_equal(l.remote.sa.sa_family, g.local.sa.sa_family);
		assert_int_equal(udp_send(at, &l, g.has_pktinfo, "answer", 6), 0);
		assert_true(hears(fd));
		close(fd);
		udp_group_close(&g);
	}
}

static void address_that_vanished_is_an_error_of_that_send(void **state)
{
	(void)state;
	static const enum listen_family families[] = {LISTEN_IPV4, LISTEN_IPV6_DUAL};

	for (size_t i = 0; i < 2; i++) {
		struct udp_group g;
		struct link_addr l;
		open_good(NULL, families[i], 1, &g);
		assert_true(netns_run("ip addr add 192.0.2.5/32 dev lo"));
		int fd = client("192.0.2.5", &g);
		assert_int_equal(send(fd, "hello", 5, 0), 5);
		int at = receive(&g, &l);
		assert_true(netns_run("ip addr del 192.0.2.5/32 dev lo"));
		assert_true(udp_send(at, &l, true, "answer", 6) < 0);
		/* The next one is not disturbed. */
		int other = client("127.0.0.1", &g);
		assert_int_equal(send(other, "hello", 5, 0), 5);
		at = receive(&g, &l);
		assert_int_equal(udp_send(at, &l, true, "answer", 6), 0);
		assert_true(hears(other));
		close(fd);
		close(other);
		udp_group_close(&g);
	}
}

static void datagram_larger_than_any_is_refused(void **state)
{
	(void)state;
	static uint8_t data[70000];
	struct udp_group g;
	struct link_addr l;

	open_good(NULL, LISTEN_IPV4, 1, &g);
	memset(&l, 0, sizeof(l));
	l.remote = address("127.0.0.1", endpoint_port(&g.local), 0);
	assert_int_equal(udp_send(g.fds[0], &l, true, data, sizeof(data)), -EMSGSIZE);
	udp_group_close(&g);
}

/* Answers follow the routes; only a link-local address names its interface. */
static void interface_is_named_only_for_link_local_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *remote, *local;
		int level;
		size_t len;
		unsigned ifindex;
	} rows[] = {
		{"192.0.2.1", "::ffff:10.0.0.1", IPPROTO_IP, sizeof(struct in_pktinfo), 0},
		{"::ffff:192.0.2.1", "::ffff:10.0.0.1", IPPROTO_IPV6, sizeof(struct in6_pktinfo),
		 0},
		{"fd00::1", "fd00::2", IPPROTO_IPV6, sizeof(struct in6_pktinfo), 0},
		{"fe80::1", "fe80::2", IPPROTO_IPV6, sizeof(struct in6_pktinfo), 7},
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
		struct msghdr mh = {.msg_flags = 0};
		struct link_addr l = {.local_ifindex = rows[r].ifindex};
		l.remote = address(rows[r].remote, 5, 0);
		assert_int_equal(inet_pton(AF_INET6, rows[r].local, &l.local), 1);

		udp_msg_to(&mh, &l, true, control);
		assert_ptr_equal(mh.msg_name, &l.remote);
		assert_int_equal(mh.msg_namelen, endpoint_len(&l.remote));
		assert_int_equal(mh.msg_controllen, CMSG_SPACE(rows[r].len));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		assert_non_null(c);
		if (!c)
			return;
		assert_int_equal(c->cmsg_level, rows[r].level);
		assert_int_equal(c->cmsg_len, CMSG_LEN(rows[r].len));
		if (rows[r].level == IPPROTO_IP) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			assert_int_equal(info.ipi_ifindex, 0);
			assert_memory_equal(&info.ipi_spec_dst, &l.local.s6_addr[12], 4);
		} else {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			assert_int_equal(info.ipi6_ifindex, rows[r].ifindex);
			assert_memory_equal(&info.ipi6_addr, &l.local, 16);
		}
	}
}

static void without_known_local_address_the_kernel_chooses(void **state)
{
	(void)state;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
	struct msghdr mh = {.msg_control = control, .msg_controllen = 5, .msg_flags = 7};
	struct link_addr l = {.local_ifindex = 0};

	l.remote = address("192.0.2.1", 5, 0);
	udp_msg_to(&mh, &l, true, control); /* :: */
	assert_null(mh.msg_control);
	assert_int_equal(mh.msg_controllen, 0);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.0.1", &l.local), 1);
	udp_msg_to(&mh, &l, false, control); /* not a wildcard socket */
	assert_null(mh.msg_control);
	assert_int_equal(mh.msg_flags, 0);
}

/* Control messages that are cut off or of another kind leave the local address unknown. */
static void strange_control_messages_are_left_alone(void **state)
{
	(void)state;
	static const struct {
		int level, type;
		size_t len;
	} rows[] = {
		{IPPROTO_IP, IP_PKTINFO, sizeof(struct in_pktinfo) - 1},
		{IPPROTO_IPV6, IPV6_PKTINFO, sizeof(struct in6_pktinfo) - 1},
		{IPPROTO_IP, IP_TTL, sizeof(struct in_pktinfo)},
		{SOL_SOCKET, SO_TIMESTAMP, 16},
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
		union sockaddr_any name = address("192.0.2.1", 5, 0);
		struct msghdr mh = {.msg_name = &name,
				    .msg_namelen = sizeof(name.in4),
				    .msg_control = control,
				    .msg_controllen = CMSG_SPACE(rows[r].len)};
		struct link_addr l;
		memset(control, 0xee, sizeof(control));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		assert_non_null(c);
		if (!c)
			return;
		c->cmsg_level = rows[r].level;
		c->cmsg_type = rows[r].type;
		c->cmsg_len = CMSG_LEN(rows[r].len);
		udp_msg_from(&mh, &l);
		assert_true(IN6_IS_ADDR_UNSPECIFIED(&l.local));
		assert_int_equal(l.local_ifindex, 0);
		assert_true(endpoint_equal(&l.remote, &name));
	}
}

int main(void)
{
	const char *why = netns_enter();
	if (!why && !netns_run("ip -6 addr add fd00::1/64 dev lo nodad && "
			       "ip -6 addr add fd00::5/64 dev lo nodad && "
			       "ip -6 addr add fe80::5/64 dev lo nodad"))
		why = "no IPv6 here";
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_has_a_socket_per_thread_on_one_port),
		cmocka_unit_test(ipv4_and_ipv6_only_share_a_port),
		cmocka_unit_test(buffers_are_as_configured_or_large),
		cmocka_unit_test(port_of_another_process_is_explained),
		cmocka_unit_test(port_that_becomes_free_is_waited_for),
		cmocka_unit_test(impossible_addresses_are_explained),
		cmocka_unit_test(low_port_without_privilege_is_explained),
		cmocka_unit_test(answers_come_from_the_address_that_was_asked),
		cmocka_unit_test(address_that_vanished_is_an_error_of_that_send),
		cmocka_unit_test(datagram_larger_than_any_is_refused),
		cmocka_unit_test(interface_is_named_only_for_link_local_addresses),
		cmocka_unit_test(without_known_local_address_the_kernel_chooses),
		cmocka_unit_test(strange_control_messages_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
