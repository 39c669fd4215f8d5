/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/support/mock_worker.h"
#include "workers/tun_steering.h"

/* The steering of the tun device as a list of what it was told. */
struct tun_steering {
	struct {
		struct ip_prefix net;
		uint32_t queue;
	} entries[16];
	unsigned count;
	int answer; /* to every change */
};

static int entry_of(const struct tun_steering *t, const struct ip_prefix *net)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->entries[i].net.bits == net->bits &&
		    ip_addr_equal(&t->entries[i].net.addr, &net->addr))
			return (int)i;
	return -1;
}

int tun_steering_add(struct tun_steering *t, const struct ip_prefix *net, uint32_t queue)
{
	if (t->answer != 0)
		return t->answer;
	int at = entry_of(t, net);
	if (at < 0)
		at = (int)t->count++;
	t->entries[at].net = *net;
	t->entries[at].queue = queue;
	return 0;
}

int tun_steering_remove(struct tun_steering *t, const struct ip_prefix *net)
{
	if (t->answer != 0)
		return t->answer;
	int at = entry_of(t, net);
	assert_true(at >= 0);
	t->entries[at] = t->entries[--t->count];
	return 0;
}

#define NOWHERE (-1)

static int queue_of(const struct mock *m, const char *text)
{
	struct ip_prefix net;
	const struct tun_steering *t = m->shared.tun_steering;

	assert_true(ip_prefix_parse(text, &net));
	int at = entry_of(t, &net);
	return at < 0 ? NOWHERE : (int)t->entries[at].queue;
}

static int set_up(void **state)
{
	int err = mock_set_up(state);
	struct mock *m = *state;

	m->config.has_pool6 = true;
	m->config.pool6_base = mock_addr("fd00:8::1000");
	m->config.pool6_bits = 64;
	ip_pool_free(m->shared.pool);
	assert_int_equal(ip_pool_new(&m->config, &m->shared.pool), 0);
	m->shared.tun_steering = test_calloc(1, sizeof(*m->shared.tun_steering));
	return err;
}

static int tear_down(void **state)
{
	struct tun_steering *t = ((struct mock *)*state)->shared.tun_steering;
	int err = mock_tear_down(state);

	test_free(t);
	return err;
}

static void addresses_lead_to_the_queue_of_their_worker(void **state)
{
	struct mock *m = *state;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *b = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");

	assert_int_not_equal(a->place.worker, b->place.worker);
	assert_int_equal(m->shared.tun_steering->count, 4);
	assert_int_equal(queue_of(m, "10.8.0.2/32"), a->place.worker - 1);
	assert_int_equal(queue_of(m, "10.8.0.3/32"), b->place.worker - 1);
	assert_int_equal(queue_of(m, "fd00:8::1000/128"), a->place.worker - 1);
	assert_int_equal(queue_of(m, "fd00:8::1001/128"), b->place.worker - 1);
}

static void addresses_of_who_goes_lead_nowhere(void **state)
{
	struct mock *m = *state;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");

	mock_connected(m, mock_link("192.0.2.2", 1000), "bob");
	removal_start(&m->shared, a, CLIENT_END_EXIT);
	assert_int_equal(queue_of(m, "10.8.0.2/32"), NOWHERE);
	assert_int_equal(queue_of(m, "fd00:8::1000/128"), NOWHERE);
	assert_int_not_equal(queue_of(m, "10.8.0.3/32"), NOWHERE);
	assert_int_equal(m->shared.tun_steering->count, 2);
	mock_answer_removal(m, a);
	assert_int_equal(m->shared.count.tun_steering_errors, 0);
}

/* The second one has the address now; that the first one goes must not take it away. */
static void address_that_passed_on_stays_with_its_new_owner(void **state)
{
	struct mock *m = *state;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	struct client *b = mock_connected(m, mock_link("192.0.2.2", 1000), "bob");
	struct destination d = {.id = b->place.peer_id, .generation = b->place.generation};
	struct ip_prefix host = {.addr = a->lease.addr4, .bits = 32};

	assert_int_equal(route_table_add(m->shared.routes, &a->lease.addr4, d), 0);
	assert_int_equal(tun_steering_add(m->shared.tun_steering, &host, b->place.worker - 1), 0);
	removal_start(&m->shared, a, CLIENT_END_EXIT);
	assert_int_equal(queue_of(m, "10.8.0.2/32"), b->place.worker - 1);
	mock_answer_removal(m, a);
}

/* It costs a way over the ring, not the client. */
static void refused_change_is_counted_and_the_client_served(void **state)
{
	struct mock *m = *state;

	m->shared.tun_steering->answer = -E2BIG;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	assert_int_equal(m->shared.count.tun_steering_errors, 2);
	assert_int_equal(m->shared.routes4, 1);
	assert_int_equal(m->shared.routes6, 1);
	removal_start(&m->shared, a, CLIENT_END_EXIT);
	assert_int_equal(m->shared.count.tun_steering_errors, 4);
	assert_int_equal(route_table_count(m->shared.routes), 0);
	mock_answer_removal(m, a);
}

static void without_steering_the_routes_are_enough(void **state)
{
	struct mock *m = *state;
	struct tun_steering *t = m->shared.tun_steering;

	m->shared.tun_steering = NULL;
	struct client *a = mock_connected(m, mock_link("192.0.2.1", 1000), "alice");
	assert_int_equal(route_table_count(m->shared.routes), 2);
	removal_start(&m->shared, a, CLIENT_END_EXIT);
	assert_int_equal(route_table_count(m->shared.routes), 0);
	mock_answer_removal(m, a);
	assert_int_equal(m->shared.count.tun_steering_errors, 0);
	m->shared.tun_steering = t;
	assert_int_equal(t->count, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(addresses_lead_to_the_queue_of_their_worker),
		TEST(addresses_of_who_goes_lead_nowhere),
		TEST(address_that_passed_on_stays_with_its_new_owner),
		TEST(refused_change_is_counted_and_the_client_served),
		TEST(without_steering_the_routes_are_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
