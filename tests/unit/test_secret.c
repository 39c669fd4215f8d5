/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "crypto/secret.h"
#include "tests/support/skip.h"

static void secret_equal_sees_every_bit(void **state)
{
	(void)state;
	uint8_t a[32], b[32];
	memset(a, 0x5a, sizeof(a));
	memcpy(b, a, sizeof(b));
	assert_true(secret_equal(a, b, sizeof(a)));
	for (size_t bit = 0; bit < 8 * sizeof(b); bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(secret_equal(a, b, sizeof(a)));
		assert_true(secret_equal(a, b, bit / 8));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void secret_wipe_clears_exactly(void **state)
{
	(void)state;
	uint8_t a[5] = {1, 2, 3, 4, 5};
	static const uint8_t expected[] = {1, 0, 0, 0, 5};
	secret_wipe(a + 1, 3);
	assert_memory_equal(a, expected, sizeof(a));
	secret_wipe(NULL, 0);
}

static void secret_random_gives_other_bytes_each_time(void **state)
{
	(void)state;
	uint8_t a[32], b[32];
	assert_int_equal(secret_random(a, sizeof(a)), 0);
	assert_int_equal(secret_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

/* Does the mapping of `p` carry the "do not dump" flag? */
static bool is_kept_out_of_dumps(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool is_in = false, is_kept = false;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long from, to;
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
			is_in = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (is_in && strncmp(line, "VmFlags:", 8) == 0)
			is_kept = strstr(line, " dd") != NULL;
	}
	fclose(f);
	return is_kept;
}

static void secret_alloc_gives_aligned_zeros(void **state)
{
	(void)state;
	static const uint8_t zeros[5000];
	uint8_t *p = secret_alloc(sizeof(zeros));
	assert_non_null(p);
	assert_int_equal((uintptr_t)p % 64, 0);
	assert_memory_equal(p, zeros, sizeof(zeros));
	memset(p, 0xff, sizeof(zeros));
	secret_free(p, sizeof(zeros));
	secret_free(NULL, 0);
}

/* An emulated kernel (qemu-user) does not tell. */
static bool can_see_dump_flags(void)
{
	size_t len = 4096;
	void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	bool is_seen = madvise(p, len, MADV_DONTDUMP) == 0 && is_kept_out_of_dumps(p);
	munmap(p, len);
	return is_seen;
}

static void secret_alloc_keeps_pages_out_of_dumps(void **state)
{
	(void)state;
	if (!can_see_dump_flags())
		SKIP_TEST("the kernel does not tell which pages are dumped");
	uint8_t *p = secret_alloc(100);
	assert_non_null(p);
	assert_true(is_kept_out_of_dumps(p));
	assert_false(is_kept_out_of_dumps(&p));
	secret_free(p, 100);
}

static void secret_alloc_refuses_what_cannot_be(void **state)
{
	(void)state;
	assert_null(secret_alloc(0));
	assert_null(secret_alloc(SIZE_MAX / 2));
}

static void fill_and_leave_early(uint8_t (*key)[16], bool is_early)
{
	WIPE_ON_EXIT(*key);
	memset(*key, 0x77, sizeof(*key));
	if (is_early)
		return;
	(*key)[0] = 1;
}

static void wipe_on_exit_clears_on_every_way_out(void **state)
{
	(void)state;
	static const uint8_t zeros[16];
	uint8_t key[16] = {9};
	fill_and_leave_early(&key, true);
	assert_memory_equal(key, zeros, sizeof(key));
	fill_and_leave_early(&key, false);
	assert_memory_equal(key, zeros, sizeof(key));
}

/* Key 00..0f, input 00..; of the reference implementation. */
static void siphash_gives_the_reference_values(void **state)
{
	(void)state;
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
		{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {2, 0x0d6c8009d9a94f5a},
		{3, 0x85676696d7fb7e2d},  {4, 0xcf2794e0277187b7},  {5, 0x18765564cd99a68d},
		{6, 0xcbc9466e58fee3ce},  {7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462},
		{9, 0x9e0082df0ba9e4b0},  {15, 0xa129ca6149be45e5}, {16, 0x3f2acc7f57c29bdb},
		{63, 0x958a324ceb064572},
	};
	uint8_t key[16], input[64];
	for (unsigned i = 0; i < sizeof(input); i++)
		input[i] = (uint8_t)i;
	memcpy(key, input, sizeof(key));
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_true(secret_siphash(key, input, vectors[i].len) == vectors[i].hash);
	key[15] ^= 1;
	assert_false(secret_siphash(key, input, 15) == vectors[5].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret_equal_sees_every_bit),
		cmocka_unit_test(secret_wipe_clears_exactly),
		cmocka_unit_test(secret_random_gives_other_bytes_each_time),
		cmocka_unit_test(secret_alloc_gives_aligned_zeros),
		cmocka_unit_test(secret_alloc_keeps_pages_out_of_dumps),
		cmocka_unit_test(secret_alloc_refuses_what_cannot_be),
		cmocka_unit_test(wipe_on_exit_clears_on_every_way_out),
		cmocka_unit_test(siphash_gives_the_reference_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
