/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/source_thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf/pacer.h"
#include "perf/source_outlet.h"
#include "perf/ticks.h"

#define IDLE_NS 10000000u /* a thread looks at the rate at least so often */

struct source_thread {
	struct source_shared *shared;
	pthread_t id;
	bool is_started;
	struct outlet *outlet;
	struct pacer pacer;
	unsigned count, turn, turn_left, flow;
	struct source_target *targets;
	struct inner_flow *flows; /* of all targets */
	struct source_counts counts;
};

static void add(_Atomic uint64_t *to, uint64_t n)
{
	uint64_t v = atomic_load_explicit(to, memory_order_relaxed);
	atomic_store_explicit(to, v + n, memory_order_relaxed);
}

static void set_rate(struct source_thread *t)
{
	double rate = atomic_load_explicit(&t->shared->rate, memory_order_relaxed);

	pacer_set_rate(&t->pacer, rate * t->count / t->shared->options->count);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The bursts of the next call, `due` packets at most; whose turn was cut short goes on first. */
static unsigned gather(struct source_thread *t, unsigned due, struct source_burst *out)
{
	unsigned most = outlet_burst_max(t->outlet), n = 0;

	while (due > 0 && n < OUTLET_BURSTS_MAX) {
		if (t->turn_left == 0) {
			t->turn = t->turn + 1 < t->count ? t->turn + 1 : 0;
			t->turn_left = t->pacer.burst;
		}
		unsigned packets = least(least(due, t->turn_left), most);
		out[n++] = (struct source_burst){&t->targets[t->turn], packets};
		t->turn_left -= packets;
		due -= packets;
	}
	return n;
}

static void send_due(struct source_thread *t, unsigned due)
{
	struct source_burst bursts[OUTLET_BURSTS_MAX];
	unsigned count = gather(t, due, bursts);
	unsigned sent = outlet_send(t->outlet, bursts, count, t->flow);
	unsigned packets = 0, refused = 0;

	for (unsigned i = 0; i < count; i++)
		*(i < sent ? &packets : &refused) += bursts[i].packets;
	t->flow = (t->flow + 1) % t->shared->options->flows;
	pacer_spend(&t->pacer, packets + refused);
	add(&t->counts.packets, packets);
	add(&t->counts.refused, refused);
	add(&t->counts.sends, sent);
}

static void rest(const struct source_thread *t)
{
	uint64_t ns = pacer_wait_ns(&t->pacer);
	const struct timespec wait = {.tv_nsec = (long)(ns < IDLE_NS ? ns : IDLE_NS)};

	nanosleep(&wait, NULL);
}

static void start_pacer(struct source_thread *t)
{
	const struct source_options *o = t->shared->options;
	const struct pacer_limits limits = {
		.receivers = t->count,
		.burst = o->burst,
		.burst_max = o->has_gso ? outlet_burst_max(t->outlet) : SOURCE_BURST_MAX,
		.turn_max = OUTLET_PACKETS_MAX,
		.slack_ns = o->is_fitting ? PACER_SLACK_FIT_NS : PACER_SLACK_NS,
	};

	pacer_init(&t->pacer, &limits, ticks_ns());
}

static void *run(void *arg)
{
	struct source_thread *t = arg;

	start_pacer(t);
	while (!atomic_load_explicit(&t->shared->is_over, memory_order_relaxed)) {
		set_rate(t);
		unsigned due = pacer_due(&t->pacer, ticks_ns());
		if (due > 0)
			send_due(t, due);
		else
			rest(t);
	}
	return NULL;
}

static int make_targets(struct source_thread *t, unsigned index)
{
	const struct source_options *o = t->shared->options;

	t->count = o->count / o->threads + (index < o->count % o->threads);
	t->targets = calloc(t->count, sizeof(*t->targets));
	t->flows = calloc((size_t)t->count * o->flows, sizeof(*t->flows));
	if (!t->targets || !t->flows)
		return -ENOMEM;
	for (unsigned i = 0; i < t->count; i++) {
		struct source_target *to = &t->targets[i];
		to->flows = &t->flows[(size_t)i * o->flows];
		to->stamp.stream = t->shared->stream + index;
		for (unsigned f = 0; f < o->flows; f++)
			to->flows[f] = (struct inner_flow){
				.protocol = o->protocol,
				.source_be32 = o->from_be32,
				.target_be32 = htonl(o->first + index + i * o->threads),
				.source_port = (uint16_t)(INNER_PORT_FIRST + f),
				.target_port = INNER_PORT,
				.tcp_seq = 1,
			};
	}
	return 0;
}

int source_thread_new(struct source_shared *shared, unsigned index, struct source_thread **out)
{
	struct source_thread *t = aligned_alloc(64, (sizeof(*t) + 63) & ~(size_t)63);

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->shared = shared;
	int err = make_targets(t, index);
	if (!err)
		err = outlet_new(shared->options, index, &t->outlet);
	if (!err)
		err = -pthread_create(&t->id, NULL, run, t);
	if (err) {
		fprintf(stderr, "source: thread %u: %s\n", index, strerror(-err));
		source_thread_free(t);
		return err;
	}
	t->is_started = true;
	*out = t;
	return 0;
}

const struct source_counts *source_thread_counts(const struct source_thread *t)
{
	return &t->counts;
}

void source_thread_free(struct source_thread *t)
{
	if (t->is_started)
		pthread_join(t->id, NULL);
	outlet_free(t->outlet);
	free(t->targets);
	free(t->flows);
	free(t);
}
