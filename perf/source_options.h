/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_SOURCE_OPTIONS_H
#define PERF_SOURCE_OPTIONS_H

/* source's command line. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/inner.h"

#define SOURCE_THREADS_MAX 16
#define SOURCE_BURST_MAX   64
#define SOURCE_FLOWS_MAX   64

/* Immutable once parsed; texts are those of the command line. */
struct source_options {
	uint32_t first, count; /* targets: host order, consecutive */
	uint32_t from_be32;    /* 0: the address of `device` */
	const char *device;
	int device_index;
	enum inner_protocol protocol;
	unsigned size, flows, burst, threads; /* burst 0: as many as one send takes */
	double mbit;			      /* payload, all together; 0: flat out */
	double seconds, warmup;
	bool is_fitting, has_gso, is_json, is_quiet;
	/* As written, for the above: */
	const char *to_text;
	bool is_udp, is_tcp;
};

void source_options_print(FILE *to);
/* Returns 0, or -EINVAL after having said on stderr what is wrong. *wants_help: nothing else is
 * wanted, and `out` is not complete. */
__attribute__((warn_unused_result)) int
source_options_parse(int argc, char **argv, struct source_options *out, bool *wants_help);

#endif
