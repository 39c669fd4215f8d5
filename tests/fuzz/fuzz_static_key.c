/* SPDX-License-Identifier: Apache-2.0 */
/* Key files: a refused one leaves zeros; an accepted one is written and read back alike. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/static_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct static_key zeros;
	struct static_key key, again;
	char text[STATIC_KEY_TEXT_MAX];
	memset(&key, 0x55, sizeof(key));
	int err = static_key_parse((struct view){data, len}, &key);
	if (err) {
		require(err == -EINVAL || err == -ERANGE);
		require(memcmp(&key, &zeros, sizeof(key)) == 0);
		return 0;
	}
	size_t text_len = static_key_write(&key, text);
	require(text_len < sizeof(text));
	struct view written = {(const uint8_t *)text, text_len};
	require(static_key_parse(written, &again) == 0);
	require(memcmp(&key, &again, sizeof(key)) == 0);
	return 0;
}
