/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SWARM_REPORT_H
#define PERF_SWARM_REPORT_H

/* What swarm says: a line a second while it runs, and the report, as text or JSON. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/counts.h"
#include "perf/cpu.h"
#include "perf/histogram.h"
#include "perf/swarm_options.h"

/* All threads' counts at one moment, and what had been spent by then. */
struct swarm_moment {
	uint64_t counts[COUNT_COUNT];
	uint64_t own_overflows; /* of the sockets of our namespace */
	struct cpu_times cpu;
};

/* Slowest and fastest client in percent of an equal share. */
struct swarm_share {
	double up_least, up_most, down_least, down_most;
};

struct swarm_report {
	const struct swarm_options *options;
	const char *aead;
	struct swarm_moment start, ready, begin, end; /* begin, end: of the measuring */
	bool has_data;				      /* begin and end are there */
	struct swarm_share share;
	struct histogram logins, pings; /* us */
	uint64_t total[COUNT_COUNT];	/* of the whole run, warm-up included */
};

/* One line on what happened between two moments; `seconds`: since the start. */
void swarm_progress(const struct swarm_moment *from, const struct swarm_moment *to, double seconds,
		    FILE *out);
void swarm_report_text(const struct swarm_report *r, FILE *out);
/* One line; numbers that are not known are null. */
void swarm_report_json(const struct swarm_report *r, FILE *out);

#endif
