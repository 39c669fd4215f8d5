/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "server/floats.h"
#include "tests/support/mock_worker.h"

/* Authenticated data of `c` came from `to`. Returns what its worker got for an answer. */
static struct message request(struct mock *m, struct client *c, struct link_addr to,
			      struct buffer *b)
{
	struct message msg = {
		.kind = MESSAGE_FLOAT_REQUEST, .peer_id = c->place.peer_id, .buffer = b};

	*b = (struct buffer){.home = (uint16_t)c->place.worker, .link = to};
	assert_int_equal(mock_report(m, c->place.worker, msg), 0);
	return mock_next(m, c->place.worker);
}

static void expect_moved(struct mock *m, struct client *c, struct link_addr to)
{
	struct buffer b;
	struct message msg = request(m, c, to, &b);

	assert_int_equal(msg.kind, MESSAGE_PEER_MOVE);
	assert_int_equal(msg.peer_id, c->place.peer_id);
	assert_ptr_equal(msg.buffer, &b);
	assert_true(endpoint_equal(&c->link.remote, &to.remote));
	assert_int_equal(m->shared.count.floats_accepted, 1);
	/* What is known of the path held for the address before. */
	msg = mock_next(m, c->place.worker);
	assert_int_equal(msg.kind, MESSAGE_PATH_MTU);
	assert_int_equal(msg.peer_id, c->place.peer_id);
}

static void expect_refused(struct mock *m, struct client *c, struct link_addr to)
{
	struct link_addr before = c->link;
	struct buffer b;
	struct message msg = request(m, c, to, &b);

	assert_int_equal(msg.kind, MESSAGE_BUFFER_HOME);
	assert_ptr_equal(msg.buffer, &b);
	assert_true(endpoint_equal(&c->link.remote, &before.remote));
	assert_int_equal(m->shared.count.floats_rejected, 1);
}

static void float_moves_a_client_to_a_free_address(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct link_addr from = c->link, to = mock_link("198.51.100.7", 7);

	expect_moved(m, c, to);
	assert_null(clients_at(m->shared.clients, &from));
	assert_ptr_equal(clients_at(m->shared.clients, &to), c);
	assert_string_equal(c->prefix, "alice/198.51.100.7:7");
}

static void float_to_its_own_address_only_confirms_it(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");

	expect_moved(m, c, mock_link("192.0.2.1", 1000));
	assert_int_equal(c->stage, CLIENT_CONNECTED);
}

static void float_closes_a_holder_of_the_same_identity(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *twin = mock_connected(m, mock_link("192.0.2.2", 1000), "alice");

	expect_moved(m, c, twin->link);
	assert_int_equal(twin->stage, CLIENT_REMOVED);
	assert_int_equal(twin->end, CLIENT_END_REPLACED);
}

static void float_is_refused_by_another_client_that_was_heard_lately(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *other = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");

	m->shared.now_ms += 60000;
	atomic_store(&other->peer->seen_ms, m->shared.now_ms - 10000);
	expect_refused(m, c, other->link);
	assert_int_equal(other->stage, CLIENT_CONNECTED);
	assert_ptr_equal(clients_at(m->shared.clients, &other->link), other);
}

static void float_takes_the_address_of_a_client_that_fell_silent(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *other = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");
	struct link_addr to = other->link;

	m->shared.now_ms += 60000;
	atomic_store(&other->peer->seen_ms, m->shared.now_ms - 10001);
	expect_moved(m, c, to);
	/* It lives on, and is found by its peer-id if it shows up elsewhere. */
	assert_int_equal(other->stage, CLIENT_CONNECTED);
	assert_ptr_equal(clients_at(m->shared.clients, &to), c);
	assert_null(clients_next_at(c, &to));
	assert_ptr_equal(clients_find_by_peer_id(m->shared.clients, other->place.peer_id), other);
}

static void float_closes_a_holder_that_is_not_authenticated(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *stranger = mock_stranger(m, mock_link("192.0.2.2", 1000));

	expect_moved(m, c, stranger->link);
	assert_int_equal(stranger->stage, CLIENT_REMOVED);
}

static void float_never_displaces_a_client_without_peer_id(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *old = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");

	old->uses_peer_id = false;
	m->shared.now_ms += 600000;
	expect_refused(m, c, old->link);
}

/* Of two at one address, one in the way is enough, and the other must not suffer for it. */
static void float_touches_nobody_if_one_holder_refuses(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *other = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");
	struct client *pending = mock_stranger(m, mock_link("192.0.2.2", 1000));

	expect_refused(m, c, other->link);
	assert_int_equal(pending->stage, CLIENT_HANDSHAKING);
}

static void float_of_a_removed_client_sends_the_buffer_home(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct buffer b;
	struct message msg;

	removal_start(&m->shared, c, CLIENT_END_EXIT);
	mock_answer_removal(m, c);
	msg = request(m, c, mock_link("192.0.2.9", 9), &b);
	assert_int_equal(msg.kind, MESSAGE_BUFFER_HOME);
	assert_int_equal(m->shared.count.floats_accepted, 0);
}

static void float_to_a_listener_that_does_not_exist_is_ignored(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct link_addr to = mock_link("192.0.2.9", 9);
	struct buffer b;

	to.listener = 1;
	assert_int_equal(request(m, c, to, &b).kind, MESSAGE_BUFFER_HOME);
	assert_int_equal(m->shared.count.floats_accepted, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(float_moves_a_client_to_a_free_address),
		TEST(float_to_its_own_address_only_confirms_it),
		TEST(float_closes_a_holder_of_the_same_identity),
		TEST(float_is_refused_by_another_client_that_was_heard_lately),
		TEST(float_takes_the_address_of_a_client_that_fell_silent),
		TEST(float_closes_a_holder_that_is_not_authenticated),
		TEST(float_never_displaces_a_client_without_peer_id),
		TEST(float_touches_nobody_if_one_holder_refuses),
		TEST(float_of_a_removed_client_sends_the_buffer_home),
		TEST(float_to_a_listener_that_does_not_exist_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
