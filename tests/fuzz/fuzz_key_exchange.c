/* SPDX-License-Identifier: Apache-2.0 */
/* A key method 2 message of either side; what was read is written and read again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/key_exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool is_so)
{
	if (!is_so)
		abort();
}

static void expect_equal(struct view a, struct view b)
{
	expect(a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0));
	expect(a.len == 0 || !memchr(a.data, 0, a.len));
}

static void expect_printable(struct view text)
{
	char *copy = key_exchange_text(text);
	expect(copy && strlen(copy) == text.len);
	for (const char *p = copy; *p; p++)
		expect(*p >= 0x20 && *p < 0x7F);
	free(copy);
}

static void try_message(struct view message, bool is_from_client)
{
	struct key_exchange a, b;
	uint8_t again[2 * KEY_EXCHANGE_MAX];
	if (!key_exchange_read(message, is_from_client, &a))
		return;
	struct writer w = writer_init(again, sizeof(again));
	key_exchange_write(&w, is_from_client, &a);
	expect(writer_ok(&w) && key_exchange_read(writer_done(&w), is_from_client, &b));
	expect(memcmp(a.random1, b.random1, sizeof(a.random1)) == 0);
	expect(memcmp(a.random2, b.random2, sizeof(a.random2)) == 0);
	expect(memcmp(a.pre_master, b.pre_master, sizeof(a.pre_master)) == 0);
	expect_equal(a.options, b.options);
	expect_equal(a.username, b.username);
	expect_equal(a.password, b.password);
	expect_equal(a.peer_info, b.peer_info);
	expect_printable(a.username);
	expect_printable(a.password);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	try_message((struct view){data, len}, true);
	try_message((struct view){data, len}, false);
	return 0;
}
