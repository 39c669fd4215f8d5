/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "crypto/packet.h"
#include "tests/support/netns.h"
#include "workers/steering.h"
#include "workers/udp.h"

/* Real sockets on lo of a namespace of their own; every address of 127/8 and fd00::/64 is local. */

static uint64_t seed = 1;

static uint32_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 32);
}

/* A group with `worker_count` workers on a port of the kernel's choice. */
static void open_group(enum listen_family family, unsigned worker_count, struct udp_group *g)
{
	struct listen_spec spec = {.family = family};
	char why[256] = "";

	if (udp_group_open(&spec, worker_count, 65536, 65536, g, why, sizeof(why)) != 0)
		fail_msg("%s", why);
}

static void open_steered(enum listen_family family, unsigned worker_count, struct udp_group *g)
{
	struct slot_table t;

	slot_table_init(&t, worker_count);
	open_group(family, worker_count, g);
	assert_int_equal(steering_attach(g->fds[0], &t, worker_count), 0);
}

static union sockaddr_any address(const char *text, uint16_t port)
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
	}
	return a;
}

/* A client's socket, bound to `source`, that sends to the group at `destination`. */
static int client(const char *source, uint16_t port, const char *destination,
		  const struct udp_group *g)
{
	union sockaddr_any from = address(source, port);
	union sockaddr_any to = address(destination, endpoint_port(&g->local));
	int fd = socket(from.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	/* IPv6 wants the address on an interface; a local route is enough for us. */
	if (from.sa.sa_family == AF_INET6)
		assert_int_equal(
			setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &(int){1}, sizeof(int)), 0);
	assert_int_equal(bind(fd, &from.sa, endpoint_len(&from)), 0);
	assert_int_equal(connect(fd, &to.sa, endpoint_len(&to)), 0);
	return fd;
}

/* Send, and say which socket of the group got it, from whom. */
static unsigned lands_at(int fd, const struct udp_group *g, const void *data, size_t len,
			 union sockaddr_any *remote)
{
	struct pollfd ready[WORKERS_MAX + 1];
	uint8_t got[8192];

	assert_int_equal(send(fd, data, len, 0), len);
	for (unsigned i = 0; i < g->count; i++)
		ready[i] = (struct pollfd){.fd = g->fds[i], .events = POLLIN};
	assert_int_equal(poll(ready, g->count, 2000), 1);
	unsigned index = 0;
	while (!(ready[index].revents & POLLIN))
		index++;
	socklen_t name_len = sizeof(*remote);
	memset(remote, 0, sizeof(*remote));
	assert_int_equal(
		recvfrom(g->fds[index], got, sizeof(got), MSG_DONTWAIT, &remote->sa, &name_len),
		len);
	assert_memory_equal(got, data, len);
	return index;
}

static unsigned lands(int fd, const struct udp_group *g, const void *data, size_t len)
{
	union sockaddr_any remote;
	return lands_at(fd, g, data, len, &remote);
}

static void head(uint8_t packet[4], enum opcode op, uint32_t peer_id)
{
	packet[0] = packet_first_byte(op, (uint8_t)(next_random() & 7));
	packet[1] = (uint8_t)(peer_id >> 16);
	packet[2] = (uint8_t)(peer_id >> 8);
	packet[3] = (uint8_t)peer_id;
}

static void slots_are_spread_evenly(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS_MAX; count++) {
		struct slot_table t;
		unsigned slots[WORKERS_MAX + 1] = {0};
		slot_table_init(&t, count);
		for (uint32_t id = 0; id < STEERING_SLOTS; id++) {
			unsigned owner = slot_table_owner(&t, id + (next_random() << 8));
			assert_int_equal(owner, t.owner[id]);
			assert_in_range(owner, 1, count);
			slots[owner]++;
		}
		for (unsigned i = 1; i <= count; i++)
			assert_in_range(slots[i], STEERING_SLOTS / count,
					STEERING_SLOTS / count + 1);
	}
}

static void ids_go_to_owners_of_their_slots(void **state)
{
	(void)state;
	static const unsigned counts[] = {1, 2, 3, 8, WORKERS_MAX};
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct udp_group g;
		struct slot_table t;
		uint8_t packet[40] = {0};
		slot_table_init(&t, counts[c]);
		open_steered(LISTEN_IPV4, counts[c], &g);
		int fd = client("127.0.0.1", 0, "127.0.0.2", &g);
		for (uint32_t n = 0; n < 2 * STEERING_SLOTS; n++) {
			uint32_t id = n < STEERING_SLOTS ? n : next_random() % PEER_ID_NONE;
			head(packet, OPCODE_DATA_V2, id);
			assert_int_equal(lands(fd, &g, packet, sizeof(packet)),
					 slot_table_owner(&t, id));
		}
		close(fd);
		udp_group_close(&g);
	}
}

static void any_slot_table_can_be_put_in_place_at_any_time(void **state)
{
	(void)state;
	enum { WORKERS = 5 };
	struct udp_group g;
	uint8_t packet[4];

	open_group(LISTEN_IPV6_DUAL, WORKERS, &g);
	int fd4 = client("127.0.0.1", 0, "127.0.0.2", &g),
	    fd6 = client("fd00::1", 0, "fd00::2", &g);
	for (unsigned round = 0; round < 4; round++) {
		struct slot_table t;
		/* Rounds 0 and 1: no two neighbours alike, the longest program there is. */
		for (unsigned i = 0; i < STEERING_SLOTS; i++)
			t.owner[i] = (uint8_t)(round < 2 ? (i + round) % WORKERS + 1
							 : next_random() % WORKERS + 1);
		assert_int_equal(steering_attach(g.fds[round], &t, WORKERS), 0);
		for (uint32_t id = 0; id < STEERING_SLOTS; id++) {
			head(packet, OPCODE_DATA_V2, id + (next_random() & 0x7fff00));
			assert_int_equal(lands(fd4, &g, packet, 4), t.owner[id]);
			assert_int_equal(lands(fd6, &g, packet, 4), t.owner[id]);
		}
	}
	close(fd4);
	close(fd6);
	udp_group_close(&g);
}

static void all_but_data_packets_go_to_the_acceptor(void **state)
{
	(void)state;
	struct udp_group g;
	uint8_t packet[20] = {0};

	open_steered(LISTEN_IPV4, 4, &g);
	int fd = client("127.0.0.1", 0, "127.0.0.2", &g);
	for (unsigned first = 0; first < 256; first++) {
		uint8_t op = packet_opcode((uint8_t)first);
		packet[0] = (uint8_t)first;
		packet[3] = 200;
		unsigned at = lands(fd, &g, packet, sizeof(packet));
		assert_int_equal(at == 0, op != OPCODE_DATA_V1 && op != OPCODE_DATA_V2);
	}
	close(fd);
	udp_group_close(&g);
}

static void packets_without_whole_header_go_to_the_acceptor(void **state)
{
	(void)state;
	struct udp_group g;
	uint8_t packet[4];

	open_steered(LISTEN_IPV4, 4, &g);
	int fd = client("127.0.0.1", 0, "127.0.0.2", &g);
	head(packet, OPCODE_DATA_V2, 255);
	for (size_t len = 0; len < 4; len++)
		assert_int_equal(lands(fd, &g, packet, len), 0);
	assert_int_equal(lands(fd, &g, packet, 4), 4);
	close(fd);
	udp_group_close(&g);
}

/* Both kinds of packet without peer-id, from one source. Returns the worker. */
static unsigned source_lands_as_computed(int fd, const struct udp_group *g)
{
	union sockaddr_any remote;
	uint8_t packet[30] = {0};
	unsigned worker_count = g->count - 1;

	head(packet, OPCODE_DATA_V1, next_random());
	unsigned index = lands_at(fd, g, packet, 1 + next_random() % 29, &remote);
	assert_in_range(index, 1, worker_count);
	assert_int_equal(index, steering_by_source(&remote, worker_count));
	head(packet, OPCODE_DATA_V2, PEER_ID_NONE);
	assert_int_equal(lands(fd, g, packet, 4 + next_random() % 26), index);
	return index;
}

static void sources_go_where_user_space_says(void **state)
{
	(void)state;
	static const struct {
		enum listen_family family;
		bool is_ipv6;
		unsigned workers;
	} rows[] = {
		{LISTEN_IPV4, false, 1},      {LISTEN_IPV4, false, 3},
		{LISTEN_IPV4, false, 64},     {LISTEN_IPV6_ONLY, true, 1},
		{LISTEN_IPV6_ONLY, true, 7},  {LISTEN_IPV6_DUAL, true, 4},
		{LISTEN_IPV6_DUAL, false, 4}, {LISTEN_IPV6_DUAL, false, 7},
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct udp_group g;
		unsigned hits[WORKERS_MAX + 1] = {0};
		open_steered(rows[r].family, rows[r].workers, &g);
		for (int n = 0; n < 200; n++) {
			char source[64];
			uint32_t x = next_random(), y = next_random();
			if (rows[r].is_ipv6)
				snprintf(source, sizeof(source), "fd00::%x:%x:%x:%x", x >> 16,
					 x & 0xffff, y >> 16, y & 0xffff);
			else
				snprintf(source, sizeof(source), "127.%u.%u.%u", x >> 24,
					 x >> 16 & 0xff, (x & 0x7f) + 1);
			int fd = client(source, (uint16_t)(1024 + y % 60000),
					rows[r].is_ipv6 ? "fd00::2" : "127.0.0.2", &g);
			hits[source_lands_as_computed(fd, &g)]++;
			close(fd);
		}
		for (unsigned i = 1; rows[r].workers <= 7 && i <= rows[r].workers; i++)
			assert_true(hits[i] >= 200 / rows[r].workers / 3);
		udp_group_close(&g);
	}
}

static void clients_behind_one_address_are_spread_by_port(void **state)
{
	(void)state;
	unsigned hits[5] = {0};

	for (uint16_t port = 1024; port < 1024 + 4000; port++) {
		union sockaddr_any remote = address("203.0.113.9", port);
		hits[steering_by_source(&remote, 4)]++;
	}
	for (unsigned i = 1; i <= 4; i++)
		assert_in_range(hits[i], 800, 1200);
}

static void mapped_address_counts_as_ipv4(void **state)
{
	(void)state;
	for (uint16_t port = 1; port < 500; port++) {
		union sockaddr_any plain = address("203.0.113.9", port);
		union sockaddr_any mapped = address("::ffff:203.0.113.9", port);
		assert_int_equal(steering_by_source(&plain, 64), steering_by_source(&mapped, 64));
	}
}

static void options_of_ipv4_do_not_hide_the_port(void **state)
{
	(void)state;
	static const uint8_t nops[40] = {[0 ... 39] = 1};
	static const enum listen_family families[] = {LISTEN_IPV4, LISTEN_IPV6_DUAL};

	for (size_t f = 0; f < 2; f++)
		for (socklen_t len = 4; len <= 40; len += 12) {
			struct udp_group g;
			open_steered(families[f], 64, &g);
			for (int n = 0; n < 20; n++) {
				int fd = client("127.0.0.1", 0, "127.0.0.2", &g);
				assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nops, len),
						 0);
				(void)source_lands_as_computed(fd, &g);
				close(fd);
			}
			udp_group_close(&g);
		}
}

/* An IPv6 packet with a destination options header in front of UDP. */
static void packets_behind_extension_headers_go_to_the_acceptor(void **state)
{
	(void)state;
	static const uint8_t padding[8] = {0, 0, 1, 4, 0, 0, 0, 0};
	uint8_t packet[4];
	struct udp_group g;

	open_steered(LISTEN_IPV6_ONLY, 4, &g);
	int fd = client("fd00::1", 0, "fd00::2", &g);
	assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_DSTOPTS, padding, sizeof(padding)), 0);
	head(packet, OPCODE_DATA_V1, 0);
	assert_int_equal(lands(fd, &g, packet, 4), 0);
	head(packet, OPCODE_DATA_V2, 255);
	assert_int_equal(lands(fd, &g, packet, 4), 4);
	close(fd);
	udp_group_close(&g);
}

static void fragmented_datagrams_land_like_whole_ones(void **state)
{
	(void)state;
	uint8_t packet[4000] = {0};
	union sockaddr_any remote;

	assert_true(netns_run("ip link set lo mtu 1400"));
	for (int n = 0; n < 20; n++) {
		struct udp_group g;
		open_steered(LISTEN_IPV6_DUAL, 8, &g);
		int fd = n % 2 ? client("127.0.0.1", 0, "127.0.0.2", &g)
			       : client("fd00::1", 0, "fd00::2", &g);
		int mtu_discover = IP_PMTUDISC_DONT;
		(void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mtu_discover,
				 sizeof(mtu_discover));
		head(packet, OPCODE_DATA_V1, 0);
		unsigned index = lands_at(fd, &g, packet, sizeof(packet), &remote);
		assert_int_equal(index, steering_by_source(&remote, 8));
		close(fd);
		udp_group_close(&g);
	}
	assert_true(netns_run("ip link set lo mtu 65536"));
}

static void impossible_groups_are_refused(void **state)
{
	(void)state;
	struct slot_table t;
	slot_table_init(&t, 1);
	assert_int_equal(steering_attach(-1, &t, 1), -EBADF);
	assert_int_equal(steering_attach(-1, &t, 0), -EINVAL);
	assert_int_equal(steering_attach(-1, &t, WORKERS_MAX + 1), -EINVAL);
}

int main(void)
{
	const char *why = netns_enter();
	if (!why && !netns_run("ip -6 route add local fd00::/64 dev lo"))
		why = "no IPv6 here";
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_spread_evenly),
		cmocka_unit_test(ids_go_to_owners_of_their_slots),
		cmocka_unit_test(any_slot_table_can_be_put_in_place_at_any_time),
		cmocka_unit_test(all_but_data_packets_go_to_the_acceptor),
		cmocka_unit_test(packets_without_whole_header_go_to_the_acceptor),
		cmocka_unit_test(sources_go_where_user_space_says),
		cmocka_unit_test(clients_behind_one_address_are_spread_by_port),
		cmocka_unit_test(mapped_address_counts_as_ipv4),
		cmocka_unit_test(options_of_ipv4_do_not_hide_the_port),
		cmocka_unit_test(packets_behind_extension_headers_go_to_the_acceptor),
		cmocka_unit_test(fragmented_datagrams_land_like_whole_ones),
		cmocka_unit_test(impossible_groups_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
