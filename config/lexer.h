/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_LEXER_H
#define CONFIG_LEXER_H

/* Text of a configuration file -> lines of words: quotes, escapes, comments and inline blocks as
 * OpenVPN reads them (options.md, section 1). */

#include <stdbool.h>
#include <stddef.h>

#define LEXER_LINE_MAX	255 /* bytes without the line's end; OPTION_LINE_SIZE of stock */
#define LEXER_WORDS_MAX 16  /* with the directive's name; MAX_PARMS of stock */

/* One line that says something. `words` points into `text`, or to a command line's own words. */
struct lexer_line {
	const char *file; /* NULL: command line */
	unsigned number;  /* 1..; of the opening tag if there is a block; 0: command line */
	unsigned count;	  /* words, at least 1; words[0] is the name without "--" */
	const char *words[LEXER_WORDS_MAX + 1]; /* NULL behind the last */
	const char *block; /* inline block behind words[0], points into the input; NULL: none */
	size_t block_len;
	char text[LEXER_LINE_MAX + 2];
};

struct lexer {
	const char *file;
	const char *text;
	size_t len, pos;
	unsigned number; /* of the line read last */
};

enum lexer_result {
	LEXER_LINE,
	LEXER_FAULT, /* the line is wrong, *reason says why; the next call goes on behind it */
	LEXER_END,
};

/* `text` and `file` must outlive the lexer. A byte order mark is skipped. */
void lexer_init(struct lexer *l, const char *file, const char *text, size_t len);
/* The next line with words; empty lines and comments are left out. On LEXER_FAULT out->number is
 * set and `reason` points to a constant. */
enum lexer_result lexer_next(struct lexer *l, struct lexer_line *out, const char **reason);
/* Split one line of `len` bytes into out->words and out->count (0 if it says nothing). Returns
 * NULL, or what is wrong with it. */
const char *lexer_split(const char *line, size_t len, struct lexer_line *out);

#endif
