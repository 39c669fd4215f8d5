/* SPDX-License-Identifier: Apache-2.0 */
#include "config/lexer.h"

#include <string.h>

enum state { BETWEEN, UNQUOTED, DOUBLE_QUOTED, SINGLE_QUOTED };

struct splitter {
	struct lexer_line *out;
	size_t used; /* bytes of out->text */
	enum state state;
	bool is_escaped; /* a backslash stands before this byte */
};

/* As isspace in the C locale; the line's end is seen as a NUL. */
static bool is_space(char c)
{
	return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_escapable(char c)
{
	return c == '\\' || c == '"' || is_space(c);
}

/* False if the line has more words than it may. */
static bool begin_word(struct splitter *s, enum state state)
{
	if (s->out->count == LEXER_WORDS_MAX)
		return false;
	s->out->words[s->out->count++] = s->out->text + s->used;
	s->state = state;
	return true;
}

/* A word takes no more room than it has in the line, plus its NUL, for which there is the blank or
 * quote behind it; so text[] is never full. */
static void add_byte(struct splitter *s, char c)
{
	s->out->text[s->used++] = c;
}

static void end_word(struct splitter *s)
{
	add_byte(s, '\0');
	s->state = BETWEEN;
}

/* Returns false if the rest of the line is a comment. */
static bool between_words(struct splitter *s, char c, const char **fault)
{
	enum state state = UNQUOTED;
	if (is_space(c))
		return true;
	/* Stock looks for a comment before it looks at the backslash: `\#` starts one too. */
	if (c == ';' || c == '#')
		return false;
	if (!s->is_escaped && c == '"')
		state = DOUBLE_QUOTED;
	else if (!s->is_escaped && c == '\'')
		state = SINGLE_QUOTED;
	if (!begin_word(s, state)) {
		*fault = "more than 16 words";
		return false;
	}
	if (state == UNQUOTED)
		add_byte(s, c);
	return true;
}

static void inside_word(struct splitter *s, char c)
{
	bool is_end = false;
	if (s->state == UNQUOTED)
		is_end = !s->is_escaped && is_space(c);
	else if (s->state == DOUBLE_QUOTED)
		is_end = !s->is_escaped && c == '"';
	else
		is_end = c == '\'';
	if (is_end)
		end_word(s);
	else
		add_byte(s, c);
}

/* What the line's end leaves open. */
static const char *unfinished(const struct splitter *s)
{
	if (s->state == DOUBLE_QUOTED)
		return "no closing quotation (\")";
	if (s->state == SINGLE_QUOTED)
		return "no closing single quotation (')";
	return NULL;
}

static const char *split(struct splitter *s, const char *line, size_t len)
{
	const char *fault = NULL;
	for (size_t i = 0; i < len; i++) {
		char c = line[i];
		if (c == '\0')
			return "a NUL byte";
		if (c == '\\' && !s->is_escaped && s->state != SINGLE_QUOTED) {
			s->is_escaped = true;
			continue;
		}
		bool was_between = s->state == BETWEEN;
		if (was_between && !between_words(s, c, &fault))
			return fault;
		if (!was_between)
			inside_word(s, c);
		if (s->is_escaped && s->state != BETWEEN && !is_escapable(c))
			return "a backslash may stand only before a backslash, a double quote or a "
			       "blank; write it twice";
		s->is_escaped = false;
	}
	if (s->is_escaped && s->state != BETWEEN)
		return "a backslash at the end of the line";
	if (s->state == UNQUOTED)
		end_word(s);
	return unfinished(s);
}

const char *lexer_split(const char *line, size_t len, struct lexer_line *out)
{
	struct splitter s = {.out = out};
	out->count = 0;
	out->words[0] = NULL;
	out->block = NULL;
	out->block_len = 0;
	/* The end of the line may be written as CR LF. */
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len > LEXER_LINE_MAX)
		return "longer than 255 bytes";
	const char *fault = split(&s, line, len);
	out->words[out->count] = NULL;
	return fault;
}

void lexer_init(struct lexer *l, const char *file, const char *text, size_t len)
{
	*l = (struct lexer){.file = file, .text = text, .len = len};
	if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
		l->pos = 3;
}

/* The next line without its end; false at the end of the text. */
static bool next_line(struct lexer *l, const char **line, size_t *len)
{
	if (l->pos >= l->len)
		return false;
	const char *start = l->text + l->pos;
	const char *end = memchr(start, '\n', l->len - l->pos);
	size_t n = end ? (size_t)(end - start) : l->len - l->pos;
	l->pos += n + (end != NULL);
	l->number++;
	*line = start;
	*len = n;
	return true;
}

/* "<name>" alone on its line. */
static bool is_tag(const struct lexer_line *line)
{
	const char *w = line->words[0];
	size_t len = strlen(w);
	return line->count == 1 && len > 2 && w[0] == '<' && w[1] != '/' && w[len - 1] == '>';
}

static bool is_closing(const char *line, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	while (len > 0 && is_space(*line) && *line != '\0') {
		line++;
		len--;
	}
	return len >= name_len + 3 && memcmp(line, "</", 2) == 0 &&
	       memcmp(line + 2, name, name_len) == 0 && line[name_len + 2] == '>';
}

/* Take the block that `out`, an opening tag, starts. */
static const char *take_block(struct lexer *l, struct lexer_line *out)
{
	const char *line;
	size_t len;
	size_t start = l->pos;
	out->text[strlen(out->words[0]) - 1] = '\0';
	out->words[0]++;
	for (size_t end = l->pos; next_line(l, &line, &len); end = l->pos) {
		if (!is_closing(line, len, out->words[0]))
			continue;
		out->block = l->text + start;
		out->block_len = end - start;
		return NULL;
	}
	return "the end tag of this inline block is missing";
}

enum lexer_result lexer_next(struct lexer *l, struct lexer_line *out, const char **reason)
{
	const char *line;
	size_t len;
	out->file = l->file;
	do {
		if (!next_line(l, &line, &len))
			return LEXER_END;
		out->number = l->number;
		*reason = lexer_split(line, len, out);
	} while (!*reason && out->count == 0);
	if (!*reason && is_tag(out))
		*reason = take_block(l, out);
	if (*reason)
		return LEXER_FAULT;
	/* "--verb 3" is "verb 3" in a file, too. */
	if (!out->block && strlen(out->words[0]) >= 3 && strncmp(out->words[0], "--", 2) == 0)
		out->words[0] += 2;
	return LEXER_LINE;
}
