/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SWARM_THREAD_STATE_H
#define PERF_SWARM_THREAD_STATE_H

/* The inside of a swarm_thread, for swarm_thread, swarm_crowd and swarm_traffic. */

#include <pthread.h>

#include "perf/downlink.h"
#include "perf/pacer.h"
#include "perf/swarm_thread.h"
#include "perf/uplink.h"

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
	unsigned count;
	struct member *members;
	/* crowd */
	unsigned at_once;
	unsigned started; /* members that began to log in, to renegotiate, or to leave */
	/* traffic */
	uint64_t *due_ms; /* of each member: when it wants to be looked at */
	uint64_t scan_ms;
	struct pacer pacer;
	unsigned turn, turn_left; /* whose burst it is, and how much of it is left */
	struct counts counts;
	struct histogram logins, pings;
};

static inline bool swarm_is_connected(const struct member *m)
{
	return m->client.stage == CLIENT_CONNECTED;
}

/* --- swarm_crowd: what members begin, only so many of them at the same time --- */

void swarm_crowd_log_in(struct swarm_thread *t);
void swarm_crowd_rekey(struct swarm_thread *t);
void swarm_crowd_leave(struct swarm_thread *t);

/* --- swarm_traffic: what members do by the clock, and the data --- */

/* Data flows from now on. */
void swarm_traffic_begin(struct swarm_thread *t);
/* When to look at `m` without input. To be called after whatever may have changed that. */
void swarm_traffic_schedule(struct swarm_thread *t, const struct member *m);
/* Something waits in the member's socket. */
void swarm_traffic_receive(struct swarm_thread *t, struct member *m, uint64_t now_ms);
/* Whatever is due by now: control channels, keepalives, echo requests, data. */
void swarm_traffic_act(struct swarm_thread *t, uint64_t now_ms);
/* How long nothing will be due. */
uint64_t swarm_traffic_wait_ns(const struct swarm_thread *t);

#endif
