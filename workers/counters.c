/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/counters.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct counters) % sizeof(uint64_t) == 0, "counters are copied as words");
static_assert(sizeof(struct counters) == COUNTERS_WORDS * sizeof(uint64_t),
	      "every word is published");

void counters_publish(const struct counters *local, struct counters_shared *shared)
{
	uint64_t words[COUNTERS_WORDS];

	memcpy(words, local, sizeof(words));
	for (size_t i = 0; i < COUNTERS_WORDS; i++)
		atomic_store_explicit(&shared->words[i], words[i], memory_order_relaxed);
}

void counters_read(struct counters_shared *shared, struct counters *out)
{
	uint64_t words[COUNTERS_WORDS];

	for (size_t i = 0; i < COUNTERS_WORDS; i++)
		words[i] = atomic_load_explicit(&shared->words[i], memory_order_relaxed);
	memcpy(out, words, sizeof(words));
}
