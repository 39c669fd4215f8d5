/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

/* The clients and every way to look one up. One address can have two for a while: one that is
 * authenticated, and one that is not yet. All tables whose keys strangers choose are hashed with a
 * random key. Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

#include "server/client.h"

struct clients;

/* max_clients sizes the tables; peer-ids are below peer_id_limit. Returns 0, -ENOMEM or -EIO. */
__attribute__((warn_unused_result)) int clients_new(uint32_t max_clients, uint32_t peer_id_limit,
						    random_fn random, struct clients **out);
/* Frees the table; there must be no client left. */
void clients_free(struct clients *t);

/* A new, half-open client with a copy of `link`; its session is still to be made. NULL without
 * memory. */
struct client *clients_add(struct clients *t, const struct link_addr *link,
			   const struct session_id *own_sid, const struct session_id *peer_sid,
			   uint64_t now_ms);
/* Out of every lookup and into the list of removed ones. */
void clients_unlink(struct clients *t, struct client *c);
/* Free a client that was unlinked, with its session. Not while lent. */
void clients_drop(struct clients *t, struct client *c);

/* The client at this address whose peer has that session-id, or NULL. */
struct client *clients_find(const struct clients *t, const struct link_addr *link,
			    const struct session_id *peer_sid);
/* Who holds the address: the first, then the next after `c`, or NULL. */
struct client *clients_at(const struct clients *t, const struct link_addr *link);
struct client *clients_next_at(const struct client *c, const struct link_addr *link);
/* An own session-id of a live client. */
bool clients_is_live_sid(const struct clients *t, const struct session_id *own_sid);
struct client *clients_find_by_peer_id(const struct clients *t, uint32_t peer_id);
/* Authenticated clients of that name: the first, then the next after `c`, or NULL. */
struct client *clients_named(const struct clients *t, const char *common_name);
struct client *clients_next_named(const struct client *c);

/* Facts that lookups or counts follow. */
void client_set_link(struct clients *t, struct client *c, const struct link_addr *link);
/* Take the address away from a client that somebody else has now; it stays reachable by peer-id. */
void client_displace(struct clients *t, struct client *c);
/* Lock name and identity; the prefix has the name from now on. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int client_authenticate(struct clients *t, struct client *c,
							    const char *common_name,
							    const char *username,
							    const struct identity *identity);
void client_set_place(struct clients *t, struct client *c, const struct place *place);
/* The session is past its first authentication, or at its end. */
void client_set_stage(struct clients *t, struct client *c, enum client_stage stage);

/* Live clients: not removed. */
uint32_t clients_count(const struct clients *t);
uint32_t clients_half_open_count(const struct clients *t);
/* Half-open clients by age: the oldest, then the next younger, or NULL. */
struct client *clients_oldest_half_open(const struct clients *t);
struct client *clients_next_half_open(const struct clients *t, const struct client *c);
/* Live clients in the order in which they came. */
struct client *clients_first(const struct clients *t);
struct client *clients_next(const struct clients *t, const struct client *c);
/* Removed clients that are not dropped yet. */
uint32_t clients_removed_count(const struct clients *t);
struct client *clients_first_removed(const struct clients *t);
struct client *clients_next_removed(const struct clients *t, const struct client *c);

/* A walk over the live clients that survives changes between its steps; one at a time. */
void clients_walk_begin(struct clients *t);
struct client *clients_walk_next(struct clients *t);

/* Nobody stands in the way of `c` any more: it waits here for its turn. */
void clients_resume(struct clients *t, struct client *c);
struct client *clients_take_resumed(struct clients *t);

#endif
