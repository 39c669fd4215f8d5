/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_METRICS_FAMILIES_H
#define SERVER_ADMIN_METRICS_FAMILIES_H

/* The families by where their numbers come from. */

#include <stdint.h>

#include "server/admin/metrics_text.h"
#include "server/admin/snapshot.h"
#include "workers/counters.h"

/* One worker, read at this moment. */
struct metrics_worker {
	struct counters counters;
	const char *io_engine, *aead_engine;
	int cpu; /* -1: not pinned */
	unsigned ring_depth;
};

struct metrics_input {
	const struct config *config;
	const struct snapshot *snapshot; /* NULL: none yet */
	const struct metrics_worker *workers;
	unsigned worker_count;
	unsigned ring_capacity;
	int64_t start_time_s;
};

/* The process itself: build, memory, CPU, descriptors, allocator. */
void metrics_process(struct metrics_text *m, const struct metrics_input *in);
/* The control side, from the snapshot; nothing without one. */
void metrics_control(struct metrics_text *m, const struct metrics_input *in);
/* The data channel, a series a worker. */
void metrics_workers(struct metrics_text *m, const struct metrics_input *in);
/* Each client. */
void metrics_peers(struct metrics_text *m, const struct metrics_input *in);

#endif
