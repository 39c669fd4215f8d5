/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/mock_worker.h"

static void removal_frees_a_stranger_at_once(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_stranger(m, mock_link("192.0.2.1", 1000));

	removal_start(&m->shared, c, CLIENT_END_TLS_ERROR);
	removal_reap(&m->shared);
	assert_null(clients_first_removed(m->shared.clients));
	mock_expect_none(m);
	/* It was never connected: no disconnect is counted. */
	assert_int_equal(m->shared.count.disconnect_tls_error, 0);
}

static void removal_holds_address_and_peer_id_until_the_worker_answers(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct place place = c->place;

	assert_int_equal(s->routes4, 1);
	removal_start(s, c, CLIENT_END_EXIT);
	assert_int_equal(s->count.disconnect_exit_notify, 1);
	assert_int_equal(s->routes4, 0);
	assert_int_equal(route_table_count(s->routes), 0);
	removal_reap(s);
	assert_ptr_equal(clients_first_removed(s->clients), c);
	assert_int_equal(ip_pool_used(s->pool), 1);
	assert_int_equal(placement_load(s->placement, place.worker), 1);

	mock_answer_removal(m, c);
	assert_int_equal(ip_pool_used(s->pool), 0);
	assert_int_equal(placement_load(s->placement, place.worker), 0);
	removal_reap(s);
	assert_null(clients_first_removed(s->clients));
}

static void removal_keeps_a_lent_session_until_it_is_back(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_stranger(m, mock_link("192.0.2.1", 1000));

	c->is_lent = true;
	removal_start(&m->shared, c, CLIENT_END_TLS_ERROR);
	removal_reap(&m->shared);
	assert_ptr_equal(clients_first_removed(m->shared.clients), c);
	c->is_lent = false;
	removal_reap(&m->shared);
	assert_null(clients_first_removed(m->shared.clients));
}

static void removal_twice_is_once(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");

	removal_start(&m->shared, c, CLIENT_END_PING_RESTART);
	removal_start(&m->shared, c, CLIENT_END_EXIT);
	assert_int_equal(m->shared.count.disconnect_ping_restart, 1);
	assert_int_equal(m->shared.count.disconnect_exit_notify, 0);
	mock_answer_removal(m, c);
	mock_expect_none(m);
}

static void removal_lets_the_successor_on_when_the_old_peer_is_gone(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *old = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *next = mock_authenticated(m, mock_link("192.0.2.2", 2000), "alice");
	struct ip_addr addr = old->lease.addr4;
	struct ip_lease lease;

	removal_replace(s, old, next);
	assert_int_equal(s->count.disconnect_replaced, 1);
	assert_int_equal(next->waits_for, 1);
	assert_null(clients_take_resumed(s->clients));
	mock_answer_removal(m, old);
	assert_int_equal(next->waits_for, 0);
	assert_ptr_equal(clients_take_resumed(s->clients), next);
	/* And so it can have the same address. */
	assert_int_equal(ip_pool_take(s->pool, "alice", &lease), 0);
	assert_true(ip_addr_equal(&lease.addr4, &addr));
}

static void removal_of_a_successor_leaves_nothing_behind(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *old = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *next = mock_authenticated(m, mock_link("192.0.2.2", 2000), "alice");

	removal_replace(s, old, next);
	removal_start(s, next, CLIENT_END_TLS_ERROR);
	removal_reap(s);
	assert_null(old->successor);
	mock_answer_removal(m, old);
	assert_null(clients_take_resumed(s->clients));
}

/* A third client takes the place of the second while that waits for the first: the third waits for
 * the first as well, whose address it is to get. */
static void removal_of_a_waiting_client_passes_its_wait_on(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *first = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *second = mock_authenticated(m, mock_link("192.0.2.2", 2000), "alice");
	struct client *third = mock_authenticated(m, mock_link("192.0.2.3", 3000), "alice");

	removal_replace(s, first, second);
	removal_replace(s, second, third);
	removal_reap(s);
	assert_int_equal(third->waits_for, 1);
	mock_answer_removal(m, first);
	assert_int_equal(third->waits_for, 0);
	assert_ptr_equal(clients_take_resumed(s->clients), third);
	assert_null(clients_take_resumed(s->clients));
}

static void removal_waits_for_all_that_were_replaced(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *b = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");
	struct client *next = mock_authenticated(m, mock_link("192.0.2.3", 1000), "carol");

	removal_replace(s, a, next);
	removal_replace(s, b, next);
	mock_answer_removal(m, b);
	assert_null(clients_take_resumed(s->clients));
	mock_answer_removal(m, a);
	assert_ptr_equal(clients_take_resumed(s->clients), next);
}

static void removal_survives_answers_for_peers_it_does_not_know(void **state)
{
	struct mock *m = *state;
	struct peer *unknown = (struct peer *)(void *)m;
	struct message msg = {.kind = MESSAGE_PEER_REMOVED, .peer = unknown};

	assert_int_equal(mock_report(m, 1, msg), 0);
}

static void reports_about_a_removed_client_do_nothing(void **state)
{
	static const enum message_kind kinds[] = {MESSAGE_PEER_SILENT, MESSAGE_PEER_EXIT,
						  MESSAGE_KEY_EXHAUSTED, MESSAGE_PATH_MTU_ASK};
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");

	removal_start(&m->shared, c, CLIENT_END_REPLACED);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct message msg = {.kind = (uint8_t)kinds[i], .peer_id = c->place.peer_id};

		assert_int_equal(mock_report(m, c->place.worker, msg), 0);
	}
	assert_int_equal(m->shared.count.disconnect_replaced, 1);
	assert_int_equal(m->shared.count.disconnect_ping_restart, 0);
	mock_answer_removal(m, c);
}

static void reports_of_silence_count_only_without_control_packets(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct message msg = {.kind = MESSAGE_PEER_SILENT, .peer_id = c->place.peer_id};

	s->now_ms += 59999;
	assert_int_equal(mock_report(m, c->place.worker, msg), 0);
	assert_int_equal(c->stage, CLIENT_CONNECTED);
	s->now_ms += 1;
	assert_int_equal(mock_report(m, c->place.worker, msg), 0);
	assert_int_equal(c->stage, CLIENT_REMOVED);
	assert_int_equal(s->count.disconnect_ping_restart, 1);
}

static void reports_of_an_exit_message_end_the_client(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct message msg = {.kind = MESSAGE_PEER_EXIT, .peer_id = c->place.peer_id};

	assert_int_equal(mock_report(m, c->place.worker, msg), 0);
	assert_int_equal(c->stage, CLIENT_REMOVED);
	assert_int_equal(m->shared.count.disconnect_exit_notify, 1);
}

static void reports_of_a_failed_worker_end_the_process(void **state)
{
	struct mock *m = *state;
	struct message msg = {.kind = MESSAGE_FAILED, .arg = 5};

	assert_int_equal(mock_report(m, 2, msg), -5);
}

static void data_channel_sends_the_peer_before_its_key_and_retires_by_id(void **state)
{
	struct mock *m = *state;
	struct acceptor_shared *s = &m->shared;
	struct client *c = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct session_event e = mock_key(1);
	struct message msg;

	assert_int_equal(c->peer->setup.mss4, 1400); /* the example of wire.md, section 14 */
	assert_int_equal(c->peer->setup.generation, c->place.generation);
	e.seal_from_ms = 777;
	assert_int_equal(data_channel_install(s, c, &e), 0);
	msg = mock_next(m, c->place.worker);
	assert_int_equal(msg.kind, MESSAGE_KEY_INSTALL);
	assert_int_equal(msg.key->key_id, 1);
	assert_int_equal(msg.key->seal_from_ms, 777);
	assert_int_equal(c->newest_key_id, 1);
	data_channel_retire(s, c, 0);
	msg = mock_next(m, c->place.worker);
	assert_int_equal(msg.kind, MESSAGE_KEY_RETIRE);
	assert_int_equal(msg.arg, 0);
	/* The key that the worker never answered for is wiped at the end (tear_down, under ASan).
	 */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(removal_frees_a_stranger_at_once),
		TEST(removal_holds_address_and_peer_id_until_the_worker_answers),
		TEST(removal_keeps_a_lent_session_until_it_is_back),
		TEST(removal_twice_is_once),
		TEST(removal_lets_the_successor_on_when_the_old_peer_is_gone),
		TEST(removal_of_a_successor_leaves_nothing_behind),
		TEST(removal_of_a_waiting_client_passes_its_wait_on),
		TEST(removal_waits_for_all_that_were_replaced),
		TEST(removal_survives_answers_for_peers_it_does_not_know),
		TEST(reports_about_a_removed_client_do_nothing),
		TEST(reports_of_silence_count_only_without_control_packets),
		TEST(reports_of_an_exit_message_end_the_client),
		TEST(reports_of_a_failed_worker_end_the_process),
		TEST(data_channel_sends_the_peer_before_its_key_and_retires_by_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
