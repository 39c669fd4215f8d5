/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SWARM_THREAD_H
#define PERF_SWARM_THREAD_H

/* One thread of the swarm: its clients, their logins, their traffic. */

#include <stdatomic.h>

#include "perf/counts.h"
#include "perf/histogram.h"
#include "perf/member.h"
#include "perf/swarm_options.h"

/* What all threads do; main moves on, and never back. */
enum swarm_phase {
	PHASE_LOGIN,
	PHASE_REST, /* connected, silent */
	PHASE_REKEY,
	PHASE_WARMUP,
	PHASE_MEASURE,
	PHASE_DRAIN, /* nothing is sent any more; what is under way still counts */
	PHASE_LEAVE,
	PHASE_END,
};

/* Between main and the threads. */
struct swarm_shared {
	const struct swarm_options *options;
	_Atomic int phase;    /* enum swarm_phase; written by main, relaxed */
	_Atomic double rate;  /* packets a second of all threads, 0: flat out; written by main */
	_Atomic bool is_lost; /* a thread could not go on; written by threads */
};

struct swarm_thread;

/* Make and start thread `index` of options.threads with its share of the clients. Returns 0 or
 * -errno, with a line on stderr. */
__attribute__((warn_unused_result)) int swarm_thread_new(struct swarm_shared *shared,
							 unsigned index, struct swarm_thread **out);
/* Wait for its end, after PHASE_END. */
void swarm_thread_join(struct swarm_thread *t);
void swarm_thread_free(struct swarm_thread *t);

const struct counts *swarm_thread_counts(const struct swarm_thread *t);
/* Name of its AEAD engine. */
const char *swarm_thread_aead(const struct swarm_thread *t);
/* The rest only after swarm_thread_join. Latencies in us. */
const struct histogram *swarm_thread_logins(const struct swarm_thread *t);
const struct histogram *swarm_thread_pings(const struct swarm_thread *t);
const struct member *swarm_thread_members(const struct swarm_thread *t, unsigned *count);

#endif
