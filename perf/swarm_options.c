/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "perf/arguments.h"

#define AT(field) offsetof(struct swarm_options, field)
#define MBIT_MAX  1e6
#define PID_MAX	  4194304
#define NOT_GIVEN (-1.0)

static const struct argument table[] = {
	{ARGUMENT_TITLE, NULL, NULL, "who", 0, 0, 0},
	{ARGUMENT_TEXT, "server", "ADDR", "outer address of the server", AT(server_text), 0, 0},
	{ARGUMENT_NUMBER, "port", "N", "its UDP port (1194)", AT(port), 1, 65535},
	{ARGUMENT_TEXT, "ca", "FILE", "who signed the server's certificate", AT(ca), 0, 0},
	{ARGUMENT_TEXT, "cert", "FILE", "the one certificate of all clients", AT(cert), 0, 0},
	{ARGUMENT_TEXT, "key", "FILE", "its key", AT(key), 0, 0},
	{ARGUMENT_TEXT, "tls-crypt", "FILE", "2048-bit key file (none)", AT(tls_crypt), 0, 0},
	{ARGUMENT_NUMBER, "clients", "M", "(10)", AT(clients), 1, 10000},
	{ARGUMENT_NUMBER, "threads", "T", "(the CPUs it may use)", AT(threads), 1,
	 SWARM_THREADS_MAX},
	{ARGUMENT_NUMBER, "at-once", "N", "handshakes under way at the same time (64)", AT(at_once),
	 1, 10000},
	{ARGUMENT_TITLE, NULL, NULL,
	 "what, once all are connected; none of --up, --down, --ping: keepalives only", 0, 0, 0},
	{ARGUMENT_ON, "connect-only", NULL, "stop when all are connected or have failed",
	 AT(is_connect_only), 0, 0},
	{ARGUMENT_ON, "up", NULL, "send, flat out", AT(is_sending), 0, 0},
	{ARGUMENT_AMOUNT, "up-mbit", "N",
	 "send so much payload, all clients together (0: flat out)", AT(up_mbit_total), 0,
	 MBIT_MAX},
	{ARGUMENT_AMOUNT, "up-mbit-each", "N", "send so much payload, each client",
	 AT(up_mbit_each), 0, MBIT_MAX},
	{ARGUMENT_NUMBER, "fit", "PID",
	 "with --up: as fast as PID's (the server's) sockets lose at most 3 %", AT(fit_to), 1,
	 PID_MAX},
	{ARGUMENT_ON, "down", NULL, "expect data; it is counted in any case", AT(is_receiving), 0,
	 0},
	{ARGUMENT_AMOUNT, "seconds", "S", "of measuring (5)", AT(seconds), 0, 86400},
	{ARGUMENT_AMOUNT, "warmup", "S", "data flows, but is not counted yet (0.5)", AT(warmup), 0,
	 3600},
	{ARGUMENT_NUMBER, "size", "BYTES", "payload of an inner packet, without headers (1400)",
	 AT(size), INNER_STAMP_LEN, INNER_SIZE_MAX},
	{ARGUMENT_ON, "udp", NULL, "inner UDP datagrams to port 9 (default)", AT(is_udp), 0, 0},
	{ARGUMENT_ON, "tcp", NULL, "segments of inner TCP bulk flows to port 9", AT(is_tcp), 0, 0},
	{ARGUMENT_NUMBER, "flows", "F", "of each client (1)", AT(flows), 1, 64},
	{ARGUMENT_NUMBER, "burst", "N",
	 "packets of one client in a row (0: as many as one send takes)", AT(burst), 0,
	 SWARM_BURST_MAX},
	{ARGUMENT_ADDRESS4, "target", "ADDR", "inner destination (the server's inner address)",
	 AT(target_be32), 0, 0},
	{ARGUMENT_ADDRESS4, "ping", "ADDR", "ICMP echo through the tunnel, from each client",
	 AT(ping_be32), 0, 0},
	{ARGUMENT_NUMBER, "ping-interval-ms", "N", "(100)", AT(ping_interval_ms), 1, 60000},
	{ARGUMENT_NUMBER, "ping-size", "BYTES", "ICMP payload (56)", AT(ping_size), INNER_PROBE_MIN,
	 1400},
	{ARGUMENT_NUMBER, "rekey", "S", "each client renegotiates about every S seconds (never)",
	 AT(rekey_s), 5, 86400},
	{ARGUMENT_ON, "rekey-once", NULL, "each client renegotiates once before the measuring",
	 AT(is_rekeying_once), 0, 0},
	{ARGUMENT_NUMBER, "keepalive", "S", "a silent client sends a ping after S s (10; 0: never)",
	 AT(keepalive_s), 0, 3600},
	{ARGUMENT_TITLE, NULL, NULL, "how", 0, 0, 0},
	{ARGUMENT_OFF, "no-gso", NULL, "no UDP_SEGMENT: single datagrams are sent", AT(has_gso), 0,
	 0},
	{ARGUMENT_OFF, "no-gro", NULL, "no UDP_GRO: single datagrams are received", AT(has_gro), 0,
	 0},
	{ARGUMENT_TEXT, "aead", "ENGINE", "auto, openssl or ipsec-mb (auto)", AT(aead_text), 0, 0},
	{ARGUMENT_TITLE, NULL, NULL, "output", 0, 0, 0},
	{ARGUMENT_NUMBER, "cpu-of", "PID", "CPU time of that process (the server) in the report",
	 AT(cpu_of), 1, PID_MAX},
	{ARGUMENT_ON, "json", NULL, "the report as one JSON object, the last line of stdout",
	 AT(is_json), 0, 0},
	{ARGUMENT_ON, "quiet", NULL, "no progress on stderr", AT(is_quiet), 0, 0},
};
#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

void swarm_options_print(FILE *to)
{
	fputs("usage: swarm --server ADDR --ca FILE --cert FILE --key FILE [OPTION...]\n\n"
	      "Many OpenVPN clients in one process: real TLS, then data, without a tun device. "
	      "All\n"
	      "show one certificate, so the server wants duplicate-cn.\n\n",
	      to);
	arguments_print(table, TABLE_COUNT, to);
	fputs("\nExit code: 0 all connected and lived, 1 some did not, 2 could not start, 64 "
	      "usage.\n\n"
	      "What arrives is dropped most cheaply in the server's namespace:\n"
	      "  nft 'table inet swarm { chain sink { type filter hook prerouting priority raw;\n"
	      "       iifname \"tun*\" udp dport 9 counter drop\n"
	      "       iifname \"tun*\" tcp dport 9 counter drop; }; }'\n"
	      "Payload that arrived: the counter's bytes - packets * 28 (UDP) or 40 (TCP), merged\n"
	      "packets being one.\n",
	      to);
}

static int refuse(const char *why)
{
	fprintf(stderr, "swarm: %s\n", why);
	return -EINVAL;
}

static int resolve_server(struct swarm_options *o)
{
	struct ip_addr a;

	if (!ip_addr_parse(o->server_text, &a))
		return refuse("--server wants an IPv4 or IPv6 address");
	if (a.family == 4) {
		o->server.in4.sin_family = AF_INET;
		o->server.in4.sin_port = htons((uint16_t)o->port);
		memcpy(&o->server.in4.sin_addr, a.bytes, 4);
	} else {
		o->server.in6.sin6_family = AF_INET6;
		o->server.in6.sin6_port = htons((uint16_t)o->port);
		memcpy(&o->server.in6.sin6_addr, a.bytes, 16);
	}
	return 0;
}

static int resolve_aead(struct swarm_options *o)
{
	static const char *const names[] = {
		[AEAD_AUTO] = "auto",
		[AEAD_OPENSSL] = "openssl",
		[AEAD_IPSEC_MB] = "ipsec-mb",
	};

	for (int i = 0; i < 3; i++) {
		if (strcmp(names[i], o->aead_text) == 0) {
			o->aead = (enum aead_choice)i;
			return 0;
		}
	}
	return refuse("--aead: auto, openssl or ipsec-mb");
}

static int resolve_rate(struct swarm_options *o)
{
	bool has_total = o->up_mbit_total > NOT_GIVEN, has_each = o->up_mbit_each > NOT_GIVEN;

	if (has_total && has_each)
		return refuse("--up-mbit and --up-mbit-each exclude each other");
	if (has_total)
		o->up_mbit = o->up_mbit_total;
	if (has_each)
		o->up_mbit = o->up_mbit_each * o->clients;
	o->is_sending = o->is_sending || has_total || has_each;
	if (o->fit_to && o->up_mbit > 0)
		return refuse("--fit finds the rate itself: leave --up-mbit out");
	if (o->fit_to && !o->is_sending)
		return refuse("--fit wants --up");
	return 0;
}

static unsigned cpus(void)
{
	cpu_set_t set;
	unsigned n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;

	return n < SWARM_THREADS_MAX ? n : SWARM_THREADS_MAX;
}

static int resolve(struct swarm_options *o)
{
	if (!o->server_text || !o->ca || !o->cert || !o->key)
		return refuse("--server, --ca, --cert and --key are needed");
	if (o->is_tcp && o->is_udp)
		return refuse("--tcp and --udp exclude each other");
	o->protocol = o->is_tcp ? INNER_TCP : INNER_UDP;
	if (!o->threads)
		o->threads = cpus();
	if (o->threads > o->clients)
		o->threads = o->clients;
	int err = resolve_server(o);
	if (!err)
		err = resolve_aead(o);
	return err ? err : resolve_rate(o);
}

int swarm_options_parse(int argc, char **argv, struct swarm_options *out, bool *wants_help)
{
	*out = (struct swarm_options){
		.port = 1194,
		.clients = 10,
		.at_once = 64,
		.up_mbit_total = NOT_GIVEN,
		.up_mbit_each = NOT_GIVEN,
		.seconds = 5,
		.warmup = 0.5,
		.size = 1400,
		.flows = 1,
		.ping_interval_ms = 100,
		.ping_size = 56,
		.keepalive_s = 10,
		.has_gso = true,
		.has_gro = true,
		.aead_text = "auto",
	};
	int err = arguments_parse(table, TABLE_COUNT, argc, argv, out, wants_help);
	return err || *wants_help ? err : resolve(out);
}
