/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/commands.h"

static void add(struct commands *q, const char *text)
{
	assert_int_equal(commands_add(q, text, false, COMMANDS_WAITING_MAX), 0);
}

/* All that are to be handed over, joined. */
static const char *send_all(struct commands *q, char *out)
{
	out[0] = '\0';
	while (q->unsent) {
		strcat(out, q->unsent->text);
		commands_sent(q);
	}
	return out;
}

static void commands_go_in_order_and_are_kept_until_confirmed(void **state)
{
	(void)state;
	struct commands q = {0};
	char out[64];
	add(&q, "a");
	add(&q, "b");
	assert_string_equal(send_all(&q, out), "ab");
	add(&q, "c");
	assert_string_equal(send_all(&q, out), "c");
	commands_rewind(&q);
	assert_string_equal(send_all(&q, out), "abc");
	commands_confirm(&q);
	assert_null(q.first);
	assert_int_equal(q.waiting, 0);
	commands_rewind(&q);
	assert_string_equal(send_all(&q, out), "");
	commands_fini(&q);
}

static void only_what_was_sent_is_confirmed(void **state)
{
	(void)state;
	struct commands q = {0};
	char out[64];
	add(&q, "a");
	commands_confirm(&q);
	add(&q, "b");
	commands_sent(&q);
	commands_confirm(&q);
	assert_string_equal(send_all(&q, out), "b");
	commands_fini(&q);
	assert_int_equal(q.waiting, 0);
	add(&q, "again");
	assert_string_equal(send_all(&q, out), "again");
	commands_fini(&q);
}

static void the_limit_counts_each_nul(void **state)
{
	(void)state;
	struct commands q = {0};
	assert_int_equal(commands_add(&q, "1234", false, 10), 0);
	assert_int_equal(commands_add(&q, "12345", false, 10), -ENOBUFS);
	assert_int_equal(commands_add(&q, "1234", false, 10), 0);
	assert_int_equal(commands_add(&q, "", false, 10), -ENOBUFS);
	assert_int_equal(commands_add(&q, "", false, 11), 0);
	assert_int_equal(commands_add(&q, "", false, 5), -ENOBUFS); /* a limit below what waits */
	commands_fini(&q);
}

/* security.md, S-25 */
static void messages_are_taken_apart(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		const char *want; /* each followed by a bar */
	} cases[] = {
		{"", 0, ""},
		{"A\0", 2, "A|"},
		{"A", 1, ""},
		{"A\0B\0", 4, "A|B|"},
		{"A\0B", 3, "A|"},
		{"A\r\n\0B\n\n\0", 8, "A|B|"},
		{"\0\0\0A\0", 5, "A|"},
		{"\r\n\0A\0", 5, "A|"},
		{"A\x1b\0B\0", 5, "B|"},
		{"A\nB\0C\0", 6, "C|"},
		{"\x7f\0C\0", 4, "C|"},
		{"1234567\0A\0", 10, "1234567|A|"},
		{"12345678\0A\0", 11, "A|"}, /* does not fit */
		{"\xc3\xbc\0", 3, "\xc3\xbc|"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *exact = malloc(cases[i].len ? cases[i].len : 1);
		char got[64] = "", command[8];
		assert_non_null(exact);
		memcpy(exact, cases[i].bytes, cases[i].len);
		struct view rest = {exact, cases[i].len};
		while (commands_next(&rest, command, sizeof(command)))
			strcat(strcat(got, command), "|");
		assert_string_equal(got, cases[i].want);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_go_in_order_and_are_kept_until_confirmed),
		cmocka_unit_test(only_what_was_sent_is_confirmed),
		cmocka_unit_test(the_limit_counts_each_nul),
		cmocka_unit_test(messages_are_taken_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
