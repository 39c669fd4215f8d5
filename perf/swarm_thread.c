/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perf/downlink.h"
#include "perf/pacer.h"
#include "perf/probe.h"
#include "perf/ticks.h"
#include "perf/uplink.h"
#include "workers/key_slab.h"
#include "workers/payload.h"

#define EVENTS_MAX     64
#define PACKETS_A_TURN 256	 /* sent between two looks at what came */
#define SCAN_MS	       2	 /* between two looks at the clients' deadlines */
#define WAKE_NS	       500000.0	 /* a paced thread saves up for so long */
#define IDLE_NS	       10000000u /* and looks at the phase at least so often */
#define NEVER	       UINT64_MAX

struct swarm_thread {
	struct swarm_shared *shared;
	pthread_t id;
	bool is_started;
	int epoll;
	enum swarm_phase phase;
	struct credentials credentials;
	struct client_world world;
	struct uplink *uplink;
	struct downlink *downlink;
	struct pacer pacer;
	unsigned burst, wake_packets;
	unsigned count, at_once;
	struct member *members;
	uint64_t *due_ms; /* of each member: when it wants to be looked at */
	uint64_t scan_ms;
	unsigned started;	  /* members that began to log in, to rekey, or to leave */
	unsigned turn, turn_left; /* whose burst it is, and how much of it is left */
	struct counts counts;
	struct histogram logins, pings;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- deadlines --- */

static bool is_connected(const struct member *m)
{
	return m->client.stage == CLIENT_CONNECTED;
}

static bool is_pinging(const struct swarm_thread *t)
{
	return t->world.options->ping_be32 &&
	       (t->phase == PHASE_WARMUP || t->phase == PHASE_MEASURE);
}

static void schedule(struct swarm_thread *t, const struct member *m)
{
	uint64_t at = client_deadline(&m->client);
	unsigned keepalive_s = t->world.options->keepalive_s;

	if (is_connected(m) && keepalive_s)
		at = least(at, m->sent_ms + keepalive_s * 1000ull);
	if (is_connected(m) && is_pinging(t))
		at = least(at, m->probe_at_ms);
	t->due_ms[m - t->members] = at;
}

static void advance(struct swarm_thread *t, struct member *m)
{
	bool was_connected = is_connected(m);

	client_advance(&m->client, &t->world);
	if (!was_connected && is_connected(m)) {
		member_address(m, t->world.options);
		m->sent_ms = ticks_ms();
	}
	schedule(t, m);
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
	if (!is_connected(m))
		return;
	if (is_pinging(t) && m->probe_at_ms <= now_ms)
		probe(t, m, now_ms);
	if (keepalive_s && m->sent_ms + keepalive_s * 1000ull <= now_ms)
		keep_alive(t, m, now_ms);
	schedule(t, m);
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

/* --- logins, renegotiations, goodbyes: so many at the same time --- */

static uint64_t sum(const struct swarm_thread *t, enum count a, enum count b)
{
	return count_read(&t->counts, a) + count_read(&t->counts, b);
}

static void log_in(struct swarm_thread *t)
{
	while (t->started < t->count &&
	       t->started - sum(t, COUNT_CONNECTED, COUNT_FAILED) < t->at_once) {
		struct member *m = &t->members[t->started++];
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = m};
		int err = client_start(&m->client, &t->world);
		if (!err && epoll_ctl(t->epoll, EPOLL_CTL_ADD, m->client.fd, &e) != 0)
			err = -errno;
		if (err) {
			fprintf(stderr, "swarm: client %u: %s\n", m->number, strerror(-err));
			atomic_store(&t->shared->is_lost, true);
			return;
		}
		schedule(t, m);
	}
}

static void rekey(struct swarm_thread *t)
{
	while (t->started < t->count && t->started - sum(t, COUNT_REKEYED, COUNT_REKEY_FAILED) <
						t->at_once + sum(t, COUNT_FAILED, COUNT_CLOSED)) {
		struct member *m = &t->members[t->started++];
		if (is_connected(m))
			client_renegotiate(&m->client, &t->world);
		schedule(t, m);
	}
}

static void leave(struct swarm_thread *t)
{
	uint64_t gone = sum(t, COUNT_FAILED, COUNT_CLOSED) + count_read(&t->counts, COUNT_LEFT);

	while (t->started < t->count && t->started < gone + t->at_once) {
		struct member *m = &t->members[t->started++];
		if (is_connected(m))
			client_leave(&m->client, &t->world);
		schedule(t, m);
	}
}

/* --- data --- */

static void receive(struct swarm_thread *t, struct member *m, uint64_t now_ms)
{
	if (m->client.stage == CLIENT_CONNECTING || is_connected(m))
		if (downlink_receive(t->downlink, m, now_ms))
			advance(t, m);
}

/* The next connected member; NULL if there is none. */
static struct member *next_member(struct swarm_thread *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		t->turn = t->turn + 1 < t->count ? t->turn + 1 : 0;
		if (is_connected(&t->members[t->turn]))
			return &t->members[t->turn];
	}
	return NULL;
}

/* Whose burst was cut short by the rate goes on first, so that all shares are equal. */
static void send_data(struct swarm_thread *t, uint64_t now_ms, uint64_t now_ns)
{
	unsigned due = pacer_due(&t->pacer, now_ns, PACKETS_A_TURN);

	if (due < t->wake_packets && pacer_wait_ns(&t->pacer, t->wake_packets) > 0)
		return;
	while (due > 0) {
		struct member *m = &t->members[t->turn];
		if (t->turn_left == 0 || !is_connected(m)) {
			m = next_member(t);
			t->turn_left = t->burst;
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

/* Bursts are about a millisecond's worth of a client's rate: what a real one's stack would hand
 * over in one go. */
static void set_rate(struct swarm_thread *t)
{
	const struct swarm_options *o = t->world.options;
	double rate = atomic_load_explicit(&t->shared->rate, memory_order_relaxed) * t->count /
		      o->clients;
	unsigned most = uplink_burst_max(t->uplink);
	double each_ms = t->count ? rate / t->count / 1000 : 0;

	if (rate > 0 && rate == t->pacer.rate)
		return;
	pacer_set_rate(&t->pacer, rate);
	t->burst = o->burst && o->burst < most ? o->burst : most;
	if (rate > 0 && !o->burst && each_ms < most)
		t->burst = each_ms < 1 ? 1 : (unsigned)each_ms;
	t->wake_packets = (unsigned)(rate * WAKE_NS / 1e9);
	if (t->wake_packets > PACKETS_A_TURN / 2)
		t->wake_packets = PACKETS_A_TURN / 2;
	if (t->wake_packets < 1)
		t->wake_packets = 1;
}

/* --- phases --- */

static void begin_data(struct swarm_thread *t)
{
	uint64_t now_ms = ticks_ms();
	unsigned interval_ms = t->world.options->ping_interval_ms;

	set_rate(t);
	pacer_init(&t->pacer, t->pacer.rate,
		   t->world.options->fit_to ? PACER_SLACK_FIT_NS : PACER_SLACK_NS, ticks_ns());
	for (unsigned i = 0; i < t->count; i++) {
		t->members[i].probe_at_ms = now_ms + (uint64_t)i * interval_ms / t->count;
		schedule(t, &t->members[i]);
	}
}

static void begin_shares(struct swarm_thread *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct member *m = &t->members[i];
		m->up_from = m->up_bytes;
		m->down_from = m->down_bytes;
	}
}

static void end_shares(struct swarm_thread *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct member *m = &t->members[i];
		m->up_share = m->up_bytes - m->up_from;
		m->down_share = m->down_bytes - m->down_from;
	}
}

static void enter(struct swarm_thread *t, enum swarm_phase phase)
{
	t->phase = phase;
	switch (phase) {
	case PHASE_REKEY:
	case PHASE_LEAVE:
		t->started = 0;
		break;
	case PHASE_WARMUP:
		begin_data(t);
		break;
	case PHASE_MEASURE:
		begin_shares(t);
		break;
	case PHASE_DRAIN:
		end_shares(t);
		break;
	case PHASE_LOGIN:
	case PHASE_REST:
	case PHASE_END:
		break;
	}
}

static void act(struct swarm_thread *t, uint64_t now_ms)
{
	if (t->phase == PHASE_LOGIN)
		log_in(t);
	else if (t->phase == PHASE_REKEY)
		rekey(t);
	else if (t->phase == PHASE_LEAVE)
		leave(t);
	scan(t, now_ms);
	if (!is_sending(t))
		return;
	set_rate(t);
	send_data(t, now_ms, ticks_ns());
}

static struct timespec patience(const struct swarm_thread *t)
{
	uint64_t ns = is_pinging(t) ? IDLE_NS / 10 : IDLE_NS;

	if (is_sending(t))
		ns = least(ns, pacer_wait_ns(&t->pacer, t->wake_packets));
	return (struct timespec){.tv_nsec = (long)ns};
}

static void *run(void *arg)
{
	struct swarm_thread *t = arg;
	struct epoll_event events[EVENTS_MAX];
	enum swarm_phase phase;

	while ((phase = (enum swarm_phase)atomic_load_explicit(
			&t->shared->phase, memory_order_relaxed)) != PHASE_END) {
		if (phase != t->phase)
			enter(t, phase);
		struct timespec wait = patience(t);
		int n = epoll_pwait2(t->epoll, events, EVENTS_MAX, &wait, NULL);
		uint64_t now_ms = ticks_ms();
		for (int i = 0; i < n; i++)
			receive(t, events[i].data.ptr, now_ms);
		act(t, now_ms);
	}
	return NULL;
}

/* --- making --- */

static int make_members(struct swarm_thread *t, unsigned index)
{
	const struct swarm_options *o = t->shared->options;

	t->count = o->clients / o->threads + (index < o->clients % o->threads);
	t->at_once = (o->at_once + o->threads - 1) / o->threads;
	t->members = calloc(t->count, sizeof(*t->members));
	t->due_ms = malloc(t->count * sizeof(*t->due_ms));
	if (!t->members || !t->due_ms)
		return -ENOMEM;
	for (unsigned i = 0; i < t->count; i++) {
		t->due_ms[i] = NEVER;
		if (member_init(&t->members[i], index + i * o->threads, o) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int make_world(struct swarm_thread *t)
{
	const struct swarm_options *o = t->shared->options;
	struct client_world *w = &t->world;

	*w = (struct client_world){
		.options = o,
		.credentials = &t->credentials,
		.counts = &t->counts,
		.logins = &t->logins,
	};
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	int err = t->epoll < 0 ? -errno : credentials_init(&t->credentials, o);
	if (!err)
		err = aead_new(o->aead, &w->aead);
	if (!err)
		err = key_slab_new(t->count * CLIENT_KEYS_MAX, true, &w->slab);
	if (!err)
		err = uplink_new(w, &t->uplink);
	if (!err)
		err = downlink_new(w, &t->pings, &t->downlink);
	return err;
}

int swarm_thread_new(struct swarm_shared *shared, unsigned index, struct swarm_thread **out)
{
	struct swarm_thread *t = aligned_alloc(64, (sizeof(*t) + 63) & ~(size_t)63);

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->shared = shared;
	int err = make_members(t, index);
	if (!err)
		err = make_world(t);
	if (!err)
		err = -pthread_create(&t->id, NULL, run, t);
	if (err) {
		fprintf(stderr, "swarm: thread %u: %s\n", index, strerror(-err));
		swarm_thread_free(t);
		return err;
	}
	t->is_started = true;
	*out = t;
	return 0;
}

void swarm_thread_join(struct swarm_thread *t)
{
	if (t->is_started)
		pthread_join(t->id, NULL);
	t->is_started = false;
}

void swarm_thread_free(struct swarm_thread *t)
{
	for (unsigned i = 0; t->members && i < t->count; i++)
		member_fini(&t->members[i], &t->world);
	free(t->members);
	free(t->due_ms);
	downlink_free(t->downlink);
	uplink_free(t->uplink);
	key_slab_free(t->world.slab);
	aead_free(t->world.aead);
	credentials_fini(&t->credentials);
	if (t->epoll > 0)
		close(t->epoll);
	free(t);
}

const struct counts *swarm_thread_counts(const struct swarm_thread *t)
{
	return &t->counts;
}

const char *swarm_thread_aead(const struct swarm_thread *t)
{
	return aead_name(t->world.aead);
}

const struct histogram *swarm_thread_logins(const struct swarm_thread *t)
{
	return &t->logins;
}

const struct histogram *swarm_thread_pings(const struct swarm_thread *t)
{
	return &t->pings;
}

const struct member *swarm_thread_members(const struct swarm_thread *t, unsigned *count)
{
	*count = t->count;
	return t->members;
}
