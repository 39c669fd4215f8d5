/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_DATA_CHANNEL_H
#define SERVER_DATA_CHANNEL_H

/* A client's data channel as the acceptor sees it: a peer at its worker, keys sent there, addresses
 * routed to it. Thread: acceptor. */

#include <stdint.h>

struct acceptor_shared;
struct client;
struct session_event;

/* Install the key of a SESSION_EVENT_KEY; with the first one the worker gets the peer, and then the
 * client's addresses lead there. The caller wipes the event. The client has a place. Returns 0 or
 * -errno: the client cannot go on. */
__attribute__((warn_unused_result)) int
data_channel_install(struct acceptor_shared *s, struct client *c, const struct session_event *e);
/* Begin to send with a key at that time; UINT64_MAX: do not. No effect without a peer. */
void data_channel_seal_from(struct acceptor_shared *s, struct client *c, uint8_t key_id,
			    uint64_t seal_from_ms);
/* Forget a key. No effect without a peer. */
void data_channel_retire(struct acceptor_shared *s, struct client *c, uint8_t key_id);
/* Its addresses lead nowhere. */
void data_channel_unroute(struct acceptor_shared *s, struct client *c);
/* The worker is to forget the peer; MESSAGE_PEER_REMOVED says when it has. */
void data_channel_close(struct acceptor_shared *s, struct client *c);

#endif
