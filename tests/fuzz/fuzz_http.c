/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/admin/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct http_request whole, part;
	int status = http_request_parse(text, len, &whole);
	assert(status == 0 || status == 200 || (status >= 400 && status <= 505));
	assert(len < HTTP_HEAD_MAX || status != 0);
	if (status == 200)
		assert(whole.path[0] == '/' && strlen(whole.path) < HTTP_PATH_MAX &&
		       strlen(whole.query) < HTTP_PATH_MAX);
	/* However it arrives, what was decided stays decided. */
	for (size_t n = 0; n < len; n += 1 + n / 8) {
		int early = http_request_parse(text, n, &part);
		assert(early == 0 || early == status);
		if (early == 200)
			assert(strcmp(part.path, whole.path) == 0 && part.is_head == whole.is_head);
	}
	return 0;
}
