/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/admin/metrics_families.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct number_text {
	char text[16];
};

static struct number_text number(unsigned n)
{
	struct number_text t;
	snprintf(t.text, sizeof(t.text), "%u", n);
	return t;
}

static uint64_t field(const struct metrics_worker *w, size_t offset)
{
	uint64_t value;
	memcpy(&value, (const char *)&w->counters + offset, sizeof(value));
	return value;
}

/* A family that is one field of the counters, with at most one label besides the worker. */
struct simple {
	const char *name;
	enum metric_type type;
	const char *unit, *help; /* help NULL: another series of the family before */
	struct label label;
	size_t offset;
	enum { ALL_WORKERS, URING_WORKERS } who;
};

#define FIELD(f) offsetof(struct counters, f)
#define NO_LABEL                                                                                   \
	{                                                                                          \
		NULL, NULL                                                                         \
	}
#define UDP                                                                                        \
	{                                                                                          \
		"proto", "udp"                                                                     \
	}
#define PACKETS METRIC_COUNTER, NULL
#define BYTES	METRIC_COUNTER, "bytes"
#define PLAIN	METRIC_COUNTER, NULL
#define GAUGE	METRIC_GAUGE, NULL

static const struct simple simples[] = {
	{"shardvpn_worker_peers", GAUGE, "Clients that the worker owns.", NO_LABEL, FIELD(peers),
	 0},
	{"shardvpn_worker_turns", PLAIN, "Turns of the worker's loop.", NO_LABEL, FIELD(turns), 0},
	{"shardvpn_worker_wakeups",
	 PLAIN,
	 "Ends of a wait, by cause.",
	 {"cause", "io"},
	 FIELD(wakeups[WAKE_IO]),
	 0},
	{"shardvpn_worker_wakeups", PLAIN, NULL, {"cause", "timer"}, FIELD(wakeups[WAKE_TIMER]), 0},
	{"shardvpn_worker_wakeups",
	 PLAIN,
	 NULL,
	 {"cause", "message"},
	 FIELD(wakeups[WAKE_MESSAGE]),
	 0},
	{"shardvpn_worker_system_calls", PLAIN, "System calls of the data path.", NO_LABEL,
	 FIELD(system_calls), 0},
	{"shardvpn_link_received_packets", PACKETS, "Datagrams from clients.", UDP,
	 FIELD(link_received_packets), 0},
	{"shardvpn_link_received_bytes", BYTES, "Bytes of datagrams from clients.", UDP,
	 FIELD(link_received_bytes), 0},
	{"shardvpn_link_sent_packets", PACKETS, "Datagrams to clients.", UDP,
	 FIELD(link_sent_packets), 0},
	{"shardvpn_link_sent_bytes", BYTES, "Bytes of datagrams to clients.", UDP,
	 FIELD(link_sent_bytes), 0},
	{"shardvpn_tun_read_packets", PACKETS, "Packets from the tun queue.", NO_LABEL,
	 FIELD(tun_read_packets), 0},
	{"shardvpn_tun_read_bytes", BYTES, "Bytes from the tun queue.", NO_LABEL,
	 FIELD(tun_read_bytes), 0},
	{"shardvpn_tun_written_packets", PACKETS, "Packets to the tun queue.", NO_LABEL,
	 FIELD(tun_written_packets), 0},
	{"shardvpn_tun_written_bytes", BYTES, "Bytes to the tun queue.", NO_LABEL,
	 FIELD(tun_written_bytes), 0},
	{"shardvpn_link_received_bursts", PLAIN, "Receives that brought them, merged or not.", UDP,
	 FIELD(link_received_bursts), 0},
	{"shardvpn_link_sent_bursts", PLAIN, "Sends that took them, merged or not.", UDP,
	 FIELD(link_sent_bursts), 0},
	{"shardvpn_udp_gro_segments", PLAIN, "Datagrams that came merged (UDP_GRO).", NO_LABEL,
	 FIELD(udp_gro_segments), 0},
	{"shardvpn_udp_gso_segments", PLAIN, "Datagrams that left merged (UDP_SEGMENT).", NO_LABEL,
	 FIELD(udp_gso_segments), 0},
	{"shardvpn_udp_gso_refused", PLAIN, "Merged sends that the route refused: sent singly.",
	 NO_LABEL, FIELD(bursts_refused), 0},
	{"shardvpn_tun_read_frames", PLAIN, "Frames from the tun queue, super-packets among them.",
	 NO_LABEL, FIELD(tun_read_frames), 0},
	{"shardvpn_tun_written_frames", PLAIN, "Frames to the tun queue, super-packets among them.",
	 NO_LABEL, FIELD(tun_written_frames), 0},
	{"shardvpn_crypto_packets",
	 PACKETS,
	 "Packets sealed and opened.",
	 {"op", "encrypt"},
	 FIELD(sealed_packets),
	 0},
	{"shardvpn_crypto_packets", PACKETS, NULL, {"op", "decrypt"}, FIELD(opened_packets), 0},
	{"shardvpn_crypto_bytes",
	 BYTES,
	 "Bytes sealed and opened.",
	 {"op", "encrypt"},
	 FIELD(sealed_bytes),
	 0},
	{"shardvpn_crypto_bytes", BYTES, NULL, {"op", "decrypt"}, FIELD(opened_bytes), 0},
	{"shardvpn_crypto_batches",
	 PLAIN,
	 "Calls of the AEAD engine.",
	 {"op", "encrypt"},
	 FIELD(seal_batches),
	 0},
	{"shardvpn_crypto_batches", PLAIN, NULL, {"op", "decrypt"}, FIELD(open_batches), 0},
	{"shardvpn_handoff_packets",
	 PACKETS,
	 "Packets passed between workers.",
	 {"direction", "in"},
	 FIELD(handoff_in_packets),
	 0},
	{"shardvpn_handoff_packets",
	 PACKETS,
	 NULL,
	 {"direction", "out"},
	 FIELD(handoff_out_packets),
	 0},
	{"shardvpn_handoff_ring_full", PLAIN, "Packets for which the other's ring had no room.",
	 NO_LABEL, FIELD(handoff_full), 0},
	{"shardvpn_link_receive_errors", PLAIN, "Stray errors on the shared sockets.", NO_LABEL,
	 FIELD(io_receive_errors), 0},
	{"shardvpn_buffers_free", GAUGE, "Packet buffers at home and unused.", NO_LABEL,
	 FIELD(buffers_free), 0},
	{"shardvpn_buffers_exhausted", PLAIN, "Receives for which there was no buffer.", NO_LABEL,
	 FIELD(io_buffers_exhausted), 0},
	{"shardvpn_timers_armed", GAUGE, "Timers that run.", NO_LABEL, FIELD(timers_armed), 0},
	{"shardvpn_uring_submissions", PLAIN, "Requests given to io_uring.", NO_LABEL,
	 FIELD(io_submissions), URING_WORKERS},
	{"shardvpn_uring_completions", PLAIN, "Completions taken from io_uring.", NO_LABEL,
	 FIELD(io_completions), URING_WORKERS},
};

static bool is_shown(const struct simple *s, const struct metrics_worker *w)
{
	return s->who == ALL_WORKERS || strcmp(w->io_engine, "io_uring") == 0;
}

static void simple_print(struct metrics_text *m, const struct metrics_input *in,
			 const struct simple *s)
{
	bool is_any_shown = false;
	for (unsigned i = 0; i < in->worker_count; i++)
		is_any_shown = is_any_shown || is_shown(s, &in->workers[i]);
	if (s->help != NULL && is_any_shown)
		metrics_family(m, s->name, s->type, s->unit, s->help);
	for (unsigned i = 0; i < in->worker_count; i++) {
		struct number_text worker = number(i + 1);
		const struct label labels[] = {{"worker", worker.text}, s->label};
		if (is_shown(s, &in->workers[i]))
			metrics_integer(m, labels, s->label.name != NULL ? 2 : 1,
					field(&in->workers[i], s->offset));
	}
}

static void info(struct metrics_text *m, const struct metrics_input *in)
{
	metrics_family(m, "shardvpn_worker", METRIC_INFO, NULL,
		       "Where a worker runs, and on what.");
	for (unsigned i = 0; i < in->worker_count; i++) {
		const struct metrics_worker *w = &in->workers[i];
		struct number_text worker = number(i + 1), cpu = number((unsigned)w->cpu);
		const struct label labels[] = {{"worker", worker.text},
					       {"cpu", w->cpu < 0 ? "any" : cpu.text},
					       {"io_engine", w->io_engine},
					       {"aead_engine", w->aead_engine}};
		metrics_integer(m, labels, COUNT(labels), 1);
	}
}

static void seconds(struct metrics_text *m, const struct metrics_input *in, const char *name,
		    const char *help, size_t offset)
{
	metrics_family(m, name, METRIC_COUNTER, "seconds", help);
	for (unsigned i = 0; i < in->worker_count; i++) {
		struct number_text worker = number(i + 1);
		metrics_seconds(m, &(struct label){"worker", worker.text}, 1,
				field(&in->workers[i], offset));
	}
}

static void drops_of(const struct metrics_text *m, const uint64_t *numbers, const char *worker,
		     const char *direction)
{
	for (unsigned d = DROP_NONE + 1; d < DROP_COUNT; d++) {
		const struct label labels[] = {{"worker", worker},
					       {"direction", direction},
					       {"reason", drop_name((enum drop)d)}};
		metrics_integer(m, labels, COUNT(labels), numbers[d]);
	}
}

/* Those of the acceptor too: a reader sums them all. */
static void drops(struct metrics_text *m, const struct metrics_input *in)
{
	static_assert(DROP_COUNT <= COUNT(in->snapshot->control.drops),
		      "a counter for each reason");
	metrics_family(m, "shardvpn_dropped_packets", METRIC_COUNTER, NULL,
		       "Packets that were dropped, by reason.");
	if (in->snapshot != NULL)
		drops_of(m, in->snapshot->control.drops, "acceptor", "ingress");
	for (unsigned i = 0; i < in->worker_count; i++) {
		const struct counters *c = &in->workers[i].counters;
		struct number_text worker = number(i + 1);
		drops_of(m, c->drops[DIRECTION_INGRESS], worker.text, "ingress");
		drops_of(m, c->drops[DIRECTION_EGRESS], worker.text, "egress");
	}
}

/* What the kernel lost before anybody here saw it. */
static void queues(struct metrics_text *m, const struct metrics_input *in)
{
	if (in->snapshot == NULL)
		return;
	metrics_family(m, "shardvpn_socket_receive_drops", METRIC_COUNTER, NULL,
		       "Datagrams for which a receive buffer had no room (rcvbuf).");
	for (unsigned i = 0; i <= in->worker_count; i++) {
		struct number_text worker = number(i);
		metrics_integer(m, &(struct label){"worker", i == 0 ? "acceptor" : worker.text}, 1,
				in->snapshot->socket_drops[i]);
	}
	metrics_family(m, "shardvpn_tun_queue_drops", METRIC_COUNTER, NULL,
		       "Packets for which the tun device's queues had no room (txqueuelen).");
	metrics_integer(m, NULL, 0, in->snapshot->tun_queue_drops);
}

static void rings(struct metrics_text *m, const struct metrics_input *in)
{
	metrics_family(m, "shardvpn_handoff_ring_depth", METRIC_GAUGE, NULL,
		       "Messages that wait for a worker.");
	for (unsigned i = 0; i < in->worker_count; i++) {
		struct number_text worker = number(i + 1);
		metrics_integer(m, &(struct label){"worker", worker.text}, 1,
				in->workers[i].ring_depth);
	}
	metrics_family(m, "shardvpn_handoff_ring_capacity", METRIC_GAUGE, NULL,
		       "Messages that a ring between two workers holds.");
	metrics_integer(m, NULL, 0, in->ring_capacity);
}

void metrics_workers(struct metrics_text *m, const struct metrics_input *in)
{
	info(m, in);
	seconds(m, in, "shardvpn_worker_busy_seconds", "Time spent working.", FIELD(busy_ns));
	seconds(m, in, "shardvpn_worker_idle_seconds", "Time spent waiting.", FIELD(idle_ns));
	for (size_t i = 0; i < COUNT(simples); i++)
		simple_print(m, in, &simples[i]);
	drops(m, in);
	queues(m, in);
	rings(m, in);
}
