/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "workers/route_table.h"

static struct ip_addr v4(uint32_t n)
{
	struct ip_addr a = {.family = 4};
	a.bytes[0] = 10;
	a.bytes[1] = (uint8_t)(n >> 16);
	a.bytes[2] = (uint8_t)(n >> 8);
	a.bytes[3] = (uint8_t)n;
	return a;
}

static struct ip_addr v6(uint32_t n)
{
	struct ip_addr a = {.family = 6, .bytes = {0xfd}};
	memcpy(&a.bytes[12], &n, 4);
	return a;
}

static struct destination dest(uint32_t id, uint32_t generation)
{
	return (struct destination){.id = id, .generation = generation};
}

/* Bytes in use; 0 with an allocator of a sanitizer, which sees a use after free by itself. */
static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

struct fixture {
	struct route_table *table;
	struct route_reader *reader;
};

static int set_up(void **state)
{
	static struct fixture f;

	*state = &f;
	if (route_table_new(&f.table) != 0)
		return -1;
	return route_reader_new(f.table, &f.reader);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	route_reader_free(f->reader);
	route_table_free(f->table);
	return 0;
}

/* What a reader finds: id << 32 | generation, or -1. */
static int64_t find(struct fixture *f, struct ip_addr a)
{
	struct destination d = {0, 0};

	route_reader_begin(f->reader);
	bool is_found = route_reader_find(f->reader, &a, &d);
	route_reader_end(f->reader);
	return is_found ? (int64_t)d.id << 32 | d.generation : -1;
}

static int add(struct fixture *f, struct ip_addr a, struct destination d)
{
	return route_table_add(f->table, &a, d);
}

static bool remove_from(struct fixture *f, struct ip_addr a, struct destination d)
{
	return route_table_remove(f->table, &a, d);
}

static void empty_table_finds_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(find(f, v4(1)), -1);
	assert_false(remove_from(f, v4(1), dest(1, 1)));
	assert_int_equal(route_table_count(f->table), 0);
	route_table_poll(f->table);
}

static void families_do_not_meet(void **state)
{
	struct fixture *f = *state;
	struct ip_addr a4 = {.family = 4, .bytes = {0xfd, 0, 0, 1}};
	struct ip_addr a6 = {.family = 6, .bytes = {0xfd, 0, 0, 1}};

	assert_int_equal(add(f, a4, dest(1, 1)), 0);
	assert_int_equal(find(f, a6), -1);
	assert_int_equal(add(f, a6, dest(2, 1)), 0);
	assert_int_equal(find(f, a4), INT64_C(1) << 32 | 1);
	assert_int_equal(find(f, a6), INT64_C(2) << 32 | 1);
	assert_int_equal(route_table_count(f->table), 2);
}

static void last_added_destination_has_the_address(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(add(f, v4(9), dest(i, i + 5)), 0);
		assert_int_equal(find(f, v4(9)), (int64_t)i << 32 | (i + 5));
		assert_int_equal(route_table_count(f->table), 1);
	}
}

static void only_the_holder_gives_an_address_up(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, v4(9), dest(3, 1)), 0);
	assert_false(remove_from(f, v4(9), dest(4, 1)));
	assert_false(remove_from(f, v4(9), dest(3, 2))); /* same id, the next holder of it */
	assert_false(remove_from(f, v4(8), dest(3, 1)));
	assert_int_equal(find(f, v4(9)), INT64_C(3) << 32 | 1);

	/* The address has moved on: the old holder's late removal does not take it away. */
	assert_int_equal(add(f, v4(9), dest(7, 2)), 0);
	assert_false(remove_from(f, v4(9), dest(3, 1)));
	assert_int_equal(find(f, v4(9)), INT64_C(7) << 32 | 2);
	assert_true(remove_from(f, v4(9), dest(7, 2)));
	assert_false(remove_from(f, v4(9), dest(7, 2)));
	assert_int_equal(find(f, v4(9)), -1);
	assert_int_equal(route_table_count(f->table), 0);
}

static void table_grows_and_shrinks_with_all_entries_in_place(void **state)
{
	struct fixture *f = *state;
	enum { N = 20000 };

	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(add(f, v4(i), dest(i, 1)), 0);
		assert_int_equal(add(f, v6(i), dest(i, 2)), 0);
	}
	assert_int_equal(route_table_count(f->table), 2 * N);
	for (uint32_t i = 0; i < N; i++)
		assert_true(remove_from(f, i % 2 ? v4(i) : v6(i), dest(i, i % 2 ? 1 : 2)));
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(find(f, v4(i)), i % 2 ? -1 : ((int64_t)i << 32 | 1));
		assert_int_equal(find(f, v6(i)), i % 2 ? ((int64_t)i << 32 | 2) : -1);
	}
	assert_int_equal(route_table_count(f->table), N);
}

/* Addresses that never come again leave nothing behind. */
static void churn_of_strange_addresses_stays_small(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(add(f, v6(i), dest(i, 1)), 0);
	size_t before = 0;
	for (uint32_t i = 0; i < 200000; i++) {
		assert_int_equal(add(f, v4(i), dest(1, i)), 0);
		assert_true(remove_from(f, v4(i), dest(1, i)));
		route_table_poll(f->table);
		if (i == 10000)
			before = heap_bytes();
	}
	assert_true(heap_bytes() < before + 64 * 1024);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(find(f, v6(i)), (int64_t)i << 32 | 1);
	assert_int_equal(route_table_count(f->table), 200);
}

/* While a reader is in its section, nothing that it may have seen is given back. */
static void section_keeps_memory_until_its_end(void **state)
{
	struct fixture *f = *state;
	struct destination d;
	struct ip_addr a = v4(5);

	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(add(f, v4(i), dest(i, 1)), 0);
	for (int i = 0; i < 8; i++)
		route_table_poll(f->table);
	size_t before = heap_bytes();
	route_reader_begin(f->reader);
	assert_true(route_reader_find(f->reader, &a, &d));
	for (uint32_t i = 0; i < 5000; i++)
		assert_true(remove_from(f, v4(i), dest(i, 1)));
	for (int i = 0; i < 8; i++)
		route_table_poll(f->table);
	size_t held = heap_bytes();
	assert_false(route_reader_find(f->reader, &a, &d));
	route_reader_end(f->reader);
	for (int i = 0; i < 8; i++)
		route_table_poll(f->table);
	size_t after = heap_bytes();
	if (before > 0) {
		assert_true(held >= before);
		assert_true(after + 5000 * sizeof(struct destination) < held);
	}
	assert_int_equal(find(f, v4(5)), -1);
}

static void section_keeps_maps_until_its_end(void **state)
{
	struct fixture *f = *state;

	route_reader_begin(f->reader);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(add(f, v4(i), dest(i, 1)), 0);
	for (int i = 0; i < 8; i++)
		route_table_poll(f->table);
	size_t held = heap_bytes();
	route_reader_end(f->reader);
	for (int i = 0; i < 8; i++)
		route_table_poll(f->table);
	/* All maps that were outgrown, the last of them for 8192 pointers. */
	if (held > 0)
		assert_true(heap_bytes() + 8192 * sizeof(void *) < held);
	assert_int_equal(find(f, v4(5)), INT64_C(5) << 32 | 1);
}

static void reader_that_sleeps_holds_nothing_up(void **state)
{
	struct fixture *f = *state;
	struct route_reader *sleeper;

	assert_int_equal(route_reader_new(f->table, &sleeper), 0);
	route_reader_begin(sleeper);
	route_reader_end(sleeper);
	size_t before = 0;
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(add(f, v4(1), dest(i, i)), 0);
		route_table_poll(f->table);
		if (i == 1000)
			before = heap_bytes();
	}
	assert_true(heap_bytes() < before + 16 * 1024);
	route_reader_free(sleeper);
}

static void places_of_readers_are_used_again(void **state)
{
	struct fixture *f = *state;
	struct route_reader *first, *second;

	assert_int_equal(route_reader_new(f->table, &first), 0);
	route_reader_free(first);
	assert_int_equal(route_reader_new(f->table, &second), 0);
	assert_ptr_equal(first, second);
	route_reader_begin(second);
	route_reader_end(second);
	route_reader_free(second);
	route_reader_free(NULL);
}

static void two_tables_are_independent(void **state)
{
	struct fixture *f = *state;
	struct fixture other;

	assert_int_equal(route_table_new(&other.table), 0);
	assert_int_equal(route_reader_new(other.table, &other.reader), 0);
	assert_int_equal(add(f, v4(1), dest(1, 1)), 0);
	assert_int_equal(find(&other, v4(1)), -1);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(add(&other, v4(i), dest(i, 9)), 0);
		route_table_poll(f->table);
	}
	assert_int_equal(find(f, v4(1)), INT64_C(1) << 32 | 1);
	assert_int_equal(route_table_count(f->table), 1);
	route_reader_free(other.reader);
	route_table_free(other.table);
	route_table_free(NULL);
}

/* One writer moves addresses between peers, others read. A destination's id and generation belong
 * together, whatever moment a reader meets. */
#define READERS	  3
#define ADDRESSES 64
#define WRITES	  60000

struct stress {
	struct route_table *table;
	atomic_bool is_over;
};

static uint32_t generation_of(uint32_t id)
{
	return id * 2654435761u ^ 0x5bd1e995u;
}

static void *read_batches(void *arg)
{
	struct stress *s = arg;
	struct route_reader *r;
	uintptr_t faults = 0, found = 0;

	if (route_reader_new(s->table, &r) != 0)
		return (void *)1;
	while (!atomic_load(&s->is_over)) {
		route_reader_begin(r);
		for (uint32_t i = 0; i < ADDRESSES; i++) {
			struct ip_addr a = i % 2 ? v4(i) : v6(i), always = v4(100000);
			struct destination d;
			if (route_reader_find(r, &a, &d)) {
				found++;
				faults += d.generation != generation_of(d.id) ||
					  d.id % ADDRESSES != i;
			}
			/* Moved by growth and rebuilding, replaced all the time, never away. */
			faults += !route_reader_find(r, &always, &d) ||
				  d.generation != generation_of(d.id);
		}
		route_reader_end(r);
	}
	route_reader_free(r);
	return (void *)faults;
}

static void write_for_a_while(struct route_table *t)
{
	uint32_t holder[ADDRESSES] = {0}; /* 0: nobody */
	struct ip_addr always = v4(100000);

	for (uint32_t n = 1; n <= WRITES; n++) {
		uint32_t i = n * 2654435761u >> 16 & (ADDRESSES - 1);
		struct ip_addr a = i % 2 ? v4(i) : v6(i), once = v4(200000 + n);
		uint32_t id = n * ADDRESSES + i;
		if (holder[i] && n % 3 == 0) {
			assert_true(route_table_remove(t, &a,
						       dest(holder[i], generation_of(holder[i]))));
			holder[i] = 0;
		} else {
			assert_int_equal(route_table_add(t, &a, dest(id, generation_of(id))), 0);
			holder[i] = id;
		}
		assert_int_equal(route_table_add(t, &always, dest(n, generation_of(n))), 0);
		assert_int_equal(route_table_add(t, &once, dest(n, n)), 0);
		if (n % 1000 > 500 || n % 2)
			assert_true(route_table_remove(t, &once, dest(n, n)));
		if (n % 4 == 0)
			route_table_poll(t);
	}
}

static void readers_see_whole_destinations_while_one_writes(void **state)
{
	struct fixture *f = *state;
	struct stress s = {.table = f->table};
	struct ip_addr always = v4(100000);
	pthread_t readers[READERS];

	assert_int_equal(route_table_add(f->table, &always, dest(1, generation_of(1))), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_batches, &s), 0);
	write_for_a_while(f->table);
	atomic_store(&s.is_over, true);
	for (int i = 0; i < READERS; i++) {
		void *faults;
		assert_int_equal(pthread_join(readers[i], &faults), 0);
		assert_null(faults);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_table_finds_nothing),
		TEST(families_do_not_meet),
		TEST(last_added_destination_has_the_address),
		TEST(only_the_holder_gives_an_address_up),
		TEST(table_grows_and_shrinks_with_all_entries_in_place),
		TEST(churn_of_strange_addresses_stays_small),
		TEST(section_keeps_memory_until_its_end),
		TEST(section_keeps_maps_until_its_end),
		TEST(reader_that_sleeps_holds_nothing_up),
		TEST(places_of_readers_are_used_again),
		TEST(two_tables_are_independent),
		TEST(readers_see_whole_destinations_while_one_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
