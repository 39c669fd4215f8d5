/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_METRICS_TEXT_H
#define SERVER_ADMIN_METRICS_TEXT_H

/* The two text forms of metrics: Prometheus 0.0.4 and OpenMetrics 1.0.0. They differ in what the
 * TYPE line calls a counter, in units, in the type info, and in the end mark. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum metrics_format { METRICS_TEXT_004, METRICS_OPENMETRICS };
enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO, METRIC_HISTOGRAM };

struct metrics_text {
	FILE *f;
	enum metrics_format format;
	const char *family; /* of the samples that follow, without _total and _info */
	enum metric_type type;
};

/* A label; the value is peer-chosen text at times: it is escaped, and made valid UTF-8. */
struct label {
	const char *name, *value;
};

/* Begin a family: HELP, TYPE and UNIT lines. `name` has no _total or _info; `unit` is the last word
 * of the name if that is a base unit, else NULL. Both texts must live until the next family. */
void metrics_family(struct metrics_text *m, const char *name, enum metric_type type,
		    const char *unit, const char *help);
/* One sample of the family with `count` labels. */
void metrics_integer(const struct metrics_text *m, const struct label *labels, size_t count,
		     uint64_t value);
/* The same for a number of nanoseconds, printed in seconds. */
void metrics_seconds(const struct metrics_text *m, const struct label *labels, size_t count,
		     uint64_t value_ns);
/* A histogram without labels but `label`: `buckets` are not cumulative, the last is above all
 * `bounds` (texts, count - 1 of them). sum_us: microseconds. */
void metrics_histogram(const struct metrics_text *m, struct label label, const uint64_t *buckets,
		       const char *const *bounds, size_t count, uint64_t sum_us);
/* The end of the text. */
void metrics_end(const struct metrics_text *m);

#endif
