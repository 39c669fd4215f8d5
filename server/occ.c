/* SPDX-License-Identifier: Apache-2.0 */
#include "server/occ.h"

#include <assert.h>
#include <string.h>

#include "server/control/key_exchange.h"
#include "workers/payload.h"

#define OCC_OP_REPLY 1

static_assert(PAYLOAD_MAGIC_LEN + 1 + OPTIONS_STRING_MAX <= OCC_REPLY_MAX, "the reply has room");

struct view occ_reply(const struct config *c, uint8_t *out)
{
	char text[OPTIONS_STRING_MAX];
	const struct options_facts f = {
		.is_server = true,
		.tun_mtu = c->tun_mtu,
		.key_direction = c->tls_auth_direction,
		.has_tls_auth = c->tls_auth.path != NULL || c->tls_auth.text != NULL,
		.cipher = c->cipher,
		.data_ciphers = c->data_ciphers,
	};
	struct writer w = writer_init(out, OCC_REPLY_MAX);
	options_string(&f, text);
	writer_bytes(&w, payload_occ, PAYLOAD_MAGIC_LEN);
	writer_u8(&w, OCC_OP_REPLY);
	writer_bytes(&w, text, strlen(text) + 1);
	assert(writer_ok(&w));
	return writer_done(&w);
}
