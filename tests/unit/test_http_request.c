/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/admin/http_request.h"

static void requests_and_refusals(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int status;
		const char *path, *query; /* of a 200 */
		bool is_head, is_openmetrics;
	} table[] = {
		{"GET / HTTP/1.1\r\n\r\n", 200, "/", "", false, false},
		{"GET / HTTP/1.0\n\n", 200, "/", "", false, false},
		{"HEAD /metrics?scope=peers HTTP/1.1\r\nHost: x\r\n\r\n", 200, "/metrics",
		 "scope=peers", true, false},
		{"GET /a?b?c HTTP/1.1\r\n\r\n", 200, "/a", "b?c", false, false},
		{"GET /? HTTP/1.1\r\n\r\n", 200, "/", "", false, false},
		{"GET / HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
		 200, "/", "", false, true},
		{"GET / HTTP/1.1\r\naccept:x,Application/OpenMetrics-Text\r\n\r\n", 200, "/", "",
		 false, true},
		{"GET / HTTP/1.1\r\nAccept: text/plain\r\n\r\n", 200, "/", "", false, false},
		{"GET / HTTP/1.1\r\nX-Accept: application/openmetrics-text\r\n\r\n", 200, "/", "",
		 false, false},
		{"GET / HTTP/1.1\r\n\r\nanything behind", 200, "/", "", false, false},
		/* not complete */
		{"", 0, NULL, NULL, false, false},
		{"GET / HTTP/1.1", 0, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\n", 0, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r", 0, NULL, NULL, false, false},
		/* refused, as early as it can be known */
		{"POST / HTTP/1.1\r\n", 405, NULL, NULL, false, false},
		{"get / HTTP/1.1\r\n", 405, NULL, NULL, false, false},
		{"GETX / HTTP/1.1\r\n", 405, NULL, NULL, false, false},
		{"\r\n", 400, NULL, NULL, false, false},
		{"GET\r\n", 400, NULL, NULL, false, false},
		{"GET /\r\n", 400, NULL, NULL, false, false},
		{"GET  HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET x HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET http://x/ HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET /\x01 HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET /\xc3\xa4 HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{" GET / HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET / x HTTP/1.1\r\n", 400, NULL, NULL, false, false},
		{"GET / HTTP/1.1 \r\n", 505, NULL, NULL, false, false},
		{"GET / HTTP/2.0\r\n", 505, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\nno colon\r\n", 400, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\n: no name\r\n", 400, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\n folded: x\r\n", 400, NULL, NULL, false, false},
		{"GET / HTTP/1.1\r\nna me: x\r\n", 400, NULL, NULL, false, false},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct http_request r;
		int status = http_request_parse(table[i].text, strlen(table[i].text), &r);
		if (status != table[i].status)
			fail_msg("%s: %d", table[i].text, status);
		if (status != 200)
			continue;
		assert_string_equal(r.path, table[i].path);
		assert_string_equal(r.query, table[i].query);
		assert_int_equal(r.is_head, table[i].is_head);
		assert_int_equal(r.is_openmetrics_wanted, table[i].is_openmetrics);
	}
}

static int parse_target(size_t path_len, size_t query_len)
{
	char text[512], path[256], query[256];
	struct http_request r;
	memset(path, 'p', sizeof(path));
	memset(query, 'q', sizeof(query));
	int n = snprintf(text, sizeof(text), "GET /%.*s?%.*s HTTP/1.1\r\n\r\n", (int)path_len - 1,
			 path, (int)query_len, query);
	return http_request_parse(text, (size_t)n, &r);
}

static void targets_end_at_their_limit(void **state)
{
	(void)state;
	assert_int_equal(parse_target(HTTP_PATH_MAX - 1, HTTP_PATH_MAX - 1), 200);
	assert_int_equal(parse_target(HTTP_PATH_MAX, 1), 414);
	assert_int_equal(parse_target(1, HTTP_PATH_MAX), 414);
}

/* A head of exactly `len` bytes. */
static int parse_head(size_t len)
{
	static char text[2 * HTTP_HEAD_MAX];
	static const char start[] = "GET / HTTP/1.1\r\nX: ";
	struct http_request r;
	memset(text, 'x', len);
	memcpy(text, start, sizeof(start) - 1);
	memcpy(text + len - 4, "\r\n\r\n", 4);
	return http_request_parse(text, len, &r);
}

static void heads_end_at_their_limit(void **state)
{
	(void)state;
	assert_int_equal(parse_head(HTTP_HEAD_MAX - 1), 200);
	assert_int_equal(parse_head(HTTP_HEAD_MAX), 200);
	assert_int_equal(parse_head(HTTP_HEAD_MAX + 1), 431);
	assert_int_equal(parse_head(2 * HTTP_HEAD_MAX), 431);
}

static void a_nul_is_no_end(void **state)
{
	(void)state;
	static const char text[] = "GET /\0 HTTP/1.1\r\n\r\n";
	struct http_request r;
	assert_int_equal(http_request_parse(text, sizeof(text) - 1, &r), 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_and_refusals),
		cmocka_unit_test(targets_end_at_their_limit),
		cmocka_unit_test(heads_end_at_their_limit),
		cmocka_unit_test(a_nul_is_no_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
