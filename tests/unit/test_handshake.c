/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "server/handshake.h"

/* Stands in for a session: the threads only pass it on. */
struct fake {
	struct handshake_job job;
	atomic_int runs, users;
};

static sem_t gate;    /* a run waits here if is_gated */
static sem_t entered; /* and says that it began here */
static atomic_bool is_gated;
static atomic_int most_users;
static sigset_t mask_seen;

static void run(struct session *s, uint64_t now_ms, uint32_t wall_s)
{
	struct fake *f = (struct fake *)(void *)s;
	int users = atomic_fetch_add(&f->users, 1) + 1;

	assert(now_ms > 0 && wall_s > 0);
	if (users > atomic_load(&most_users))
		atomic_store(&most_users, users);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_seen);
	if (atomic_load(&is_gated)) {
		sem_post(&entered);
		sem_wait(&gate);
	}
	atomic_fetch_add(&f->runs, 1);
	atomic_fetch_sub(&f->users, 1);
}

static void lend(struct handshake *h, struct fake *f, uint64_t order_ms)
{
	f->job.session = (struct session *)(void *)f;
	f->job.order_ms = order_ms;
	assert_int_equal(handshake_lend(h, &f->job), 0);
}

static struct fake *wait_for_one(struct handshake *h)
{
	struct pollfd p = {.fd = handshake_fd(h), .events = POLLIN};
	struct handshake_job *job;

	while (!(job = handshake_take(h)))
		assert_int_equal(poll(&p, 1, 5000), 1);
	return (struct fake *)(void *)job->session;
}

static int set_up(void **state)
{
	(void)state;
	sem_init(&gate, 0, 0);
	sem_init(&entered, 0, 0);
	atomic_store(&is_gated, false);
	atomic_store(&most_users, 0);
	return 0;
}

static void handshake_gives_back_what_was_lent(void **state)
{
	struct handshake *h;
	struct fake f = {0};

	(void)state;
	assert_int_equal(handshake_new(1, run, &h), 0);
	assert_null(handshake_take(h));
	lend(h, &f, 1);
	assert_ptr_equal(wait_for_one(h), &f);
	assert_int_equal(f.runs, 1);
	assert_null(handshake_take(h));
	handshake_free(h);
}

static void handshake_threads_take_no_signals(void **state)
{
	struct handshake *h;
	struct fake f = {0};

	(void)state;
	assert_int_equal(handshake_new(1, run, &h), 0);
	lend(h, &f, 1);
	wait_for_one(h);
	assert_int_equal(sigismember(&mask_seen, SIGTERM), 1);
	assert_int_equal(sigismember(&mask_seen, SIGUSR2), 1);
	handshake_free(h);
}

static void handshake_runs_the_oldest_first(void **state)
{
	static const uint64_t orders[] = {50, 20, 90, 10, 70, 30, 80, 40, 60};
	enum { COUNT = sizeof(orders) / sizeof(orders[0]) };
	struct fake first = {0}, f[COUNT] = {0};
	struct handshake *h;
	uint64_t last = 0;

	(void)state;
	assert_int_equal(handshake_new(1, run, &h), 0);
	atomic_store(&is_gated, true);
	lend(h, &first, 0);
	sem_wait(&entered);
	for (int i = 0; i < COUNT; i++)
		lend(h, &f[i], orders[i]);
	atomic_store(&is_gated, false);
	sem_post(&gate);
	assert_ptr_equal(wait_for_one(h), &first);
	for (int i = 0; i < COUNT; i++) {
		struct fake *next = wait_for_one(h);

		assert_true(next->job.order_ms > last);
		last = next->job.order_ms;
	}
	handshake_free(h);
}

static void handshake_lends_a_session_to_one_thread_at_a_time(void **state)
{
	enum { COUNT = 16, ROUNDS = 50 };
	struct fake f[COUNT] = {0};
	struct handshake *h;

	(void)state;
	assert_int_equal(handshake_new(4, run, &h), 0);
	for (uint64_t i = 0; i < COUNT; i++)
		lend(h, &f[i], i);
	for (int i = 0; i < COUNT * ROUNDS; i++) {
		struct fake *next = wait_for_one(h);

		if (i < COUNT * (ROUNDS - 1))
			lend(h, next, (uint64_t)i);
	}
	assert_int_equal(most_users, 1);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(f[i].users, 0);
	handshake_free(h);
}

static void handshake_backlog_grows_with_what_waits(void **state)
{
	enum { COUNT = 5000 };
	static struct fake f[COUNT];
	struct fake first = {0};
	struct handshake *h;

	(void)state;
	assert_int_equal(handshake_new(1, run, &h), 0);
	assert_int_equal(handshake_backlog_ms(h), 0);
	atomic_store(&is_gated, true);
	lend(h, &first, 0);
	sem_wait(&entered);
	for (uint64_t i = 0; i < COUNT; i++)
		lend(h, &f[i], i);
	assert_in_range(handshake_backlog_ms(h), 1000, 60000);
	atomic_store(&is_gated, false);
	sem_post(&gate);
	/* Stopping gives up what still waits, without a run. */
	handshake_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(handshake_gives_back_what_was_lent, set_up),
		cmocka_unit_test_setup(handshake_threads_take_no_signals, set_up),
		cmocka_unit_test_setup(handshake_runs_the_oldest_first, set_up),
		cmocka_unit_test_setup(handshake_lends_a_session_to_one_thread_at_a_time, set_up),
		cmocka_unit_test_setup(handshake_backlog_grows_with_what_waits, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
