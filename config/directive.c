/* SPDX-License-Identifier: Apache-2.0 */
#include "config/directive.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 48 /* longer than every name; longer words are near to none */

static const struct directive table[DIRECTIVE_COUNT] = {
#define DIRECTIVE(id, name, min, max, where, fate, stage, classes, is_inline, action, usage, note) \
	[DIRECTIVE_##id] = {name,	   min,	    max,       WHERE_##where, FATE_##fate,         \
			    STAGE_##stage, classes, is_inline, usage,	      note},
#include "config/directive.def"
#undef DIRECTIVE
};

const struct directive *directive_get(enum directive_id id)
{
	assert(id < DIRECTIVE_COUNT);
	return &table[id];
}

static int compare_name(const void *name, const void *row)
{
	const struct directive *d = row;
	return strcmp(name, d->name);
}

enum directive_id directive_find(const char *name)
{
	const struct directive *d =
		bsearch(name, table, DIRECTIVE_COUNT, sizeof(table[0]), compare_name);
	return d ? (enum directive_id)(d - table) : DIRECTIVE_COUNT;
}

bool directive_is_own(enum directive_id id)
{
	static const enum directive_id own[] = {
		DIRECTIVE_AEAD_ENGINE, DIRECTIVE_DISABLE_FEATURE, DIRECTIVE_HANDSHAKE_THREADS,
		DIRECTIVE_IO_ENGINE,   DIRECTIVE_METRICS,	  DIRECTIVE_METRICS_ALLOW_REMOTE,
		DIRECTIVE_WORKER_CPUS, DIRECTIVE_WORKER_MEMORY,	  DIRECTIVE_WORKERS,
		DIRECTIVE_TEST_CONFIG, DIRECTIVE_BUSY_POLL,	  DIRECTIVE_CLIENT_RATE,
		DIRECTIVE_OFFLOAD,
	};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] == id)
			return true;
	return false;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Edit distance of two words, both at most NAME_MAX_LEN long (Levenshtein, one row kept). */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t b_len = strlen(b);
	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = i + 1;
		for (unsigned j = 0; j < b_len; j++) {
			unsigned above = row[j + 1];
			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[b_len];
}

const char *directive_nearest(const char *name)
{
	size_t len = strlen(name);
	if (len > NAME_MAX_LEN)
		return NULL;
	/* A third of the letters may differ; two in a word of five or six, one in a short one. */
	unsigned best = len < 5 ? 1 : len / 3 > 2 ? (unsigned)(len / 3) : 2;
	const char *nearest = NULL;
	if (best >= len)
		return NULL;
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		size_t other = strlen(table[i].name);
		if ((other > len ? other - len : len - other) > best)
			continue; /* That many edits it takes at least. */
		unsigned d = distance(table[i].name, name);
		if (d < best || (d == best && !nearest)) {
			best = d;
			nearest = table[i].name;
		}
	}
	return nearest;
}
