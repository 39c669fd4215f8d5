/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as the other side of segment and coalesce: what it makes of our frames, and we of
 * its. A device with frames is vpn8; bare packets come and go by vpn9. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_tun.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <net/if.h>

#include "tests/support/lot.h"
#include "tests/support/netns.h"
#include "tests/support/skip.h"

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20 /* headers before Linux 6.2 */
#define TUN_F_USO6 0x40
#endif

#define FRAME_MAX    (VIRTIO_LEN + 65575)
#define STREAM_LEN   (4u << 20)
#define WAIT_MS	     2000
#define OFFLOADS_TSO (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)
#define OFFLOADS_USO (OFFLOADS_TSO | TUN_F_USO4 | TUN_F_USO6)

static bool has_uso;

static int open_queue(const char *name, int flags)
{
	struct ifreq ifr = {.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | flags)};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	if (flags & IFF_VNET_HDR) {
		has_uso = ioctl(fd, TUNSETOFFLOAD, OFFLOADS_USO) == 0;
		if (!has_uso)
			assert_int_equal(ioctl(fd, TUNSETOFFLOAD, OFFLOADS_TSO), 0);
	}
	assert_true(netns_run("sysctl -q -w net.ipv6.conf.%s.accept_dad=0", name));
	assert_true(netns_run("ip link set %s up mtu 1500", name));
	return fd;
}

/* Read one frame or packet; 0 if none comes for a while. */
static uint32_t read_from(int fd, uint8_t *out, int wait_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	if (poll(&ready, 1, wait_ms) != 1)
		return 0;
	ssize_t len = read(fd, out, FRAME_MAX);
	return len > 0 ? (uint32_t)len : 0;
}

static bool is_tcp_or_udp(const uint8_t *packet)
{
	uint8_t protocol = packet[packet[0] >> 4 == 4 ? 9 : 6];
	return protocol == 6 || protocol == 17;
}

static void write_frame(int fd, const struct lot *l, unsigned head)
{
	struct iovec pieces[COALESCE_BATCH];
	int n = 0;
	ssize_t len = 0;

	for (uint8_t i = (uint8_t)head; i != COALESCE_NONE; i = l->items[i].next) {
		pieces[n++] = (struct iovec){l->items[i].data, l->items[i].len};
		len += (ssize_t)l->items[i].len;
	}
	assert_int_equal(writev(fd, pieces, n), len);
}

static unsigned write_frames(int fd, struct lot *l)
{
	unsigned frames = lot_coalesce(l, has_uso ? LOT_OFFLOADS : LOT_OFFLOADS & ~TUN_OFFLOAD_UDP);
	for (unsigned i = 0; i < l->count; i++) {
		if (l->items[i].first == i)
			write_frame(fd, l, i);
	}
	return frames;
}

/* As a router leaves it. */
static void age(uint8_t *packet, uint32_t len)
{
	packet[packet[0] >> 4 == 4 ? 8 : 7]--;
	made_finish(packet, len);
}

static void expect_packets(int fd, const struct lot *l)
{
	static uint8_t packet[FRAME_MAX];

	for (unsigned i = 0; i < l->count; i++) {
		uint32_t len;
		do {
			len = read_from(fd, packet, WAIT_MS);
			assert_int_not_equal(len, 0);
		} while (!is_tcp_or_udp(packet));
		age(l->were[i], l->lens[i]);
		assert_int_equal(len, l->lens[i]);
		assert_memory_equal(packet, l->were[i], len);
	}
}

static const struct made_packet flows[] = {
	{.flags = FLAG_ACK, .payload_len = 1400, .option = 5, .is_atomic = true, .id = 0xfff0},
	{.flags = FLAG_ACK, .payload_len = 77, .tos = 2},
	{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 1428, .option = 5},
	{.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 1, .seq = 0xfffffff0},
	{.is_udp = true, .payload_len = 1400, .id = 0xfff0},
	{.is_udp = true, .payload_len = 501, .is_atomic = true, .port = 53},
	{.is_udp = true, .is_ipv6 = true, .payload_len = 1200},
};

/* Forwarded to a device without offloads: segmentation and checksums are the kernel's. */
static void kernel_splits_what_was_merged_into_the_same_packets(void **state)
{
	(void)state;
	int in = open_queue("vpn8", IFF_VNET_HDR), out = open_queue("vpn9", 0);

	assert_true(netns_run("sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
	assert_true(netns_run("ip route add 10.8.0.0/24 dev vpn8 &&"
			      "ip route add 192.0.2.0/24 dev vpn9 &&"
			      "ip -6 route add fd00::7/128 dev vpn8 &&"
			      "ip -6 route add fd00::9/128 dev vpn9"));
	for (size_t f = 0; f < COUNT_OF(flows); f++) {
		struct lot l = {0};
		for (unsigned i = 0; i < COALESCE_BATCH; i++) {
			struct made_packet m = lot_nth(&flows[f], i);
			m.payload_len -= i == COALESCE_BATCH - 1 && m.payload_len > 1;
			m.flags |= i == COALESCE_BATCH - 1 && !m.is_udp ? FLAG_PSH : 0;
			lot_add(&l, &m);
		}
		assert_int_equal(write_frames(in, &l), flows[f].is_udp && !has_uso
							       ? 64
							       : 1 + (flows[f].payload_len > 1000));
		expect_packets(out, &l);
		lot_fini(&l);
	}
	close(in);
	close(out);
}

/* Send `len` bytes to port 9 of the far side, as datagrams of `size` that the kernel need not cut.
 */
static void send_super_datagram(bool is_ipv6, uint32_t len, uint16_t size)
{
	static uint8_t payload[65535];
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), gso = size;

	inet_pton(AF_INET, "10.8.0.2", &to.sin_addr);
	inet_pton(AF_INET6, "fd08::2", &to6.sin6_addr);
	for (uint32_t i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 37 + (i >> 8));
	assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &gso, sizeof(gso)), 0);
	assert_int_equal(is_ipv6 ? sendto(fd, payload, len, 0, (struct sockaddr *)&to6, sizeof(to6))
				 : sendto(fd, payload, len, 0, (struct sockaddr *)&to, sizeof(to)),
			 len);
	close(fd);
}

/* Read frames until one has TCP or UDP in it. */
static struct super_packet expect_super(int fd, uint8_t *frame)
{
	struct super_packet s;
	uint32_t len;

	do {
		len = read_from(fd, frame, WAIT_MS);
		assert_int_not_equal(len, 0);
		assert_int_equal(super_packet_parse(frame, len, &s), DROP_NONE);
	} while (!is_tcp_or_udp(s.packet));
	return s;
}

static void super_datagram_of_the_kernel_is_split(void **state)
{
	(void)state;
	static uint8_t frame[FRAME_MAX];
	static const struct {
		uint32_t len;
		uint16_t size;
	} rows[] = {{3000, 1000}, {3001, 1000}, {1000, 1000}, {999, 1000}, {64, 1}, {65000, 1400}};
	int fd = open_queue("vpn8", IFF_VNET_HDR);

	assert_true(
		netns_run("ip addr add 10.8.0.1/24 dev vpn8 && ip addr add fd08::1/64 dev vpn8 nodad"));
	if (!has_uso) {
		close(fd);
		SKIP_TEST("the kernel has no USO for tun (before Linux 6.2)");
	}
	for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
		uint32_t len = rows[i / 2].len, size = rows[i / 2].size, at = 0;
		send_super_datagram(i & 1, len, (uint16_t)size);
		struct super_packet s = expect_super(fd, frame);
		assert_int_equal(s.count, (len + size - 1) / size);
		uint8_t *out = malloc(s.count * 1536);
		super_packet_split(&s, 0, s.count > 1 ? s.count : 0, out, 1536);
		for (unsigned j = 0; j < s.count; j++) {
			uint8_t *packet = s.count > 1 ? out + j * 1536 : s.packet;
			uint32_t header = i & 1 ? 48 : 28;
			uint32_t got = super_packet_segment_len(&s, j);
			assert_true(made_is_right(packet, got));
			for (uint32_t k = header; k < got; k++, at++)
				assert_int_equal(packet[k], (uint8_t)(at * 37 + (at >> 8)));
		}
		assert_int_equal(at, len);
		free(out);
	}
	close(fd);
}

/* A device here and one in a network of its own, and what goes from one to the other. */
struct relay {
	int here, there; /* vpn8 with frames, vpn9 with packets */
	unsigned split_max, merged_max;
};

static void relay_out(struct relay *r)
{
	static uint8_t frame[FRAME_MAX], out[1600];
	struct super_packet s;
	ssize_t len;

	while ((len = read(r->here, frame, sizeof(frame))) > 0) {
		assert_int_equal(super_packet_parse(frame, (uint32_t)len, &s), DROP_NONE);
		for (unsigned i = 0; s.count > 1 && i < s.count; i++) {
			super_packet_split(&s, i, 1, out, sizeof(out));
			len = super_packet_segment_len(&s, i);
			assert_int_equal(write(r->there, out, (size_t)len), len);
		}
		if (s.count == 1)
			assert_int_equal(write(r->there, s.packet, s.len), s.len);
		r->split_max = s.count > r->split_max ? s.count : r->split_max;
	}
}

static void relay_in(struct relay *r)
{
	uint8_t packet[1600];
	struct lot l = {.is_id_free = true};
	ssize_t len;

	while (l.count < COALESCE_BATCH && (len = read(r->there, packet, sizeof(packet))) > 0)
		lot_add_bytes(&l, packet, (uint32_t)len);
	if (l.count == 0)
		return;
	unsigned frames = write_frames(r->here, &l);
	r->merged_max = l.count - frames > r->merged_max ? l.count - frames : r->merged_max;
	lot_fini(&l);
}

/* Bytes that a socket still has to send or to get; each is the low byte of its number's square. */
struct end {
	int fd;
	uint32_t sent, got;
};

static void end_turn(struct end *e)
{
	uint8_t bytes[16384];
	ssize_t n;

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((e->sent + i) * (e->sent + i) >> 3);
	size_t left = STREAM_LEN - e->sent < sizeof(bytes) ? STREAM_LEN - e->sent : sizeof(bytes);
	n = left > 0 ? send(e->fd, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	assert_true(n >= 0 || errno == EAGAIN);
	e->sent += n > 0 ? (uint32_t)n : 0;
	n = recv(e->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n >= 0 || errno == EAGAIN);
	for (ssize_t i = 0; i < n; i++, e->got++)
		assert_int_equal(bytes[i], (uint8_t)(e->got * e->got >> 3));
}

/* InCsumErrors is the last number of the line. */
static long bad_checksums(void)
{
	char line[1024] = "";
	long value = -1;
	FILE *f = fopen("/proc/thread-self/net/snmp", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *last = strrchr(line, ' ');
		if (strncmp(line, "Tcp: ", 5) == 0 && last && last[1] >= '0' && last[1] <= '9')
			value = strtol(last, NULL, 10);
	}
	fclose(f);
	return value;
}

static socklen_t address_of_there(bool is_ipv6, struct sockaddr_storage *out)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(7)};

	inet_pton(AF_INET, "10.8.0.2", &in4.sin_addr);
	inet_pton(AF_INET6, "fd08::2", &in6.sin6_addr);
	memset(out, 0, sizeof(*out));
	if (is_ipv6)
		memcpy(out, &in6, sizeof(in6));
	else
		memcpy(out, &in4, sizeof(in4));
	return is_ipv6 ? sizeof(in6) : sizeof(in4);
}

static void pass_streams(struct relay *r, int listener, int client)
{
	struct end ends[2] = {{.fd = client}, {.fd = -1}};

	for (unsigned turns = 0; ends[0].got < STREAM_LEN || ends[1].got < STREAM_LEN; turns++) {
		assert_true(turns < 200000);
		struct pollfd ready[2] = {{.fd = r->here, .events = POLLIN},
					  {.fd = r->there, .events = POLLIN}};
		poll(ready, 2, 1);
		relay_out(r);
		relay_in(r);
		if (ends[1].fd < 0)
			ends[1].fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		for (int i = 0; i < 2 && ends[1].fd >= 0; i++)
			end_turn(&ends[i]);
	}
	close(ends[1].fd);
}

static void streams_pass_both_ways(bool is_ipv6)
{
	struct relay r = {0};
	struct sockaddr_storage to;
	socklen_t to_len = address_of_there(is_ipv6, &to);
	int family = is_ipv6 ? AF_INET6 : AF_INET,
	    type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	r.here = open_queue("vpn8", IFF_VNET_HDR);
	assert_true(
		netns_run("ip addr add 10.8.0.1/24 dev vpn8 && ip addr add fd08::1/64 dev vpn8 nodad"));
	int client = socket(family, type, 0);
	long bad_here = bad_checksums();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	r.there = open_queue("vpn9", 0);
	assert_true(
		netns_run("ip addr add 10.8.0.2/24 dev vpn9 && ip addr add fd08::2/64 dev vpn9 nodad"));
	int listener = socket(family, type, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&to, to_len), 0);
	assert_int_equal(listen(listener, 1), 0);

	assert_true(connect(client, (struct sockaddr *)&to, to_len) == 0 || errno == EINPROGRESS);
	pass_streams(&r, listener, client);
	assert_int_equal(bad_checksums(), 0);
	assert_int_equal(setns(home, CLONE_NEWNET), 0);
	assert_int_equal(bad_checksums(), bad_here);
	assert_true(r.split_max > 4);
	assert_true(r.merged_max > 4);
	close(client);
	close(listener);
	close(r.here);
	close(r.there);
	close(home);
}

static void streams_pass_both_ways_over_ipv4(void **state)
{
	(void)state;
	streams_pass_both_ways(false);
}

static void streams_pass_both_ways_over_ipv6(void **state)
{
	(void)state;
	streams_pass_both_ways(true);
}

int main(void)
{
	const char *why = netns_enter_with_tun();
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_splits_what_was_merged_into_the_same_packets),
		cmocka_unit_test(super_datagram_of_the_kernel_is_split),
		cmocka_unit_test(streams_pass_both_ways_over_ipv4),
		cmocka_unit_test(streams_pass_both_ways_over_ipv6),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
