/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/deny_bpf.h"
#include "tests/support/netns.h"
#include "workers/tun_steering.h"

/* A device with QUEUES queues in a namespace of its own. Packets are put on it by a packet socket,
 * as they stand; which queue they come to is read from the queues themselves. */

#define QUEUES	   4
#define FLOWS	   400
#define HEADER_LEN (offsetof(struct virtio_net_hdr, csum_offset) + 2)
#define PACKET_MAX 65536

struct rig {
	char name[IFNAMSIZ];
	int queues[QUEUES];
	int sender;
	unsigned ifindex;
	size_t header_len; /* of what stands before a packet that is read */
	struct tun_steering *steering;
};

static int queue_open(const char *name, int flags)
{
	struct ifreq ifr;
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	assert_true(fd >= 0);
	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE | flags);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

/* Each test has a device of another name: one that fails leaves its own. */
static void device_open(struct rig *r, int flags)
{
	static int count;

	*r = (struct rig){.header_len = flags & IFF_VNET_HDR ? HEADER_LEN : 0};
	snprintf(r->name, sizeof(r->name), "vpn%d", count++);
	for (int i = 0; i < QUEUES; i++)
		r->queues[i] = queue_open(r->name, flags);
	r->ifindex = if_nametoindex(r->name);
	/* No packets of the kernel's own. */
	assert_true(netns_run("ip link set %s addrgenmode none && ip link set %s up", r->name,
			      r->name));
	r->sender = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(r->sender >= 0);
}

static struct tun_steering_setup setup_of(const struct rig *r)
{
	return (struct tun_steering_setup){
		.tun_fd = r->queues[1], .queue_count = QUEUES, .hosts_max = 64, .nets_max = 64};
}

static void rig_open(struct rig *r, int flags)
{
	device_open(r, flags);
	struct tun_steering_setup setup = setup_of(r);
	assert_int_equal(tun_steering_new(&setup, &r->steering), 0);
}

static void rig_close(struct rig *r)
{
	tun_steering_free(r->steering);
	close(r->sender);
	for (int i = 0; i < QUEUES; i++)
		close(r->queues[i]);
}

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_true(ip_prefix_parse(text, &p));
	return p;
}

static void add(struct rig *r, const char *net, uint32_t queue)
{
	struct ip_prefix p = prefix(net);
	assert_int_equal(tun_steering_add(r->steering, &p, queue), 0);
}

static void take_away(struct rig *r, const char *net)
{
	struct ip_prefix p = prefix(net);
	assert_int_equal(tun_steering_remove(r->steering, &p), 0);
}

/* --- packets --- */

struct packet {
	size_t len;
	uint8_t bytes[256];
};

/* The fields that steering looks at; the rest is zero, and no sum is right. */
struct flow {
	const char *from, *to;
	uint8_t protocol;
	uint16_t from_port, to_port;
	uint16_t fragment;   /* IPv4: flags and offset */
	uint8_t options_len; /* IPv4 */
};

static void put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static struct packet packet_of(const struct flow *f)
{
	struct packet p = {.len = 0};
	bool is_v4 = strchr(f->to, ':') == NULL;
	size_t header_len = is_v4 ? 20u + f->options_len : 40u;

	p.len = header_len + 8;
	if (is_v4) {
		p.bytes[0] = (uint8_t)(0x40 | header_len / 4);
		put_u16(p.bytes + 2, (uint16_t)p.len);
		put_u16(p.bytes + 6, f->fragment);
		p.bytes[8] = 64;
		p.bytes[9] = f->protocol;
		memset(p.bytes + 20, 1, f->options_len);
		assert_int_equal(inet_pton(AF_INET, f->from, p.bytes + 12), 1);
		assert_int_equal(inet_pton(AF_INET, f->to, p.bytes + 16), 1);
	} else {
		p.bytes[0] = 0x60;
		put_u16(p.bytes + 4, 8);
		p.bytes[6] = f->protocol;
		p.bytes[7] = 64;
		assert_int_equal(inet_pton(AF_INET6, f->from, p.bytes + 8), 1);
		assert_int_equal(inet_pton(AF_INET6, f->to, p.bytes + 24), 1);
	}
	put_u16(p.bytes + header_len, f->from_port);
	put_u16(p.bytes + header_len + 2, f->to_port);
	return p;
}

/* Read until `wanted` comes, from whatever queue; returns that. */
static int queue_that_has(const struct rig *r, const uint8_t *wanted, size_t len)
{
	static uint8_t read_bytes[PACKET_MAX];
	struct pollfd fds[QUEUES];

	for (int i = 0; i < QUEUES; i++)
		fds[i] = (struct pollfd){.fd = r->queues[i], .events = POLLIN};
	while (poll(fds, QUEUES, 2000) > 0)
		for (int i = 0; i < QUEUES; i++) {
			ssize_t n = read(r->queues[i], read_bytes, sizeof(read_bytes));
			if (n >= (ssize_t)(r->header_len + len) &&
			    memcmp(read_bytes + r->header_len, wanted, len) == 0)
				return i;
		}
	fail_msg("the packet came to no queue");
	return -1;
}

static int queue_of_bytes(const struct rig *r, const uint8_t *bytes, size_t len)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)r->ifindex};

	to.sll_protocol = htons(bytes[0] >> 4 == 6 ? 0x86dd : 0x0800);
	assert_int_equal(sendto(r->sender, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)), len);
	return queue_that_has(r, bytes, len);
}

static int queue_of(const struct rig *r, const struct flow *f)
{
	struct packet p = packet_of(f);
	return queue_of_bytes(r, p.bytes, p.len);
}

static int queue_of_address(const struct rig *r, const char *to)
{
	struct flow f = {.from = strchr(to, ':') ? "2001:db8:ffff::1" : "192.0.2.1",
			 .to = to,
			 .protocol = IPPROTO_UDP,
			 .from_port = 5000,
			 .to_port = 7};
	return queue_of(r, &f);
}

/* --- hosts and prefixes --- */

struct destination_row {
	const char *to;
	int queue;
};

static void expect_queues(const struct rig *r, const struct destination_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (queue_of_address(r, rows[i].to) != rows[i].queue)
			fail_msg("%s is not on queue %d", rows[i].to, rows[i].queue);
}

#define EXPECT_QUEUES(r, rows) expect_queues(r, rows, sizeof(rows) / sizeof((rows)[0]))

static void announce(struct rig *r)
{
	static const struct {
		const char *net;
		uint32_t queue;
	} nets[] = {
		{"0.0.0.0/0", 3},	    {"10.8.0.0/16", 1},
		{"10.8.1.0/24", 2},	    {"10.8.1.128/25", 0},
		{"10.8.1.200/32", 3},	    {"10.8.1.201/32", 1},
		{"10.8.1.202/31", 2},	    {"::/0", 1},
		{"2001:db8::/32", 2},	    {"2001:db8:0:1::/64", 3},
		{"2001:db8::5/128", 0},	    {"2001:db8:0:1::5/128", 1},
		{"2001:db8:0:1::8/125", 2},
	};
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++)
		add(r, nets[i].net, nets[i].queue);
}

static const struct destination_row announced[] = {
	{"10.8.1.200", 3},	{"10.8.1.201", 1},	{"10.8.1.202", 2},
	{"10.8.1.203", 2},	{"10.8.1.204", 0},	{"10.8.1.128", 0},
	{"10.8.1.127", 2},	{"10.8.1.0", 2},	{"10.8.2.0", 1},
	{"10.9.0.1", 3},	{"255.255.255.255", 3}, {"224.0.0.1", 3},
	{"2001:db8::5", 0},	{"2001:db8::4", 2},	{"2001:db8:0:1::5", 1},
	{"2001:db8:0:1::6", 3}, {"2001:db8:0:1::f", 2}, {"2001:db8:0:1::10", 3},
	{"2001:db9::1", 1},	{"ff02::1", 1},
};

static void destinations_lead_to_their_queue(int flags)
{
	struct rig r;

	rig_open(&r, flags);
	announce(&r);
	EXPECT_QUEUES(&r, announced);
	rig_close(&r);
}

static void hosts_come_before_longest_prefixes(void **state)
{
	(void)state;
	destinations_lead_to_their_queue(0);
}

static void virtio_header_is_not_seen(void **state)
{
	(void)state;
	destinations_lead_to_their_queue(IFF_VNET_HDR);
}

static void last_announcement_counts(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	add(&r, "10.8.0.0/16", 1);
	add(&r, "10.8.0.1/32", 2);
	add(&r, "2001:db8::/32", 3);
	static const struct destination_row before[] = {
		{"10.8.0.1", 2}, {"10.8.0.2", 1}, {"2001:db8::9", 3}};
	EXPECT_QUEUES(&r, before);
	add(&r, "10.8.0.0/16", 0);
	add(&r, "10.8.0.1/32", 3);
	add(&r, "2001:db8::/32", 1);
	static const struct destination_row after[] = {
		{"10.8.0.1", 3}, {"10.8.0.2", 0}, {"2001:db8::9", 1}};
	EXPECT_QUEUES(&r, after);
	rig_close(&r);
}

static void removal_uncovers_shorter_prefix(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	announce(&r);
	take_away(&r, "10.8.1.200/32");
	take_away(&r, "10.8.1.0/24");
	take_away(&r, "2001:db8:0:1::5/128");
	take_away(&r, "2001:db8::/32");
	static const struct destination_row rows[] = {
		{"10.8.1.200", 0},	{"10.8.1.127", 1},  {"10.8.1.201", 1},
		{"2001:db8:0:1::5", 3}, {"2001:db8::4", 1}, {"2001:db8::5", 0},
	};
	EXPECT_QUEUES(&r, rows);
	rig_close(&r);
}

static void removal_of_what_is_not_there_is_no_error(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	take_away(&r, "10.8.1.200/32");
	take_away(&r, "10.8.0.0/16");
	take_away(&r, "2001:db8::1/128");
	take_away(&r, "2001:db8::/32");
	rig_close(&r);
}

static void full_map_refuses_and_keeps_what_it_has(void **state)
{
	(void)state;
	struct rig r;
	struct ip_prefix nets[] = {prefix("10.8.0.0/32"), prefix("10.8.0.0/24")};

	device_open(&r, 0);
	struct tun_steering_setup setup = setup_of(&r);
	setup.hosts_max = setup.nets_max = 2;
	assert_int_equal(tun_steering_new(&setup, &r.steering), 0);
	for (size_t i = 0; i < 2; i++) {
		int err = 0;
		for (uint8_t n = 0; n < 2; n++) {
			nets[i].addr.bytes[i == 0 ? 3 : 2] = n;
			assert_int_equal(tun_steering_add(r.steering, &nets[i], 3u - n), 0);
		}
		nets[i].addr.bytes[1] = 9;
		err = tun_steering_add(r.steering, &nets[i], 1);
		assert_true(err == -E2BIG || err == -ENOSPC);
	}
	static const struct destination_row rows[] = {
		{"10.8.0.0", 3}, {"10.8.0.1", 2}, {"10.8.0.2", 3}, {"10.8.1.2", 2}};
	EXPECT_QUEUES(&r, rows);
	take_away(&r, "10.8.0.1/32");
	add(&r, "10.9.0.1/32", 0);
	assert_int_equal(queue_of_address(&r, "10.9.0.1"), 0);
	rig_close(&r);
}

/* --- spreading --- */

/* Each of FLOWS flows keeps its queue, and no queue has many more or fewer than its share. */
static void expect_spread(const struct rig *r, struct flow f)
{
	unsigned count[QUEUES] = {0};

	for (uint16_t i = 0; i < FLOWS; i++) {
		f.from_port = (uint16_t)(40000 + i);
		int queue = queue_of(r, &f);
		assert_int_equal(queue_of(r, &f), queue);
		count[queue]++;
	}
	for (int i = 0; i < QUEUES; i++) {
		assert_true(count[i] > FLOWS / QUEUES / 2);
		assert_true(count[i] < FLOWS / QUEUES * 2);
	}
}

static void flows_of_a_spread_destination_are_spread(void **state)
{
	(void)state;
	struct rig r;
	static const struct flow flows[] = {
		{"192.0.2.1", "10.8.0.1", IPPROTO_TCP, 0, 80, 0, 0},
		{"192.0.2.1", "10.9.0.1", IPPROTO_UDP, 0, 53, 0x4000, 0}, /* don't fragment */
		{"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 0, 53, 0, 40},
		{"2001:db8:ffff::1", "2001:db8::1", IPPROTO_TCP, 0, 80, 0, 0},
		{"2001:db8:ffff::1", "2001:db8:9::1", IPPROTO_UDP, 0, 53, 0, 0},
	};

	rig_open(&r, 0);
	add(&r, "0.0.0.0/0", 1);
	add(&r, "::/0", 1);
	add(&r, "10.8.0.1/32", TUN_STEERING_SPREAD);
	add(&r, "10.9.0.0/16", TUN_STEERING_SPREAD);
	add(&r, "2001:db8::1/128", TUN_STEERING_SPREAD);
	add(&r, "2001:db8:9::/48", TUN_STEERING_SPREAD);
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
		expect_spread(&r, flows[i]);
	assert_int_equal(queue_of_address(&r, "10.7.0.1"), 1);
	rig_close(&r);
}

static void unknown_destinations_are_spread(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	expect_spread(&r, (struct flow){"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 0, 53, 0, 0});
	expect_spread(&r, (struct flow){"fd00::1", "2001:db8::1", IPPROTO_UDP, 0, 53, 0, 0});
	rig_close(&r);
}

/* Address by address, where ports do not count. */
static void each_address_counts(void **state)
{
	(void)state;
	struct rig r;
	unsigned by_source[QUEUES] = {0}, by_destination[QUEUES] = {0};
	char from[32], to[32];

	rig_open(&r, 0);
	for (int i = 0; i < FLOWS; i++) {
		struct flow f = {from, to, IPPROTO_ICMP, 0, 0, 0, 0};
		snprintf(from, sizeof(from), "192.0.%d.%d", i / 200, i % 200 + 1);
		snprintf(to, sizeof(to), "10.8.0.1");
		by_source[queue_of(&r, &f)]++;
		snprintf(from, sizeof(from), "2001:db8::%x:1", i);
		snprintf(to, sizeof(to), "fd00::1");
		by_source[queue_of(&r, &f)]++;
		snprintf(from, sizeof(from), "192.0.2.1");
		snprintf(to, sizeof(to), "10.8.%d.%d", i / 200, i % 200 + 1);
		by_destination[queue_of(&r, &f)]++;
		snprintf(from, sizeof(from), "fd00::1");
		snprintf(to, sizeof(to), "2001:db8::%x:1", i);
		by_destination[queue_of(&r, &f)]++;
	}
	for (int i = 0; i < QUEUES; i++) {
		assert_in_range(by_source[i], FLOWS / QUEUES, FLOWS / QUEUES * 4);
		assert_in_range(by_destination[i], FLOWS / QUEUES, FLOWS / QUEUES * 4);
	}
	rig_close(&r);
}

/* What has no ports, or has them in one of its parts only, goes by its addresses. */
static void ports_count_only_where_all_packets_have_them(void **state)
{
	(void)state;
	struct rig r;
	static const struct flow flows[] = {
		{"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 0, 53, 0x2000, 0}, /* first fragment */
		{"192.0.2.1", "10.8.0.1", IPPROTO_TCP, 0, 80, 0x20b9, 0}, /* one in the middle */
		{"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 0, 53, 0x0001, 0}, /* the last */
		{"192.0.2.1", "10.8.0.1", IPPROTO_ICMP, 0, 8, 0, 0},
		{"192.0.2.1", "10.8.0.1", IPPROTO_ESP, 0, 8, 0, 8},
	};
	static const uint8_t next_headers[] = {IPPROTO_FRAGMENT, IPPROTO_HOPOPTS, IPPROTO_ICMPV6,
					       IPPROTO_NONE};

	rig_open(&r, 0);
	int expected = queue_of(&r, &flows[0]);
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
		for (uint16_t port = 1; port < 40; port++) {
			struct flow f = flows[i];
			f.from_port = port;
			assert_int_equal(queue_of(&r, &f), expected);
		}
	struct flow f = {"2001:db8:ffff::1", "2001:db8::1", IPPROTO_FRAGMENT, 0, 53, 0, 0};
	expected = queue_of(&r, &f);
	for (size_t i = 0; i < sizeof(next_headers); i++)
		for (f.protocol = next_headers[i], f.from_port = 1; f.from_port < 40; f.from_port++)
			assert_int_equal(queue_of(&r, &f), expected);
	rig_close(&r);
}

/* Fragments and packets with options find their destination all the same. */
static void fragments_find_their_destination(void **state)
{
	(void)state;
	struct rig r;
	static const struct flow flows[] = {
		{"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 1, 53, 0x2000, 0},
		{"192.0.2.1", "10.8.0.1", IPPROTO_UDP, 2, 53, 0x00b9, 0},
		{"192.0.2.1", "10.8.0.1", IPPROTO_TCP, 3, 53, 0, 40},
		{"192.0.2.1", "10.8.0.1", IPPROTO_ICMP, 4, 53, 0, 4},
		{"fd00::1", "2001:db8::1", IPPROTO_FRAGMENT, 5, 53, 0, 0},
		{"fd00::1", "2001:db8::1", IPPROTO_ROUTING, 6, 53, 0, 0},
	};

	rig_open(&r, 0);
	add(&r, "10.8.0.1/32", 2);
	add(&r, "2001:db8::1/128", 2);
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
		assert_int_equal(queue_of(&r, &flows[i]), 2);
	rig_close(&r);
}

static void what_is_no_ip_packet_comes_to_queue_0(void **state)
{
	(void)state;
	struct rig r;
	static const struct {
		uint8_t bytes[6];
		size_t len;
	} rows[] = {
		{{0x00}, 1},
		{{0x50, 1, 2}, 3},
		{{0xff, 0xff}, 2},
		{{0x45}, 1},
		{{0x60}, 1},
		{{0x4f, 0, 0, 6, 0, 0}, 6},
		{{0x6f, 0xff, 0, 0, 0, 0}, 6},
	};

	rig_open(&r, 0);
	/* Cut short, they seem to go nowhere. */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(queue_of_bytes(&r, rows[i].bytes, rows[i].len), 0);
	rig_close(&r);
}

/* --- packets as the kernel makes them --- */

#define SEGMENT	     1000
#define SUPER_LEN    20000
#define OFFLOAD_UDP  (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | 0x60) /* USO4 and USO6 */
#define PATTERN_BYTE 0x5a

/* A datagram through the kernel's own UDP, in segments if the device takes such. */
static void send_from_socket(const char *to, bool is_super)
{
	static uint8_t payload[SUPER_LEN];
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t len = is_super ? sizeof(payload) : SEGMENT;

	memset(payload, PATTERN_BYTE, sizeof(payload));
	if (is_super)
		assert_int_equal(setsockopt(fd, SOL_UDP, UDP_SEGMENT, &(int){SEGMENT}, sizeof(int)),
				 0);
	assert_int_equal(inet_pton(AF_INET, to, &name.sin_addr), 1);
	assert_int_equal(sendto(fd, payload, len, 0, (struct sockaddr *)&name, sizeof(name)), len);
	close(fd);
}

/* Queue and length of the next packet to `to`. */
static int next_packet_to(const struct rig *r, const char *to, size_t *len)
{
	static uint8_t bytes[PACKET_MAX];
	struct pollfd fds[QUEUES];
	uint8_t wanted[4];

	assert_int_equal(inet_pton(AF_INET, to, wanted), 1);
	for (int i = 0; i < QUEUES; i++)
		fds[i] = (struct pollfd){.fd = r->queues[i], .events = POLLIN};
	while (poll(fds, QUEUES, 2000) > 0)
		for (int i = 0; i < QUEUES; i++) {
			ssize_t n = read(r->queues[i], bytes, sizeof(bytes));
			if (n > 20 && memcmp(bytes + r->header_len + 16, wanted, 4) == 0) {
				*len = (size_t)n - r->header_len;
				return i;
			}
		}
	fail_msg("nothing came for %s", to);
	return -1;
}

static void packets_of_the_kernel_are_steered_like_any(void **state)
{
	(void)state;
	struct rig r;
	size_t len;

	rig_open(&r, IFF_VNET_HDR);
	assert_true(netns_run("ip addr add 10.8.0.1/16 dev %s", r.name));
	bool has_uso = ioctl(r.queues[0], TUNSETOFFLOAD, OFFLOAD_UDP) == 0;
	for (uint32_t queue = 0; queue < QUEUES; queue++) {
		add(&r, "10.8.0.7/32", queue);
		send_from_socket("10.8.0.7", false);
		assert_int_equal(next_packet_to(&r, "10.8.0.7", &len), queue);
		assert_int_equal(len, 28 + SEGMENT);
		if (!has_uso) /* kernels before 6.2 */
			continue;
		send_from_socket("10.8.0.7", true);
		assert_int_equal(next_packet_to(&r, "10.8.0.7", &len), queue);
		assert_int_equal(len, 28 + SUPER_LEN);
	}
	rig_close(&r);
}

/* --- attaching and the lack of it --- */

/* Whether all flows come to queue 3, as a default route in the maps would have it. */
static bool is_steered(const struct rig *r)
{
	unsigned elsewhere = 0;

	for (uint16_t port = 1; port < 60; port++) {
		struct flow f = {"192.0.2.1", "10.8.0.1", IPPROTO_UDP, port, 53, 0, 0};
		elsewhere += queue_of(r, &f) != 3;
	}
	assert_true(elsewhere == 0 || elsewhere > 20);
	return elsewhere == 0;
}

static void free_gives_the_device_back(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	add(&r, "0.0.0.0/0", 3);
	assert_true(is_steered(&r));
	tun_steering_free(r.steering);
	r.steering = NULL;
	assert_false(is_steered(&r));
	tun_steering_free(NULL);
	rig_close(&r);
}

/* The device outlives us if it is persistent, and the program with it. */
static void what_a_dead_process_left_is_cleared(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	add(&r, "0.0.0.0/0", 3);
	tun_steering_clear(r.queues[0]);
	assert_false(is_steered(&r));
	rig_close(&r);
}

static void second_program_takes_the_place_of_the_first(void **state)
{
	(void)state;
	struct rig r;
	struct tun_steering *first;

	rig_open(&r, 0);
	add(&r, "0.0.0.0/0", 0);
	first = r.steering;
	struct tun_steering_setup setup = setup_of(&r);
	assert_int_equal(tun_steering_new(&setup, &r.steering), 0);
	add(&r, "0.0.0.0/0", 3);
	assert_true(is_steered(&r));
	tun_steering_free(first);
	rig_close(&r);
}

/* Run `check` in a child; its return value is the exit code. */
static void in_child(int (*check)(struct rig *r), struct rig *r)
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(check(r));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	return syscall(SYS_capset, &head, none) == 0;
}

static int open_files(void)
{
	int fd = dup(0);
	close(fd);
	return fd;
}

/* 0 if tun_steering_new fails with `error` and leaves nothing open. */
static int fails_with(struct rig *r, int error)
{
	struct tun_steering *s = (struct tun_steering *)&error;
	struct tun_steering_setup setup = setup_of(r);
	int next_fd = open_files();

	if (tun_steering_new(&setup, &s) != -error)
		return 1;
	if (s != (struct tun_steering *)&error)
		return 2;
	return open_files() == next_fd ? 0 : 3;
}

static int new_without_capability(struct rig *r)
{
	return drop_capabilities() ? fails_with(r, EPERM) : 9;
}

static int new_without_call(struct rig *r)
{
	return deny_bpf(-1, ENOSYS) ? fails_with(r, ENOSYS) : 9;
}

static int new_without_programs(struct rig *r)
{
	return deny_bpf(BPF_PROG_LOAD, EINVAL) ? fails_with(r, EINVAL) : 9;
}

static int new_without_device(struct rig *r)
{
	r->queues[1] = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fails_with(r, ENOTTY);
}

static void refusal_leaves_the_automatic_steering(void **state)
{
	(void)state;
	static int (*const checks[])(struct rig *) = {new_without_capability, new_without_call,
						      new_without_programs, new_without_device};
	struct rig r;

	device_open(&r, 0);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		in_child(checks[i], &r);
		assert_false(is_steered(&r));
	}
	rig_close(&r);
}

/* An old kernel that wants the privilege for each update. */
static int check_without_updates(struct rig *r)
{
	struct ip_prefix host = prefix("10.8.0.1/32");

	if (tun_steering_check(r->steering) != 0 || !deny_bpf(BPF_MAP_UPDATE_ELEM, EPERM))
		return 9;
	if (tun_steering_check(r->steering) != -EPERM)
		return 1;
	return tun_steering_add(r->steering, &host, 1) == -EPERM ? 0 : 2;
}

static void check_notices_that_updates_are_refused(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	in_child(check_without_updates, &r);
	rig_close(&r);
}

static void check_leaves_no_entry(void **state)
{
	(void)state;
	struct rig r;

	rig_open(&r, 0);
	add(&r, "0.0.0.0/0", 3);
	assert_int_equal(tun_steering_check(r.steering), 0);
	assert_int_equal(queue_of_address(&r, "0.0.0.0"), 3);
	rig_close(&r);
}

/* Why the program cannot run here, or NULL. */
static const char *cannot_load(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_LPM_TRIE;
	attr.map_flags = BPF_F_NO_PREALLOC;
	attr.key_size = 8;
	attr.value_size = 4;
	attr.max_entries = 1;
	long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return errno == ENOSYS ? "the kernel has no bpf(2)"
				       : "no permission to load eBPF programs";
	close((int)fd);
	return NULL;
}

int main(void)
{
	const char *why = netns_enter_with_tun();
	if (!why)
		why = cannot_load();
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_come_before_longest_prefixes),
		cmocka_unit_test(virtio_header_is_not_seen),
		cmocka_unit_test(last_announcement_counts),
		cmocka_unit_test(removal_uncovers_shorter_prefix),
		cmocka_unit_test(removal_of_what_is_not_there_is_no_error),
		cmocka_unit_test(full_map_refuses_and_keeps_what_it_has),
		cmocka_unit_test(flows_of_a_spread_destination_are_spread),
		cmocka_unit_test(unknown_destinations_are_spread),
		cmocka_unit_test(each_address_counts),
		cmocka_unit_test(ports_count_only_where_all_packets_have_them),
		cmocka_unit_test(fragments_find_their_destination),
		cmocka_unit_test(what_is_no_ip_packet_comes_to_queue_0),
		cmocka_unit_test(packets_of_the_kernel_are_steered_like_any),
		cmocka_unit_test(free_gives_the_device_back),
		cmocka_unit_test(what_a_dead_process_left_is_cleared),
		cmocka_unit_test(second_program_takes_the_place_of_the_first),
		cmocka_unit_test(refusal_leaves_the_automatic_steering),
		cmocka_unit_test(check_notices_that_updates_are_refused),
		cmocka_unit_test(check_leaves_no_entry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
