/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

/* Metrics from counters and snapshot (operations.md, section 2). Thread: observer. */

#include <stddef.h>

#include "server/admin/metrics_families.h"

struct observer;

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
