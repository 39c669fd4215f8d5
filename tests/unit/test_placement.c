/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "server/placement.h"

static struct placement *make(struct slot_table *slots, unsigned workers, uint32_t limit)
{
	struct placement *p;

	slot_table_init(slots, workers);
	assert_int_equal(placement_new(slots, workers, limit, &p), 0);
	return p;
}

static struct place take(struct placement *p)
{
	struct place place;

	assert_int_equal(placement_take(p, &place), 0);
	return place;
}

static void placement_spreads_clients_over_workers(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 3, 1024);

	(void)state;
	for (int i = 0; i < 30; i++) {
		struct place place = take(p);

		assert_int_equal(slot_table_owner(&slots, place.peer_id), place.worker);
	}
	for (unsigned w = 1; w <= 3; w++)
		assert_int_equal(placement_load(p, w), 10);
	placement_free(p);
}

static void placement_gives_the_first_client_the_id_zero(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 1, 512);

	(void)state;
	assert_int_equal(take(p).peer_id, 0);
	assert_int_equal(take(p).peer_id, 1);
	placement_free(p);
}

static void placement_prefers_the_worker_that_lost_clients(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 2, 512);
	struct place first = take(p), second = take(p);

	(void)state;
	assert_int_not_equal(first.worker, second.worker);
	placement_release(p, &second);
	assert_int_equal(take(p).worker, second.worker);
	placement_free(p);
}

/* 256 ids, one a slot: an id comes back only when all others of the worker were used. */
static void placement_reuses_an_id_last_and_with_another_generation(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 1, 256);
	struct place first = take(p), again;

	(void)state;
	placement_release(p, &first);
	for (int i = 0; i < 255; i++)
		assert_int_not_equal(take(p).peer_id, first.peer_id);
	again = take(p);
	assert_int_equal(again.peer_id, first.peer_id);
	assert_int_not_equal(again.generation, first.generation);
	assert_int_not_equal(first.generation, 0);
	placement_free(p);
}

static void placement_hands_out_ids_of_a_slot_in_the_order_of_their_return(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 1, 1024);
	struct place of_slot[4], place;

	(void)state;
	for (int i = 0; i < 1024; i++) {
		place = take(p);
		if (place.peer_id % 256 == 7)
			of_slot[place.peer_id / 256] = place;
	}
	assert_int_equal(placement_take(p, &place), -ENOSPC);
	placement_release(p, &of_slot[2]);
	placement_release(p, &of_slot[0]);
	assert_int_equal(take(p).peer_id, of_slot[2].peer_id);
	assert_int_equal(take(p).peer_id, of_slot[0].peer_id);
	placement_free(p);
}

static void placement_fills_a_chosen_worker_and_then_refuses(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 2, 256);
	struct place place;

	(void)state;
	for (int i = 0; i < 128; i++) {
		assert_int_equal(placement_take_on(p, 2, &place), 0);
		assert_int_equal(place.worker, 2);
		assert_int_equal(slot_table_owner(&slots, place.peer_id), 2);
	}
	assert_int_equal(placement_take_on(p, 2, &place), -ENOSPC);
	/* The full worker does not keep others from being used. */
	assert_int_equal(take(p).worker, 1);
	placement_free(p);
}

static void placement_refuses_when_all_ids_are_out(void **state)
{
	struct slot_table slots;
	struct placement *p = make(&slots, 2, 4);
	struct place place;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(take(p).peer_id < 4);
	assert_int_equal(placement_take(p, &place), -ENOSPC);
	placement_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placement_spreads_clients_over_workers),
		cmocka_unit_test(placement_gives_the_first_client_the_id_zero),
		cmocka_unit_test(placement_prefers_the_worker_that_lost_clients),
		cmocka_unit_test(placement_reuses_an_id_last_and_with_another_generation),
		cmocka_unit_test(placement_hands_out_ids_of_a_slot_in_the_order_of_their_return),
		cmocka_unit_test(placement_fills_a_chosen_worker_and_then_refuses),
		cmocka_unit_test(placement_refuses_when_all_ids_are_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
