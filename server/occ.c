/* SPDX-License-Identifier: Apache-2.0 */
#include "server/occ.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "crypto/aead.h"
#include "server/control/key_exchange.h"
#include "workers/payload.h"

#define OCC_OP_REPLY 1

static_assert(PAYLOAD_MAGIC_LEN + 1 + OPTIONS_STRING_MAX <= OCC_REPLY_MAX, "the reply has room");

/* The same facts as in the key exchange of a session whose cipher is not negotiated yet. */
static struct options_facts facts(const struct config *c)
{
	char first[64];
	enum cipher configured = c->cipher != NULL ? cipher_from_name(c->cipher) : CIPHER_NONE;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(c->data_ciphers, ":"), c->data_ciphers);
	return (struct options_facts){
		.is_server = true,
		.tun_mtu = c->tun_mtu,
		.key_direction = c->tls_auth_direction,
		.has_tls_auth = c->tls_auth.path != NULL || c->tls_auth.text != NULL,
		.cipher = configured != CIPHER_NONE ? configured : cipher_from_name(first),
		.is_cipher_named = configured != CIPHER_NONE || c->cipher == NULL,
	};
}

struct view occ_reply(const struct config *c, uint8_t *out)
{
	char text[OPTIONS_STRING_MAX];
	const struct options_facts f = facts(c);
	struct writer w = writer_init(out, OCC_REPLY_MAX);
	options_string(&f, text);
	writer_bytes(&w, payload_occ, PAYLOAD_MAGIC_LEN);
	writer_u8(&w, OCC_OP_REPLY);
	writer_bytes(&w, text, strlen(text) + 1);
	assert(writer_ok(&w));
	return writer_done(&w);
}
