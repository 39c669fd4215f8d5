/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SEQUENCE_H
#define PERF_SEQUENCE_H

/* Losses by gaps in sequence numbers. A packet that comes late takes its loss back. */

#include <stdbool.h>
#include <stdint.h>

#include "perf/inner.h"

#define SEQUENCE_STREAMS 4 /* senders to one receiver; the oldest makes room */

/* Zeroed is new. One owner. */
struct sequence {
	struct sequence_stream {
		bool is_used;
		uint32_t id;
		uint64_t highest;
	} streams[SEQUENCE_STREAMS];
	unsigned next;
};

/* What a packet changes in the counts: losses found (-1: one taken back). */
struct sequence_change {
	int64_t lost;
	bool is_late;
};

/* The first packet of a stream begins it, wherever it stands. */
struct sequence_change sequence_take(struct sequence *s, const struct inner_stamp *stamp);

#endif
