/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

/* Metrics from counters and snapshot (operations.md, section 2). Thread: observer. */

#include <stddef.h>
#include <stdint.h>

#include "server/admin/metrics_text.h"
#include "server/admin/snapshot.h"
#include "workers/counters.h"

struct observer;

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

enum metrics_scope {
	METRICS_SERVER, /* everything but the clients */
	METRICS_PEERS,	/* series of each client */
};

/* The whole text, allocated; the caller frees it. NULL without memory. */
char *metrics_print(const struct metrics_input *in, enum metrics_format format,
		    enum metrics_scope scope, size_t *len);
/* Read counters and snapshot of a running observer, and print them. NULL without memory. */
char *metrics_of(struct observer *o, enum metrics_format format, enum metrics_scope scope,
		 size_t *len);

#endif
