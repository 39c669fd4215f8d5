/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CLIENT_H
#define SERVER_CLIENT_H

/* A client: one session with all that belongs to it. One that connects again, even from the address
 * of a live one, is a new client (security.md, section 3.1). Thread: acceptor. */

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
	bool is_quiet;	   /* too many began at once: no lines before it is authenticated */
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
	uint32_t path_mtu; /* as its worker was told last; 0: unknown */
	struct timer timer;

	/* Links of `clients`; nobody else's business. */
	struct client_links all, half_open, by_addr, by_sid, by_name;
	bool is_half_open, is_in_addr, is_in_name;
	bool is_resumed;
	struct client *next_resumed;
};

/* Its address outside as status files have it, byte for byte as stock 2.6: "192.0.2.7:40000", but
 * of an IPv6 address no port. Returns `out`, which holds ENDPOINT_TEXT_MAX bytes. */
const char *client_real_addr(const struct client *c, char *out);
/* Its log lines begin with "CN/address:port", or "address:port" before the name is known. */
void client_set_prefix(struct client *c);
/* Before it is authenticated a client is a stranger with an address, and may be one of a flood. */
bool client_may_log(const struct client *c);
/* Reached over IPv6; a mapped address is IPv4. */
bool client_is_ipv6(const struct client *c);

/* Datagrams that wait for a lent session. false: the queue is full, or no memory. */
bool client_push_waiting(struct client *c, const void *data, size_t len);
/* The oldest, which the caller frees; NULL if there is none. */
struct waiting *client_pop_waiting(struct client *c);

#endif
