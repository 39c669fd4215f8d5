/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_HTTP_REQUEST_H
#define SERVER_ADMIN_HTTP_REQUEST_H

/* The head of an HTTP/1.x request, as far as an endpoint needs it that only answers questions. */

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 4096 /* bytes of request line and headers, with the empty line */
#define HTTP_PATH_MAX 64   /* with NUL; no path of ours is as long */

struct http_request {
	bool is_head;		    /* HEAD, else GET */
	char path[HTTP_PATH_MAX];   /* up to '?', as it was sent */
	char query[HTTP_PATH_MAX];  /* behind it; "" if none */
	bool is_openmetrics_wanted; /* Accept names application/openmetrics-text */
};

/* Take `len` bytes apart that were received so far. Returns 0 if the head is not complete, 200 and
 * a request, or the status of a refusal: 400 malformed, 405 other method, 414 too long a target,
 * 431 too long a head, 505 other version. A body is not looked for: GET and HEAD have none. */
int http_request_parse(const char *text, size_t len, struct http_request *out);

#endif
