/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/admin/http.h"
#include "server/admin/observer.h"
#include "workers/mailbox.h"

/* An endpoint on a port of its own, without workers, and a thread in the place of the acceptor. */
struct lab {
	struct config config;
	struct mailboxes *mailboxes;
	struct observer *observer;
	pthread_t acceptor;
	atomic_bool is_stopping, is_silent;
};

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static struct snapshot *snapshot_of(uint32_t max_clients)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->max_clients = max_clients;
	return s;
}

static void *acceptor_run_fake(void *arg)
{
	struct lab *lab = arg;
	uint32_t number = 100;
	while (!atomic_load(&lab->is_stopping)) {
		struct pollfd p = {.fd = observer_wanted_fd(lab->observer), .events = POLLIN};
		poll(&p, 1, 20);
		if (!atomic_load(&lab->is_silent) && observer_wants_snapshot(lab->observer))
			observer_publish(lab->observer, snapshot_of(number++));
	}
	return NULL;
}

/* A port that nobody has now. */
static uint16_t free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static int observer_open(struct lab *lab, char *why)
{
	const struct observer_setup setup = {
		.config = &lab->config,
		.mailboxes = lab->mailboxes,
		.start_time_s = 1,
		.ops = &http_ops,
	};
	return observer_new(&setup, &lab->observer, why, 256);
}

static int start(void **state)
{
	char why[256] = "";
	struct lab *lab = calloc(1, sizeof(*lab));
	lab->config.metrics_host = "127.0.0.1";
	lab->config.metrics_port = free_port();
	if (mailboxes_new(2, &lab->mailboxes) != 0 || observer_open(lab, why) != 0 ||
	    observer_start(lab->observer) != 0 ||
	    pthread_create(&lab->acceptor, NULL, acceptor_run_fake, lab) != 0)
		return -1;
	*state = lab;
	return 0;
}

static int stop(void **state)
{
	struct lab *lab = *state;
	atomic_store(&lab->is_stopping, true);
	pthread_join(lab->acceptor, NULL);
	observer_stop(lab->observer);
	observer_free(lab->observer);
	mailboxes_free(lab->mailboxes);
	free(lab);
	return 0;
}

static int connect_to(const struct lab *lab)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	a.sin_port = htons(lab->config.metrics_port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Everything up to the end of the connection. */
static size_t read_all(int fd, char *out, size_t cap)
{
	size_t len = 0;
	ssize_t n;
	while (len < cap - 1 && (n = recv(fd, out + len, cap - 1 - len, 0)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	return len;
}

static const char *ask(const struct lab *lab, const char *request)
{
	static char answer[1 << 20];
	int fd = connect_to(lab);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	read_all(fd, answer, sizeof(answer));
	close(fd);
	return answer;
}

/* Not inlined: with UBSan gcc 12 then believes that a text may be NULL, and warns. */
__attribute__((noinline)) static void assert_has(const char *answer, const char *text)
{
	if (strstr(answer, text) == NULL)
		fail_msg("no \"%s\" in:\n%s", text, answer);
}

static void answers_have_status_and_type(void **state)
{
	static const struct {
		const char *request, *line, *has;
	} table[] = {
		{"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		 "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"},
		{"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n",
		 "HTTP/1.1 200 OK\r\n",
		 "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"},
		{"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\nshardvpn_peers_max 1"},
		{"GET /metrics/peers HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		 "# TYPE shardvpn_peer_info gauge\n"},
		{"GET /metrics?scope=peers HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		 "# TYPE shardvpn_peer_info gauge\n"},
		{"GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nOK"},
		{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "Connection: close\r\n"},
		{"GET /metrics/ HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "\r\n\r\n"},
		{"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n",
		 "Allow: GET, HEAD\r\n"},
		{"nonsense\n", "HTTP/1.1 400 Bad Request\r\n", "\r\n\r\n"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *answer = ask(*state, table[i].request);
		assert_int_equal(strncmp(answer, table[i].line, strlen(table[i].line)), 0);
		assert_has(answer, table[i].has);
		assert_has(answer, "X-Content-Type-Options: nosniff\r\n");
	}
}

static void head_has_the_length_and_no_body(void **state)
{
	const char *answer = ask(*state, "HEAD /metrics HTTP/1.1\r\n\r\n");
	assert_has(answer, "HTTP/1.1 200 OK\r\n");
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	assert_true(strtoul(strstr(answer, "Content-Length: ") + 16, NULL, 10) > 1000);
}

static void the_length_is_that_of_the_body(void **state)
{
	const char *answer = ask(*state, "GET /metrics HTTP/1.1\r\n\r\n");
	size_t len = strtoul(strstr(answer, "Content-Length: ") + 16, NULL, 10);
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), len);
}

static unsigned long scraped_number(const struct lab *lab)
{
	const char *answer = ask(lab, "GET /metrics HTTP/1.1\r\n\r\n");
	const char *line = strstr(answer, "\nshardvpn_peers_max ");
	assert_non_null(line);
	return strtoul(line + 20, NULL, 10);
}

static void a_scrape_gets_a_fresh_snapshot(void **state)
{
	unsigned long first = scraped_number(*state);
	assert_int_equal(scraped_number(*state), first); /* fresh enough */
	pause_ms(OBSERVER_FRESH_MS + 50);
	assert_int_equal(scraped_number(*state), first + 1);
}

static void nobody_asks_nobody_draws(void **state)
{
	struct lab *lab = *state;
	unsigned long first = scraped_number(lab);
	pause_ms(OBSERVER_FRESH_MS + 200);
	assert_false(observer_wants_snapshot(lab->observer));
	assert_int_equal(scraped_number(lab), first + 1);
}

static void a_silent_acceptor_does_not_hold_up_the_answer(void **state)
{
	struct lab *lab = *state;
	unsigned long first = scraped_number(lab);
	atomic_store(&lab->is_silent, true);
	pause_ms(OBSERVER_FRESH_MS + 50);
	assert_int_equal(scraped_number(lab), first);
	assert_has(ask(lab, "GET /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200"); /* for 15 s */
}

static void a_head_may_come_in_pieces(void **state)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
	char answer[1024];
	int fd = connect_to(*state);
	for (const char *c = request; *c != '\0'; c++)
		assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
	read_all(fd, answer, sizeof(answer));
	assert_has(answer, "HTTP/1.1 200 OK");
	close(fd);
}

static void a_request_has_two_seconds_however_it_drips(void **state)
{
	struct timespec begin, end;
	char answer[64];
	int fd = connect_to(*state);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < 40 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; i++)
		pause_ms(100);
	read_all(fd, answer, sizeof(answer));
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 1, 3);
	assert_int_equal(strlen(answer), 0);
	close(fd);
}

static void too_long_a_head_is_refused(void **state)
{
	static char request[5000];
	memset(request, 'x', sizeof(request) - 1);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	char answer[1024];
	int fd = connect_to(*state);
	(void)!send(fd, request, 4096, MSG_NOSIGNAL);
	read_all(fd, answer, sizeof(answer));
	assert_has(answer, "HTTP/1.1 431 ");
	close(fd);
}

/* 64 connections are served, the next is closed at once, and there is room again afterwards. */
static void connections_are_limited(void **state)
{
	int fds[64];
	char byte;
	for (size_t i = 0; i < 64; i++)
		fds[i] = connect_to(*state);
	pause_ms(50);
	int late = connect_to(*state);
	assert_int_equal(recv(late, &byte, 1, 0), 0);
	close(late);
	for (size_t i = 0; i < 64; i++)
		close(fds[i]);
	pause_ms(50);
	assert_has(ask(*state, "GET /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
}

static void clients_that_go_away_leave_nothing(void **state)
{
	int fd = connect_to(*state);
	static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	pause_ms(20);
	close(fd);
	/* The teardown joins and frees while such connections may be open. */
	fd = connect_to(*state);
	pause_ms(20);
	close(fd);
}

static void endpoints_that_cannot_be_had_say_why(void **state)
{
	struct lab *running = *state;
	const struct {
		const char *host;
		uint16_t port;
		bool is_remote_ok;
		int err;
		const char *word;
	} table[] = {
		{"127.0.0.1", running->config.metrics_port, false, -EADDRINUSE, "another program"},
		{"0.0.0.0", free_port(), false, -EPERM, "metrics-allow-remote"},
		{"::", free_port(), false, -EPERM, "metrics-allow-remote"},
		{"192.0.2.77", 9, false, -EPERM, "metrics-allow-remote"},
		{"192.0.2.77", 9999, true, -EADDRNOTAVAIL, "no such address"},
		{"not a host", 9999, true, -EINVAL, "not a host"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct lab lab = {.mailboxes = running->mailboxes};
		char why[256] = "";
		lab.config.metrics_host = table[i].host;
		lab.config.metrics_port = table[i].port;
		lab.config.is_metrics_remote_ok = table[i].is_remote_ok;
		assert_int_equal(observer_open(&lab, why), table[i].err);
		assert_non_null(strstr(why, "metrics"));
		assert_has(why, table[i].word);
	}
}

/* Publishes and scrapes without any order between them; for ASan and TSan to look at. */
static void snapshots_are_handed_over_under_load(void **state)
{
	struct lab *lab = *state;
	atomic_store(&lab->is_silent, true);
	pause_ms(50);
	for (uint32_t i = 0; i < 2000; i++) {
		observer_publish(lab->observer, snapshot_of(i));
		if (i % 100 == 0)
			assert_int_equal(scraped_number(lab), i);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(answers_have_status_and_type),
		TEST(head_has_the_length_and_no_body),
		TEST(the_length_is_that_of_the_body),
		TEST(a_scrape_gets_a_fresh_snapshot),
		TEST(nobody_asks_nobody_draws),
		TEST(a_silent_acceptor_does_not_hold_up_the_answer),
		TEST(a_head_may_come_in_pieces),
		TEST(a_request_has_two_seconds_however_it_drips),
		TEST(too_long_a_head_is_refused),
		TEST(connections_are_limited),
		TEST(clients_that_go_away_leave_nothing),
		TEST(endpoints_that_cannot_be_had_say_why),
		TEST(snapshots_are_handed_over_under_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
