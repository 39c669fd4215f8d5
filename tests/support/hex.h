/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_HEX_H
#define TESTS_SUPPORT_HEX_H

/* Vectors as text. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Hex pairs, blanks between them ignored, to `out`. Returns the count of bytes; aborts on anything
 * else or if they do not fit. */
static inline size_t from_hex(const char *text, uint8_t *out, size_t cap)
{
	static const char digits[] = "0123456789abcdef";
	size_t nibbles = 0;
	for (; *text; text++) {
		const char *d = strchr(digits, *text);
		if (*text == ' ')
			continue;
		if (!d || nibbles / 2 >= cap)
			abort();
		uint8_t *byte = &out[nibbles / 2];
		*byte = (uint8_t)((nibbles++ % 2 ? *byte << 4 : 0) | (d - digits));
	}
	if (nibbles % 2)
		abort();
	return nibbles / 2;
}

#endif
