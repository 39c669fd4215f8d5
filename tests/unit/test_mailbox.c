/* SPDX-License-Identifier: Apache-2.0 */

/* The module is included, not linked, so that a scheduler can switch between its steps:
 *
 *	programs (coroutines) --MAILBOX_STEP--> scheduler: every order with a few preemptions
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <ucontext.h>

static void scheduler_step(void);
#define MAILBOX_STEP() scheduler_step()
#include "workers/mailbox.c"

/* ---- helpers ---- */

static struct mailboxes *boxes_new(unsigned count)
{
	struct mailboxes *m = NULL;
	assert_int_equal(mailboxes_new(count, &m), 0);
	return m;
}

static bool send_number(struct mailboxes *m, unsigned from, unsigned to, uint32_t n)
{
	const struct message msg = {.kind = MESSAGE_PING, .from = 0xffff, .peer_id = n};
	return mailbox_send(m, from, to, &msg);
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

/* How often the eventfd was written since it was last read. */
static unsigned wakes(struct mailboxes *m, unsigned me)
{
	eventfd_t n = 0;
	if (is_readable(mailbox_fd(m, me)))
		assert_int_equal(eventfd_read(mailbox_fd(m, me), &n), 0);
	return (unsigned)n;
}

/* ---- one thread at a time ---- */

static void mailbox_delivers_in_order_with_the_sender(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(3);
	struct message out[8];
	struct message msg = {
		.kind = MESSAGE_INNER, .arg = 9, .from = 7, .peer_id = 0xfffffe, .pointer = out};
	assert_int_equal(mailbox_receive(m, 2, out, 8), 0);
	assert_true(mailbox_send(m, 1, 2, &msg));
	assert_true(send_number(m, 1, 2, 5));
	assert_int_equal(mailbox_receive(m, 0, out, 8), 0);
	assert_int_equal(mailbox_receive(m, 1, out, 8), 0);
	assert_int_equal(mailbox_receive(m, 2, out, 8), 2);
	assert_int_equal(out[0].kind, MESSAGE_INNER);
	assert_int_equal(out[0].arg, 9);
	assert_int_equal(out[0].from, 1);
	assert_int_equal(out[0].peer_id, 0xfffffe);
	assert_ptr_equal(out[0].pointer, out);
	assert_int_equal(out[1].peer_id, 5);
	assert_int_equal(mailbox_receive(m, 2, out, 8), 0);
	mailboxes_free(m);
}

static void mailbox_refuses_when_the_ring_is_full(void **state)
{
	(void)state;
	static const struct {
		unsigned from, to, room;
	} pairs[] = {{1, 2, 255}, {2, 1, 255}, {0, 1, 1023}, {1, 0, 1023}};
	struct mailboxes *m = boxes_new(3);
	for (size_t i = 0; i < 4; i++) {
		unsigned from = pairs[i].from, to = pairs[i].to, room = pairs[i].room;
		struct message out[2];
		for (uint32_t n = 0; n < room; n++)
			assert_true(send_number(m, from, to, n));
		assert_false(send_number(m, from, to, room));
		assert_int_equal(mailbox_depth(m, to), room);
		assert_int_equal(mailbox_receive(m, to, out, 1), 1);
		assert_int_equal(out[0].peer_id, 0);
		assert_true(send_number(m, from, to, room));
		assert_false(send_number(m, from, to, room + 1));
		for (uint32_t n = 1; n <= room; n++) {
			assert_int_equal(mailbox_receive(m, to, out, 1), 1);
			assert_int_equal(out[0].peer_id, n);
		}
		assert_int_equal(mailbox_depth(m, to), 0);
	}
	assert_int_equal(mailbox_capacity(), 256);
	mailboxes_free(m);
}

static void mailbox_one_full_ring_leaves_the_others_alone(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(4);
	while (send_number(m, 1, 2, 0))
		;
	assert_true(send_number(m, 3, 2, 0));
	assert_true(send_number(m, 1, 3, 0));
	assert_true(send_number(m, 0, 2, 0));
	mailboxes_free(m);
}

static void mailbox_receive_takes_turns_between_senders(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(4);
	struct message out[10];
	for (uint32_t i = 0; i < 100; i++)
		assert_true(send_number(m, 1, 0, i));
	assert_true(send_number(m, 2, 0, 0));
	assert_true(send_number(m, 3, 0, 0));
	assert_int_equal(mailbox_receive(m, 0, out, 10), 10);
	unsigned of[4] = {0};
	for (unsigned i = 0; i < 10; i++)
		of[out[i].from]++;
	assert_int_equal(of[2], 1);
	assert_int_equal(of[3], 1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(out[i].from, 1);
	assert_int_equal(out[5].from, 2);
	mailboxes_free(m);
}

static void mailbox_receive_of_one_takes_turns_too(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(3);
	struct message out[1];
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(send_number(m, 1, 0, i));
		assert_true(send_number(m, 2, 0, i));
	}
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(mailbox_receive(m, 0, out, 1), 1);
		assert_int_equal(out[0].from, 1 + i % 2);
		assert_int_equal(out[0].peer_id, i / 2);
	}
	assert_int_equal(mailbox_receive(m, 0, out, 1), 0);
	assert_int_equal(mailbox_receive(m, 0, out, 0), 0);
	mailboxes_free(m);
}

static void mailbox_reaches_every_one_of_the_most_threads(void **state)
{
	(void)state;
	const unsigned count = WORKERS_MAX + 1;
	struct mailboxes *m = boxes_new(count);
	struct message out[2 * (WORKERS_MAX + 1)];
	for (unsigned from = 0; from < count; from++)
		for (unsigned to = 0; to < count; to++)
			assert_true(from == to || send_number(m, from, to, from * 100 + to));
	for (unsigned to = 0; to < count; to++) {
		bool is_seen[WORKERS_MAX + 1] = {false};
		assert_false(mailbox_sleep(m, to));
		assert_int_equal(mailbox_receive(m, to, out, 2 * count), count - 1);
		for (unsigned i = 0; i < count - 1; i++) {
			assert_int_equal(out[i].peer_id, out[i].from * 100 + to);
			assert_false(is_seen[out[i].from]);
			is_seen[out[i].from] = true;
		}
		assert_true(mailbox_sleep(m, to));
		mailbox_awake(m, to);
	}
	mailboxes_free(m);
}

static void mailbox_sleep_refuses_while_messages_wait(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(2);
	struct message out[4];
	assert_true(send_number(m, 0, 1, 0));
	assert_false(mailbox_sleep(m, 1));
	/* The announcement was taken back. */
	mailbox_flush(m, 0);
	assert_int_equal(wakes(m, 1), 0);
	assert_int_equal(mailbox_receive(m, 1, out, 4), 1);
	assert_true(mailbox_sleep(m, 1));
	mailboxes_free(m);
}

static void mailbox_wakes_sleepers_once_a_flush(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(4);
	assert_true(mailbox_sleep(m, 1));
	assert_true(mailbox_sleep(m, 2));
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(send_number(m, 0, 1, i));
		assert_true(send_number(m, 0, 3, i));
	}
	assert_int_equal(wakes(m, 1), 0);
	mailbox_flush(m, 0);
	assert_int_equal(wakes(m, 1), 1);
	assert_int_equal(wakes(m, 2), 0);
	assert_int_equal(wakes(m, 3), 0);
	/* It is awake now, as far as senders know. */
	assert_true(send_number(m, 0, 1, 10));
	mailbox_flush(m, 0);
	assert_int_equal(wakes(m, 1), 0);
	mailboxes_free(m);
}

static void mailbox_flush_without_new_messages_wakes_nobody(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(3);
	struct message out[4];
	assert_true(send_number(m, 0, 1, 0));
	mailbox_flush(m, 0);
	assert_int_equal(mailbox_receive(m, 1, out, 4), 1);
	assert_true(mailbox_sleep(m, 1));
	mailbox_flush(m, 0);
	mailbox_flush(m, 2);
	assert_int_equal(wakes(m, 1), 0);
	mailboxes_free(m);
}

static void mailbox_awake_receivers_are_not_written_to(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(2);
	assert_true(mailbox_sleep(m, 1));
	mailbox_awake(m, 1);
	assert_true(send_number(m, 0, 1, 0));
	mailbox_flush(m, 0);
	assert_int_equal(wakes(m, 1), 0);
	mailboxes_free(m);
}

static void mailbox_two_senders_wake_a_sleeper_once(void **state)
{
	(void)state;
	struct mailboxes *m = boxes_new(3);
	assert_true(mailbox_sleep(m, 2));
	assert_true(send_number(m, 0, 2, 0));
	assert_true(send_number(m, 1, 2, 0));
	mailbox_flush(m, 0);
	mailbox_flush(m, 1);
	assert_int_equal(wakes(m, 2), 1);
	mailboxes_free(m);
}

static void mailboxes_free_accepts_null(void **state)
{
	(void)state;
	mailboxes_free(NULL);
}

/* ---- every order of steps ---- */

#define SENDERS	  2
#define RECEIVER  SENDERS
#define PROGRAMS  (SENDERS + 1)
#define STACK_LEN (64 * 1024)
#define DEPTH_MAX 4096

/* What the senders do; the receiver runs a worker's loop until it has everything. */
struct plan {
	const char *name;
	unsigned prefill;	      /* messages in each ring beforehand */
	const char *senders[SENDERS]; /* s: send (again until there is room), f: flush */
	unsigned receive_max;
	unsigned preemptions;
};

struct choice {
	uint8_t options[PROGRAMS]; /* runnable programs; the one that ran last comes first */
	uint8_t option_count, chosen;
};

static struct {
	bool is_running;
	ucontext_t home, programs[PROGRAMS];
	uint8_t stacks[PROGRAMS][STACK_LEN];
	bool is_ended[PROGRAMS];
	bool (*is_blocked[PROGRAMS])(unsigned program); /* NULL: runnable */
	unsigned current;
	struct choice choices[DEPTH_MAX];
	unsigned depth, replay_depth;

	const struct plan *plan;
	struct mailboxes *m;
	uint32_t sent[SENDERS], received[SENDERS], total[SENDERS];
	unsigned flushes, wakes;
	const char *fault;
} sched;

static void scheduler_step(void)
{
	if (sched.is_running)
		swapcontext(&sched.programs[sched.current], &sched.home);
}

static void block(unsigned program, bool (*is_blocked)(unsigned))
{
	sched.is_blocked[program] = is_blocked;
	while (is_blocked(program))
		scheduler_step();
	sched.is_blocked[program] = NULL;
}

static bool is_ring_full(unsigned sender)
{
	return sched.sent[sender] - sched.received[sender] >= DATA_SLOTS - 1;
}

static bool is_asleep(unsigned program)
{
	return !is_readable(mailbox_fd(sched.m, program));
}

static void send_next(unsigned me)
{
	while (!send_number(sched.m, me, RECEIVER, sched.sent[me])) {
		mailbox_flush(sched.m, me);
		block(me, is_ring_full);
	}
	sched.sent[me]++;
}

static void sender(unsigned me)
{
	for (const char *p = sched.plan->senders[me]; *p; p++) {
		if (*p == 's') {
			send_next(me);
		} else {
			mailbox_flush(sched.m, me);
			sched.flushes++;
		}
		scheduler_step();
	}
}

static void take(unsigned me)
{
	struct message out[DATA_SLOTS];
	unsigned n = mailbox_receive(sched.m, me, out, sched.plan->receive_max);
	for (unsigned i = 0; i < n; i++) {
		unsigned from = out[i].from;
		if (from >= SENDERS || out[i].peer_id != sched.received[from])
			sched.fault = "out of order";
		else
			sched.received[from]++;
	}
}

static bool has_everything(void)
{
	for (unsigned i = 0; i < SENDERS; i++) {
		if (sched.received[i] < sched.total[i])
			return false;
	}
	return true;
}

static void receiver(unsigned me)
{
	eventfd_t count;
	while (!has_everything() && !sched.fault) {
		take(me);
		scheduler_step();
		if (!mailbox_sleep(sched.m, me))
			continue;
		if (has_everything())
			break;
		block(me, is_asleep);
		if (eventfd_read(mailbox_fd(sched.m, me), &count) != 0)
			sched.fault = "eventfd";
		sched.wakes += (unsigned)count;
		mailbox_awake(sched.m, me);
		scheduler_step();
	}
}

static void program_main(void)
{
	unsigned me = sched.current;
	if (me == RECEIVER)
		receiver(me);
	else
		sender(me);
	sched.is_ended[me] = true;
}

static void list_options(struct choice *c)
{
	c->option_count = 0;
	for (unsigned i = 0; i < PROGRAMS; i++) {
		unsigned p = (sched.current + i) % PROGRAMS;
		if (!sched.is_ended[p] && (!sched.is_blocked[p] || !sched.is_blocked[p](p)))
			c->options[c->option_count++] = (uint8_t)p;
	}
}

/* Choosing the k-th option is a preemption if the program that ran last could go on. */
static bool is_preemption(unsigned depth, unsigned chosen)
{
	const struct choice *c = &sched.choices[depth];
	if (depth == 0 || chosen == 0)
		return false;
	const struct choice *before = &sched.choices[depth - 1];
	return c->options[0] == before->options[before->chosen];
}

static void set_up_programs(const struct plan *plan)
{
	sched.plan = plan;
	sched.m = NULL;
	if (mailboxes_new(PROGRAMS, &sched.m) != 0)
		abort();
	sched.fault = NULL;
	sched.flushes = sched.wakes = sched.depth = 0;
	for (unsigned i = 0; i < PROGRAMS; i++) {
		sched.is_ended[i] = false;
		sched.is_blocked[i] = NULL;
		getcontext(&sched.programs[i]);
		sched.programs[i].uc_stack.ss_sp = sched.stacks[i];
		sched.programs[i].uc_stack.ss_size = STACK_LEN;
		sched.programs[i].uc_link = &sched.home;
		makecontext(&sched.programs[i], program_main, 0);
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		unsigned prefill = plan->senders[i][0] ? plan->prefill : 0;
		sched.sent[i] = sched.received[i] = 0;
		while (sched.sent[i] < prefill && send_number(sched.m, i, RECEIVER, sched.sent[i]))
			sched.sent[i]++;
		sched.total[i] = prefill;
		for (const char *p = plan->senders[i]; *p; p++)
			sched.total[i] += *p == 's';
	}
}

/* One run, along the first replay_depth choices, then along the first option each. */
static void run(const struct plan *plan)
{
	set_up_programs(plan);
	sched.current = 0;
	while (!sched.fault) {
		struct choice *c = &sched.choices[sched.depth];
		if (sched.depth == DEPTH_MAX) {
			sched.fault = "endless";
			break;
		}
		list_options(c);
		if (c->option_count == 0)
			break;
		if (sched.depth >= sched.replay_depth)
			c->chosen = 0;
		sched.current = c->options[c->chosen];
		sched.depth++;
		sched.is_running = true;
		swapcontext(&sched.home, &sched.programs[sched.current]);
		sched.is_running = false;
	}
	if (!sched.fault && !has_everything())
		sched.fault = "lost wake-up";
	if (!sched.fault && sched.wakes > sched.flushes + plan->prefill)
		sched.fault = "more wake-ups than flushes";
	mailboxes_free(sched.m);
}

/* The next path, depth first; false if all were taken. */
static bool next_path(unsigned preemptions)
{
	unsigned before = 0; /* preemptions up to and with depth - 1 */
	for (unsigned d = 0; d < sched.depth; d++)
		before += is_preemption(d, sched.choices[d].chosen);
	for (unsigned d = sched.depth; d-- > 0;) {
		struct choice *c = &sched.choices[d];
		before -= is_preemption(d, c->chosen);
		if (c->chosen + 1 < c->option_count &&
		    before + is_preemption(d, c->chosen + 1U) <= preemptions) {
			c->chosen++;
			sched.replay_depth = d + 1;
			return true;
		}
	}
	return false;
}

static const struct plan plans[] = {
	{"one message", 0, {"sf", ""}, 8, 4},
	{"two messages, two flushes", 0, {"sfsf", ""}, 8, 3},
	{"two senders", 0, {"sf", "sf"}, 8, 2},
	{"two senders, one message a receive", 0, {"ssf", "sf"}, 1, 2},
	{"three messages in twos", 0, {"sssf", "sf"}, 2, 2},
	{"a full ring", DATA_SLOTS - 1, {"", "ssf"}, DATA_SLOTS, 2},
};

static void mailbox_loses_no_wakeup_in_any_order_of_steps(void **state)
{
	(void)state;
#if defined(HAS_TSAN)
	skip(); /* it does not know coroutines */
#endif
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		unsigned runs = 0;
		sched.replay_depth = 0;
		do {
			run(&plans[i]);
			runs++;
			if (sched.fault)
				fail_msg("%s: %s in run %u", plans[i].name, sched.fault, runs);
		} while (next_path(plans[i].preemptions));
		print_message("# %s: %u orders\n", plans[i].name, runs);
		assert_true(runs > 50);
	}
}

/* ---- real threads ---- */

#define STRESS_THREADS 4
#define STRESS_SENDS   4000 /* from each thread to each other */

/* Written by the sender, then read and written by the receiver: plain fields, which the thread
 * sanitizer watches. */
struct parcel {
	uint32_t number;
	uint32_t check;
};

struct stress {
	struct mailboxes *m;
	pthread_t threads[STRESS_THREADS];
	const char *faults[STRESS_THREADS];
	struct parcel parcels[STRESS_THREADS][STRESS_THREADS][STRESS_SENDS];
};

struct stress_thread {
	struct stress *s;
	unsigned me;
	uint32_t sent[STRESS_THREADS], received[STRESS_THREADS];
};

static bool send_burst(struct stress_thread *t)
{
	bool is_over = true;
	for (unsigned to = 0; to < STRESS_THREADS; to++) {
		for (unsigned i = 0; i < 7 && to != t->me && t->sent[to] < STRESS_SENDS; i++) {
			uint32_t n = t->sent[to];
			struct parcel *p = &t->s->parcels[t->me][to][n];
			*p = (struct parcel){.number = n, .check = ~n};
			struct message msg = {.kind = MESSAGE_DATAGRAM, .peer_id = n, .pointer = p};
			if (!mailbox_send(t->s->m, t->me, to, &msg))
				break;
			t->sent[to]++;
		}
		is_over = is_over && (to == t->me || t->sent[to] == STRESS_SENDS);
	}
	mailbox_flush(t->s->m, t->me);
	return is_over;
}

static unsigned receive_burst(struct stress_thread *t)
{
	struct message out[32];
	unsigned n = mailbox_receive(t->s->m, t->me, out, 32);
	for (unsigned i = 0; i < n; i++) {
		struct parcel *p = out[i].pointer;
		if (p->number != t->received[out[i].from]++ || p->check != ~p->number)
			t->s->faults[t->me] = "out of order";
		p->check = 0;
	}
	return n;
}

static bool is_complete(const struct stress_thread *t)
{
	for (unsigned from = 0; from < STRESS_THREADS; from++) {
		if (from != t->me && t->received[from] < STRESS_SENDS)
			return false;
	}
	return true;
}

static void sleep_until_woken(struct stress_thread *t)
{
	struct pollfd p = {.fd = mailbox_fd(t->s->m, t->me), .events = POLLIN};
	eventfd_t count;
	if (!mailbox_sleep(t->s->m, t->me))
		return;
	if (poll(&p, 1, 20000) != 1)
		t->s->faults[t->me] = "lost wake-up";
	else if (eventfd_read(p.fd, &count) != 0)
		t->s->faults[t->me] = "eventfd";
	mailbox_awake(t->s->m, t->me);
}

static void *stress_main(void *arg)
{
	struct stress_thread *t = arg;
	bool is_over = false;
	while (!t->s->faults[t->me] && !(is_over && is_complete(t))) {
		is_over = send_burst(t);
		if (receive_burst(t) == 0 && is_over && !is_complete(t))
			sleep_until_woken(t);
	}
	mailbox_flush(t->s->m, t->me);
	return NULL;
}

static void mailbox_keeps_order_and_wakes_between_threads(void **state)
{
	(void)state;
	struct stress *s = calloc(1, sizeof(*s));
	struct stress_thread t[STRESS_THREADS] = {0};
	assert_non_null(s);
	s->m = boxes_new(STRESS_THREADS);
	for (unsigned i = 0; i < STRESS_THREADS; i++) {
		t[i].s = s;
		t[i].me = i;
		assert_int_equal(pthread_create(&s->threads[i], NULL, stress_main, &t[i]), 0);
	}
	for (unsigned i = 0; i < STRESS_THREADS; i++)
		assert_int_equal(pthread_join(s->threads[i], NULL), 0);
	for (unsigned i = 0; i < STRESS_THREADS; i++) {
		if (s->faults[i])
			fail_msg("thread %u: %s", i, s->faults[i]);
	}
	mailboxes_free(s->m);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_delivers_in_order_with_the_sender),
		cmocka_unit_test(mailbox_refuses_when_the_ring_is_full),
		cmocka_unit_test(mailbox_one_full_ring_leaves_the_others_alone),
		cmocka_unit_test(mailbox_receive_takes_turns_between_senders),
		cmocka_unit_test(mailbox_receive_of_one_takes_turns_too),
		cmocka_unit_test(mailbox_reaches_every_one_of_the_most_threads),
		cmocka_unit_test(mailbox_sleep_refuses_while_messages_wait),
		cmocka_unit_test(mailbox_wakes_sleepers_once_a_flush),
		cmocka_unit_test(mailbox_flush_without_new_messages_wakes_nobody),
		cmocka_unit_test(mailbox_awake_receivers_are_not_written_to),
		cmocka_unit_test(mailbox_two_senders_wake_a_sleeper_once),
		cmocka_unit_test(mailboxes_free_accepts_null),
		cmocka_unit_test(mailbox_loses_no_wakeup_in_any_order_of_steps),
		cmocka_unit_test(mailbox_keeps_order_and_wakes_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
