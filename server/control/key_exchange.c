/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/key_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/cipher.h"
#include "server/control/negotiate.h"

#define KEY_METHOD	2
#define KEY_METHOD_MASK 0x0F

/* What a peer counts as overhead of an AEAD packet when it computes link-mtu: opcode, packet-id,
 * tag, and (by tradition) the nonce and a block (wire.md, section 6.2). */
#define OCC_OVERHEAD (1 + 4 + 16 + 12 + 16)

/* u16 length with NUL, bytes, NUL. A message may end before any string but the first. */
static struct view read_string(struct reader *r, bool is_optional)
{
	if (is_optional && reader_left(r) == 0)
		return (struct view){0};
	uint16_t len = reader_u16(r);
	struct view v = reader_bytes(r, len);
	if (v.len == 0)
		return v;
	v.len--; /* the last byte is the terminator, whatever it is */
	const uint8_t *nul = v.len ? memchr(v.data, 0, v.len) : NULL;
	if (nul)
		v.len = (size_t)(nul - v.data);
	return v;
}

bool key_exchange_read(struct view message, bool is_from_client, struct key_exchange *out)
{
	*out = (struct key_exchange){0};
	struct reader r = reader_of(message);
	reader_u32(&r); /* zero; not looked at by anybody */
	uint8_t method = reader_u8(&r);
	if (is_from_client)
		reader_copy(&r, out->pre_master, sizeof(out->pre_master));
	reader_copy(&r, out->random1, sizeof(out->random1));
	reader_copy(&r, out->random2, sizeof(out->random2));
	out->options = read_string(&r, false);
	out->username = read_string(&r, true);
	out->password = read_string(&r, true);
	out->peer_info = read_string(&r, true);
	return reader_ok(&r) && message.len <= KEY_EXCHANGE_MAX &&
	       (method & KEY_METHOD_MASK) == KEY_METHOD && out->options.len < OPTIONS_STRING_MAX;
}

static void write_string(struct writer *w, struct view text)
{
	if (text.len >= UINT16_MAX) {
		w->is_failed = true;
		return;
	}
	if (text.len == 0) {
		writer_u16(w, 0);
		return;
	}
	writer_u16(w, (uint16_t)(text.len + 1));
	writer_view(w, text);
	writer_u8(w, 0);
}

void key_exchange_write(struct writer *w, bool is_from_client, const struct key_exchange *k)
{
	writer_u32(w, 0);
	writer_u8(w, KEY_METHOD);
	if (is_from_client)
		writer_bytes(w, k->pre_master, sizeof(k->pre_master));
	writer_bytes(w, k->random1, sizeof(k->random1));
	writer_bytes(w, k->random2, sizeof(k->random2));
	write_string(w, k->options);
	write_string(w, k->username);
	write_string(w, k->password);
	write_string(w, k->peer_info);
}

char *key_exchange_text(struct view text)
{
	char *copy = malloc(text.len + 1);
	if (!copy)
		return NULL;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.data[i];
		copy[i] = c >= 0x20 && c < 0x7F ? (char)c : '_';
	}
	copy[text.len] = '\0';
	return copy;
}

static enum cipher own_cipher(const struct options_facts *f)
{
	char first[64];
	enum cipher c = f->cipher ? cipher_from_name(f->cipher) : CIPHER_NONE;
	if (c != CIPHER_NONE)
		return c;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(f->data_ciphers, ":"), f->data_ciphers);
	return cipher_from_name(first);
}

void options_string(const struct options_facts *f, char *out)
{
	enum cipher c = own_cipher(f);
	char keydir[24] = "", cipher[48] = "";
	if (f->key_direction >= 0)
		snprintf(keydir, sizeof(keydir), ",keydir %d", f->key_direction);
	if (cipher_list_has(f->data_ciphers, cipher_name(c)))
		snprintf(cipher, sizeof(cipher), ",cipher %s", cipher_name(c));
	snprintf(out, OPTIONS_STRING_MAX,
		 "V4,dev-type tun,link-mtu %u,tun-mtu %u,proto UDPv4%s%s,auth [null-digest],"
		 "keysize %zu%s,key-method 2,%s",
		 f->tun_mtu + OCC_OVERHEAD, f->tun_mtu, keydir, cipher, cipher_key_len(c) * 8,
		 f->has_tls_auth ? ",tls-auth" : "", f->is_server ? "tls-server" : "tls-client");
}
