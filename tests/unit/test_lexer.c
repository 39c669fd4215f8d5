/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/lexer.h"

/* The words of a line, joined by '|', or "!" before the reason. */
static const char *split(const char *line, size_t len)
{
	static char joined[1024];
	struct lexer_line out;
	/* An exact copy, so that a sanitizer sees the first byte read past the end. */
	char *exact = malloc(len ? len : 1);
	assert_non_null(exact);
	memcpy(exact, line, len);
	const char *fault = lexer_split(exact, len, &out);
	joined[0] = '\0';
	if (fault)
		strcat(strcpy(joined, "!"), fault);
	for (unsigned i = 0; !fault && i < out.count; i++)
		strcat(strcat(joined, i ? "|" : ""), out.words[i]);
	if (!fault)
		assert_null(out.words[out.count]);
	free(exact);
	return joined;
}

struct case_line {
	const char *line, *words;
};

static void check(const struct case_line *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_string_equal(split(cases[i].line, strlen(cases[i].line)), cases[i].words);
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

static void words_are_split_at_blanks(void **state)
{
	static const struct case_line cases[] = {
		{"", ""},
		{"   \t ", ""},
		{"verb 3", "verb|3"},
		{"\tlocal\t\t::  ", "local|::"},
		{"a\vb\fc\rd", "a|b|c|d"},
		{"verb 3\r", "verb|3"},
		{"verb 3 \r", "verb|3"},
		{"\r", ""},
		{"--verb 3", "--verb|3"},
	};
	(void)state;
	CHECK(cases);
}

static void comments_begin_at_a_word(void **state)
{
	static const struct case_line cases[] = {
		{"# all", ""},
		{"; all", ""},
		{"   ;all", ""},
		{"key k # rest", "key|k"},
		{"key k ;rest", "key|k"},
		{"key a#b;c", "key|a#b;c"},
		{"key \"#no\" '#no'", "key|#no|#no"},
		{"# \"open \\x", ""},
		{"\"a\"#rest", "a"},
		{"key \\#x", "key"}, /* as stock: the backslash does not protect it */
	};
	(void)state;
	CHECK(cases);
}

static void quotes_open_only_at_a_word(void **state)
{
	static const struct case_line cases[] = {
		{"push \"route 10.0.0.0\"", "push|route 10.0.0.0"},
		{"push 'route \\ \" x'", "push|route \\ \" x"},
		{"a \"\" ''", "a||"},
		{"\"a\"b", "a|b"},
		{"\"a\"'b'", "a|b"},
		{"a\"b c\"", "a\"b|c\""},
		{"it's", "it's"},
		{"\"a\tb\"", "a\tb"},
		{"\"it's\"", "it's"},
	};
	(void)state;
	CHECK(cases);
}

static void backslash_protects_blank_quote_and_itself(void **state)
{
	static const struct case_line cases[] = {
		{"push route\\ 172.31.0.0\\ 255.255.0.0", "push|route 172.31.0.0 255.255.0.0"},
		{"a b\\\\c", "a|b\\c"},
		{"a \\\"b", "a|\"b"},
		{"a \"b\\\"c\\\\\"", "a|b\"c\\"},
		{"a \"lan\\ home\"", "a|lan home"},
		{"a \\ b", "a|b"}, /* between words an escaped blank is a blank */
		{"a '\\n'", "a|\\n"},
		{"a \\", "a"},
	};
	(void)state;
	CHECK(cases);
}

static void broken_quoting_is_refused(void **state)
{
	static const char backslash[] = "!a backslash may stand only before a backslash, a double "
					"quote or a blank; write it twice";
	static const struct case_line cases[] = {
		{"a \"b", "!no closing quotation (\")"},
		{"a \"b\\\"", "!no closing quotation (\")"},
		{"a 'b", "!no closing single quotation (')"},
		{"a 'b\"", "!no closing single quotation (')"},
		{"key c:\\key", backslash},
		{"key \"c:\\key\"", backslash},
		{"\\a", backslash},
		{"\\'a'", backslash},
		{"a b\\", "!a backslash at the end of the line"},
	};
	(void)state;
	CHECK(cases);
	assert_string_equal(split("a\0b", 3), "!a NUL byte");
}

static void line_has_at_most_16_words(void **state)
{
	static const struct case_line cases[] = {
		{"1 2 3 4 5 6 7 8 9 a b c d e f 0", "1|2|3|4|5|6|7|8|9|a|b|c|d|e|f|0"},
		{"1 2 3 4 5 6 7 8 9 a b c d e f 0 # x", "1|2|3|4|5|6|7|8|9|a|b|c|d|e|f|0"},
		{"1 2 3 4 5 6 7 8 9 a b c d e f 0 x", "!more than 16 words"},
		{"1 2 3 4 5 6 7 8 9 a b c d e f \"\" \"\"", "!more than 16 words"},
	};
	(void)state;
	CHECK(cases);
}

static void line_has_at_most_255_bytes(void **state)
{
	char line[300];
	(void)state;
	memset(line, 'x', sizeof(line));
	assert_int_equal(strlen(split(line, 254)), 254);
	assert_int_equal(strlen(split(line, 255)), 255);
	assert_string_equal(split(line, 256), "!longer than 255 bytes");
	line[255] = '\r';
	assert_int_equal(strlen(split(line, 256)), 255);
	/* The fullest line: the words need one byte more than the line has. */
	for (size_t i = 0; i < 31; i += 2)
		memcpy(line + i, "x ", 2);
	memset(line + 30, 'y', 225);
	assert_int_equal(strlen(split(line, 255)), 255);
}

/* Everything a text gives: "N:word|word;" a line, with "<...>" for a block, "N!" for a fault. */
static const char *lex(const char *text)
{
	static char all[4096];
	struct lexer lexer;
	struct lexer_line line;
	const char *reason;
	enum lexer_result result;
	size_t n = 0;
	lexer_init(&lexer, "file", text, strlen(text));
	all[0] = '\0';
	while ((result = lexer_next(&lexer, &line, &reason)) != LEXER_END) {
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%u", line.number);
		if (result == LEXER_FAULT) {
			n += (size_t)snprintf(all + n, sizeof(all) - n, "!%s;", reason);
			continue;
		}
		assert_string_equal(line.file, "file");
		for (unsigned i = 0; i < line.count; i++)
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%c%s", i ? '|' : ':',
					      line.words[i]);
		if (line.block)
			n += (size_t)snprintf(all + n, sizeof(all) - n, "<%.*s>",
					      (int)line.block_len, line.block);
		n += (size_t)snprintf(all + n, sizeof(all) - n, ";");
	}
	assert_int_equal(lexer_next(&lexer, &line, &reason), LEXER_END);
	return all;
}

static void text_is_read_line_by_line(void **state)
{
	static const struct case_line cases[] = {
		{"", ""},
		{"\n\n", ""},
		{"dev tun\n\n# x\nverb 3", "1:dev|tun;4:verb|3;"},
		{"dev tun\r\nverb 3\r\n", "1:dev|tun;2:verb|3;"},
		{"\xEF\xBB\xBF"
		 "dev tun\n",
		 "1:dev|tun;"},
		{"dev tun\n\xEF\xBB\xBF\n", "1:dev|tun;2:\xEF\xBB\xBF;"}, /* only at the start */
		{"--dev tun\n--\n", "1:dev|tun;2:--;"},
		{"a \"b\nc d\n", "1!no closing quotation (\");2:c|d;"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(lex(cases[i].line), cases[i].words);
}

static void block_is_taken_verbatim(void **state)
{
	static const struct case_line cases[] = {
		{"<ca>\n# a\n \"b\n</ca>\nverb 3\n", "1:ca<# a\n \"b\n>;5:verb|3;"},
		{"<ca>\r\nx\r\n</ca>\r\n", "1:ca<x\r\n>;"},
		{"  <ca>  # comment\n  x\n  </ca> anything\n", "1:ca<  x\n>;"},
		{"<ca>\n</ca>", "1:ca<>;"},
		{"<ca>\n</cat>\n</key>\n</ca>\n", "1:ca<</cat>\n</key>\n>;"},
		{"<ca>\n<key>\n</ca>\n", "1:ca<<key>\n>;"},
		{"#<ca>\nverb 3\n", "2:verb|3;"},
		{"<ca> x\n", "1:<ca>|x;"}, /* no block: something follows */
		{"</ca>\n", "1:</ca>;"},
		{"<>\n", "1:<>;"},
		{"<ca>\nverb 3\n", "1!the end tag of this inline block is missing;"},
		{"<ca>", "1!the end tag of this inline block is missing;"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(lex(cases[i].line), cases[i].words);
}

static void block_may_have_long_lines(void **state)
{
	char text[1024] = "<ca>\n";
	(void)state;
	memset(text + 5, 'x', 600);
	strcpy(text + 605, "\n</ca>\n");
	assert_int_equal(strlen(lex(text)), strlen("1:ca<>;") + 601);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_at_blanks),
		cmocka_unit_test(comments_begin_at_a_word),
		cmocka_unit_test(quotes_open_only_at_a_word),
		cmocka_unit_test(backslash_protects_blank_quote_and_itself),
		cmocka_unit_test(broken_quoting_is_refused),
		cmocka_unit_test(line_has_at_most_16_words),
		cmocka_unit_test(line_has_at_most_255_bytes),
		cmocka_unit_test(text_is_read_line_by_line),
		cmocka_unit_test(block_is_taken_verbatim),
		cmocka_unit_test(block_may_have_long_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
