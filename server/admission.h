/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMISSION_H
#define SERVER_ADMISSION_H

/* Who may begin: answers strangers without keeping state, and makes a client of whoever proved its
 * address, within the limits (security.md, sections 3 and 4). Thread: acceptor. */

#include <stddef.h>

#include "crypto/bytes.h"

struct acceptor_shared;
struct admission;
struct client;
struct link_addr;
struct static_key;
struct tls_context;
struct wrap_keys;

struct admission_setup {
	struct tls_context *tls; /* a reference is taken */
	const struct wrap_keys *wrap;
	const struct static_key *wrap_key; /* NULL: no wrapping */
};

/* Also sets shared->initial_limit and shared->tls. shared->config is set. Returns 0, -ENOMEM or
 * -EIO. */
__attribute__((warn_unused_result)) int admission_new(struct acceptor_shared *shared,
						      const struct admission_setup *setup,
						      struct admission **out);
void admission_free(struct admission *a);

/* A control packet that belongs to no client. Returns the client that it made, which is to be given
 * the datagram now, or NULL: answered, or dropped and counted. */
struct client *admission_judge(struct admission *a, const struct link_addr *from,
			       struct view datagram);
/* Read certificates, key and CRL again; handshakes that begin later use them, those of
 * renegotiations too. On failure the old ones stay, and an
 * error is logged. */
void admission_reload(struct admission *a);
/* The same if the CRL file has changed. Looks at it once a second. */
void admission_check_crl(struct admission *a);
const struct tls_context *admission_tls(const struct admission *a);

#endif
