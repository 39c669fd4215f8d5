/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/packet.h"
#include "workers/key_slab.h"

struct made {
	struct data_key key;
	struct aead_schedule seal, open;
};

static struct aead *aead;

static void make(struct made *m, uint8_t fill, uint32_t window)
{
	static uint64_t bits[REPLAY_WINDOW_MAX / 64];
	struct data_key_material material = {.cipher = CIPHER_AES_256_GCM, .key_id = fill & 7};
	struct data_key_options o = {.peer_id = 5, .replay_window = window, .replay_bits = bits};
	memset(material.seal_key, fill, sizeof(material.seal_key));
	memset(material.open_key, fill, sizeof(material.open_key));
	assert_int_equal(data_key_init(&m->key, aead, &material, &o, &m->seal, &m->open), 0);
}

static bool is_zero(const void *p, size_t len)
{
	const uint8_t *b = p;
	for (size_t i = 0; i < len; i++)
		if (b[i])
			return false;
	return true;
}

/* Seal with the key and open again with the same key, which has equal directions here. */
static enum drop round_trip(struct data_key *k)
{
	uint8_t room[DATA_KEY_HEADROOM + 64 + DATA_KEY_TAILROOM] = {0};
	struct data_segment s = {.data = room + DATA_KEY_HEADROOM, .len = 64};
	data_key_seal(k, aead, &s, 1);
	assert_int_equal(s.drop, DROP_NONE);
	data_key_open(k, aead, &s, 1, 1);
	return s.drop;
}

static void key_slab_takes_schedules_along_and_leaves_zeros(void **state)
{
	(void)state;
	struct key_slab *s;
	struct made m;
	assert_int_equal(key_slab_new(4, false, &s), 0);
	make(&m, 0x11, 64);
	struct data_key *k = key_slab_adopt(s, &m.key);
	assert_non_null(k);
	assert_true(is_zero(&m.seal, sizeof(m.seal)));
	assert_true(is_zero(&m.open, sizeof(m.open)));
	assert_int_equal((uintptr_t)k->seal_schedule % 64, 0);
	assert_int_equal(round_trip(k), DROP_NONE);
	key_slab_drop(s, k, aead);
	key_slab_free(s);
}

static void key_slab_gives_large_windows_their_own_bits(void **state)
{
	(void)state;
	struct key_slab *s;
	struct made a, b;
	assert_int_equal(key_slab_new(2, false, &s), 0);
	make(&a, 1, 1024);
	make(&b, 2, 1024);
	struct data_key *ka = key_slab_adopt(s, &a.key), *kb = key_slab_adopt(s, &b.key);
	assert_ptr_not_equal(ka->replay.bits, kb->replay.bits);
	assert_int_equal(round_trip(ka), DROP_NONE);
	assert_int_equal(round_trip(kb), DROP_NONE);
	key_slab_drop(s, ka, aead);
	key_slab_drop(s, kb, aead);
	key_slab_free(s);
}

static void key_slab_refuses_when_full_and_reuses_places(void **state)
{
	(void)state;
	struct key_slab *s;
	struct made m[3];
	assert_int_equal(key_slab_new(2, false, &s), 0);
	for (unsigned i = 0; i < 3; i++)
		make(&m[i], (uint8_t)i, 64);
	struct data_key *first = key_slab_adopt(s, &m[0].key);
	struct data_key *second = key_slab_adopt(s, &m[1].key);
	assert_non_null(second);
	assert_null(key_slab_adopt(s, &m[2].key));
	assert_int_equal(round_trip(&m[2].key), DROP_NONE); /* untouched by the refusal */
	key_slab_drop(s, first, aead);
	assert_true(is_zero(first, sizeof(*first)));
	assert_ptr_equal(key_slab_adopt(s, &m[2].key), first);
	assert_int_equal(round_trip(first), DROP_NONE);
	key_slab_drop(s, first, aead);
	key_slab_drop(s, second, aead);
	key_slab_free(s);
}

/* Whatever this kernel does with the advice, the slab knows it. */
static void key_slab_knows_its_pages(void **state)
{
	(void)state;
	static const struct {
		uint32_t count;
		bool use_huge_pages;
		bool may_be_huge;
	} rows[] = {{16, true, false}, {8192, false, false}, {8192, true, true}};
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char enabled[128] = "[never]";
	if (f) {
		assert_non_null(fgets(enabled, sizeof(enabled), f));
		fclose(f);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct key_slab *s;
		assert_int_equal(key_slab_new(rows[i].count, rows[i].use_huge_pages, &s), 0);
		enum key_slab_pages pages = key_slab_pages(s);
		if (!rows[i].may_be_huge)
			assert_int_equal(pages, KEY_SLAB_PAGES_PLAIN);
		else if (strstr(enabled, "[never]"))
			assert_int_equal(pages, KEY_SLAB_PAGES_REFUSED);
		else
			assert_in_range(pages, KEY_SLAB_PAGES_HUGE, KEY_SLAB_PAGES_REFUSED);
		key_slab_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_slab_takes_schedules_along_and_leaves_zeros),
		cmocka_unit_test(key_slab_gives_large_windows_their_own_bits),
		cmocka_unit_test(key_slab_refuses_when_full_and_reuses_places),
		cmocka_unit_test(key_slab_knows_its_pages),
	};
	if (aead_new(AEAD_AUTO, &aead) != 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	aead_free(aead);
	return failed;
}
