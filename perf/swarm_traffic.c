/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_thread_state.h"

#include <string.h>

#include "perf/probe.h"
#include "perf/ticks.h"
#include "workers/payload.h"

#define PACKETS_A_TURN 256	 /* sent between two looks at what came */
#define SCAN_MS	       2	 /* between two looks at the clients' deadlines */
#define IDLE_NS	       10000000u /* a thread looks at the phase at least so often */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- deadlines --- */

static bool is_pinging(const struct swarm_thread *t)
{
	return t->world.options->ping_be32 &&
	       (t->phase == PHASE_WARMUP || t->phase == PHASE_MEASURE);
}

void swarm_traffic_schedule(struct swarm_thread *t, const struct member *m)
{
	uint64_t at = client_deadline(&m->client);
	unsigned keepalive_s = t->world.options->keepalive_s;

	if (swarm_is_connected(m) && keepalive_s)
		at = least(at, m->sent_ms + keepalive_s * 1000ull);
	if (swarm_is_connected(m) && is_pinging(t))
		at = least(at, m->probe_at_ms);
	t->due_ms[m - t->members] = at;
}

static void advance(struct swarm_thread *t, struct member *m)
{
	bool was_connected = swarm_is_connected(m);

	client_advance(&m->client, &t->world);
	if (!was_connected && swarm_is_connected(m)) {
		member_address(m, t->world.options);
		m->sent_ms = ticks_ms();
	}
	swarm_traffic_schedule(t, m);
}

static void probe(struct swarm_thread *t, struct member *m, uint64_t now_ms)
{
	unsigned interval_ms = t->world.options->ping_interval_ms;

	probe_send(t->uplink, m, &t->world, t->phase == PHASE_MEASURE, now_ms);
	m->probe_at_ms += interval_ms;
	/* After a stall the beat goes on, nothing is made up for. */
	if (m->probe_at_ms <= now_ms)
		m->probe_at_ms = now_ms + interval_ms;
}

static void keep_alive(struct swarm_thread *t, struct member *m, uint64_t now_ms)
{
	memcpy(uplink_single(t->uplink), payload_ping, PAYLOAD_MAGIC_LEN);
	(void)uplink_send_single(t->uplink, m, PAYLOAD_MAGIC_LEN, now_ms);
}

static void serve(struct swarm_thread *t, struct member *m, uint64_t now_ms)
{
	unsigned keepalive_s = t->world.options->keepalive_s;

	if (client_deadline(&m->client) <= now_ms)
		advance(t, m);
	if (!swarm_is_connected(m))
		return;
	if (is_pinging(t) && m->probe_at_ms <= now_ms)
		probe(t, m, now_ms);
	if (keepalive_s && m->sent_ms + keepalive_s * 1000ull <= now_ms)
		keep_alive(t, m, now_ms);
	swarm_traffic_schedule(t, m);
}

static void scan(struct swarm_thread *t, uint64_t now_ms)
{
	if (now_ms < t->scan_ms)
		return;
	t->scan_ms = now_ms + SCAN_MS;
	for (unsigned i = 0; i < t->count; i++)
		if (t->due_ms[i] <= now_ms)
			serve(t, &t->members[i], now_ms);
}

/* --- data --- */

void swarm_traffic_receive(struct swarm_thread *t, struct member *m, uint64_t now_ms)
{
	if (m->client.stage == CLIENT_CONNECTING || swarm_is_connected(m))
		if (downlink_receive(t->downlink, m, now_ms))
			advance(t, m);
}

/* The next connected member; NULL if there is none. */
static struct member *next_member(struct swarm_thread *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		t->turn = t->turn + 1 < t->count ? t->turn + 1 : 0;
		if (swarm_is_connected(&t->members[t->turn]))
			return &t->members[t->turn];
	}
	return NULL;
}

/* Whose burst was cut short by the rate goes on first, so that all shares are equal. */
static void send_data(struct swarm_thread *t, uint64_t now_ms, uint64_t now_ns)
{
	unsigned due = pacer_due(&t->pacer, now_ns);

	while (due > 0) {
		struct member *m = &t->members[t->turn];
		if (t->turn_left == 0 || !swarm_is_connected(m)) {
			m = next_member(t);
			t->turn_left = t->pacer.burst;
		}
		if (!m)
			return;
		unsigned n = due < t->turn_left ? due : t->turn_left;
		uplink_send_burst(t->uplink, m, n, now_ms);
		pacer_spend(&t->pacer, n);
		t->turn_left -= n;
		due -= n;
	}
}

static bool is_sending(const struct swarm_thread *t)
{
	return t->world.options->is_sending &&
	       (t->phase == PHASE_WARMUP || t->phase == PHASE_MEASURE);
}

static void set_rate(struct swarm_thread *t)
{
	double rate = atomic_load_explicit(&t->shared->rate, memory_order_relaxed);

	pacer_set_rate(&t->pacer, rate * t->count / t->world.options->clients);
}

void swarm_traffic_begin(struct swarm_thread *t)
{
	const struct swarm_options *o = t->world.options;
	const struct pacer_limits limits = {
		.receivers = t->count,
		.burst = o->burst,
		.burst_max = uplink_burst_max(t->uplink),
		.turn_max = PACKETS_A_TURN,
		.slack_ns = o->fit_to ? PACER_SLACK_FIT_NS : PACER_SLACK_NS,
	};
	uint64_t now_ms = ticks_ms();

	pacer_init(&t->pacer, &limits, ticks_ns());
	for (unsigned i = 0; i < t->count; i++) {
		struct member *m = &t->members[i];
		m->probe_at_ms = now_ms + (uint64_t)i * o->ping_interval_ms / t->count;
		swarm_traffic_schedule(t, m);
	}
}

void swarm_traffic_act(struct swarm_thread *t, uint64_t now_ms)
{
	scan(t, now_ms);
	if (!is_sending(t))
		return;
	set_rate(t);
	send_data(t, now_ms, ticks_ns());
}

uint64_t swarm_traffic_wait_ns(const struct swarm_thread *t)
{
	uint64_t ns = is_pinging(t) ? IDLE_NS / 10 : IDLE_NS;

	return is_sending(t) ? least(ns, pacer_wait_ns(&t->pacer)) : ns;
}
