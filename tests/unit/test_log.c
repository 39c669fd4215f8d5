/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/log.h"

static char dir[] = "/tmp/test_log_XXXXXX";
static char path[64];
static char text[1 << 20];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void start(int verb, int mute, bool has_timestamps)
{
	struct log_options o = {
		.verb = verb, .mute = mute, .has_timestamps = has_timestamps, .file = path};
	assert_int_equal(log_open(&o), 0);
}

/* What was logged since start(). */
static const char *logged(void)
{
	log_close();
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

static void line_is_text_and_newline(void **state)
{
	(void)state;
	start(3, 0, false);
	log_line(LOG_INFO, "Initialization Sequence %s", "Completed");
	log_client(LOG_INFO, "alice/192.0.2.7:40000", "peer info: %s", "IV_VER=2.6.14");
	log_client(LOG_INFO, "", "no prefix");
	log_client(LOG_INFO, NULL, "none either");
	assert_string_equal(logged(), "Initialization Sequence Completed\n"
				      "alice/192.0.2.7:40000 peer info: IV_VER=2.6.14\n"
				      "no prefix\nnone either\n");
}

/* '0' stands for a digit. */
static bool has_shape(const char *line, const char *shape)
{
	for (; *shape; line++, shape++)
		if (*shape == '0' ? !isdigit((unsigned char)*line) : *line != *shape)
			return false;
	return true;
}

static void time_stamp_has_stock_form(void **state)
{
	(void)state;
	start(3, 0, true);
	log_line(LOG_INFO, "text");
	assert_true(has_shape(logged(), "0000-00-00 00:00:00 text\n"));
}

static void time_stamp_has_microseconds_from_verb_4(void **state)
{
	(void)state;
	start(4, 0, true);
	log_line(LOG_INFO, "text");
	const char *line = logged();
	assert_true(has_shape(line, "0000-00-00 00:00:00 us="));
	line += strlen("0000-00-00 00:00:00 us=");
	line += strspn(line, "0123456789");
	assert_string_equal(line, " text\n");
}

static void level_decides(void **state)
{
	(void)state;
	start(1, 0, false);
	assert_true(log_is_on(LOG_ERROR));
	assert_true(log_is_on(LOG_WARN));
	assert_false(log_is_on(LOG_INFO));
	log_line(LOG_WARN, "a");
	log_line(LOG_INFO, "b");
	log_client(LOG_DEBUG, "x", "c");
	log_set_verb(4);
	assert_int_equal(log_verb(), 4);
	log_client(LOG_DEBUG, "x", "d");
	log_line(LOG_TRACE, "e");
	assert_string_equal(logged(), "a\nx d\n");
}

static void file_is_private_and_kept_only_when_appending(void **state)
{
	struct stat st;
	struct log_options o = {.verb = 1, .file = path, .is_append = true};
	(void)state;
	unlink(path);
	start(1, 0, false);
	log_line(LOG_WARN, "first");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(log_open(&o), 0);
	log_line(LOG_WARN, "second");
	assert_string_equal(logged(), "first\nsecond\n");
	start(1, 0, false);
	assert_string_equal(logged(), "");
}

static void file_that_cannot_be_opened_is_an_error(void **state)
{
	struct log_options o = {.verb = 1, .file = "/nonexistent/log"};
	(void)state;
	start(1, 0, false);
	assert_int_equal(log_open(&o), -ENOENT);
	/* The old sink stays. */
	log_line(LOG_WARN, "still here");
	assert_string_equal(logged(), "still here\n");
}

static void control_characters_cannot_forge_a_line(void **state)
{
	(void)state;
	start(1, 0, false);
	log_line(LOG_WARN, "a%sb", "\n2026-01-01 00:00:00 \x1b[31m\r\t");
	assert_string_equal(logged(), "a_2026-01-01 00:00:00 _[31m_\tb\n");
}

static void long_line_is_cut_not_split(void **state)
{
	char *longer = malloc(20001);
	(void)state;
	assert_non_null(longer);
	memset(longer, 'x', 20000);
	longer[20000] = '\0';
	start(1, 0, true);
	log_client(LOG_WARN, longer, "%s", longer);
	log_line(LOG_WARN, "next");
	const char *log = logged();
	const char *end = strchr(log, '\n');
	assert_non_null(end);
	assert_true(end - log > 8000 && end - log <= 8192);
	assert_true(has_shape(end + 1, "0000-00-00 00:00:00 next\n"));
	free(longer);
}

static void mute_bounds_lines_of_one_kind(void **state)
{
	(void)state;
	start(3, 2, false);
	for (int i = 0; i < 5; i++)
		log_line(LOG_INFO, "kind %d", i);
	log_line(LOG_INFO, "other");
	log_line(LOG_INFO, "kind %d", 9);
	assert_string_equal(logged(),
			    "kind 0\nkind 1\nNOTE: --mute triggered...\n"
			    "3 variation(s) on previous 2 message(s) suppressed by --mute\n"
			    "other\nkind 9\n");
}

static void mute_tells_finished_texts_apart(void **state)
{
	(void)state;
	start(3, 1, false);
	log_line(LOG_INFO, "%s", "same");
	log_line(LOG_INFO, "%s", "same");
	log_line(LOG_INFO, "%s", "different");
	assert_string_equal(logged(),
			    "same\nNOTE: --mute triggered...\n"
			    "1 variation(s) on previous 1 message(s) suppressed by --mute\n"
			    "different\n");
}

static void mute_lets_errors_through(void **state)
{
	(void)state;
	start(3, 1, false);
	for (int i = 0; i < 3; i++)
		log_line(LOG_ERROR, "error");
	assert_string_equal(logged(), "error\nerror\nerror\n");
}

static void rate_limit_counts_what_it_leaves_out(void **state)
{
	static struct log_limit limit;
	unsigned passed = 0;
	(void)state;
	start(1, 0, false);
	for (int i = 0; i < 10; i++)
		passed += log_limit_pass(&limit, 5000, 3);
	assert_int_equal(passed, 3);
	assert_false(log_limit_pass(&limit, 5999, 3));
	assert_true(log_limit_pass(&limit, 6000, 3));
	assert_string_equal(logged(), "NOTE: 8 similar message(s) left out (rate limit)\n");
}

static void printable_keeps_ascii_only(void **state)
{
	char out[8];
	(void)state;
	assert_string_equal(log_printable("a b\n\x7f\xc3~", 7, out, sizeof(out)), "a b___~");
	assert_string_equal(log_printable("0123456789", 10, out, sizeof(out)), "0123456");
	assert_string_equal(log_printable("\0x", 2, out, sizeof(out)), "_x");
	assert_string_equal(log_printable("", 0, out, 1), "");
}

static void *write_lines(void *name)
{
	for (int i = 0; i < 200; i++)
		log_client(LOG_WARN, name, "%s", "0123456789012345678901234567890123456789");
	return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
	static char names[4][2] = {"a", "b", "c", "d"};
	pthread_t threads[4];
	unsigned count = 0;
	(void)state;
	start(1, 0, false);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (const char *line = logged(); *line; line = strchr(line, '\n') + 1, count++)
		assert_true(has_shape(line + 1, " 0000000000000000000000000000000000000000\n"));
	assert_int_equal(count, 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_is_text_and_newline),
		cmocka_unit_test(time_stamp_has_stock_form),
		cmocka_unit_test(time_stamp_has_microseconds_from_verb_4),
		cmocka_unit_test(level_decides),
		cmocka_unit_test(file_is_private_and_kept_only_when_appending),
		cmocka_unit_test(file_that_cannot_be_opened_is_an_error),
		cmocka_unit_test(control_characters_cannot_forge_a_line),
		cmocka_unit_test(long_line_is_cut_not_split),
		cmocka_unit_test(mute_bounds_lines_of_one_kind),
		cmocka_unit_test(mute_tells_finished_texts_apart),
		cmocka_unit_test(mute_lets_errors_through),
		cmocka_unit_test(rate_limit_counts_what_it_leaves_out),
		cmocka_unit_test(printable_keeps_ascii_only),
		cmocka_unit_test(lines_of_threads_do_not_mix),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
