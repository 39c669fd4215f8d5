/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

/* The clients and every way to look one up. A client is one session with all that belongs to it: a
 * client that connects again, even from the address of a live one, is a new client (security.md,
 * section 3.1), so one address can have two for a while: one that is authenticated, and one that
 * is not yet. All tables whose keys strangers choose are hashed with a random key.
 * Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"
#include "crypto/packet.h"
#include "crypto/secret.h"
#include "server/control/session.h"
#include "server/control/verify.h"
#include "server/handshake.h"
#include "server/ip_pool.h"
#include "server/placement.h"
#include "workers/timers.h"

#define CLIENT_PREFIX_MAX  (COMMON_NAME_MAX + ENDPOINT_TEXT_MAX)
#define CLIENT_WAITING_MAX 16 /* datagrams kept while the session is lent; more are dropped */

struct peer;
struct clients;

enum client_stage {
	CLIENT_HANDSHAKING, /* half open */
	CLIENT_CONNECTING,  /* authenticated; waits for what earlier clients still hold */
	CLIENT_CONNECTED,   /* authorised */
	CLIENT_CLOSING,	    /* says its last words */
	CLIENT_REMOVED, /* in no lookup any more; waits for its worker and its handshake thread */
};

/* Why a client goes; chooses counter and log line. */
enum client_end {
	CLIENT_END_NONE,
	CLIENT_END_EXIT,     /* EXIT on the control channel, closed after its grace time */
	CLIENT_END_OCC_EXIT, /* on the data channel: closed at once */
	CLIENT_END_PING_RESTART,
	CLIENT_END_AUTH_FAILED,
	CLIENT_END_TLS_ERROR,
	CLIENT_END_REPLACED,
	CLIENT_END_SHUTDOWN,
};

/* A datagram for a lent session. */
struct waiting {
	struct waiting *next;
	size_t len;
	uint8_t data[];
};

struct client_links {
	struct client *next, *prev;
};

/* Owned by `clients` from clients_add to clients_drop. */
struct client {
	uint64_t id; /* counts up from 0 */
	enum client_stage stage;
	enum client_end end;

	struct session *session; /* the client's; freed when not lent and the client is dropped */
	struct session_id own_sid, peer_sid;
	struct handshake_job job;
	bool is_lent;
	struct waiting *waiting, **waiting_tail;
	unsigned waiting_count;
	bool is_renegotiation_due, is_restart_due; /* to be told to the session when it is back */

	struct link_addr link;
	char prefix[CLIENT_PREFIX_MAX];	   /* of its log lines */
	char common_name[COMMON_NAME_MAX]; /* "" before authentication */
	struct identity identity;	   /* locked at authentication (security.md, F-6) */
	char *username;			   /* likewise; NULL before, or if none */
	bool is_authenticated;
	bool has_progress; /* half open: its TLS handshake has begun */

	bool has_place, has_lease, is_peer_there;
	bool has_routes;
	struct place place;
	struct ip_lease lease;
	struct peer *peer; /* the worker's while is_peer_there */
	uint8_t newest_key_id;
	bool uses_peer_id;
	const char *cipher; /* static text; NULL before the first key */
	bool is_initiator;  /* of the last renegotiation: we were */

	unsigned waits_for;	  /* removed clients whose address this one waits for */
	struct client *successor; /* of a removed client: who waits for it */

	uint64_t started_ms;	  /* BOOTTIME */
	uint64_t control_seen_ms; /* last control packet that was accepted */
	int64_t connected_s;	  /* unix time */
	uint64_t control_received_bytes, control_sent_bytes;
	uint64_t float_logged_ms;
	struct timer timer;

	/* Links of `clients`; nobody else's business. */
	struct client_links all, half_open, by_addr, by_sid, by_name;
	bool is_half_open, is_in_addr, is_in_name;
	bool is_resumed;
	struct client *next_resumed;
};

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

/* Reached over IPv6; a mapped address is IPv4. */
bool client_is_ipv6(const struct client *c);

/* Datagrams that wait for a lent session. false: the queue is full, or no memory. */
bool client_push_waiting(struct client *c, const void *data, size_t len);
/* The oldest, which the caller frees; NULL if there is none. */
struct waiting *client_pop_waiting(struct client *c);

/* Live clients: not removed. */
uint32_t clients_count(const struct clients *t);
uint32_t clients_half_open_count(const struct clients *t);
/* Half-open clients by age: the oldest, then the next younger, or NULL. */
struct client *clients_oldest_half_open(const struct clients *t);
struct client *clients_next_half_open(const struct clients *t, const struct client *c);
/* Live clients in the order in which they came. */
struct client *clients_first(const struct clients *t);
struct client *clients_next(const struct clients *t, const struct client *c);
struct client *clients_first_removed(const struct clients *t);
struct client *clients_next_removed(const struct clients *t, const struct client *c);

/* A walk over the live clients that survives changes between its steps; one at a time. */
void clients_walk_begin(struct clients *t);
struct client *clients_walk_next(struct clients *t);

/* Nobody stands in the way of `c` any more: it waits here for its turn. */
void clients_resume(struct clients *t, struct client *c);
struct client *clients_take_resumed(struct clients *t);

#endif
