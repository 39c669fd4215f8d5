/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/arguments.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/addr.h"

#define HELP_COLUMN 27
#define WORD_HELP   1 /* what getopt_long returns; a table's entry is ENTRY_FIRST + its place */
#define ENTRY_FIRST 256

static bool has_value(enum argument_kind kind)
{
	return kind != ARGUMENT_ON && kind != ARGUMENT_OFF;
}

static bool amount_parse(const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && errno == 0 && isfinite(*out);
}

static bool store_number(const struct argument *a, const char *text, unsigned *to)
{
	uint64_t n;

	if (!number_parse(text, (uint64_t)a->max, &n) || (double)n < a->min)
		return false;
	*to = (unsigned)n;
	return true;
}

static bool store_amount(const struct argument *a, const char *text, double *to)
{
	double v;

	if (!amount_parse(text, &v) || v < a->min || v > a->max)
		return false;
	*to = v;
	return true;
}

static bool store_address(const char *text, uint32_t *to)
{
	struct ip_addr addr;

	if (!ip_addr_parse(text, &addr) || addr.family != 4)
		return false;
	memcpy(to, addr.bytes, sizeof(*to));
	return true;
}

static bool store(const struct argument *a, const char *text, void *at)
{
	switch (a->kind) {
	case ARGUMENT_ON:
	case ARGUMENT_OFF:
		*(bool *)at = a->kind == ARGUMENT_ON;
		return true;
	case ARGUMENT_NUMBER:
		return store_number(a, text, at);
	case ARGUMENT_AMOUNT:
		return store_amount(a, text, at);
	case ARGUMENT_TEXT:
		*(const char **)at = text;
		return true;
	case ARGUMENT_ADDRESS4:
		return store_address(text, at);
	case ARGUMENT_TITLE:
		break;
	}
	return false;
}

static void refuse(const struct argument *a, const char *text)
{
	fprintf(stderr, "--%s: ", a->name);
	if (a->kind == ARGUMENT_ADDRESS4)
		fprintf(stderr, "wants an IPv4 address, not '%s'\n", text);
	else
		fprintf(stderr, "wants a number from %g to %g, not '%s'\n", a->min, a->max, text);
}

static void words_of(const struct argument *table, size_t count, struct option *out)
{
	size_t n = 0;

	assert(count + 2 <= ARGUMENTS_MAX);
	for (size_t i = 0; i < count; i++)
		if (table[i].kind != ARGUMENT_TITLE)
			out[n++] = (struct option){table[i].name, has_value(table[i].kind), NULL,
						   ENTRY_FIRST + (int)i};
	out[n++] = (struct option){"help", 0, NULL, WORD_HELP};
	out[n] = (struct option){0};
}

int arguments_parse(const struct argument *table, size_t count, int argc, char **argv, void *out,
		    bool *wants_help)
{
	struct option words[ARGUMENTS_MAX];
	int ch;

	words_of(table, count, words);
	*wants_help = false;
	while ((ch = getopt_long(argc, argv, "", words, NULL)) != -1) {
		if (ch == WORD_HELP) {
			*wants_help = true;
			continue;
		}
		if (ch < ENTRY_FIRST)
			return -EINVAL;
		const struct argument *a = &table[ch - ENTRY_FIRST];
		if (!store(a, optarg, (char *)out + a->offset)) {
			refuse(a, optarg);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "'%s' is not an option\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

void arguments_print(const struct argument *table, size_t count, FILE *to)
{
	for (size_t i = 0; i < count; i++) {
		const struct argument *a = &table[i];
		if (a->kind == ARGUMENT_TITLE) {
			fprintf(to, " %s\n", a->help);
			continue;
		}
		int used = fprintf(to, "  --%s%s%s", a->name, a->value ? " " : "",
				   a->value ? a->value : "");
		fprintf(to, "%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", a->help);
	}
}
