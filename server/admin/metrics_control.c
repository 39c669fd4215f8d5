/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>

#include "crypto/packet.h"
#include "server/admin/metrics_families.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A value by one label's value. */
struct row {
	const char *value;
	uint64_t number;
};

static void by_label(const struct metrics_text *m, const char *name, const struct row *rows,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		metrics_integer(m, &(struct label){name, rows[i].value}, 1, rows[i].number);
}

static void peers(struct metrics_text *m, const struct snapshot *s)
{
	static const char *const names[] = {"handshaking", "authenticating", "established",
					    "closing"};
	static_assert(COUNT(names) == PEER_STATE_COUNT, "a name for each state");
	metrics_family(m, "shardvpn_peers", METRIC_GAUGE, NULL, "Clients, by state.");
	for (size_t i = 0; i < COUNT(names); i++)
		metrics_integer(m, &(struct label){"state", names[i]}, 1, s->states[i]);
	metrics_family(m, "shardvpn_peers_max", METRIC_GAUGE, NULL, "Most clients (max-clients).");
	metrics_integer(m, NULL, 0, s->max_clients);
}

static void connections(struct metrics_text *m, const struct control_counters *c)
{
	const struct row reasons[] = {
		{"exit_notify", c->disconnect_exit_notify},
		{"ping_restart", c->disconnect_ping_restart},
		{"auth_failed", c->disconnect_auth_failed},
		{"tls_error", c->disconnect_tls_error},
		{"replaced", c->disconnect_replaced},
		{"shutdown", c->disconnect_shutdown},
	};
	const struct row floats[] = {{"accepted", c->floats_accepted},
				     {"rejected", c->floats_rejected}};
	metrics_family(m, "shardvpn_peer_connects", METRIC_COUNTER, NULL,
		       "Clients that connected.");
	by_label(m, "proto", &(struct row){"udp", c->connects}, 1);
	metrics_family(m, "shardvpn_peer_disconnects", METRIC_COUNTER, NULL,
		       "Clients that went, by reason.");
	by_label(m, "reason", reasons, COUNT(reasons));
	metrics_family(m, "shardvpn_peer_floats", METRIC_COUNTER, NULL,
		       "Changes of a client's outer address.");
	by_label(m, "result", floats, COUNT(floats));
}

static void handshakes(struct metrics_text *m, const struct control_counters *c)
{
	static const char *const bounds[] = {"0.005", "0.01", "0.025", "0.05", "0.1",  "0.25",
					     "0.5",   "1.0",  "2.5",   "5.0",  "10.0", "30.0"};
	static_assert(COUNT(bounds) == HANDSHAKE_BUCKETS - 1,
		      "a bound for each bucket but the last");
	const struct row results[] = {
		{"ok", c->handshakes_ok},
		{"tls_error", c->handshakes_tls_error},
		{"cert_rejected", c->handshakes_cert_rejected},
		{"auth_failed", c->handshakes_auth_failed},
		{"timeout", c->handshakes_timeout},
		{"pool_empty", c->handshakes_pool_empty},
		{"rejected_limit", c->handshakes_rejected_limit},
	};
	metrics_family(m, "shardvpn_handshakes_started", METRIC_COUNTER, NULL,
		       "First handshakes that began.");
	by_label(m, "proto", &(struct row){"udp", c->handshakes_started}, 1);
	metrics_family(m, "shardvpn_handshakes_finished", METRIC_COUNTER, NULL,
		       "First handshakes that ended, by result.");
	for (size_t i = 0; i < COUNT(results); i++) {
		const struct label labels[] = {{"proto", "udp"}, {"result", results[i].value}};
		metrics_integer(m, labels, 2, results[i].number);
	}
	metrics_family(m, "shardvpn_handshake_duration_seconds", METRIC_HISTOGRAM, "seconds",
		       "From the accepted cookie to keys.");
	metrics_histogram(m, (struct label){"phase", "total"}, c->handshake_buckets, bounds,
			  HANDSHAKE_BUCKETS, c->handshake_sum_us);
}

static void renegotiations(struct metrics_text *m, const struct control_counters *c)
{
	const struct {
		const char *initiator, *result;
		uint64_t number;
	} rows[] = {
		{"local", "ok", c->renegotiations_local_ok},
		{"local", "failed", c->renegotiations_local_failed},
		{"peer", "ok", c->renegotiations_peer_ok},
		{"peer", "failed", c->renegotiations_peer_failed},
	};
	metrics_family(m, "shardvpn_renegotiations", METRIC_COUNTER, NULL,
		       "Key renegotiations, by who began and how they ended.");
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct label labels[] = {{"initiator", rows[i].initiator},
					       {"result", rows[i].result}};
		metrics_integer(m, labels, 2, rows[i].number);
	}
}

static const char *opcode_name(unsigned opcode)
{
	static const char *const names[CONTROL_OPCODES] = {
		[OPCODE_SOFT_RESET_V1] = "soft_reset_v1",
		[OPCODE_CONTROL_V1] = "control_v1",
		[OPCODE_ACK_V1] = "ack_v1",
		[OPCODE_HARD_RESET_CLIENT_V2] = "hard_reset_client_v2",
		[OPCODE_HARD_RESET_SERVER_V2] = "hard_reset_server_v2",
		[OPCODE_HARD_RESET_CLIENT_V3] = "hard_reset_client_v3",
		[OPCODE_CONTROL_WKC_V1] = "control_wkc_v1",
	};
	return names[opcode];
}

static void opcodes(const struct metrics_text *m, const char *direction, const uint64_t *numbers)
{
	for (unsigned i = 0; i < CONTROL_OPCODES; i++) {
		if (opcode_name(i) == NULL)
			continue;
		const struct label labels[] = {{"direction", direction},
					       {"opcode", opcode_name(i)}};
		metrics_integer(m, labels, 2, numbers[i]);
	}
}

static void packets(struct metrics_text *m, const struct control_counters *c)
{
	const struct row cookies[] = {{"issued", c->cookies_issued},
				      {"accepted", c->cookies_accepted},
				      {"rejected", c->cookies_rejected}};
	metrics_family(m, "shardvpn_cookie_checks", METRIC_COUNTER, NULL,
		       "Stateless answers to first packets, and what came back.");
	by_label(m, "result", cookies, COUNT(cookies));
	metrics_family(m, "shardvpn_control_packets", METRIC_COUNTER, NULL,
		       "Control packets, by opcode.");
	opcodes(m, "received", c->control_received);
	opcodes(m, "sent", c->control_sent);
	metrics_family(m, "shardvpn_control_retransmits", METRIC_COUNTER, NULL,
		       "Control packets that were sent again.");
	metrics_integer(m, NULL, 0, c->control_retransmits);
}

static void addresses(struct metrics_text *m, const struct snapshot *s)
{
	const struct row size[] = {{"ipv4", s->pool4_size}, {"ipv6", s->pool6_size}};
	const struct row used[] = {{"ipv4", s->pool4_used}, {"ipv6", s->pool6_used}};
	const struct row exhausted[] = {{"ipv4", s->control.pool4_exhausted},
					{"ipv6", s->control.pool6_exhausted}};
	metrics_family(m, "shardvpn_address_pool_size", METRIC_GAUGE, NULL,
		       "Addresses of the pool.");
	by_label(m, "family", size, 2);
	metrics_family(m, "shardvpn_address_pool_used", METRIC_GAUGE, NULL, "Addresses given out.");
	by_label(m, "family", used, 2);
	metrics_family(m, "shardvpn_address_pool_exhausted", METRIC_COUNTER, NULL,
		       "Clients for whom there was no address.");
	by_label(m, "family", exhausted, 2);
	const struct row routes[] = {{"ipv4", s->routes4}, {"ipv6", s->routes6}};
	metrics_family(m, "shardvpn_routes", METRIC_GAUGE, NULL,
		       "Addresses that lead to a client.");
	for (size_t i = 0; i < COUNT(routes); i++) {
		const struct label labels[] = {{"family", routes[i].value}, {"kind", "host"}};
		metrics_integer(m, labels, 2, routes[i].number);
	}
}

static void steering(struct metrics_text *m, const struct snapshot *s)
{
	metrics_family(
		m, "shardvpn_tun_steering", METRIC_INFO, NULL,
		"Who chooses the queue, and so the worker, of a packet from the tun device.");
	metrics_integer(m, &(struct label){"mode", s->is_tun_steered ? "ebpf" : "automatic"}, 1, 1);
	metrics_family(m, "shardvpn_tun_steering_errors", METRIC_COUNTER, NULL,
		       "Changes of a route that the eBPF program's maps did not take.");
	metrics_integer(m, NULL, 0, s->control.tun_steering_errors);
}

static void reloads(struct metrics_text *m, const struct snapshot *s)
{
	metrics_family(m, "shardvpn_config_last_reload_successful", METRIC_GAUGE, NULL,
		       "Whether certificates, key and CRL that were read last are in use.");
	metrics_integer(m, NULL, 0, !s->is_reload_failed);
	metrics_family(m, "shardvpn_config_last_reload_success_timestamp_seconds", METRIC_GAUGE,
		       "seconds", "When those in use were read, unix time.");
	metrics_integer(m, NULL, 0, (uint64_t)s->reloaded_s);
}

static void certificates(struct metrics_text *m, const struct snapshot *s)
{
	if (s->cert_not_after_s > 0) {
		metrics_family(m, "shardvpn_certificate_not_after_timestamp_seconds", METRIC_GAUGE,
			       "seconds", "When the certificate expires, unix time.");
		metrics_integer(m, &(struct label){"role", "server"}, 1,
				(uint64_t)s->cert_not_after_s);
	}
	if (s->crl_next_update_s > 0) {
		metrics_family(m, "shardvpn_crl_next_update_timestamp_seconds", METRIC_GAUGE,
			       "seconds", "When the CRL should be replaced, unix time.");
		metrics_integer(m, NULL, 0, (uint64_t)s->crl_next_update_s);
	}
}

void metrics_control(struct metrics_text *m, const struct metrics_input *in)
{
	const struct snapshot *s = in->snapshot;
	if (s == NULL)
		return;
	metrics_family(m, "shardvpn_snapshot_timestamp_seconds", METRIC_GAUGE, "seconds",
		       "When the acceptor counted what follows, unix time.");
	metrics_integer(m, NULL, 0, (uint64_t)s->made_s);
	peers(m, s);
	connections(m, &s->control);
	handshakes(m, &s->control);
	renegotiations(m, &s->control);
	packets(m, &s->control);
	addresses(m, s);
	steering(m, s);
	reloads(m, s);
	certificates(m, s);
}
