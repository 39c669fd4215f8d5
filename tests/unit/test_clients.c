/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "server/clients.h"

#define PEER_IDS 512

static struct link_addr at(uint8_t host, uint16_t port)
{
	struct link_addr l = {0};

	l.remote.in4.sin_family = AF_INET;
	l.remote.in4.sin_addr.s_addr = htonl(0xC0000200u + host);
	l.remote.in4.sin_port = htons(port);
	return l;
}

static struct session_id sid(uint8_t n)
{
	return (struct session_id){{n, 1, 2, 3, 4, 5, 6, 7}};
}

static struct client *add(struct clients *t, struct link_addr l, uint8_t own, uint8_t peer)
{
	struct session_id own_sid = sid(own), peer_sid = sid(peer);
	struct client *c = clients_add(t, &l, &own_sid, &peer_sid, 1000u + own);

	assert_non_null(c);
	return c;
}

static void take_away(struct clients *t, struct client *c)
{
	clients_unlink(t, c);
	clients_drop(t, c);
}

static void authenticate(struct clients *t, struct client *c, const char *name)
{
	struct identity identity = {.has_certificate = true};

	assert_int_equal(client_authenticate(t, c, name, "", &identity), 0);
	client_set_stage(t, c, CLIENT_CONNECTING);
}

static struct client *find(struct clients *t, struct link_addr l, uint8_t peer)
{
	struct session_id peer_sid = sid(peer);

	return clients_find(t, &l, &peer_sid);
}

static bool is_live(struct clients *t, uint8_t own)
{
	struct session_id own_sid = sid(own);

	return clients_is_live_sid(t, &own_sid);
}

static int set_up(void **state)
{
	struct clients *t;

	assert_int_equal(clients_new(100, PEER_IDS, secret_random, &t), 0);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct clients *t = *state;

	while (clients_first(t))
		clients_unlink(t, clients_first(t));
	while (clients_first_removed(t))
		clients_drop(t, clients_first_removed(t));
	clients_free(t);
	return 0;
}

static void clients_are_found_by_address_and_session_id(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1194), 10, 20);
	struct client *b = add(t, at(1, 1194), 11, 21);
	struct link_addr other_listener = at(1, 1194);

	other_listener.listener = 1;
	assert_ptr_equal(find(t, at(1, 1194), 20), a);
	assert_ptr_equal(find(t, at(1, 1194), 21), b);
	assert_null(find(t, at(1, 1194), 22));
	assert_null(find(t, at(1, 1195), 20));
	assert_null(find(t, at(2, 1194), 20));
	assert_null(find(t, other_listener, 20));
}

static void clients_walks_over_all_at_one_address(void **state)
{
	struct clients *t = *state;
	struct link_addr l = at(1, 1194);
	struct client *a = add(t, l, 10, 20), *b = add(t, l, 11, 21), *c;

	add(t, at(2, 1194), 12, 22);
	c = clients_at(t, &l);
	assert_true(c == a || c == b);
	c = clients_next_at(c, &l);
	assert_true(c == a || c == b);
	assert_null(clients_next_at(c, &l));
}

static void clients_know_the_live_session_ids(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1194), 10, 20);

	assert_true(is_live(t, 10));
	assert_false(is_live(t, 20));
	take_away(t, a);
	assert_false(is_live(t, 10));
}

static void clients_leave_no_trace_once_unlinked(void **state)
{
	struct clients *t = *state;
	struct link_addr l = at(1, 1194);
	struct client *c = add(t, l, 10, 20);
	struct place place = {.peer_id = 77, .generation = 1, .worker = 1};

	authenticate(t, c, "alice");
	client_set_place(t, c, &place);
	clients_resume(t, c);
	assert_ptr_equal(clients_find_by_peer_id(t, 77), c);
	clients_unlink(t, c);
	assert_null(find(t, l, 20));
	assert_null(clients_at(t, &l));
	assert_null(clients_named(t, "alice"));
	assert_null(clients_find_by_peer_id(t, 77));
	assert_null(clients_take_resumed(t));
	assert_null(clients_first(t));
	assert_int_equal(clients_count(t), 0);
	assert_ptr_equal(clients_first_removed(t), c);
}

static void clients_are_named_only_after_authentication(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1194), 10, 20), *b = add(t, at(2, 1194), 11, 21), *c;

	assert_null(clients_named(t, ""));
	assert_string_equal(a->prefix, "192.0.2.1:1194");
	authenticate(t, a, "alice");
	authenticate(t, b, "alice");
	assert_string_equal(a->prefix, "alice/192.0.2.1:1194");
	c = clients_named(t, "alice");
	assert_non_null(clients_next_named(c));
	assert_null(clients_next_named(clients_next_named(c)));
	assert_null(clients_named(t, "alic"));
	assert_null(clients_named(t, "alice2"));
}

static void clients_that_moved_are_found_at_the_new_address_alone(void **state)
{
	struct clients *t = *state;
	struct client *c = add(t, at(1, 1194), 10, 20);
	struct link_addr to = at(9, 4000);

	authenticate(t, c, "alice");
	client_set_link(t, c, &to);
	assert_null(find(t, at(1, 1194), 20));
	assert_ptr_equal(find(t, at(9, 4000), 20), c);
	assert_string_equal(c->prefix, "alice/192.0.2.9:4000");
}

static void clients_that_were_displaced_can_move_and_leave(void **state)
{
	struct clients *t = *state;
	struct client *c = add(t, at(1, 1194), 10, 20);
	struct link_addr to = at(3, 5000);

	client_displace(t, c);
	client_displace(t, c);
	assert_null(find(t, at(1, 1194), 20));
	client_set_link(t, c, &to);
	assert_ptr_equal(find(t, to, 20), c);
	client_displace(t, c);
	take_away(t, c);
	assert_int_equal(clients_count(t), 0);
}

static void clients_half_open_are_listed_by_age(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1), 1, 1), *b = add(t, at(2, 2), 2, 2);
	struct client *c = add(t, at(3, 3), 3, 3);

	assert_int_equal(clients_half_open_count(t), 3);
	authenticate(t, b, "bob");
	assert_int_equal(clients_half_open_count(t), 2);
	assert_ptr_equal(clients_oldest_half_open(t), a);
	assert_ptr_equal(clients_next_half_open(t, a), c);
	take_away(t, a);
	assert_ptr_equal(clients_oldest_half_open(t), c);
	client_set_stage(t, c, CLIENT_CLOSING);
	assert_null(clients_oldest_half_open(t));
	assert_int_equal(clients_count(t), 2);
}

static void clients_walk_survives_removals_and_newcomers(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1), 1, 1), *b = add(t, at(2, 2), 2, 2);
	struct client *c = add(t, at(3, 3), 3, 3), *d;

	clients_walk_begin(t);
	assert_ptr_equal(clients_walk_next(t), a);
	take_away(t, a);
	take_away(t, b);
	d = add(t, at(4, 4), 4, 4);
	assert_ptr_equal(clients_walk_next(t), c);
	assert_ptr_equal(clients_walk_next(t), d);
	assert_null(clients_walk_next(t));
}

static void clients_resume_in_order_and_once(void **state)
{
	struct clients *t = *state;
	struct client *a = add(t, at(1, 1), 1, 1), *b = add(t, at(2, 2), 2, 2);
	struct client *c = add(t, at(3, 3), 3, 3);

	clients_resume(t, a);
	clients_resume(t, b);
	clients_resume(t, a);
	clients_resume(t, c);
	take_away(t, c);
	clients_resume(t, a);
	assert_ptr_equal(clients_take_resumed(t), a);
	assert_ptr_equal(clients_take_resumed(t), b);
	assert_null(clients_take_resumed(t));
	clients_resume(t, a);
	assert_ptr_equal(clients_take_resumed(t), a);
}

static void client_keeps_datagrams_in_order_up_to_a_limit(void **state)
{
	struct clients *t = *state;
	struct client *c = add(t, at(1, 1), 1, 1);
	struct waiting *w;

	for (uint8_t i = 0; i < CLIENT_WAITING_MAX; i++)
		assert_true(client_push_waiting(c, &i, 1));
	assert_false(client_push_waiting(c, "x", 1));
	for (uint8_t i = 0; i < CLIENT_WAITING_MAX; i++) {
		w = client_pop_waiting(c);
		assert_int_equal(w->len, 1);
		assert_int_equal(w->data[0], i);
		free(w);
	}
	assert_null(client_pop_waiting(c));
	assert_true(client_push_waiting(c, "y", 1)); /* freed with the client */
}

static void client_knows_which_family_it_is_reached_over(void **state)
{
	struct client c = {0};

	(void)state;
	c.link = at(1, 1);
	assert_false(client_is_ipv6(&c));
	c.link.remote.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	inet_pton(AF_INET6, "::ffff:192.0.2.1", &c.link.remote.in6.sin6_addr);
	assert_false(client_is_ipv6(&c));
	inet_pton(AF_INET6, "2001:db8::1", &c.link.remote.in6.sin6_addr);
	assert_true(client_is_ipv6(&c));
}

static void client_address_is_printed_as_stock_does(void **state)
{
	struct client c = {0};
	char text[ENDPOINT_TEXT_MAX];

	(void)state;
	c.link = at(1, 1194);
	assert_string_equal(client_real_addr(&c, text), "192.0.2.1:1194");
	c.link.remote.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(7)};
	inet_pton(AF_INET6, "::ffff:192.0.2.1", &c.link.remote.in6.sin6_addr);
	assert_string_equal(client_real_addr(&c, text), "192.0.2.1:7");
	inet_pton(AF_INET6, "2001:db8::1", &c.link.remote.in6.sin6_addr);
	assert_string_equal(client_real_addr(&c, text), "2001:db8::1");
}

static void clients_beyond_the_buckets_are_all_found(void **state)
{
	enum { COUNT = 2000 };
	struct clients *t = *state;

	for (uint32_t i = 0; i < COUNT; i++) {
		struct session_id id = {{(uint8_t)i, (uint8_t)(i >> 8), 9, 9, 9, 9, 9, 9}};
		struct link_addr l = at(1, (uint16_t)(1024 + i));

		assert_non_null(clients_add(t, &l, &id, &id, i));
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		struct session_id id = {{(uint8_t)i, (uint8_t)(i >> 8), 9, 9, 9, 9, 9, 9}};
		struct link_addr l = at(1, (uint16_t)(1024 + i));

		assert_int_equal(clients_find(t, &l, &id)->id, i);
		assert_true(clients_is_live_sid(t, &id));
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(clients_are_found_by_address_and_session_id),
		TEST(clients_walks_over_all_at_one_address),
		TEST(clients_know_the_live_session_ids),
		TEST(clients_leave_no_trace_once_unlinked),
		TEST(clients_are_named_only_after_authentication),
		TEST(clients_that_moved_are_found_at_the_new_address_alone),
		TEST(clients_that_were_displaced_can_move_and_leave),
		TEST(clients_half_open_are_listed_by_age),
		TEST(clients_walk_survives_removals_and_newcomers),
		TEST(clients_resume_in_order_and_once),
		TEST(client_keeps_datagrams_in_order_up_to_a_limit),
		TEST(client_knows_which_family_it_is_reached_over),
		TEST(client_address_is_printed_as_stock_does),
		TEST(clients_beyond_the_buckets_are_all_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
