/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/paths.h"
#include "tests/support/mock_worker.h"
#include "tests/support/netns.h"

/* Of 127.1.0.0/16, on lo, the route allows 1300 bytes; lo itself 65536. */
#define FAR  "127.1.0.7"
#define NEAR "127.0.0.7"

static uint32_t answer(struct mock *m, struct client *c)
{
	struct message ask = {.kind = MESSAGE_PATH_MTU_ASK, .peer_id = c->place.peer_id};
	assert_int_equal(mock_report(m, c->place.worker, ask), 0);
	struct message got = mock_next(m, c->place.worker);
	assert_int_equal(got.kind, MESSAGE_PATH_MTU);
	assert_int_equal(got.peer_id, c->place.peer_id);
	return got.path_mtu;
}

static void path_is_looked_up_when_the_worker_asks(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link(FAR, 1000), "alice");
	struct client *near = mock_connected(m, mock_link(NEAR, 1000), "bob");
	assert_int_equal(answer(m, c), 1300);
	assert_int_equal(answer(m, near), 65535);
	assert_true(netns_run("ip route change local 127.1.0.0/16 dev lo mtu lock 1200"));
	assert_int_equal(answer(m, c), 1200);
	assert_int_equal(c->path_mtu, 1200);
	assert_true(netns_run("ip route change local 127.1.0.0/16 dev lo mtu lock 1300"));
}

static void path_is_known_when_the_peer_is_made(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link(FAR, 1000), "alice");
	assert_int_equal(c->peer->setup.path_mtu, 1300);
}

static void path_without_a_route_is_unknown(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link("203.0.113.1", 1000), "alice");
	assert_int_equal(c->peer->setup.path_mtu, 0);
	assert_int_equal(answer(m, c), 0);
}

static void path_of_a_listener_that_is_not_ours_is_unknown(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_connected(m, mock_link(NEAR, 1000), "alice");
	c->link.listener = 1;
	assert_int_equal(path_look_up(&m->shared, c), 0);
}

static void path_is_not_told_without_a_peer(void **state)
{
	struct mock *m = *state;
	struct client *c = mock_stranger(m, mock_link(NEAR, 1000));
	path_tell(&m->shared, c);
	mock_expect_none(m);
}

int main(void)
{
	const char *why = netns_enter();
	if (why)
		return netns_skip(why);
	if (!netns_run("ip route add local 127.1.0.0/16 dev lo mtu lock 1300"))
		return netns_skip("no routes in the namespace");

	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(path_is_looked_up_when_the_worker_asks, mock_set_up,
						mock_tear_down),
		cmocka_unit_test_setup_teardown(path_is_known_when_the_peer_is_made, mock_set_up,
						mock_tear_down),
		cmocka_unit_test_setup_teardown(path_without_a_route_is_unknown, mock_set_up,
						mock_tear_down),
		cmocka_unit_test_setup_teardown(path_of_a_listener_that_is_not_ours_is_unknown,
						mock_set_up, mock_tear_down),
		cmocka_unit_test_setup_teardown(path_is_not_told_without_a_peer, mock_set_up,
						mock_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
