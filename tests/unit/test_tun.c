/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/netns.h"
#include "tests/support/process.h"
#include "tun/coalesce.h"
#include "tun/segment.h"
#include "tun/tun.h"

static void opens_as_many_queues_as_asked(void **state)
{
	(void)state;
	static const int counts[] = {1, 2, TUN_QUEUES_MAX};
	char why[256];

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct tun t;
		assert_int_equal(tun_open("vpn9", counts[c], &t, why, sizeof(why)), 0);
		assert_string_equal(t.name, "vpn9");
		assert_int_equal(t.ifindex, if_nametoindex("vpn9"));
		assert_int_equal(t.queue_count, counts[c]);
		assert_false(t.was_there);
		for (int i = 0; i < TUN_QUEUES_MAX; i++) {
			assert_int_equal(t.fds[i] >= 0, i < counts[c]);
			if (t.fds[i] < 0)
				continue;
			assert_int_equal(fcntl(t.fds[i], F_GETFL) & O_NONBLOCK, 0);
			assert_int_not_equal(fcntl(t.fds[i], F_GETFD) & FD_CLOEXEC, 0);
		}
		tun_close(&t);
		assert_int_equal(t.fds[0], -1);
		assert_int_equal(if_nametoindex("vpn9"), 0);
	}
}

static void plain_tun_takes_first_free_number(void **state)
{
	(void)state;
	struct tun a, b, c;
	char why[256];

	assert_int_equal(tun_open("tun", 2, &a, why, sizeof(why)), 0);
	assert_int_equal(tun_open("tun", 2, &b, why, sizeof(why)), 0);
	assert_string_equal(a.name, "tun0");
	assert_string_equal(b.name, "tun1");
	tun_close(&a);
	assert_int_equal(tun_open("tun", 1, &c, why, sizeof(why)), 0);
	assert_string_equal(c.name, "tun0");
	tun_close(&b);
	tun_close(&c);
}

/* An empty virtio header in front: what one queue writes the kernel routes, and its packets come to
 * a queue. */
static void packets_pass_both_ways_behind_a_header(void **state)
{
	(void)state;
	struct tun t;
	char why[256];
	uint8_t frame[2048], *packet = frame + VIRTIO_LEN;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};

	assert_int_equal(tun_open("vpn9", 2, &t, why, sizeof(why)), 0);
	assert_true(netns_run("ip addr add 10.9.0.1/24 dev vpn9 && ip link set vpn9 up"));
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	to.sin_addr.s_addr = inet_addr("10.9.0.2");
	assert_int_equal(sendto(fd, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)), 5);
	/* Packets of the kernel's own (router solicitations) may come first. */
	ssize_t len = 0;
	do {
		struct pollfd ready[2] = {{.fd = t.fds[0], .events = POLLIN},
					  {.fd = t.fds[1], .events = POLLIN}};
		assert_true(poll(ready, 2, 2000) > 0);
		len = read(t.fds[ready[0].revents ? 0 : 1], frame, sizeof(frame));
	} while (len > 0 && packet[0] != 0x45);
	assert_int_equal(len, VIRTIO_LEN + 20 + 8 + 5);
	assert_memory_equal(packet + 28, "hello", 5);

	/* Sent back with addresses and ports exchanged: sums stay right. */
	uint8_t answer_frame[VIRTIO_LEN + 33] = {0}, *answer = answer_frame + VIRTIO_LEN;
	struct sockaddr_in name;
	socklen_t name_len = sizeof(name);
	memcpy(answer, packet, 33);
	memcpy(answer + 12, packet + 16, 4);
	memcpy(answer + 16, packet + 12, 4);
	memcpy(answer + 20, packet + 22, 2);
	memcpy(answer + 22, packet + 20, 2);
	assert_int_equal(write(t.fds[1], answer_frame, sizeof(answer_frame)), sizeof(answer_frame));
	struct pollfd heard = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&heard, 1, 2000), 1);
	assert_int_equal(recvfrom(fd, frame, sizeof(frame), 0, (struct sockaddr *)&name, &name_len),
			 5);
	assert_int_equal(name.sin_addr.s_addr, to.sin_addr.s_addr);
	close(fd);
	tun_close(&t);
}

static void offloads_are_those_wanted(void **state)
{
	(void)state;
	const uint32_t tcp = TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6;
	struct tun t;
	char why[256];

	assert_int_equal(tun_open("vpn8", 2, &t, why, sizeof(why)), 0);
	assert_int_equal(t.offloads, 0);
	tun_set_offloads(&t, true, false);
	assert_int_equal(t.offloads & (tcp | TUN_OFFLOAD_UDP), tcp);
	tun_set_offloads(&t, false, true);
	assert_int_equal(t.offloads & tcp, 0);
	tun_set_offloads(&t, false, false);
	assert_int_equal(t.offloads, 0);
	tun_close(&t);
}

static void device_made_beforehand_is_used_and_left(void **state)
{
	(void)state;
	struct tun t;
	char why[256];

	assert_true(netns_run("ip tuntap add dev tun7 mode tun multi_queue"));
	unsigned ifindex = if_nametoindex("tun7");
	assert_int_equal(tun_open("tun7", 3, &t, why, sizeof(why)), 0);
	assert_true(t.was_there);
	assert_int_equal(t.ifindex, ifindex);
	tun_close(&t);
	assert_int_equal(if_nametoindex("tun7"), ifindex);
	assert_true(netns_run("ip link del tun7"));
}

static void what_stands_in_the_way_is_explained(void **state)
{
	(void)state;
	static const struct {
		const char *make, *name, *why;
	} rows[] = {
		{"ip tuntap add dev tun7 mode tun", "tun7",
		 "device tun7 exists as single-queue; remove it or create it with: ip tuntap add "
		 "dev "
		 "tun7 mode tun multi_queue"},
		{"ip tuntap add dev tap7 mode tap multi_queue", "tap7",
		 "device tap7 exists as tap; remove it or create it with: ip tuntap add dev tap7 "
		 "mode "
		 "tun multi_queue"},
		{"true", "lo",
		 "the name lo belongs to an interface that is not a tun device; choose another "
		 "name "
		 "with: dev NAME"},
		{"true", "a/b", "device name a/b is not accepted by the kernel"},
		{"true", "a234567890123456",
		 "device name a234567890123456 is longer than 15 characters"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tun t = {.ifindex = 99};
		char why[256] = "";
		assert_true(netns_run("%s", rows[i].make));
		assert_int_equal(tun_open(rows[i].name, 2, &t, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, rows[i].why);
		assert_int_equal(t.ifindex, 99);
	}
	assert_true(netns_run("ip link del tun7 && ip link del tap7"));
}

/* The queue of another process, without which the device would not be. */
static int other_queue(const char *name, int flags)
{
	struct ifreq ifr;
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | flags);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

static void device_of_a_running_process_is_not_shared(void **state)
{
	(void)state;
	struct tun t;
	char why[256];

	int fd = other_queue("vpn9", IFF_MULTI_QUEUE);
	assert_int_equal(tun_open("vpn9", 2, &t, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "device vpn9 is in use by another process"));
	close(fd);
}

static void device_that_becomes_free_is_waited_for(void **state)
{
	(void)state;
	struct tun t;
	char why[256];

	int fd = other_queue("vpn9", IFF_MULTI_QUEUE);
	pthread_t thread = process_close_later(&fd);
	assert_int_equal(tun_open("vpn9", 2, &t, why, sizeof(why)), 0);
	assert_false(t.was_there);
	pthread_join(thread, NULL);
	tun_close(&t);
	assert_int_equal(if_nametoindex("vpn9"), 0);
}

static int open_without_capability(void)
{
	struct tun t;
	char why[256] = "";

	if (!process_drop_capabilities())
		return 3;
	if (tun_open("vpn9", 1, &t, why, sizeof(why)) != -EPERM)
		return 1;
	return strstr(why, "CAP_NET_ADMIN") ? 0 : 2;
}

static void missing_capability_is_explained(void **state)
{
	(void)state;
	process_in_child(open_without_capability);
}

static int open_without_node(void)
{
	struct tun t;
	char why[256] = "";

	if (chroot("/usr") != 0 || chdir("/") != 0)
		return 4;
	if (tun_open("vpn9", 1, &t, why, sizeof(why)) != -ENOENT)
		return 1;
	if (!strstr(why, "modprobe tun") || !strstr(why, "mknod") || !strstr(why, "container"))
		return 2;
	return strlen(why) < sizeof(why) - 1 ? 0 : 3;
}

static void missing_node_is_explained(void **state)
{
	(void)state;
	process_in_child(open_without_node);
}

int main(void)
{
	const char *why = netns_enter_with_tun();
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_as_many_queues_as_asked),
		cmocka_unit_test(plain_tun_takes_first_free_number),
		cmocka_unit_test(packets_pass_both_ways_behind_a_header),
		cmocka_unit_test(offloads_are_those_wanted),
		cmocka_unit_test(device_made_beforehand_is_used_and_left),
		cmocka_unit_test(what_stands_in_the_way_is_explained),
		cmocka_unit_test(device_of_a_running_process_is_not_shared),
		cmocka_unit_test(device_that_becomes_free_is_waited_for),
		cmocka_unit_test(missing_capability_is_explained),
		cmocka_unit_test(missing_node_is_explained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
