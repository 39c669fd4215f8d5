/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/hand_over.h"

#define ACCEPTOR 0
#define WORKER	 1

struct fixture {
	struct mailboxes *mailboxes;
	struct hand_over *h;
};

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	assert_int_equal(mailboxes_new(3, &f->mailboxes), 0);
	assert_int_equal(hand_over_new(f->mailboxes, 2, &f->h), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	hand_over_free(f->h);
	mailboxes_free(f->mailboxes);
	test_free(f);
	return 0;
}

static void send_removal(struct fixture *f, uint32_t peer_id)
{
	struct message m = {.kind = MESSAGE_PEER_REMOVE, .peer_id = peer_id};

	assert_int_equal(hand_over_send(f->h, WORKER, &m), 0);
}

static void hand_over_keeps_what_does_not_fit_and_its_order(void **state)
{
	enum { COUNT = 5000 };
	struct fixture *f = *state;
	uint32_t expected = 0;

	for (uint32_t i = 0; i < COUNT; i++)
		send_removal(f, i);
	assert_true(hand_over_is_blocked(f->h));
	while (expected < COUNT) {
		struct message m[100];
		unsigned n = mailbox_receive(f->mailboxes, WORKER, m, 100);

		assert_true(n > 0);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(m[i].peer_id, expected++);
		/* What is sent later must not overtake what waits. */
		if (expected == 100) {
			send_removal(f, COUNT);
			assert_true(hand_over_is_blocked(f->h));
		}
		hand_over_flush(f->h);
	}
	assert_false(hand_over_is_blocked(f->h));
}

static void hand_over_lets_nothing_wait_for_data_packets(void **state)
{
	struct fixture *f = *state;
	struct buffer *b = hand_over_buffer(f->h);

	assert_non_null(b);
	for (uint32_t i = 0; i < 5000; i++)
		send_removal(f, i);
	assert_false(hand_over_datagram(f->h, WORKER, b));
	/* Another worker's ring is not full. */
	assert_true(hand_over_datagram(f->h, 2, b));
}

static void hand_over_reuses_its_buffers_when_they_come_home(void **state)
{
	struct fixture *f = *state;
	struct buffer *b, *chain = NULL;
	unsigned count = 0;
	struct message m;

	while ((b = hand_over_buffer(f->h))) {
		b->next = chain;
		chain = b;
		count++;
	}
	assert_true(count > 0);
	m = (struct message){.kind = MESSAGE_BUFFER_HOME, .buffer = chain};
	assert_true(mailbox_send(f->mailboxes, WORKER, ACCEPTOR, &m));
	assert_int_equal(hand_over_receive(f->h, &m, 1), 0);
	for (unsigned i = 0; i < count; i++)
		assert_non_null(hand_over_buffer(f->h));
	assert_null(hand_over_buffer(f->h));
}

static void hand_over_reports_the_rest_of_a_batch_with_buffers(void **state)
{
	struct fixture *f = *state;
	struct buffer *b = hand_over_buffer(f->h);
	struct message home = {.kind = MESSAGE_BUFFER_HOME, .buffer = b};
	struct message fact = {.kind = MESSAGE_PEER_EXIT, .peer_id = 7};
	struct message out[4];

	assert_true(mailbox_send(f->mailboxes, WORKER, ACCEPTOR, &home));
	assert_true(mailbox_send(f->mailboxes, WORKER, ACCEPTOR, &fact));
	assert_int_equal(hand_over_receive(f->h, out, 4), 1);
	assert_int_equal(out[0].kind, MESSAGE_PEER_EXIT);
	assert_int_equal(out[0].from, WORKER);
}

static void hand_over_sends_foreign_buffers_home_in_one_chain(void **state)
{
	struct fixture *f = *state;
	struct buffer foreign[3] = {{.home = WORKER}, {.home = WORKER}, {.home = 2}};
	struct message out[4];
	unsigned count = 0;

	for (int i = 0; i < 3; i++)
		hand_over_home(f->h, &foreign[i]);
	hand_over_flush(f->h);
	assert_int_equal(mailbox_receive(f->mailboxes, WORKER, out, 4), 1);
	assert_int_equal(out[0].kind, MESSAGE_BUFFER_HOME);
	for (struct buffer *b = out[0].buffer; b; b = b->next, count++)
		assert_int_equal(b->home, WORKER);
	assert_int_equal(count, 2);
	assert_int_equal(mailbox_receive(f->mailboxes, 2, out, 4), 1);
	assert_ptr_equal(out[0].buffer, &foreign[2]);
	assert_null(foreign[2].next);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(hand_over_keeps_what_does_not_fit_and_its_order),
		TEST(hand_over_lets_nothing_wait_for_data_packets),
		TEST(hand_over_reuses_its_buffers_when_they_come_home),
		TEST(hand_over_reports_the_rest_of_a_batch_with_buffers),
		TEST(hand_over_sends_foreign_buffers_home_in_one_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
