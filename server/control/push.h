/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_PUSH_H
#define SERVER_CONTROL_PUSH_H

/* PUSH_REPLY: built and split by the server, taken apart by the client (wire.md, section 10). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

#define PUSH_MESSAGE_MAX 1024  /* one message with NUL */
#define PUSH_TOTAL_MAX	 65536 /* all messages of one client */

/* Agreed protocol flags: session_flags. */
struct push_facts {
	bool has_peer_id;
	uint32_t peer_id;
	bool is_cipher_pushed; /* the client has IV_NCP >= 2 or IV_CIPHERS */
	enum cipher cipher;
	bool has_tls_ekm, has_cc_exit, has_dyn_tls_crypt;
	uint32_t tun_mtu; /* 0: not pushed */
};

/* What PUSH_REPLY says, besides what the session itself adds (peer-id, cipher, key-derivation,
 * protocol-flags, tun-mtu; wire.md, section 10). */
struct push_plan {
	const char *const *options; /* configured pushes, in order */
	size_t option_count;
	const char *ifconfig_ipv6; /* "addr/bits gw" or NULL */
	const char *ifconfig;	   /* "addr mask|peer" or NULL */
	uint32_t peer_id;
};

/* Messages in the order in which they are sent. */
struct push_reply {
	char **messages; /* owned, NUL-terminated */
	size_t count;
};

/* Build them. Returns 0, -EMSGSIZE (an option too long, or all of them), -EINVAL (a comma or an
 * unprintable byte in an option), -ENOMEM. */
__attribute__((warn_unused_result)) int
push_build(const struct push_plan *plan, const struct push_facts *facts, struct push_reply *out);
void push_reply_fini(struct push_reply *p);

/* What a client learns from one or more PUSH_REPLY. */
struct push_received {
	uint32_t peer_id; /* PEER_ID_NONE if none */
	char cipher[64];  /* "" if none */
	bool has_tls_ekm, has_cc_exit, has_dyn_tls_crypt;
	bool is_continued; /* another message follows */
};
void push_received_init(struct push_received *p);
/* Take one message ("PUSH_REPLY[,option...]"); options we have no use for are left alone. Returns
 * false if it is no PUSH_REPLY, or an option that we do use is malformed. */
bool push_received_add(struct push_received *p, const char *message);

#endif
