/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer says in text: peer-info and options string (split at the first NUL byte), and the
 * same bytes as control commands and as a PUSH_REPLY. */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "server/control/commands.h"
#include "server/control/negotiate.h"
#include "server/control/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool is_so)
{
	if (!is_so)
		abort();
}

/* A line may become an environment variable of a script. */
static void expect_harmless(const char *line)
{
	expect(strncmp(line, "IV_", 3) == 0 || strncmp(line, "UV_", 3) == 0);
	expect(strlen(line) <= 255 && strchr(line, '='));
	const char *p = line;
	for (; *p != '='; p++)
		expect(isalnum((unsigned char)*p) || *p == '_');
	for (; *p; p++)
		expect(*p > 0x20 && *p < 0x7F && *p != '$' && *p != '(' && *p != '`');
}

static void try_peer_info(const uint8_t *data, size_t len)
{
	const uint8_t *nul = len ? memchr(data, 0, len) : NULL;
	size_t first = nul ? (size_t)(nul - data) : len;
	const uint8_t *rest = nul ? nul + 1 : data;
	size_t rest_len = nul ? len - first - 1 : 0;
	struct client_info c;
	expect(client_info_parse((const char *)data, first, (const char *)rest, rest_len, &c) == 0);
	expect(c.line_count <= PEER_INFO_LINES_MAX);
	for (size_t i = 0; i < c.line_count; i++)
		expect_harmless(c.lines[i]);
	expect(negotiate_cipher(&c, "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305", "AES-256-GCM") <
	       CIPHER_COUNT);
	expect(strlen(c.occ_cipher) < sizeof(c.occ_cipher));
	client_info_fini(&c);
}

static void try_commands(const uint8_t *data, size_t len)
{
	struct view rest = {data, len};
	char command[2048];
	while (commands_next(&rest, command, sizeof(command))) {
		struct push_received p;
		expect(command[0] != '\0');
		for (const char *c = command; *c; c++)
			expect((unsigned char)*c >= 0x20 && *c != 0x7F);
		push_received_init(&p);
		if (push_received_add(&p, command))
			expect(p.peer_id <= PEER_ID_NONE && strlen(p.cipher) < sizeof(p.cipher));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	try_peer_info(data, len);
	try_commands(data, len);
	return 0;
}
