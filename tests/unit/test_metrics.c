/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/admin/metrics.h"

static struct metrics_worker workers[2];
static const struct config config = {.max_clients = 1024};

static struct metrics_input input(const struct snapshot *s)
{
	return (struct metrics_input){
		.config = &config,
		.snapshot = s,
		.workers = workers,
		.worker_count = 2,
		.ring_capacity = 256,
		.start_time_s = 1796066725,
	};
}

static struct snapshot *snapshot_new(size_t clients)
{
	struct snapshot *s = calloc(1, sizeof(*s) + clients * sizeof(struct snapshot_client));
	assert_non_null(s);
	s->client_count = clients;
	s->made_s = 1796066741;
	for (size_t i = 0; i < clients; i++) {
		struct snapshot_client *c = &s->clients[i];
		snprintf(c->common_name, sizeof(c->common_name), "client%zu", i);
		snprintf(c->real_addr, sizeof(c->real_addr), "192.0.2.7:%zu", i);
		snprintf(c->virtual4, sizeof(c->virtual4), "10.8.0.%zu", i & 255);
		c->client_id = i;
		c->cipher = "AES-256-GCM";
		c->worker = 1;
	}
	return s;
}

static char *print(const struct snapshot *s, enum metrics_format format, enum metrics_scope scope)
{
	size_t len = 0;
	const struct metrics_input in = input(s);
	char *text = metrics_print(&in, format, scope, &len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	return text;
}

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);
	for (const char *p = text; (p = strstr(p, line)) != NULL; p++)
		if ((p == text || p[-1] == '\n') && p[len] == '\n')
			return true;
	return false;
}

static void assert_lines(const char *text, const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!has_line(text, lines[i]))
			fail_msg("missing: %s", lines[i]);
}
#define ASSERT_LINES(text, lines) assert_lines(text, lines, sizeof(lines) / sizeof((lines)[0]))

static void fill_workers(void)
{
	memset(workers, 0, sizeof(workers));
	workers[0].io_engine = "io_uring";
	workers[1].io_engine = "epoll";
	workers[0].aead_engine = workers[1].aead_engine = "openssl";
	workers[0].cpu = 3;
	workers[1].cpu = -1;
	workers[1].ring_depth = 7;
	workers[0].counters.link_received_bytes = UINT64_MAX;
	workers[1].counters.busy_ns = 1500000001;
	workers[1].counters.wakeups[WAKE_TIMER] = 4;
	workers[0].counters.drops[DIRECTION_EGRESS][DROP_NO_ROUTE] = 5;
	workers[0].counters.io_submissions = 6;
	workers[1].counters.io_submissions = 6;
}

static void workers_have_a_series_each(void **state)
{
	(void)state;
	static const char *const lines[] = {
		("shardvpn_worker_info{worker=\"1\",cpu=\"3\",io_engine=\"io_uring\",aead_engine="
		 "\"openssl\"} 1"),
		("shardvpn_worker_info{worker=\"2\",cpu=\"any\",io_engine=\"epoll\",aead_engine="
		 "\"openssl\"} 1"),
		"# TYPE shardvpn_link_received_bytes_total counter",
		("shardvpn_link_received_bytes_total{worker=\"1\",proto=\"udp\"} "
		 "18446744073709551615"),
		"shardvpn_worker_busy_seconds_total{worker=\"2\"} 1.500000001",
		"shardvpn_worker_wakeups_total{worker=\"2\",cause=\"timer\"} 4",
		("shardvpn_dropped_packets_total{worker=\"1\",direction=\"egress\",reason="
		 "\"no_route\"} 5"),
		"shardvpn_handoff_ring_depth{worker=\"2\"} 7",
		"shardvpn_handoff_ring_capacity 256",
		"shardvpn_uring_submissions_total{worker=\"1\"} 6",
	};
	fill_workers();
	char *text = print(NULL, METRICS_TEXT_004, METRICS_SERVER);
	ASSERT_LINES(text, lines);
	assert_null(strstr(text, "shardvpn_uring_submissions_total{worker=\"2\""));
	assert_null(strstr(text, "shardvpn_peers")); /* no snapshot yet */
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "# UNIT"));
	free(text);
	workers[0].io_engine = "epoll";
	text = print(NULL, METRICS_TEXT_004, METRICS_SERVER);
	assert_null(strstr(text, "uring_"));
	free(text);
}

static void openmetrics_names_families_its_way(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"# TYPE shardvpn_link_received_bytes counter",
		"# UNIT shardvpn_link_received_bytes bytes",
		"# TYPE shardvpn_build info",
		"# TYPE process_cpu_seconds counter",
		"# UNIT process_cpu_seconds seconds",
		"# TYPE shardvpn_peers gauge",
		"shardvpn_peers{state=\"established\"} 2",
	};
	fill_workers();
	struct snapshot *s = snapshot_new(0);
	s->states[PEER_STATE_ESTABLISHED] = 2;
	char *text = print(s, METRICS_OPENMETRICS, METRICS_SERVER);
	ASSERT_LINES(text, lines);
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
	free(s);
}

static void the_control_side_is_in_the_snapshot(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"shardvpn_peers_max 1000",
		"shardvpn_peer_connects_total{proto=\"udp\"} 1",
		"shardvpn_peer_disconnects_total{reason=\"ping_restart\"} 2",
		"shardvpn_peer_floats_total{result=\"rejected\"} 3",
		"shardvpn_handshakes_finished_total{proto=\"udp\",result=\"cert_rejected\"} 4",
		"shardvpn_renegotiations_total{initiator=\"peer\",result=\"ok\"} 5",
		"shardvpn_cookie_checks_total{result=\"issued\"} 6",
		"shardvpn_control_packets_total{direction=\"received\",opcode=\"ack_v1\"} 7",
		"shardvpn_control_packets_total{direction=\"sent\",opcode=\"control_v1\"} 8",
		"shardvpn_control_retransmits_total 9",
		("shardvpn_dropped_packets_total{worker=\"acceptor\",direction=\"ingress\",reason="
		 "\"control_hmac\"} 10"),
		"shardvpn_address_pool_size{family=\"ipv4\"} 11",
		"shardvpn_address_pool_used{family=\"ipv6\"} 12",
		"shardvpn_address_pool_exhausted_total{family=\"ipv4\"} 13",
		"shardvpn_routes{family=\"ipv6\",kind=\"host\"} 14",
		"shardvpn_tun_steering_info{mode=\"ebpf\"} 1",
		"shardvpn_tun_steering_errors_total 17",
		"shardvpn_socket_receive_drops_total{worker=\"acceptor\"} 18",
		"shardvpn_socket_receive_drops_total{worker=\"1\"} 19",
		"shardvpn_tun_queue_drops_total 20",
		"shardvpn_certificate_not_after_timestamp_seconds{role=\"server\"} 15",
		"shardvpn_config_last_reload_successful 0",
		"shardvpn_config_last_reload_success_timestamp_seconds 16",
		"shardvpn_handshake_duration_seconds_bucket{phase=\"total\",le=\"0.005\"} 1",
		"shardvpn_handshake_duration_seconds_bucket{phase=\"total\",le=\"0.01\"} 1",
		"shardvpn_handshake_duration_seconds_bucket{phase=\"total\",le=\"30.0\"} 3",
		"shardvpn_handshake_duration_seconds_bucket{phase=\"total\",le=\"+Inf\"} 6",
		"shardvpn_handshake_duration_seconds_count{phase=\"total\"} 6",
		"shardvpn_handshake_duration_seconds_sum{phase=\"total\"} 12.000345",
	};
	struct snapshot *s = snapshot_new(0);
	struct control_counters *c = &s->control;
	s->max_clients = 1000;
	c->connects = 1;
	c->disconnect_ping_restart = 2;
	c->floats_rejected = 3;
	c->handshakes_cert_rejected = 4;
	c->renegotiations_peer_ok = 5;
	c->cookies_issued = 6;
	c->control_received[5] = 7;
	c->control_sent[4] = 8;
	c->control_retransmits = 9;
	c->drops[DROP_CONTROL_HMAC] = 10;
	s->pool4_size = 11;
	s->pool6_used = 12;
	c->pool4_exhausted = 13;
	s->routes6 = 14;
	s->cert_not_after_s = 15;
	s->is_reload_failed = true;
	s->reloaded_s = 16;
	s->is_tun_steered = true;
	c->tun_steering_errors = 17;
	s->socket_drops[0] = 18;
	s->socket_drops[1] = 19;
	s->tun_queue_drops = 20;
	c->handshake_buckets[0] = 1;
	c->handshake_buckets[11] = 2;
	c->handshake_buckets[12] = 3;
	c->handshake_sum_us = 12000345;
	fill_workers();
	char *text = print(s, METRICS_TEXT_004, METRICS_SERVER);
	ASSERT_LINES(text, lines);
	assert_null(strstr(text, "crl_next_update")); /* no CRL */
	free(text);
	s->is_tun_steered = false;
	text = print(s, METRICS_TEXT_004, METRICS_SERVER);
	assert_non_null(strstr(text, "\nshardvpn_tun_steering_info{mode=\"automatic\"} 1\n"));
	free(text);
	free(s);
}

static void names_of_clients_are_escaped(void **state)
{
	(void)state;
	static const struct {
		const char *name, *printed;
	} table[] = {
		{"plain", "plain"},
		{"", ""},
		{"a\"b", "a\\\"b"},
		{"a\\b", "a\\\\b"},
		{"a\nb", "a\\nb"},
		{"a{b}=,c", "a{b}=,c"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\xe4x", "?x"},	      /* Latin-1 */
		{"\xc3", "?"},		      /* cut short */
		{"\xe2\x82", "??"},	      /* cut short */
		{"\xc0\xaf", "??"},	      /* overlong */
		{"\xe0\x80\xaf", "???"},      /* overlong */
		{"\xf0\x80\x80\xaf", "????"}, /* overlong */
		{"\xed\xa0\x80", "???"},      /* surrogate */
		{"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
		{"\xf5\x80\x80\x80", "????"},
		{"\xff\xfe", "??"},
		{"\x80", "?"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char line[256];
		struct snapshot *s = snapshot_new(1);
		snprintf(s->clients[0].common_name, sizeof(s->clients[0].common_name), "%s",
			 table[i].name);
		s->clients[0].received_bytes = 9;
		snprintf(line, sizeof(line),
			 "shardvpn_peer_received_bytes_total{cid=\"0\",common_name=\"%s\"} 9",
			 table[i].printed);
		char *text = print(s, METRICS_TEXT_004, METRICS_PEERS);
		if (!has_line(text, line))
			fail_msg("%s in:\n%s", line, text);
		free(text);
		free(s);
	}
}

static void peers_stand_apart(void **state)
{
	(void)state;
	struct snapshot *s = snapshot_new(3);
	char *server = print(s, METRICS_TEXT_004, METRICS_SERVER);
	char *peers = print(s, METRICS_TEXT_004, METRICS_PEERS);
	assert_null(strstr(server, "client1"));
	assert_true(has_line(peers,
			     "shardvpn_peer_info{cid=\"1\",common_name=\"client1\",virtual_"
			     "address=\"10.8.0.1\",real_address=\"192.0.2.7:1\",cipher=\"AES-"
			     "256-GCM\",worker=\"1\"} 1"));
	assert_null(strstr(peers, "worker_info"));
	free(server);
	free(peers);
	char *none = print(NULL, METRICS_OPENMETRICS, METRICS_PEERS);
	assert_string_equal(none, "# EOF\n");
	free(none);
	free(s);
}

/* operations.md, section 8: a scrape of 10,000 peers takes less than 50 ms; slow machines get more.
 */
static void ten_thousand_peers_are_no_wait(void **state)
{
	(void)state;
	struct timespec begin, end;
	struct snapshot *s = snapshot_new(10000);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	free(print(s, METRICS_TEXT_004, METRICS_PEERS));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	print_message("# 10000 peers: %ld ms\n", ms);
	assert_in_range(ms, 0, 500);
	free(s);
}

static const char check[] =
	"/usr/bin/python3 -c \"\n"
	"import sys\n"
	"try:\n"
	"    from prometheus_client.parser import text_string_to_metric_families as plain\n"
	"    from prometheus_client.openmetrics.parser import text_string_to_metric_families as "
	"om\n"
	"except ImportError:\n"
	"    sys.exit(0)\n"
	"parse = om if sys.argv[1] == 'om' else plain\n"
	"sys.exit(len(list(parse(sys.stdin.read()))) != int(sys.argv[2]))\n"
	"\" %s %u";

static void assert_parses(const struct snapshot *s, enum metrics_format f, enum metrics_scope scope)
{
	char command[sizeof(check) + 32];
	char *text = print(s, f, scope);
	unsigned families = 0;
	for (const char *p = text; (p = strstr(p, "# TYPE ")) != NULL; p++)
		families++;
	snprintf(command, sizeof(command), check, f == METRICS_OPENMETRICS ? "om" : "plain",
		 families);
	FILE *pipe = popen(command, "w");
	assert_non_null(pipe);
	assert_true(fputs(text, pipe) >= 0);
	assert_int_equal(pclose(pipe), 0);
	free(text);
}

/* Where python3-prometheus-client is installed, it reads every family. */
static void prometheus_reads_it(void **state)
{
	(void)state;
	struct snapshot *s = snapshot_new(3);
	snprintf(s->clients[0].common_name, sizeof(s->clients[0].common_name), "a\"\\\n\xff,}b");
	s->cert_not_after_s = s->crl_next_update_s = 1796066725;
	fill_workers();
	if (access("/usr/bin/python3", X_OK) == 0) {
		assert_parses(s, METRICS_TEXT_004, METRICS_SERVER);
		assert_parses(s, METRICS_TEXT_004, METRICS_PEERS);
		assert_parses(s, METRICS_OPENMETRICS, METRICS_SERVER);
		assert_parses(s, METRICS_OPENMETRICS, METRICS_PEERS);
	}
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_have_a_series_each),
		cmocka_unit_test(openmetrics_names_families_its_way),
		cmocka_unit_test(the_control_side_is_in_the_snapshot),
		cmocka_unit_test(names_of_clients_are_escaped),
		cmocka_unit_test(peers_stand_apart),
		cmocka_unit_test(ten_thousand_peers_are_no_wait),
		cmocka_unit_test(prometheus_reads_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
