/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/static_key.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "crypto/secret.h"

static const char head[] = "-----BEGIN OpenVPN Static key V1-----";
static const char foot[] = "-----END OpenVPN Static key V1-----";

/* Does the text at `r` begin with `word`? If so, it is consumed. */
static bool accept(struct reader *r, const char *word)
{
	struct reader ahead = *r;
	size_t len = strlen(word);
	struct view v = reader_bytes(&ahead, len);
	if (!reader_ok(&ahead) || memcmp(v.data, word, len) != 0)
		return false;
	*r = ahead;
	return true;
}

static bool is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Value of a hex digit or -1, without a table: no index depends on key bytes. */
static int hex_value(uint8_t c)
{
	uint8_t lower = c | 0x20;
	if (c >= '0' && c <= '9')
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Leave the reader behind the first line that begins with `head`. */
static bool skip_to_block(struct reader *r)
{
	bool is_line_start = true;
	while (reader_left(r) > 0) {
		if (is_line_start && accept(r, head))
			return true;
		is_line_start = reader_u8(r) == '\n';
	}
	return false;
}

/* Hex pairs up to `foot`. Returns the count of digits, or -EINVAL. */
static int read_block(struct reader *r, struct static_key *out)
{
	int digits = 0;
	while (!accept(r, foot)) {
		uint8_t c = reader_u8(r);
		if (reader_ok(r) && is_space(c))
			continue;
		int v = hex_value(c);
		if (!reader_ok(r) || v < 0 || digits == 2 * STATIC_KEY_LEN)
			return -EINVAL;
		uint8_t *byte = &out->bytes[digits++ / 2];
		*byte = (uint8_t)(*byte << 4 | v);
	}
	return digits;
}

int static_key_parse(struct view text, struct static_key *out)
{
	struct reader r = reader_of(text);
	static_key_wipe(out);
	int digits = skip_to_block(&r) ? read_block(&r, out) : -EINVAL;
	if (digits == 2 * STATIC_KEY_LEN)
		return 0;
	static_key_wipe(out);
	return digits < 0 || digits % 2 != 0 ? -EINVAL : -ERANGE;
}

static uint8_t hex_digit(unsigned v)
{
	return (uint8_t)(v < 10 ? '0' + v : 'a' + v - 10);
}

size_t static_key_write(const struct static_key *key, char *out)
{
	struct writer w = writer_init(out, STATIC_KEY_TEXT_MAX);
	static const char title[] = "#\n# 2048 bit OpenVPN static key\n#\n";
	writer_bytes(&w, title, strlen(title));
	writer_bytes(&w, head, strlen(head));
	for (size_t i = 0; i < STATIC_KEY_LEN; i++) {
		if (i % 16 == 0)
			writer_u8(&w, '\n');
		writer_u8(&w, hex_digit(key->bytes[i] >> 4));
		writer_u8(&w, hex_digit(key->bytes[i] & 15u));
	}
	writer_u8(&w, '\n');
	writer_bytes(&w, foot, strlen(foot));
	writer_u8(&w, '\n');
	size_t len = writer_len(&w);
	writer_u8(&w, 0);
	return len;
}

void static_key_wipe(struct static_key *key)
{
	secret_wipe(key, sizeof(*key));
}
