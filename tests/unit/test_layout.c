/* SPDX-License-Identifier: Apache-2.0 */
/* No cache line that two threads write: what one worker owns and another thread's things lie apart.
 * The ends of rings are asserted in mailbox.c, which alone sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crypto/data_key.h"
#include "workers/counters.h"
#include "workers/peer.h"

#define LINE  64
#define PEERS 32

static uintptr_t line_of(const void *p)
{
	return (uintptr_t)p / LINE;
}

/* The acceptor makes peers one after another and gives each to another worker. */
static void peers_share_no_line(void **state)
{
	(void)state;
	static const struct peer_setup setup = {.id = 1};
	struct peer *peers[PEERS];
	for (unsigned i = 0; i < PEERS; i++) {
		peers[i] = peer_new(&setup);
		assert_non_null(peers[i]);
		assert_int_equal((uintptr_t)peers[i] % LINE, 0);
	}
	for (unsigned i = 0; i < PEERS; i++)
		for (unsigned j = 0; j < PEERS; j++) {
			if (i == j)
				continue;
			uintptr_t first = line_of(peers[i]);
			uintptr_t last = line_of((const char *)(peers[i] + 1) - 1);
			assert_true(line_of(peers[j]) < first || line_of(peers[j]) > last);
		}
	for (unsigned i = 0; i < PEERS; i++)
		peer_free(peers[i]);
}

/* Of two workers, side by side, and in a struct that has other fields in front. */
static void published_counters_share_no_line(void **state)
{
	(void)state;
	static struct {
		char front;
		struct counters_shared published;
		char behind;
	} workers[2];
	assert_int_equal(sizeof(struct counters_shared) % LINE, 0);
	for (unsigned w = 0; w < 2; w++) {
		const struct counters_shared *c = &workers[w].published;
		assert_int_equal((uintptr_t)c % LINE, 0);
		assert_true(line_of(&workers[w].front) < line_of(c));
		assert_true(line_of(&workers[w].behind) >= line_of(c + 1));
	}
	assert_true(line_of(&workers[0].published + 1) <= line_of(&workers[1].front));
}

/* A packet of a random peer misses as many lines of its key as it touches: one in each direction.
 */
static void data_key_has_a_line_for_each_direction(void **state)
{
	(void)state;
	static const size_t seal[] = {
		offsetof(struct data_key, seal_schedule), offsetof(struct data_key, seal_from_ms),
		offsetof(struct data_key, seal_iv),	  offsetof(struct data_key, sealed_packets),
		offsetof(struct data_key, sealed_bytes),  offsetof(struct data_key, counter),
		offsetof(struct data_key, head),	  offsetof(struct data_key, cipher),
		offsetof(struct data_key, key_id),	  offsetof(struct data_key, head_len),
	};
	static const size_t open[] = {
		offsetof(struct data_key, open_schedule),
		offsetof(struct data_key, open_iv),
		offsetof(struct data_key, opened_packets),
		offsetof(struct data_key, opened_bytes),
		offsetof(struct data_key, open_cipher),
		offsetof(struct data_key, is_open_ended),
		offsetof(struct data_key, replay.inline_bits),
		offsetof(struct data_key, replay.reap_at_ms),
		offsetof(struct data_key, replay.highest),
		offsetof(struct data_key, replay.window),
		offsetof(struct data_key, replay.time_s),
	};
	for (size_t i = 0; i < sizeof(seal) / sizeof(seal[0]); i++)
		assert_int_equal(seal[i] / LINE, 0);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_int_equal(open[i] / LINE, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_share_no_line),
		cmocka_unit_test(published_counters_share_no_line),
		cmocka_unit_test(data_key_has_a_line_for_each_direction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
