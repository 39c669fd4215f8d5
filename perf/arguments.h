/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_ARGUMENTS_H
#define PERF_ARGUMENTS_H

/* A command line by one table, which is also its --help. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What stands at `offset` in the caller's struct. */
enum argument_kind {
	ARGUMENT_TITLE,	   /* a line of the help, no option */
	ARGUMENT_ON,	   /* bool, set to true */
	ARGUMENT_OFF,	   /* bool, set to false */
	ARGUMENT_NUMBER,   /* unsigned, min..max */
	ARGUMENT_AMOUNT,   /* double, min..max */
	ARGUMENT_TEXT,	   /* const char *, the argument itself */
	ARGUMENT_ADDRESS4, /* uint32_t in network order, from dotted IPv4 */
};

struct argument {
	enum argument_kind kind;
	const char *name;  /* without "--" */
	const char *value; /* its word in the help; NULL for a bool */
	const char *help;
	size_t offset;
	double min, max;
};

#define ARGUMENTS_MAX 48

/* Parse all words into the struct at `out`, which holds the defaults. Returns 0, or -EINVAL after
 * having said on stderr what is wrong. *wants_help: --help was among them. */
__attribute__((warn_unused_result)) int arguments_parse(const struct argument *table, size_t count,
							int argc, char **argv, void *out,
							bool *wants_help);
void arguments_print(const struct argument *table, size_t count, FILE *to);

#endif
