/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/negotiate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/addr.h"

#define LINE_MAX_LEN 255 /* longer lines are cut, as stock does */

/* A piece of `text` up to the next `separator`; moves on behind it. False at the end. */
static bool next_piece(const char **text, const char *end, char separator, const char **piece,
		       size_t *len)
{
	if (*text >= end)
		return false;
	const char *stop = memchr(*text, separator, (size_t)(end - *text));
	if (!stop)
		stop = end;
	*piece = *text;
	*len = (size_t)(stop - *text);
	*text = stop < end ? stop + 1 : end;
	return true;
}

/* --- peer-info --- */

static bool is_name_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Value bytes that could mean something to a shell, or end a line, become `_`. */
static char value_byte(char c)
{
	return c > 0x20 && c < 0x7F && c != '$' && c != '(' && c != '`' ? c : '_';
}

/* Length of the name of "NAME=VALUE", 0 if the line is not one that we take. */
static size_t line_name_len(const char *line, size_t len)
{
	if (len < 3 || (strncmp(line, "IV_", 3) != 0 && strncmp(line, "UV_", 3) != 0))
		return 0;
	size_t n = 3;
	while (n < len && is_name_byte(line[n]))
		n++;
	return n < len && line[n] == '=' ? n : 0;
}

static uint32_t value_number(const char *value)
{
	uint64_t n = 0;
	return number_parse(value, UINT32_MAX, &n) ? (uint32_t)n : 0;
}

/* Facts in a line that was taken; of several with one name the first counts. */
static void note_fact(struct client_info *c, const char *line, size_t name_len)
{
	const char *value = line + name_len + 1;
	for (size_t i = 0; i + 1 < c->line_count; i++)
		if (strncmp(c->lines[i], line, name_len + 1) == 0)
			return;
	if (strncmp(line, "IV_PROTO=", 9) == 0) {
		c->iv_proto = value_number(value);
	} else if (strncmp(line, "IV_CIPHERS=", 11) == 0) {
		c->has_iv_ciphers = true;
		snprintf(c->iv_ciphers, sizeof(c->iv_ciphers), "%s", value);
	} else if (strncmp(line, "IV_NCP=", 7) == 0) {
		uint32_t n = value_number(value);
		c->iv_ncp = n > INT32_MAX ? 0 : (int)n;
	} else if (strncmp(line, "IV_MTU=", 7) == 0) {
		c->iv_mtu = value_number(value);
	} else if (strncmp(line, "IV_TCPNL=", 9) == 0) {
		c->has_iv_tcpnl = value_number(value) == 1;
	}
}

static int take_line(struct client_info *c, const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len > LINE_MAX_LEN)
		len = LINE_MAX_LEN;
	size_t name_len = line_name_len(line, len);
	if (name_len == 0 || c->line_count == PEER_INFO_LINES_MAX)
		return 0;
	char *copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, line, name_len + 1);
	for (size_t i = name_len + 1; i < len; i++)
		copy[i] = value_byte(line[i]);
	copy[len] = '\0';
	c->lines[c->line_count++] = copy;
	note_fact(c, copy, name_len);
	return 0;
}

/* --- options string --- */

static void take_option(struct client_info *c, const char *option, size_t len)
{
	static const char cipher[] = "cipher ";
	size_t prefix = sizeof(cipher) - 1;
	if (len == strlen("comp-lzo") && memcmp(option, "comp-lzo", len) == 0)
		c->has_occ_comp_lzo = true;
	if (len <= prefix || len - prefix >= sizeof(c->occ_cipher) ||
	    memcmp(option, cipher, prefix) != 0)
		return;
	memcpy(c->occ_cipher, option + prefix, len - prefix);
	c->occ_cipher[len - prefix] = '\0';
}

int client_info_parse(const char *peer_info, size_t len, const char *options_string,
		      size_t options_len, struct client_info *out)
{
	struct client_info c = {0};
	const char *piece;
	size_t piece_len;
	const char *text = peer_info;
	while (len > 0 && next_piece(&text, peer_info + len, '\n', &piece, &piece_len)) {
		if (take_line(&c, piece, piece_len) != 0) {
			client_info_fini(&c);
			return -ENOMEM;
		}
	}
	text = options_string;
	while (options_len > 0 &&
	       next_piece(&text, options_string + options_len, ',', &piece, &piece_len))
		take_option(&c, piece, piece_len);
	*out = c;
	return 0;
}

void client_info_fini(struct client_info *c)
{
	for (size_t i = 0; i < c->line_count; i++)
		free(c->lines[i]);
	*c = (struct client_info){0};
}

/* --- cipher --- */

static bool list_has(const char *list, const char *name, size_t name_len)
{
	const char *text = list, *piece;
	size_t len;
	while (next_piece(&text, list + strlen(list), ':', &piece, &len))
		if (len == name_len && memcmp(piece, name, len) == 0)
			return true;
	return false;
}

bool cipher_list_has(const char *list, const char *name)
{
	return list_has(list, name, strlen(name));
}

static bool client_can(const struct client_info *c, const char *name, size_t len)
{
	if (c->has_iv_ciphers)
		return list_has(c->iv_ciphers, name, len);
	if (c->iv_ncp >= 2 && list_has("AES-256-GCM:AES-128-GCM", name, len))
		return true;
	return strlen(c->occ_cipher) == len && memcmp(c->occ_cipher, name, len) == 0;
}

enum cipher negotiate_cipher(const struct client_info *c, const char *data_ciphers,
			     const char *fallback)
{
	const char *text = data_ciphers, *piece;
	size_t len;
	while (next_piece(&text, data_ciphers + strlen(data_ciphers), ':', &piece, &len)) {
		char name[64];
		if (len >= sizeof(name) || !client_can(c, piece, len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, piece);
		enum cipher cipher = cipher_from_name(name);
		if (cipher != CIPHER_NONE)
			return cipher;
	}
	bool says_nothing = !c->has_iv_ciphers && c->iv_ncp < 2 && c->occ_cipher[0] == '\0';
	return says_nothing && fallback ? cipher_from_name(fallback) : CIPHER_NONE;
}
