/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workers/fair_queue.h"

#define LARGE 16
#define SMALL 600
#define PEERS 3
#define ALL   (1u << 20)

/* A queue of three peers, on a datapath that has nothing but buffers. */
struct scene {
	struct datapath dp;
	struct fair_queue q;
	struct peer *peers[PEERS];
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->dp.index = 1;
	s->dp.now_ms = 1000;
	s->dp.now_ns = 1000000000;
	assert_int_equal(buffer_pool_new(1, LARGE, BUFFER_LARGE, &s->dp.large), 0);
	assert_int_equal(buffer_pool_new(1, SMALL, BUFFER_SMALL, &s->dp.small), 0);
	fair_queue_init(&s->q, &s->dp);
	for (unsigned i = 0; i < PEERS; i++) {
		s->peers[i] = peer_new(&(struct peer_setup){.id = i});
		assert_non_null(s->peers[i]);
	}
	*state = s;
	return 0;
}

/* Whatever a case did: every buffer is home once the peers are forgotten. */
static int tear_down(void **state)
{
	struct scene *s = *state;
	for (unsigned i = 0; i < PEERS; i++) {
		fair_queue_forget(&s->q, s->peers[i]);
		peer_free(s->peers[i]);
	}
	bool is_lost = buffer_pool_free_count(s->dp.large) != LARGE ||
		       buffer_pool_free_count(s->dp.small) != SMALL;
	buffer_pool_free(s->dp.large);
	buffer_pool_free(s->dp.small);
	free(s);
	return is_lost ? -1 : 0;
}

static void add(struct scene *s, unsigned peer, struct buffer_pool *pool, uint32_t len,
		uint8_t mark)
{
	struct buffer *b = buffer_take(pool);
	assert_non_null(b);
	b->len = len;
	b->data[0] = mark;
	fair_queue_add(&s->q, s->peers[peer], b);
}

static void add_many(struct scene *s, unsigned peer, unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		add(s, peer, s->dp.small, len, (uint8_t)i);
}

/* What the next peer may send in its round. */
static uint32_t serve(struct scene *s, struct peer **who)
{
	uint32_t bytes = 0;
	struct buffer *b;
	*who = fair_queue_next(&s->q, ALL);
	if (!*who)
		return 0;
	while ((b = fair_queue_take(&s->q, *who)) != NULL) {
		bytes += b->len;
		datapath_release(&s->dp, b);
	}
	fair_queue_return(&s->q, *who);
	return bytes;
}

static uint64_t drops(const struct scene *s, enum drop why)
{
	return s->dp.count.drops[DIRECTION_EGRESS][why];
}

static void peers_take_turns_of_a_quantum(void **state)
{
	struct scene *s = *state;
	struct peer *who;
	uint32_t sent[PEERS] = {0};
	add_many(s, 0, 100, 1000);
	add_many(s, 1, 100, 500);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t bytes = serve(s, &who);
		assert_ptr_equal(who, s->peers[i % 2]);
		sent[i % 2] += bytes;
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_true(sent[i] >= 2 * FAIR_QUANTUM);
		assert_true(sent[i] <= 2 * FAIR_QUANTUM + 1000);
	}
}

static void packets_of_a_peer_keep_their_order(void **state)
{
	struct scene *s = *state;
	add_many(s, 0, 20, 100);
	struct peer *p = fair_queue_next(&s->q, ALL);
	for (unsigned i = 0; i < 20; i++) {
		struct buffer *b = fair_queue_take(&s->q, p);
		assert_non_null(b);
		assert_int_equal(b->data[0], i);
		datapath_release(&s->dp, b);
	}
	assert_null(fair_queue_take(&s->q, p));
	fair_queue_return(&s->q, p);
	assert_null(fair_queue_next(&s->q, ALL));
}

static void peer_that_is_alone_sends_all(void **state)
{
	struct scene *s = *state;
	struct peer *who;
	add_many(s, 2, 100, 1000);
	assert_int_equal(serve(s, &who), 100000);
	assert_ptr_equal(who, s->peers[2]);
	assert_int_equal(serve(s, &who), 0);
	assert_null(who);
}

/* A super-packet larger than a quantum puts its peer in debt, which it works off. */
static void debt_is_worked_off(void **state)
{
	struct scene *s = *state;
	struct peer *who;
	add(s, 0, s->dp.large, 60000, 0);
	add(s, 0, s->dp.large, 60000, 1);
	add_many(s, 1, 200, 1000);
	unsigned rounds = 0;
	assert_int_equal(serve(s, &who), 60000);
	do {
		uint32_t bytes = serve(s, &who);
		rounds += who == s->peers[1];
		if (who == s->peers[0] && bytes > 0)
			break;
	} while (who);
	assert_int_equal(rounds, 3);
}

static void queue_of_a_peer_is_bounded_by_bytes_from_its_head(void **state)
{
	struct scene *s = *state;
	add_many(s, 0, 300, 1000);
	assert_int_equal(s->peers[0]->queue.bytes, FAIR_PEER_BYTES / 1000 * 1000);
	assert_int_equal(drops(s, DROP_QUEUE_FULL), 300 - FAIR_PEER_BYTES / 1000);
	assert_int_equal(s->peers[0]->queue.first->data[0], 300 - FAIR_PEER_BYTES / 1000);
}

static void what_was_left_over_is_bounded_by_age(void **state)
{
	struct scene *s = *state;
	add_many(s, 0, 3, 100);
	fair_queue_keep(&s->q);
	s->dp.now_ms += FAIR_PEER_MS;
	add(s, 0, s->dp.small, 100, 3);
	assert_int_equal(drops(s, DROP_QUEUE_FULL), 0);
	s->dp.now_ms++;
	add(s, 0, s->dp.small, 100, 4);
	assert_int_equal(drops(s, DROP_QUEUE_FULL), 3);
	assert_int_equal(s->peers[0]->queue.first->data[0], 3);
}

/* Large buffers are what the next packets are received into: waiting packets are copied out of
 * them, and super-packets give way when few are left. */
static void large_buffers_are_not_tied_down(void **state)
{
	struct scene *s = *state;
	add(s, 0, s->dp.small, 100, 0);
	fair_queue_keep(&s->q);
	for (unsigned i = 0; i < 2 * LARGE; i++)
		add(s, 0, s->dp.large, 1000, 1);
	assert_int_equal(buffer_pool_free_count(s->dp.large), LARGE);
	while (buffer_pool_free_count(s->dp.large) > 1)
		add(s, 1, s->dp.large, 10000, 2);
	fair_queue_keep(&s->q);
	add(s, 1, s->dp.large, 10000, 2);
	assert_true(drops(s, DROP_QUEUE_FULL) > 0);
	assert_true(buffer_pool_free_count(s->dp.large) > 0);
}

static void rate_holds_a_peer_back(void **state)
{
	struct scene *s = *state;
	struct peer *who;
	bucket_init(&s->peers[0]->down, 1000000, 2000, s->dp.now_ns);
	add_many(s, 0, 10, 1000);
	assert_int_equal(serve(s, &who), 2000);
	assert_true(s->peers[0]->queue.is_held);
	s->dp.now_ns += 3000000; /* 3000 bytes' time */
	assert_in_range(serve(s, &who), 2000, 3000);
	bucket_init(&s->peers[0]->down, 0, 0, s->dp.now_ns);
	serve(s, &who);
	assert_false(s->peers[0]->queue.is_held);
}

static void forgotten_peer_leaves_the_others_on_the_ring(void **state)
{
	static const unsigned order[] = {1, 0, 2};
	struct scene *s = *state;
	struct peer *who;
	for (unsigned i = 0; i < PEERS; i++)
		add_many(s, i, 2, 100);
	for (unsigned i = 0; i < 2; i++)
		fair_queue_forget(&s->q, s->peers[order[i]]);
	assert_int_equal(drops(s, DROP_PEER_CLOSING), 4);
	assert_int_equal(serve(s, &who), 200);
	assert_ptr_equal(who, s->peers[2]);
	assert_null(fair_queue_next(&s->q, ALL));
	add_many(s, 1, 1, 100);
	assert_int_equal(serve(s, &who), 100);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(peers_take_turns_of_a_quantum),
		CASE(packets_of_a_peer_keep_their_order),
		CASE(peer_that_is_alone_sends_all),
		CASE(debt_is_worked_off),
		CASE(queue_of_a_peer_is_bounded_by_bytes_from_its_head),
		CASE(what_was_left_over_is_bounded_by_age),
		CASE(large_buffers_are_not_tied_down),
		CASE(rate_holds_a_peer_back),
		CASE(forgotten_peer_leaves_the_others_on_the_ring),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
