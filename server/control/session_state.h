/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_SESSION_STATE_H
#define SERVER_CONTROL_SESSION_STATE_H

/* The inside of a session, shared by session and its parts (session_*.c) and by nobody else. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/log.h"
#include "crypto/bytes.h"
#include "crypto/packet.h"
#include "crypto/wrap.h"
#include "server/control/commands.h"
#include "server/control/key_state.h"
#include "server/control/negotiate.h"
#include "server/control/push.h"
#include "server/control/session_event.h"
#include "server/control/verify.h"

#define NEVER			 UINT64_MAX
#define RENEGOTIATION_SPACING_MS 1000  /* security.md, 4.2 */
#define LEAVING_GRACE_MS	 5000  /* after AUTH_FAILED or EXIT (wire.md, section 10) */
#define PUSH_AGAIN_MS		 30000 /* PUSH_REPLY is not sent twice in that time */
#define PUSH_REQUEST_FIRST_MS	 1000  /* client: after its key is active */
#define PUSH_REQUEST_AGAIN_MS	 5000
#define TLS_READS_MAX		 16    /* messages in one session_advance (security.md, T-4) */
#define TLS_INPUT_MAX		 32768 /* more than the largest record */
#define COMMAND_LINES_PER_S	 5     /* log lines that a peer can cause by commands */

struct session_settings;

/* The generation before the primary one: its data keys live on for the transition window. */
struct lame_duck {
	bool is_used;
	uint8_t key_id;
	uint64_t must_die_ms;
};

struct session {
	const struct session_settings *settings;
	struct tls_context *tls; /* a reference */
	bool is_server, is_ipv6;
	struct session_id own_sid, peer_sid;
	bool has_peer_sid; /* client: after the server's reset */

	struct wrap_state wrap;		/* counters with the configured keys */
	struct wrap_keys *dynamic_keys; /* for key-ids above 0; NULL: the configured ones */
	struct wrap_state dynamic_wrap;
	uint32_t retransmits; /* since the owner asked */

	struct key_state *primary; /* always there, even if failed */
	struct lame_duck lame;
	struct lame_duck resting; /* the one before: opens what is still on its way */
	bool wants_renegotiation;
	uint64_t renegotiated_ms; /* start of the last one; 0: none yet */

	/* of the first key exchange, and the same ever after */
	struct client_info client;
	struct identity identity;
	char *username; /* locked by the first verdict; NULL before */
	enum cipher cipher;
	bool uses_peer_id;
	uint32_t peer_id;
	unsigned flags; /* enum session_flag */
	bool is_established;
	char tls_summary[256];

	/* server: what to push; client: what was pushed */
	bool has_push;
	bool is_push_asked;
	bool was_pushed;
	uint64_t pushed_ms;
	struct push_reply push;
	struct push_received received;
	uint64_t push_request_ms; /* client: when to ask next */

	struct commands commands;
	struct session_events events;
	struct log_limit command_lines;

	uint64_t close_at_ms; /* NEVER: not leaving */
	bool is_closed_when_flushed;
	enum session_reason reason; /* the first one counts */
	bool is_dead;		    /* only what goes once is sent */
	bool is_closed_told;
	bool needs_advance;
};

/* --- session.c --- */

/* The end: what the primary key still has to say goes once, then SESSION_EVENT_CLOSED. */
void session_die(struct session *s, enum session_reason reason);
/* Leave at `at_ms` or before; the first deadline and the first reason win. */
void session_leave(struct session *s, enum session_reason reason, uint64_t at_ms);
bool session_is_leaving(const struct session *s);
/* Queue an event or a log line; without memory the session ends. */
void session_tell(struct session *s, const struct session_event *e);
void session_say(struct session *s, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Largest TLS piece of one packet (max-packet-size). */
size_t session_payload_max(const struct session *s);
/* TLS of the primary key, or its key exchange, failed. */
void session_fail_key(struct session *s, enum session_reason reason);

/* --- session_link.c: session_receive, session_send --- */
/* --- session_exchange.c: TLS and key method 2 of the primary key --- */

/* The client may begin with TLS: both resets are through. */
bool session_may_start_tls(const struct session *s);
void session_exchange_advance(struct session *s, uint64_t now_ms, uint32_t wall_s);
/* AUTH_FAILED[,text], then the end after a grace time, in which no data flows. text may be NULL. */
void session_refuse(struct session *s, enum session_reason reason, const char *text,
		    uint64_t now_ms);

/* --- session_keys.c: data keys, dynamic tls-crypt, renegotiation --- */

/* Hand out data keys once all that they wait for is there. */
void session_keys_advance(struct session *s, uint64_t now_ms);
/* The key-id of the next generation. */
uint8_t session_next_key_id(const struct session *s);
bool session_may_renegotiate(const struct session *s, uint64_t now_ms);
/* Put a new generation in the place of the primary, which becomes the lame duck. */
void session_start_generation(struct session *s, bool is_initiator, uint64_t now_ms);
/* The data keys of the lame duck, and of the one before, are not to be used any more. */
void session_retire_lame(struct session *s);
/* Deadlines of keys: lame duck, hand-window, renegotiation. */
void session_keys_expire(struct session *s, uint64_t now_ms);
uint64_t session_keys_deadline(const struct session *s);

/* --- session_commands.c --- */

/* A decrypted message that came after the key exchange. */
void session_commands_read(struct session *s, struct view message, uint64_t now_ms);
/* Push if due, hand waiting commands to TLS. */
void session_commands_advance(struct session *s, uint64_t now_ms);
/* session_commands_advance has something to do that does not wait for the peer. */
bool session_commands_are_due(const struct session *s);

/* --- session_client.c: what only the TLS client does --- */

/* Peer-info to send; `buf` is used for the default. */
const char *session_client_peer_info(const struct session *s, char *buf, size_t len);
/* A command from the server. */
void session_client_command(struct session *s, const char *command, uint64_t now_ms);
/* Ask for PUSH_REPLY if it is time. */
void session_client_advance(struct session *s, uint64_t now_ms);
uint64_t session_client_deadline(const struct session *s);

#endif
