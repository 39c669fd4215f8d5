/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>

#include "workers/peer.h"

#define LIMIT 1024

static struct link_addr link_v4(const char *addr, uint16_t port, uint16_t listener)
{
	struct link_addr l = {.listener = listener};
	l.remote.in4.sin_family = AF_INET;
	l.remote.in4.sin_port = htons(port);
	inet_pton(AF_INET, addr, &l.remote.in4.sin_addr);
	return l;
}

static struct peer *make(uint32_t id, uint16_t port)
{
	struct peer_setup s = {.id = id, .generation = 1, .link = link_v4("192.0.2.1", port, 0)};
	struct peer *p = peer_new(&s);
	assert_non_null(p);
	return p;
}

static void peer_is_found_by_id_and_by_address(void **state)
{
	(void)state;
	struct peer_table *t;
	assert_int_equal(peer_table_new(LIMIT, &t), 0);
	struct peer *peers[200];
	for (uint32_t i = 0; i < 200; i++) {
		peers[i] = make(i, (uint16_t)(1000 + i));
		assert_int_equal(peer_table_add(t, peers[i]), 0);
	}
	assert_int_equal(peer_table_count(t), 200);
	for (uint32_t i = 0; i < 200; i++) {
		struct link_addr l = link_v4("192.0.2.1", (uint16_t)(1000 + i), 0);
		assert_ptr_equal(peer_find_by_id(t, i), peers[i]);
		assert_ptr_equal(peer_find_by_addr(t, &l), peers[i]);
	}
	struct link_addr other = link_v4("192.0.2.1", 1000, 1);
	assert_null(peer_find_by_addr(t, &other)); /* the same address on another listener */
	for (uint32_t i = 0; i < 200; i++) {
		peer_table_remove(t, peers[i]);
		peer_free(peers[i]);
	}
	assert_int_equal(peer_table_count(t), 0);
	peer_table_free(t);
}

static void peer_table_refuses_taken_and_foreign_ids(void **state)
{
	(void)state;
	struct peer_table *t;
	assert_int_equal(peer_table_new(LIMIT, &t), 0);
	struct peer *a = make(7, 1), *b = make(7, 2), *c = make(LIMIT, 3), *d = make(LIMIT - 1, 4);
	assert_int_equal(peer_table_add(t, a), 0);
	assert_int_equal(peer_table_add(t, b), -EEXIST);
	assert_int_equal(peer_table_add(t, c), -ERANGE);
	assert_int_equal(peer_table_add(t, d), 0);
	assert_null(peer_find_by_id(t, LIMIT));
	assert_null(peer_find_by_id(t, UINT32_MAX));
	peer_table_remove(t, a);
	peer_table_remove(t, d);
	peer_free(a);
	peer_free(b);
	peer_free(c);
	peer_free(d);
	peer_table_free(t);
}

static void peer_that_moved_is_found_at_the_new_address_only(void **state)
{
	(void)state;
	struct peer_table *t;
	assert_int_equal(peer_table_new(LIMIT, &t), 0);
	struct peer *p = make(1, 5000);
	struct link_addr before = p->link, after = link_v4("198.51.100.9", 6000, 0);
	assert_int_equal(peer_table_add(t, p), 0);
	peer_table_move(t, p, &after);
	assert_null(peer_find_by_addr(t, &before));
	assert_ptr_equal(peer_find_by_addr(t, &after), p);
	assert_ptr_equal(peer_find_by_id(t, 1), p);
	peer_table_remove(t, p);
	assert_null(peer_find_by_addr(t, &after));
	peer_free(p);
	peer_table_free(t);
}

static void peer_seals_with_the_newest_key_whose_time_has_come(void **state)
{
	(void)state;
	static const struct {
		uint64_t from[3]; /* of key-ids 0..2; 0: no such key */
		uint64_t now;
		int expected; /* key-id, -1: none */
	} cases[] = {
		{{0, 0, 0}, 100, -1},
		{{50, 0, 0}, 100, 0},
		{{50, 0, 0}, 10, 0},	/* the only key serves before its time */
		{{50, 200, 0}, 100, 0}, /* the new one rests */
		{{50, 200, 0}, 199, 0},
		{{50, 200, 0}, 200, 1}, /* until its time has come */
		{{50, 60, 200}, 100, 1},
		{{200, 150, 300}, 100, 1},     /* before any time has come the oldest serves */
		{{0, 150, 60}, 100, 2},	       /* a wrapped key-id: age decides, not the number */
		{{UINT64_MAX, 0, 0}, 100, -1}, /* there to open only */
		{{UINT64_MAX, 50, UINT64_MAX}, 10, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct data_key keys[3] = {0};
		struct peer *p = make(1, 1);
		for (int k = 0; k < 3; k++) {
			keys[k].seal_from_ms = cases[i].from[k];
			p->keys[k] = cases[i].from[k] ? &keys[k] : NULL;
		}
		struct data_key *expected = cases[i].expected < 0 ? NULL : &keys[cases[i].expected];
		assert_ptr_equal(peer_seal_key(p, cases[i].now), expected);
		assert_ptr_equal(p->seal_key, expected);
		peer_free(p);
	}
}

/* As v4, v6 or mapped, with the clamp of `mssfix 1492 mtu`. */
static struct peer *reached_at(const char *addr, uint16_t mss4)
{
	struct peer_setup s = {.is_v2 = true, .mss4 = mss4, .mss6 = (uint16_t)(mss4 - 20)};
	s.link.remote.in6.sin6_family = AF_INET6;
	if (inet_pton(AF_INET6, addr, &s.link.remote.in6.sin6_addr) != 1)
		s.link = link_v4(addr, 1000, 0);
	struct peer *p = peer_new(&s);
	assert_non_null(p);
	return p;
}

static void peer_path_has_the_headers_of_its_family(void **state)
{
	static const struct {
		const char *addr;
		uint16_t mss4, clamped4;
		uint32_t datagram_max;
	} rows[] = {
		{"192.0.2.1", 1400, 1208, 1272},
		{"::ffff:192.0.2.1", 1400, 1208, 1272},
		{"2001:db8::1", 1380, 1188, 1252},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *p = reached_at(rows[i].addr, rows[i].mss4);
		assert_int_equal(p->path.mss.mss4, rows[i].mss4);
		peer_learn_path(p, 1300, 1000);
		assert_int_equal(p->path.datagram_max, rows[i].datagram_max);
		assert_int_equal(p->path.mss.mss4, rows[i].clamped4);
		assert_int_equal(p->path.mss.mss6, rows[i].clamped4 - 20);
		assert_false(peer_expire_path(p, 1000 + PATH_MTU_EXPIRY_MS - 1));
		assert_true(peer_expire_path(p, 1000 + PATH_MTU_EXPIRY_MS));
		assert_int_equal(p->path.mss.mss4, rows[i].mss4);
		peer_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_is_found_by_id_and_by_address),
		cmocka_unit_test(peer_table_refuses_taken_and_foreign_ids),
		cmocka_unit_test(peer_that_moved_is_found_at_the_new_address_only),
		cmocka_unit_test(peer_seals_with_the_newest_key_whose_time_has_come),
		cmocka_unit_test(peer_path_has_the_headers_of_its_family),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
