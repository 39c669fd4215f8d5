/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/http_request.h"

#include <string.h>
#include <strings.h>

/* A piece of the request; `len` may be 0. */
struct span {
	const char *text;
	size_t len;
};

/* Cut the next piece off `rest`, up to `end`; false if `end` does not occur. */
static bool span_cut(struct span *rest, char end, struct span *out)
{
	const char *found = memchr(rest->text, end, rest->len);
	if (found == NULL)
		return false;
	*out = (struct span){rest->text, (size_t)(found - rest->text)};
	rest->text = found + 1;
	rest->len -= out->len + 1;
	return true;
}

/* The next line without its end, LF or CR LF. */
static bool line_cut(struct span *rest, struct span *out)
{
	if (!span_cut(rest, '\n', out))
		return false;
	if (out->len > 0 && out->text[out->len - 1] == '\r')
		out->len--;
	return true;
}

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.text, word, s.len) == 0;
}

/* Letter case does not count; `word` in lower case. */
static bool span_contains(struct span s, const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; i + len <= s.len; i++)
		if (strncasecmp(s.text + i, word, len) == 0)
			return true;
	return false;
}

static bool is_printable(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.text[i] <= ' ' || s.text[i] > '~')
			return false;
	return s.len > 0;
}

static bool span_copy(struct span s, char out[HTTP_PATH_MAX])
{
	if (s.len >= HTTP_PATH_MAX)
		return false;
	memcpy(out, s.text, s.len);
	out[s.len] = '\0';
	return true;
}

static int target_parse(struct span target, struct http_request *out)
{
	struct span path = target, query = {"", 0}, rest = target;
	if (!is_printable(target) || target.text[0] != '/')
		return 400;
	if (span_cut(&rest, '?', &path))
		query = rest;
	return span_copy(path, out->path) && span_copy(query, out->query) ? 200 : 414;
}

/* "METHOD SP target SP HTTP/1.x" */
static int request_line_parse(struct span line, struct http_request *out)
{
	struct span method, target;
	if (!span_cut(&line, ' ', &method) || !span_cut(&line, ' ', &target))
		return 400;
	if (!span_is(line, "HTTP/1.1") && !span_is(line, "HTTP/1.0"))
		return line.len > 5 && memcmp(line.text, "HTTP/", 5) == 0 ? 505 : 400;
	out->is_head = span_is(method, "HEAD");
	if (!out->is_head && !span_is(method, "GET"))
		return is_printable(method) ? 405 : 400;
	return target_parse(target, out);
}

static int header_parse(struct span line, struct http_request *out)
{
	struct span name;
	if (!span_cut(&line, ':', &name) || !is_printable(name))
		return 400;
	if (name.len == 6 && strncasecmp(name.text, "accept", 6) == 0)
		out->is_openmetrics_wanted = out->is_openmetrics_wanted ||
					     span_contains(line, "application/openmetrics-text");
	return 200;
}

int http_request_parse(const char *text, size_t len, struct http_request *out)
{
	struct http_request r = {0};
	struct span rest = {text, len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX}, line;
	bool is_first = true;
	while (line_cut(&rest, &line)) {
		if (line.len == 0 && !is_first) {
			*out = r;
			return 200;
		}
		int status = is_first ? request_line_parse(line, &r) : header_parse(line, &r);
		if (status != 200)
			return status;
		is_first = false;
	}
	return len >= HTTP_HEAD_MAX ? 431 : 0;
}
