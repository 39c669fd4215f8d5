/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perf/swarm_thread_state.h"
#include "perf/ticks.h"
#include "workers/key_slab.h"

#define EVENTS_MAX 64

/* --- phases --- */

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
		swarm_traffic_begin(t);
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
		swarm_crowd_log_in(t);
	else if (t->phase == PHASE_REKEY)
		swarm_crowd_rekey(t);
	else if (t->phase == PHASE_LEAVE)
		swarm_crowd_leave(t);
	swarm_traffic_act(t, now_ms);
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
		struct timespec wait = {.tv_nsec = (long)swarm_traffic_wait_ns(t)};
		int n = epoll_pwait2(t->epoll, events, EVENTS_MAX, &wait, NULL);
		uint64_t now_ms = ticks_ms();
		for (int i = 0; i < n; i++)
			swarm_traffic_receive(t, events[i].data.ptr, now_ms);
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
		t->due_ms[i] = UINT64_MAX;
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
