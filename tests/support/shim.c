/* SPDX-License-Identifier: Apache-2.0 */
/* A bad path for UDP: a relay that loses, repeats and reorders datagrams, each direction alike.
 *
 * usage: shim LISTEN-IP SERVER-IP PORT LOSS REPEAT REORDER MERGE SEED
 * LOSS, REPEAT, REORDER: of 10,000 datagrams. A reordered one is overtaken by 1 to 20 others, or
 * waits HOLD_MS. MERGE 1: neighbours of equal length go out as one UDP_SEGMENT send, so that the
 * receiver sees super-datagrams. The same SEED gives the same fates in the same order.
 * On SIGTERM it tells what it did and exits with 0. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
	CLIENTS_MAX = 64,
	HELD_MAX = 64,
	BATCH_MAX = 64,
	PACKET_MAX = 65536,
	SEGMENTS_MAX = 40,
	MERGED_MAX = 60000,
	OVERTAKEN_MAX = 20,
	HOLD_MS = 5,
	PARTS = 10000,
};

struct packet {
	unsigned route; /* 2 * client, + 1 towards the client */
	unsigned left;	/* held: how many still overtake it */
	size_t len;
	uint8_t *bytes;
};

struct client {
	struct sockaddr_storage addr;
	int upstream;
};

static struct client clients[CLIENTS_MAX];
static unsigned client_count;
static struct packet held[HELD_MAX], out[2 * BATCH_MAX + HELD_MAX];
static size_t held_count, out_count;
static unsigned loss, repeat, reorder;
static bool is_merging;
static uint64_t random_state;
static unsigned long passed, lost, repeated, reordered, merged;
static int listener;
static struct sockaddr_storage server_addr;
static volatile sig_atomic_t is_over;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned draw(unsigned below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((random_state >> 33) % below);
}

static socklen_t addr_len(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static struct sockaddr_storage parse_addr(const char *ip, uint16_t port)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *a4 = (void *)&a;
	struct sockaddr_in6 *a6 = (void *)&a;

	if (inet_pton(AF_INET, ip, &a4->sin_addr) == 1) {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, ip, &a6->sin6_addr) == 1) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons(port);
	} else {
		fprintf(stderr, "shim: %s is no address\n", ip);
		exit(64);
	}
	return a;
}

static int open_socket(void)
{
	int size = 8 << 20;
	int fd = socket(server_addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	/* Nothing may be lost here but by intent. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		die("buffers");
	return fd;
}

/* The client with this address; a new one, if need be. */
static unsigned client_get(const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < client_count; i++)
		if (memcmp(&clients[i].addr, addr, addr_len(addr)) == 0)
			return i;
	if (client_count == CLIENTS_MAX) {
		fprintf(stderr, "shim: too many clients\n");
		exit(1);
	}
	struct client *c = &clients[client_count];
	memcpy(&c->addr, addr, sizeof(c->addr));
	c->upstream = open_socket();
	if (connect(c->upstream, (struct sockaddr *)&server_addr, addr_len(&server_addr)) != 0)
		die("connect");
	return client_count++;
}

static void emit(struct packet p)
{
	out[out_count++] = p;
	passed++;
}

static struct packet copy(const struct packet *p)
{
	struct packet c = *p;

	c.bytes = malloc(p->len + 1);
	if (!c.bytes)
		die("malloc");
	memcpy(c.bytes, p->bytes, p->len);
	return c;
}

/* Those whose time has come; all of them if `is_timeout`. */
static void release(bool is_timeout)
{
	size_t kept = 0;

	for (size_t i = 0; i < held_count; i++) {
		if (is_timeout || --held[i].left == 0)
			emit(held[i]);
		else
			held[kept++] = held[i];
	}
	held_count = kept;
}

/* What becomes of a datagram: it is lost, held back, repeated, or passes. */
static void decide(struct packet p)
{
	bool is_lost = draw(PARTS) < loss, is_held = draw(PARTS) < reorder,
	     is_repeated = draw(PARTS) < repeat;

	if (is_repeated && !is_lost) {
		repeated++;
		emit(copy(&p));
	}
	if (is_lost) {
		lost++;
		free(p.bytes);
	} else if (is_held && held_count < HELD_MAX) {
		reordered++;
		p.left = 2 + draw(OVERTAKEN_MAX);
		held[held_count++] = p;
	} else {
		emit(p);
	}
	release(false);
}

/* How many packets from `first` on one UDP_SEGMENT send may hold: equal ones, the last may be
 * shorter. */
static size_t run_len(size_t first)
{
	size_t n = 1, total = out[first].len;

	if (!is_merging || total == 0)
		return 1;
	while (first + n < out_count && n < SEGMENTS_MAX &&
	       out[first + n].route == out[first].route && out[first + n].len > 0 &&
	       out[first + n].len <= out[first].len && total + out[first + n].len <= MERGED_MAX) {
		total += out[first + n].len;
		n++;
		if (out[first + n - 1].len < out[first].len)
			break;
	}
	return n;
}

static ssize_t send_run(size_t first, size_t n)
{
	struct iovec iov[SEGMENTS_MAX];
	struct client *c = &clients[out[first].route / 2];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
	int fd = c->upstream;

	for (size_t i = 0; i < n; i++)
		iov[i] = (struct iovec){.iov_base = out[first + i].bytes,
					.iov_len = out[first + i].len};
	if (out[first].route % 2) {
		fd = listener;
		m.msg_name = &c->addr;
		m.msg_namelen = addr_len(&c->addr);
	}
	if (n > 1) {
		uint16_t size = (uint16_t)out[first].len;
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = IPPROTO_UDP;
		h->cmsg_type = UDP_SEGMENT;
		h->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(h), &size, sizeof(size));
	}
	return sendmsg(fd, &m, 0);
}

static void flush(void)
{
	for (size_t i = 0; i < out_count;) {
		size_t n = run_len(i);
		/* A datagram that needs fragments cannot be merged. */
		if (n > 1 && send_run(i, n) < 0)
			n = 1;
		else if (n > 1)
			merged += n;
		if (n == 1)
			(void)!send_run(i, 1);
		i += n;
	}
	for (size_t i = 0; i < out_count; i++)
		free(out[i].bytes);
	out_count = 0;
}

/* A batch of datagrams from one socket. `client` is its client, or CLIENTS_MAX for the listener. */
static void take(int fd, unsigned client)
{
	static uint8_t bytes[PACKET_MAX];

	for (int i = 0; i < BATCH_MAX; i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_len);
		if (n < 0)
			break;
		bool is_down = client != CLIENTS_MAX;
		unsigned of = is_down ? client : client_get(&from);
		struct packet p = {.route = 2 * of + is_down, .len = (size_t)n, .bytes = bytes};
		decide(copy(&p));
	}
	flush();
}

static void run(void)
{
	while (!is_over) {
		struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = listener, .events = POLLIN}};
		unsigned count = client_count;
		for (unsigned i = 0; i < count; i++)
			fds[i + 1] = (struct pollfd){.fd = clients[i].upstream, .events = POLLIN};
		int n = poll(fds, count + 1, held_count ? HOLD_MS : 500);
		if (n == 0) {
			release(true);
			flush();
		}
		for (unsigned i = 0; n > 0 && i <= count; i++)
			if (fds[i].revents)
				take(fds[i].fd, i == 0 ? CLIENTS_MAX : i - 1);
	}
}

static void stop(int number)
{
	(void)number;
	is_over = 1;
}

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	if (argc != 9) {
		fprintf(stderr,
			"usage: shim LISTEN-IP SERVER-IP PORT LOSS REPEAT REORDER MERGE SEED\n");
		return 64;
	}
	uint16_t port = (uint16_t)number(argv[3]);
	struct sockaddr_storage here = parse_addr(argv[1], port);
	server_addr = parse_addr(argv[2], port);
	loss = number(argv[4]);
	repeat = number(argv[5]);
	reorder = number(argv[6]);
	is_merging = number(argv[7]) != 0;
	random_state = number(argv[8]);
	struct sigaction on_term = {.sa_handler = stop};
	sigaction(SIGTERM, &on_term, NULL);
	listener = open_socket();
	if (bind(listener, (struct sockaddr *)&here, addr_len(&here)) != 0)
		die("bind");
	puts("ready");
	fflush(stdout);
	run();
	printf("passed %lu lost %lu repeated %lu reordered %lu merged %lu\n", passed, lost,
	       repeated, reordered, merged);
	return 0;
}
