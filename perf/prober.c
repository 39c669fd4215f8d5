/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "perf/arguments.h"
#include "perf/histogram.h"
#include "perf/ticks.h"

/* Round trips at a steady pace: ICMP echo whose arrival the kernel stamps, so that what is measured
 * is the path and not how soon this process runs. (ping itself spins below 10 ms.) */

#define PAYLOAD_LEN 56
#define LINGER_NS                                                                                  \
	300000000u /* an answer that comes later than this after the last echo is lost             \
		    */

struct options {
	uint32_t to_be32;
	const char *dev;
	double interval_ms, seconds;
};

static const struct argument table[] = {
	{ARGUMENT_ADDRESS4, "to", "ADDR", "who answers", offsetof(struct options, to_be32), 0, 0},
	{ARGUMENT_TEXT, "dev", "NAME", "leave by this device (by the route)",
	 offsetof(struct options, dev), 0, 0},
	{ARGUMENT_AMOUNT, "interval-ms", "N", "between echoes (5)",
	 offsetof(struct options, interval_ms), 0.1, 10000},
	{ARGUMENT_AMOUNT, "seconds", "S", "(0: until SIGTERM)", offsetof(struct options, seconds),
	 0, 86400},
};

struct echo {
	struct icmphdr header;
	uint64_t sent_ns; /* wall clock, as the kernel's stamps */
	unsigned char filler[PAYLOAD_LEN - sizeof(uint64_t)];
};

struct prober {
	struct options options;
	int fd;
	uint16_t ident;
	uint64_t sent, received;
	struct histogram rtt_ns;
};

static volatile sig_atomic_t is_stopped;

static void stop(int number)
{
	(void)number;
	is_stopped = 1;
}

static uint16_t checksum(const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void echo_send(struct prober *p)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = p->options.to_be32};
	struct echo e = {.header = {.type = ICMP_ECHO}, .sent_ns = ticks_wall_ns()};

	e.header.un.echo.id = htons(p->ident);
	e.header.un.echo.sequence = htons((uint16_t)p->sent);
	e.header.checksum = checksum(&e, sizeof(e));
	p->sent++; /* what the kernel has no room for is lost too */
	(void)sendto(p->fd, &e, sizeof(e), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
}

static uint64_t arrival_ns(struct msghdr *m)
{
	struct timespec ts;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&ts, CMSG_DATA(c), sizeof(ts));
		return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	return ticks_wall_ns();
}

/* An answer to one of ours, behind the IP header that a raw socket shows. */
static bool answer_read(const struct prober *p, const uint8_t *packet, size_t len, struct echo *e)
{
	size_t header_len = len > 0 ? (size_t)(packet[0] & 15) * 4 : 0;

	if (header_len < sizeof(struct iphdr) || len < header_len + sizeof(*e))
		return false;
	memcpy(e, packet + header_len, sizeof(*e));
	return e->header.type == ICMP_ECHOREPLY && ntohs(e->header.un.echo.id) == p->ident;
}

static bool answer_take(struct prober *p)
{
	uint8_t packet[2048];
	_Alignas(struct cmsghdr) char control[64];
	struct iovec iov = {packet, sizeof(packet)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(p->fd, &m, MSG_DONTWAIT);
	struct echo e;

	if (len < 0)
		return false;
	if (answer_read(p, packet, (size_t)len, &e)) {
		uint64_t now_ns = arrival_ns(&m);
		p->received++;
		histogram_add(&p->rtt_ns, now_ns > e.sent_ns ? now_ns - e.sent_ns : 0);
	}
	return true;
}

/* Take answers until `until_ns` of the monotonic clock, or a signal. */
static void answers_until(struct prober *p, uint64_t until_ns)
{
	for (uint64_t now_ns = ticks_ns(); now_ns < until_ns; now_ns = ticks_ns()) {
		struct pollfd pollfd = {.fd = p->fd, .events = POLLIN};
		uint64_t left_ns = until_ns - now_ns;
		struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
					.tv_nsec = (long)(left_ns % 1000000000u)};
		if (ppoll(&pollfd, 1, &left, NULL) < 0)
			return;
		while (answer_take(p))
			;
	}
}

static void probe(struct prober *p)
{
	uint64_t interval_ns = (uint64_t)(p->options.interval_ms * 1e6);
	uint64_t start_ns = ticks_ns(), next_ns = start_ns;
	uint64_t end_ns = start_ns + (uint64_t)(p->options.seconds * 1e9);

	while (!is_stopped && (p->options.seconds <= 0 || next_ns < end_ns)) {
		echo_send(p);
		next_ns += interval_ns;
		answers_until(p, next_ns);
	}
	answers_until(p, ticks_ns() + LINGER_NS);
}

static int prober_open(struct prober *p)
{
	const int on = 1;

	p->ident = (uint16_t)getpid();
	p->fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (p->fd < 0)
		return -errno;
	if (setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0)
		return -errno;
	if (p->options.dev != NULL && setsockopt(p->fd, SOL_SOCKET, SO_BINDTODEVICE, p->options.dev,
						 (socklen_t)strlen(p->options.dev)) != 0)
		return -errno;
	return 0;
}

static void report(const struct prober *p)
{
	const struct histogram *h = &p->rtt_ns;
	uint64_t lost = p->sent > p->received ? p->sent - p->received : 0;

	printf("{\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"loss_percent\":%.3f,\"rtt_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
	       "\"max\":%.1f}}\n",
	       p->sent, p->received, lost, p->sent > 0 ? 100.0 * (double)lost / (double)p->sent : 0,
	       (double)histogram_quantile(h, 0.5) / 1e3, (double)histogram_quantile(h, 0.9) / 1e3,
	       (double)histogram_quantile(h, 0.99) / 1e3, (double)h->max / 1e3);
}

int main(int argc, char **argv)
{
	static struct prober p = {.options = {.interval_ms = 5}};
	const struct sigaction on_stop = {.sa_handler = stop};
	const size_t count = sizeof(table) / sizeof(table[0]);
	bool wants_help = false;

	if (arguments_parse(table, count, argc, argv, &p.options, &wants_help) != 0)
		return EX_USAGE;
	if (wants_help || p.options.to_be32 == 0) {
		printf("usage: prober --to ADDR [OPTION...]\n\nICMP echo at a steady pace; one "
		       "line "
		       "of JSON at the end.\n\n");
		arguments_print(table, count, stdout);
		return wants_help ? 0 : EX_USAGE;
	}
	sigaction(SIGTERM, &on_stop, NULL);
	sigaction(SIGINT, &on_stop, NULL);
	int error = prober_open(&p);
	if (error != 0) {
		fprintf(stderr, "prober: %s\n", strerror(-error));
		return 2;
	}
	probe(&p);
	report(&p);
	return 0;
}
