/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "workers/counters.h"

/* Every word different, so that a swapped or missing one shows. */
static void fill(struct counters *c, uint64_t base)
{
	uint64_t words[COUNTERS_WORDS];

	for (size_t i = 0; i < COUNTERS_WORDS; i++)
		words[i] = base + i;
	memcpy(c, words, sizeof(*c));
}

static void snapshot_has_every_published_field(void **state)
{
	(void)state;
	static struct counters_shared shared;
	struct counters local, seen;

	counters_read(&shared, &seen);
	memset(&local, 0, sizeof(local));
	assert_memory_equal(&seen, &local, sizeof(seen));

	fill(&local, UINT64_C(1) << 40);
	counters_publish(&local, &shared);
	counters_read(&shared, &seen);
	assert_memory_equal(&seen, &local, sizeof(seen));
	assert_int_equal(seen.drops[DIRECTION_EGRESS][DROP_COUNT - 1],
			 (UINT64_C(1) << 40) + COUNTERS_WORDS - 1);
}

static void local_changes_show_only_when_published(void **state)
{
	(void)state;
	static struct counters_shared shared;
	struct counters local = {.turns = 7}, seen;

	counters_publish(&local, &shared);
	local.turns = 8;
	local.wakeups[WAKE_MESSAGE] = 1;
	counters_read(&shared, &seen);
	assert_int_equal(seen.turns, 7);
	assert_int_equal(seen.wakeups[WAKE_MESSAGE], 0);
	counters_publish(&local, &shared);
	counters_read(&shared, &seen);
	assert_int_equal(seen.turns, 8);
	assert_int_equal(seen.wakeups[WAKE_MESSAGE], 1);
}

static void counters_of_two_workers_share_no_cache_line(void **state)
{
	(void)state;
	static struct counters_shared two[2];

	assert_int_equal((uintptr_t)&two[0] % 64, 0);
	assert_int_equal((uintptr_t)&two[1] % 64, 0);
}

#define ROUNDS 20000

static void *publish_rising(void *arg)
{
	struct counters local;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill(&local, i << 20);
		counters_publish(&local, arg);
	}
	return NULL;
}

static void reader_sees_whole_words_that_never_fall(void **state)
{
	(void)state;
	static struct counters_shared shared;
	struct counters seen;
	uint64_t words[COUNTERS_WORDS], last[COUNTERS_WORDS] = {0};
	pthread_t owner;

	assert_int_equal(pthread_create(&owner, NULL, publish_rising, &shared), 0);
	do {
		counters_read(&shared, &seen);
		memcpy(words, &seen, sizeof(words));
		for (size_t i = 0; i < COUNTERS_WORDS; i++) {
			assert_true(words[i] >= last[i]);
			assert_true(words[i] == 0 || (words[i] & 0xfffff) == i);
		}
		memcpy(last, words, sizeof(last));
	} while (words[COUNTERS_WORDS - 1] >> 20 != ROUNDS);
	pthread_join(owner, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshot_has_every_published_field),
		cmocka_unit_test(local_changes_show_only_when_published),
		cmocka_unit_test(counters_of_two_workers_share_no_cache_line),
		cmocka_unit_test(reader_sees_whole_words_that_never_fall),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
