/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SOURCE_THREAD_H
#define PERF_SOURCE_THREAD_H

/* One thread of source, with its share of the addresses. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "perf/source_options.h"

/* Between main and the threads. */
struct source_shared {
	const struct source_options *options;
	uint32_t stream;     /* of thread 0's stamps; differs from run to run */
	_Atomic double rate; /* packets a second of all threads, 0: flat out */
	_Atomic bool is_over;
};

/* What a thread has sent since its start. Written by it, relaxed; read by main. */
struct source_counts {
	_Alignas(64) _Atomic uint64_t packets;
	_Atomic uint64_t sends; /* datagrams or super-packets handed to the kernel */
	_Atomic uint64_t refused;
};

struct source_thread;

/* Returns 0 or -errno, with a line on stderr. */
__attribute__((warn_unused_result)) int
source_thread_new(struct source_shared *shared, unsigned index, struct source_thread **out);
const struct source_counts *source_thread_counts(const struct source_thread *t);
/* Wait for its end, after is_over, and free it. */
void source_thread_free(struct source_thread *t);

#endif
