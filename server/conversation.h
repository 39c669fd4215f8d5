/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONVERSATION_H
#define SERVER_CONVERSATION_H

/* Drives the sessions: feeds them, runs or lends them, sends what they say, acts on their events.
 * Thread: acceptor. */

#include <stddef.h>
#include <stdint.h>

#include "crypto/bytes.h"

struct acceptor_shared;
struct client;
struct handshake_job;

/* A control packet from the client's recorded address. Kept for later while the session is lent. */
void conversation_receive(struct acceptor_shared *s, struct client *c, struct view datagram);
/* Let the session do what it has to: its deadline has come, or it was told something. Lends it if
 * that may be expensive. No effect while lent or removed. */
void conversation_step(struct acceptor_shared *s, struct client *c);
/* A lent session is back. */
void conversation_returned(struct acceptor_shared *s, struct handshake_job *job);

/* Renegotiate, because the key `key_id` is nearly used up; no effect if there is a newer one. */
void conversation_renegotiate(struct acceptor_shared *s, struct client *c, uint8_t key_id);
/* Tell the client to connect again (`command` is RESTART and flags), and end the session. */
void conversation_restart(struct acceptor_shared *s, struct client *c);

#endif
