/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <getopt.h>

#include "perf/arguments.h"

struct values {
	bool is_loud, has_gso;
	unsigned count;
	double rate;
	const char *name;
	uint32_t target_be32;
};
#define AT(field) offsetof(struct values, field)

static const struct argument table[] = {
	{ARGUMENT_TITLE, NULL, NULL, "title", 0, 0, 0},
	{ARGUMENT_ON, "loud", NULL, "says more", AT(is_loud), 0, 0},
	{ARGUMENT_OFF, "no-gso", NULL, "single ones", AT(has_gso), 0, 0},
	{ARGUMENT_NUMBER, "count", "N", "how many", AT(count), 2, 100},
	{ARGUMENT_AMOUNT, "rate", "N", "how fast", AT(rate), 0, 10},
	{ARGUMENT_TEXT, "name", "WORD", "who", AT(name), 0, 0},
	{ARGUMENT_ADDRESS4, "target", "ADDR", "where", AT(target_be32), 0, 0},
};
#define COUNT (sizeof(table) / sizeof(table[0]))

/* The words after the program's name, parted by blanks. */
static int parse(const char *words, struct values *out, bool *wants_help)
{
	char text[256], *argv[32] = {text}, *rest;
	int argc = 1;

	snprintf(text, sizeof(text), "%s", words);
	for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		argv[argc++] = w;
	optind = 0;
	return arguments_parse(table, COUNT, argc, argv, out, wants_help);
}

static void every_kind_is_stored(void **state)
{
	struct values v = {.has_gso = true};
	bool wants_help;

	(void)state;
	assert_int_equal(parse("--loud --no-gso --count 100 --rate 2.5 --name x --target 10.8.0.1",
			       &v, &wants_help),
			 0);
	assert_true(v.is_loud && !v.has_gso && v.count == 100 && v.rate > 2.49 && v.rate < 2.51);
	assert_memory_equal(&v.target_be32, "\x0a\x08\x00\x01", 4);
	assert_string_equal(v.name, "x");
	assert_false(wants_help);
	assert_int_equal(parse("--count=2 --help", &v, &wants_help), 0);
	assert_true(wants_help && v.count == 2);
}

static void refusals(void **state)
{
	static const char *const words[] = {
		"--count 1",	    "--count 101",   "--count -2",	     "--count 2x",
		"--count 0x10",	    "--count",	     "--rate 10.1",	     "--rate -1",
		"--rate nan",	    "--rate inf",    "--rate 1e999",	     "--rate 1s",
		"--target fd80::1", "--target 10.8", "--target 10.8.0.0/24", "--loud=1",
		"--unknown",	    "word",	     "--loud word",	     "-l",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct values v = {0}, none = {0};
		bool wants_help;
		assert_int_equal(parse(words[i], &v, &wants_help), -EINVAL);
		v.is_loud = false;
		assert_memory_equal(&v, &none, sizeof(v));
	}
}

static void help_names_every_option(void **state)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	arguments_print(table, COUNT, f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, " title\n"));
	assert_non_null(strstr(text, "  --loud                   says more\n"));
	assert_non_null(strstr(text, "  --target ADDR            where\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_stored),
		cmocka_unit_test(refusals),
		cmocka_unit_test(help_names_every_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
