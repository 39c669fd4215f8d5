/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_REMOVAL_H
#define SERVER_REMOVAL_H

/* A client goes in three steps: unlink it from every lookup; wait until its worker has forgotten
 * the peer (and a handshake thread has given the session back); free it and what it held. Its
 * addresses and its peer-id are nobody's before the third, so that nothing meant for it can reach
 * the next holder (security.md, M-4). Thread: acceptor. */

struct acceptor_shared;
struct client;
struct peer;

#include "server/clients.h"

/* First and second step. Logs and counts `end`. The client must not be used by the caller as a live
 * one afterwards; it is freed by removal_reap at the earliest. No effect on a removed client. */
void removal_start(struct acceptor_shared *s, struct client *c, enum client_end end);
/* Remove `old` because `successor` takes its place; `successor` is resumed (clients_resume) when
 * all that it waits for has gone. What `old` waits for, `successor` waits for as well. */
void removal_replace(struct acceptor_shared *s, struct client *old, struct client *successor);
/* The worker answered MESSAGE_PEER_REMOVED: addresses and peer-id are free again. */
void removal_peer_gone(struct acceptor_shared *s, struct peer *peer);
/* Third step for every client that waits for nothing any more. Once a turn. */
void removal_reap(struct acceptor_shared *s);
/* At the end, after threads and workers were joined: free every client, in whatever state. */
void removal_all(struct acceptor_shared *s);

#endif
