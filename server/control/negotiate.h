/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_NEGOTIATE_H
#define SERVER_CONTROL_NEGOTIATE_H

/* Peer-info, cipher and protocol flags (wire.md, sections 6.3 and 8; interop.md, section 0). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

enum iv_proto {
	IV_PROTO_DATA_V2 = 1 << 1,
	IV_PROTO_REQUEST_PUSH = 1 << 2,
	IV_PROTO_TLS_KEY_EXPORT = 1 << 3,
	IV_PROTO_AUTH_PENDING_KW = 1 << 4,
	IV_PROTO_NCP_P2P = 1 << 5,
	IV_PROTO_DNS_OPTION = 1 << 6,
	IV_PROTO_CC_EXIT_NOTIFY = 1 << 7,
	IV_PROTO_AUTH_FAIL_TEMP = 1 << 8,
	IV_PROTO_DYN_TLS_CRYPT = 1 << 9,
	IV_PROTO_DATA_EPOCH = 1 << 10,
	IV_PROTO_DNS_OPTION_V2 = 1 << 11,
	IV_PROTO_PUSH_UPDATE = 1 << 12,
};

#define PEER_INFO_LINES_MAX 64
#define PEER_INFO_VALUE_MAX 256

/* What a client says of itself. */
struct client_info {
	char *lines[PEER_INFO_LINES_MAX]; /* accepted "NAME=VALUE", sanitised; owned */
	size_t line_count;
	uint32_t iv_proto;
	bool has_iv_ciphers;
	char iv_ciphers[PEER_INFO_VALUE_MAX + 1];
	int iv_ncp;	 /* 0: absent */
	uint32_t iv_mtu; /* 0: absent */
	bool has_iv_tcpnl;
	char occ_cipher[64]; /* of the options string; "" if none */
	bool has_occ_comp_lzo;
};

/* Parse by line; unknown and malformed lines are left out. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int client_info_parse(const char *peer_info, size_t len,
							  const char *options_string,
							  size_t options_len,
							  struct client_info *out);
void client_info_fini(struct client_info *c);

/* `name` stands in the colon list; compared exactly. */
bool cipher_list_has(const char *list, const char *name);
/* The first of `data_ciphers` that the client can use; CIPHER_NONE: no shared cipher. */
enum cipher negotiate_cipher(const struct client_info *c, const char *data_ciphers,
			     const char *fallback);

#endif
