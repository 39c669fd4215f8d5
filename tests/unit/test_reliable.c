/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "server/control/reliable.h"

static struct view text(const char *s)
{
	return (struct view){(const uint8_t *)s, strlen(s)};
}

static void queue(struct reliable *r, const char *s)
{
	assert_int_equal(reliable_queue(r, OPCODE_CONTROL_V1, text(s)), 0);
}

/* Ids that are due at `now_ms`, as they go out. */
static size_t send_all(struct reliable *r, uint64_t now_ms, uint32_t *ids)
{
	struct reliable_message m;
	size_t n = 0;
	while (reliable_next(r, now_ms, &m))
		ids[n++] = m.id;
	return n;
}

static void send_window_is_six(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t ids[8];
	reliable_init(&r, 0, 0, 2000);
	for (int i = 0; i < RELIABLE_SEND_WINDOW; i++) {
		assert_true(reliable_can_queue(&r));
		queue(&r, "x");
	}
	assert_false(reliable_can_queue(&r));
	assert_int_equal(reliable_queue(&r, OPCODE_CONTROL_V1, text("y")), -ENOBUFS);
	assert_int_equal(send_all(&r, 0, ids), 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(ids[i], i);
	reliable_fini(&r);
}

static void window_moves_with_the_oldest_unacked(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t ids[8];
	reliable_init(&r, 0, 0, 2000);
	for (int i = 0; i < 6; i++)
		queue(&r, "x");
	send_all(&r, 0, ids);
	for (uint32_t id = 1; id < 6; id++)
		reliable_acked(&r, id, 0);
	assert_false(reliable_can_queue(&r));
	reliable_acked(&r, 0, 0);
	assert_true(reliable_can_queue(&r));
	assert_true(reliable_is_all_acked(&r));
	reliable_fini(&r);
}

static void repetition_doubles(void **state)
{
	(void)state;
	/* wire.md, section 3: 0, 2, 6, 14, 30, 62 seconds */
	static const uint64_t at_ms[] = {0, 2000, 6000, 14000, 30000, 62000};
	struct reliable r;
	struct reliable_message m;
	reliable_init(&r, 0, 0, 2000);
	queue(&r, "hello");
	for (size_t i = 0; i < sizeof(at_ms) / sizeof(at_ms[0]); i++) {
		assert_int_equal(reliable_deadline(&r), at_ms[i]);
		if (at_ms[i] > 0)
			assert_false(reliable_next(&r, at_ms[i] - 1, &m));
		assert_true(reliable_next(&r, at_ms[i], &m));
		assert_int_equal(m.id, 0);
		assert_int_equal(m.is_repeated, i > 0);
		assert_memory_equal(m.payload.data, "hello", 5);
		assert_false(reliable_next(&r, at_ms[i], &m));
	}
	reliable_acked(&r, 0, 62000);
	assert_true(reliable_deadline(&r) == UINT64_MAX);
	reliable_fini(&r);
}

static void three_acks_for_later_ids_repeat_early(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t ids[8];
	reliable_init(&r, 0, 0, 2000);
	for (int i = 0; i < 5; i++)
		queue(&r, "x");
	assert_int_equal(send_all(&r, 0, ids), 5);
	reliable_acked(&r, 1, 10);
	reliable_acked(&r, 2, 10);
	assert_int_equal(send_all(&r, 10, ids), 0);
	reliable_acked(&r, 3, 10);
	assert_int_equal(send_all(&r, 10, ids), 1);
	assert_int_equal(ids[0], 0);
	/* The count starts anew, and a second copy of an ack counts for nothing. */
	reliable_acked(&r, 3, 11);
	reliable_acked(&r, 4, 11);
	assert_int_equal(send_all(&r, 11, ids), 0);
	reliable_fini(&r);
}

static void acks_of_ids_that_were_never_sent_are_ignored(void **state)
{
	(void)state;
	static const uint32_t made_up[] = {1, 5, 6, 7, 12, UINT32_MAX, 0x80000000u};
	struct reliable r;
	uint32_t ids[8];
	reliable_init(&r, 0, 0, 2000);
	queue(&r, "x");
	reliable_acked(&r, 0, 0); /* queued, but has not gone */
	assert_false(reliable_is_all_acked(&r));
	assert_int_equal(send_all(&r, 0, ids), 1);
	for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++)
		reliable_acked(&r, made_up[i], 0);
	assert_false(reliable_is_all_acked(&r));
	reliable_fini(&r);
}

static void receive_window_edges(void **state)
{
	(void)state;
	/* next expected is 3 of a stream that began at 1 */
	static const struct {
		uint32_t id;
		bool is_taken;
	} cases[] = {
		{3, true}, {14, true}, {15, false},	    {16, false},	  {2, true},
		{1, true}, {0, true},  {UINT32_MAX, false}, {0x80000000u, false}, {3, true},
	};
	struct reliable r;
	struct view v;
	reliable_init(&r, 1, 1, 2000);
	for (uint32_t id = 1; id < 3; id++) {
		assert_true(reliable_receive(&r, id, text("a")));
		assert_true(reliable_peek(&r, &v));
		reliable_consume(&r);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(reliable_receive(&r, cases[i].id, text("b")), cases[i].is_taken);
	reliable_fini(&r);
}

static void delivery_is_in_order_and_once(void **state)
{
	(void)state;
	static const uint32_t arrival[] = {2, 0, 2, 1, 0, 3, 1};
	struct reliable r;
	struct view v;
	char got[16] = "";
	reliable_init(&r, 0, 0, 2000);
	for (size_t i = 0; i < sizeof(arrival) / sizeof(arrival[0]); i++) {
		const char letter[2] = {(char)('a' + (char)arrival[i]), '\0'};
		assert_true(reliable_receive(&r, arrival[i], text(letter)));
		while (reliable_peek(&r, &v)) {
			strncat(got, (const char *)v.data, 1);
			reliable_consume(&r);
		}
	}
	assert_string_equal(got, "abcd");
	reliable_fini(&r);
}

static void first_copy_of_a_message_counts(void **state)
{
	(void)state;
	struct reliable r;
	struct view v;
	reliable_init(&r, 0, 0, 2000);
	assert_true(reliable_receive(&r, 0, text("first")));
	assert_true(reliable_receive(&r, 0, text("other")));
	assert_true(reliable_peek(&r, &v));
	assert_memory_equal(v.data, "first", 5);
	reliable_fini(&r);
}

static void payload_limit(void **state)
{
	(void)state;
	static uint8_t big[RELIABLE_PAYLOAD_MAX + 1];
	struct reliable r;
	reliable_init(&r, 0, 0, 2000);
	assert_true(reliable_receive(&r, 0, (struct view){big, RELIABLE_PAYLOAD_MAX}));
	assert_false(reliable_receive(&r, 1, (struct view){big, sizeof(big)}));
	assert_int_equal(reliable_queue(&r, OPCODE_CONTROL_V1, (struct view){big, sizeof(big)}),
			 -EMSGSIZE);
	assert_int_equal(
		reliable_queue(&r, OPCODE_CONTROL_V1, (struct view){big, RELIABLE_PAYLOAD_MAX}), 0);
	reliable_fini(&r);
}

static void a_message_that_is_ignored_is_not_acked(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t acks[ACK_MAX];
	reliable_init(&r, 0, 0, 2000);
	assert_false(reliable_receive(&r, RELIABLE_RECV_WINDOW, text("x")));
	assert_false(reliable_has_acks(&r));
	assert_int_equal(reliable_take_acks(&r, ACK_MAX, acks), 0);
	reliable_fini(&r);
}

static void acks_go_once_then_repeat_the_recent(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t acks[ACK_MAX];
	reliable_init(&r, 0, 0, 2000);
	for (uint32_t id = 0; id < 6; id++)
		assert_true(reliable_receive(&r, id, text("x")));
	assert_int_equal(reliable_take_acks(&r, RELIABLE_ACKS_PIGGYBACK, acks), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(acks[i], i);
	assert_true(reliable_has_acks(&r));
	/* two new ones, filled up with the most recent of the old */
	assert_int_equal(reliable_take_acks(&r, RELIABLE_ACKS_PIGGYBACK, acks), 4);
	static const uint32_t expected[] = {4, 5, 3, 2};
	assert_memory_equal(acks, expected, sizeof(expected));
	assert_false(reliable_has_acks(&r));
	reliable_fini(&r);
}

static void at_most_eight_acks_wait(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t acks[ACK_MAX];
	reliable_init(&r, 0, 0, 2000);
	for (uint32_t id = 0; id < 10; id++)
		assert_true(reliable_receive(&r, id, text("x")));
	for (uint32_t id = 0; id < 10; id++) /* repeated: no id twice in the list */
		assert_true(reliable_receive(&r, id, text("x")));
	assert_int_equal(reliable_take_acks(&r, ACK_MAX, acks), ACK_MAX);
	for (uint32_t i = 0; i < ACK_MAX; i++)
		assert_int_equal(acks[i], i);
	assert_false(reliable_has_acks(&r));
	/* what found no room is acked when it is repeated */
	assert_true(reliable_receive(&r, 9, text("x")));
	assert_true(reliable_take_acks(&r, ACK_MAX, acks) >= 1);
	assert_int_equal(acks[0], 9);
	reliable_fini(&r);
}

static void skipping_goes_on_with_the_next(void **state)
{
	(void)state;
	struct reliable r;
	struct view v;
	reliable_init(&r, 1, 1, 2000);
	assert_true(reliable_receive(&r, 2, text("hello")));
	assert_false(reliable_peek(&r, &v));
	reliable_skip(&r);
	assert_true(reliable_peek(&r, &v));
	assert_memory_equal(v.data, "hello", 5);
	reliable_fini(&r);
}

static void finishing_sends_what_has_not_gone_and_repeats_nothing(void **state)
{
	(void)state;
	struct reliable r;
	uint32_t ids[8];
	reliable_init(&r, 0, 0, 2000);
	queue(&r, "gone");
	assert_int_equal(send_all(&r, 0, ids), 1);
	queue(&r, "alert");
	reliable_finish(&r);
	assert_int_equal(send_all(&r, 1, ids), 1);
	assert_int_equal(ids[0], 1);
	assert_true(reliable_deadline(&r) == UINT64_MAX);
	assert_int_equal(send_all(&r, 100000, ids), 0);
	reliable_fini(&r);
}

static void empty_messages_are_messages(void **state)
{
	(void)state;
	struct reliable r;
	struct view v;
	struct reliable_message m;
	reliable_init(&r, 0, 0, 2000);
	assert_int_equal(reliable_queue(&r, OPCODE_SOFT_RESET_V1, (struct view){0}), 0);
	assert_true(reliable_next(&r, 0, &m));
	assert_int_equal(m.opcode, OPCODE_SOFT_RESET_V1);
	assert_int_equal(m.payload.len, 0);
	assert_true(reliable_receive(&r, 0, (struct view){0}));
	assert_true(reliable_peek(&r, &v));
	assert_int_equal(v.len, 0);
	reliable_consume(&r);
	assert_false(reliable_peek(&r, &v));
	reliable_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_window_is_six),
		cmocka_unit_test(window_moves_with_the_oldest_unacked),
		cmocka_unit_test(repetition_doubles),
		cmocka_unit_test(three_acks_for_later_ids_repeat_early),
		cmocka_unit_test(acks_of_ids_that_were_never_sent_are_ignored),
		cmocka_unit_test(receive_window_edges),
		cmocka_unit_test(delivery_is_in_order_and_once),
		cmocka_unit_test(first_copy_of_a_message_counts),
		cmocka_unit_test(payload_limit),
		cmocka_unit_test(a_message_that_is_ignored_is_not_acked),
		cmocka_unit_test(acks_go_once_then_repeat_the_recent),
		cmocka_unit_test(at_most_eight_acks_wait),
		cmocka_unit_test(skipping_goes_on_with_the_next),
		cmocka_unit_test(finishing_sends_what_has_not_gone_and_repeats_nothing),
		cmocka_unit_test(empty_messages_are_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
