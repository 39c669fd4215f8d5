/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "workers/buffer.h"

#define COUNT 100

static struct buffer_pool *pool_new(uint32_t count, uint32_t storage)
{
	struct buffer_pool *p = NULL;
	assert_int_equal(buffer_pool_new(7, count, storage, &p), 0);
	return p;
}

static void buffer_is_taken_empty_behind_its_headroom(void **state)
{
	(void)state;
	const uint32_t classes[] = {BUFFER_SMALL, BUFFER_LARGE};
	for (size_t i = 0; i < 2; i++) {
		struct buffer_pool *p = pool_new(COUNT, classes[i]);
		struct buffer *b = buffer_take(p);
		assert_non_null(b);
		assert_int_equal(b->home, 7);
		assert_int_equal(b->cap, classes[i]);
		assert_int_equal(b->len, 0);
		assert_null(b->next);
		assert_int_equal(buffer_headroom(b), BUFFER_HEADROOM);
		b->len = buffer_pool_payload(p);
		assert_int_equal(buffer_tailroom(b), BUFFER_TAILROOM);
		buffer_give(p, b);
		buffer_pool_free(p);
	}
}

static void buffer_large_holds_the_largest_packet(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(2, BUFFER_LARGE);
	assert_true(buffer_pool_payload(p) >= 65535);
	buffer_pool_free(p);
}

static void buffers_do_not_overlap_and_keep_their_ids(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(COUNT, BUFFER_SMALL);
	struct buffer *taken[COUNT];
	for (unsigned i = 0; i < COUNT; i++) {
		taken[i] = buffer_take(p);
		assert_non_null(taken[i]);
		memset(taken[i]->storage, (int)i, taken[i]->cap);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		assert_ptr_equal(buffer_at(p, taken[i]->id), taken[i]);
		for (unsigned at = 0; at < taken[i]->cap; at++)
			assert_int_equal(taken[i]->storage[at], i);
	}
	buffer_pool_free(p);
}

static void buffer_pool_ends_at_its_size(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(3, BUFFER_SMALL);
	assert_int_equal(buffer_pool_size(p), 3);
	struct buffer *b = NULL;
	for (uint32_t left = 3; left > 0; left--) {
		assert_int_equal(buffer_pool_free_count(p), left);
		b = buffer_take(p);
		assert_non_null(b);
	}
	assert_int_equal(buffer_pool_free_count(p), 0);
	assert_null(buffer_take(p));
	buffer_give(p, b);
	assert_ptr_equal(buffer_take(p), b);
	assert_null(buffer_take(p));
	buffer_pool_free(p);
}

static void buffer_given_last_is_taken_first_and_fresh(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(COUNT, BUFFER_SMALL);
	struct buffer *a = buffer_take(p), *b = buffer_take(p);
	a->data += 20;
	a->len = 100;
	a->next = b;
	buffer_give(p, b);
	buffer_give(p, a);
	assert_ptr_equal(buffer_take(p), a);
	assert_int_equal(buffer_headroom(a), BUFFER_HEADROOM);
	assert_int_equal(a->len, 0);
	assert_null(a->next);
	assert_ptr_equal(buffer_take(p), b);
	buffer_pool_free(p);
}

static long resident_kib(void)
{
	struct rusage u;
	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

static void buffer_pool_touches_only_what_is_taken(void **state)
{
	(void)state;
	long before = resident_kib();
	struct buffer_pool *p = pool_new(65535, BUFFER_SMALL); /* 128 MiB */
	for (unsigned i = 0; i < 10000; i++) {
		struct buffer *b = buffer_take(p);
		memset(b->storage, 1, b->cap);
		buffer_give(p, b);
	}
	/* The sanitizer's shadow is an eighth. */
	assert_in_range(resident_kib() - before, 0, 32 * 1024);
	buffer_pool_free(p);
}

static void slices_share_the_storage_of_the_whole(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(1, BUFFER_LARGE);
	struct buffer *whole = buffer_take(p);
	whole->link.listener = 3;
	struct buffer *a = buffer_slice(p, whole, whole->data, 10);
	struct buffer *b = buffer_slice(p, whole, whole->data + 10, 5);
	assert_ptr_equal(b->data, whole->data + 10);
	assert_int_equal(b->len, 5);
	assert_int_equal(b->link.listener, 3);
	assert_ptr_equal(b->whole, whole);
	/* In any order: the storage is free with the last of them. */
	buffer_give(p, a);
	buffer_give(p, whole);
	assert_int_equal(buffer_pool_free_count(p), 0);
	assert_null(buffer_take(p));
	buffer_give(p, b);
	assert_int_equal(buffer_pool_free_count(p), 1);
	buffer_pool_free(p);
}

static void slices_end_and_come_back(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(2, BUFFER_LARGE);
	struct buffer *slices[BUFFER_SLICES];
	struct buffer *whole = buffer_take(p);
	for (unsigned i = 0; i < BUFFER_SLICES; i++) {
		slices[i] = buffer_slice(p, whole, whole->data + i, 1);
		assert_non_null(slices[i]);
	}
	assert_null(buffer_slice(p, whole, whole->data, 1));
	buffer_give(p, slices[7]);
	assert_ptr_equal(buffer_slice(p, whole, whole->data, 1), slices[7]);
	buffer_give(p, whole);
	for (unsigned i = 0; i < BUFFER_SLICES; i++)
		buffer_give(p, slices[i]);
	assert_int_equal(buffer_pool_free_count(p), 2);
	buffer_pool_free(p);
}

static void small_buffers_have_no_slices(void **state)
{
	(void)state;
	struct buffer_pool *p = pool_new(1, BUFFER_SMALL);
	struct buffer *whole = buffer_take(p);
	assert_null(buffer_slice(p, whole, whole->data, 1));
	buffer_give(p, whole);
	buffer_pool_free(p);
}

static void buffer_pool_free_accepts_null(void **state)
{
	(void)state;
	buffer_pool_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_is_taken_empty_behind_its_headroom),
		cmocka_unit_test(buffer_large_holds_the_largest_packet),
		cmocka_unit_test(buffers_do_not_overlap_and_keep_their_ids),
		cmocka_unit_test(buffer_pool_ends_at_its_size),
		cmocka_unit_test(buffer_given_last_is_taken_first_and_fresh),
		cmocka_unit_test(buffer_pool_touches_only_what_is_taken),
		cmocka_unit_test(slices_share_the_storage_of_the_whole),
		cmocka_unit_test(slices_end_and_come_back),
		cmocka_unit_test(small_buffers_have_no_slices),
		cmocka_unit_test(buffer_pool_free_accepts_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
