/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_thread_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static uint64_t sum(const struct swarm_thread *t, enum count a, enum count b)
{
	return count_read(&t->counts, a) + count_read(&t->counts, b);
}

void swarm_crowd_log_in(struct swarm_thread *t)
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
		swarm_traffic_schedule(t, m);
	}
}

void swarm_crowd_rekey(struct swarm_thread *t)
{
	while (t->started < t->count && t->started - sum(t, COUNT_REKEYED, COUNT_REKEY_FAILED) <
						t->at_once + sum(t, COUNT_FAILED, COUNT_CLOSED)) {
		struct member *m = &t->members[t->started++];
		if (swarm_is_connected(m))
			client_renegotiate(&m->client, &t->world);
		swarm_traffic_schedule(t, m);
	}
}

void swarm_crowd_leave(struct swarm_thread *t)
{
	uint64_t gone = sum(t, COUNT_FAILED, COUNT_CLOSED) + count_read(&t->counts, COUNT_LEFT);

	while (t->started < t->count && t->started < gone + t->at_once) {
		struct member *m = &t->members[t->started++];
		if (swarm_is_connected(m))
			client_leave(&m->client, &t->world);
		swarm_traffic_schedule(t, m);
	}
}
