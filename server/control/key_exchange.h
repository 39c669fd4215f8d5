/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_KEY_EXCHANGE_H
#define SERVER_CONTROL_KEY_EXCHANGE_H

/* Key method 2: the first message of each side over TLS, and the options string in it (wire.md,
 * sections 6.1 and 6.2). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/bytes.h"
#include "crypto/prf.h"

#define KEY_EXCHANGE_MAX   2048 /* one TLS read is one message; peers send no longer ones */
#define OPTIONS_STRING_MAX 512	/* with NUL */

/* Views point into the message, without NUL; empty: absent. */
struct key_exchange {
	uint8_t pre_master[PRE_MASTER_LEN]; /* from the TLS client only */
	uint8_t random1[KEY_RANDOM_LEN], random2[KEY_RANDOM_LEN];
	struct view options, username, password, peer_info;
};

/* Read a whole message; `is_from_client`: the sender is the TLS client. Messages that end after
 * the options, the password or before peer-info are complete (old clients); bytes behind peer-info
 * are ignored. Returns false if malformed; `out` is then unspecified. The caller wipes it. */
bool key_exchange_read(struct view message, bool is_from_client, struct key_exchange *out);
/* Write one; the writer fails without room. The caller wipes the buffer. */
void key_exchange_write(struct writer *w, bool is_from_client, const struct key_exchange *k);

/* A copy of peer-chosen text, NUL-terminated, with every byte outside printable ASCII as `_`: what
 * usernames and passwords go through. NULL without memory. The caller frees (and wipes) it. */
char *key_exchange_text(struct view text);

/* What the options string says of us. */
struct options_facts {
	bool is_server;
	uint32_t tun_mtu;
	int key_direction; /* -1, 0, 1 */
	bool has_tls_auth;
	const char *cipher;	  /* as configured; NULL: none */
	const char *data_ciphers; /* normalised colon list */
};
/* The cipher is the configured one, else the first of data-ciphers; it is named only if
 * data-ciphers has it (wire.md, section 6.2). "V4,dev-type tun,link-mtu 1549,...,tls-server" into
 * `out` (OPTIONS_STRING_MAX bytes). */
void options_string(const struct options_facts *f, char *out);

#endif
