/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONNECT_H
#define SERVER_CONNECT_H

/* From a finished key exchange to a client that has its address: who must go for it, which address
 * and peer-id it gets, what is pushed (options.md, sections 4 and 5). Thread: acceptor. */

#include <stdint.h>

struct acceptor_shared;
struct client;

/* SESSION_EVENT_AUTHORIZE. The first one of a client evicts those that it replaces; the verdict
 * follows at once, or when they are gone (connect_resume). A later one must come from the same
 * identity. Ends in session_authorize. */
void connect_authorize(struct acceptor_shared *s, struct client *c, uint8_t key_id);
/* Go on with a client in CLIENT_CONNECTING that waits for nobody any more. Not while lent. */
void connect_resume(struct acceptor_shared *s, struct client *c);

/* The texts of `ifconfig` and `ifconfig-ipv6` for a lease, by topology; "" without such an
 * address. `out` must hold CONNECT_TEXT_MAX bytes. */
#define CONNECT_TEXT_MAX 128
struct config;
struct ip_lease;
void connect_ifconfig_text(const struct config *c, const struct ip_lease *l, char *out);
void connect_ifconfig_ipv6_text(const struct config *c, const struct ip_lease *l, char *out);

#endif
