/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_SESSION_H
#define SERVER_CONTROL_SESSION_H

/* The conversation with one peer, from the packet after the cookie to the end: reliability, TLS,
 * key method 2, negotiation, push, renegotiation. Bytes and `now` in, bytes, events and the next
 * deadline out. No I/O, no clock, no threads. Takes either TLS role.
 *
 * Cheap and expensive work are apart, so that the acceptor can lend a session to a handshake
 * thread: session_receive only unwraps and orders; session_advance runs TLS. The owner calls
 *
 *	session_receive()*  ->  session_advance()  ->  session_send()*, session_next_event()*
 *
 * and calls session_advance again at session_deadline. Whoever has borrowed the session calls
 * session_advance; everybody else keeps away until it is back. Calls that ask for something
 * (session_authorize, session_set_push, session_command, session_renegotiate, session_close) only
 * note it: session_deadline is then 0, and the work is done by the next session_advance.
 *
 * Log lines that the session makes itself (SESSION_EVENT_LOG): VERIFY, peer info, TLS errors up to
 * `TLS Error: TLS handshake failed`, PUSH received, SENT CONTROL. The owner makes those that need
 * an address or a verdict: Control Channel (session_tls_summary), Peer Connection Initiated,
 * Username/Password authentication, Data Channel, SIGTERM/SIGUSR1[soft,...]. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/bytes.h"
#include "crypto/data_key.h"
#include "crypto/drop.h"
#include "crypto/packet.h"
#include "crypto/secret.h"
#include "crypto/wrap.h"
#include "server/control/push.h"
#include "server/control/session_event.h"

struct session;
struct tls_context;
struct identity;
struct client_info;

enum session_role { SESSION_SERVER, SESSION_CLIENT };

#define COMMON_NAME_MAX 64   /* with NUL */
#define USERNAME_MAX	4096 /* with NUL */
#define COMMAND_MAX	1024 /* one control command, with NUL (wire.md, section 10) */

/* Shared by all sessions of a configuration; immutable; outlives them. */
struct session_settings {
	enum session_role role;
	const struct wrap_keys *wrap; /* for key-id 0 (and later ones, without dynamic tls-crypt) */
	const struct static_key
		*wrap_key;	  /* what `wrap` was made of, for dynamic tls-crypt; NULL: none */
	bool is_ipv6;		  /* 48 instead of 28 bytes of IP and UDP header */
	uint32_t max_packet_size; /* 1250 */
	uint32_t hand_window_s, tran_window_s, tls_timeout_s;
	uint32_t reneg_sec_max, reneg_sec_min; /* 0: never by time */
	uint32_t replay_window, replay_time_s;
	const char *data_ciphers;	   /* normalised colon list */
	const char *data_ciphers_fallback; /* NULL: none */
	const char *cipher;		   /* `cipher` as configured; NULL: none */
	const char *auth;		   /* for the options string */
	int key_direction;		   /* -1, 0, 1: for the options string */
	uint32_t tun_mtu;		   /* for the options string */
	bool is_client_cert_required;
	const char *peer_info;		 /* client role: lines to send; NULL: our default */
	const char *username, *password; /* client role; NULL: none */
	random_fn random;
};

struct session_start {
	struct session_id own_sid;  /* server: the cookie; client: ignored */
	struct session_id peer_sid; /* server: of the client's packet */
	uint64_t now_ms;	    /* CLOCK_BOOTTIME */
	uint32_t wall_s;	    /* unix time, for the wrapping and certificates */
	bool is_ipv6;
};

/* server: a session that has accepted the cookie: as if our reset was acknowledged (wire.md, 5.3).
 * client: sends the first reset at once. `tls` is referenced. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int session_new(const struct session_settings *s,
						    struct tls_context *tls,
						    const struct session_start *start,
						    struct session **out);
/* Wipes and frees everything. NULL is accepted. Never while lent. */
void session_free(struct session *s);

/* One control packet that belongs to this session (own and peer session-id are checked here).
 * Returns DROP_NONE or why it left no trace. */
__attribute__((warn_unused_result)) enum drop
session_receive(struct session *s, struct view datagram, uint64_t now_ms);
/* The next session_advance may do public-key work: lend the session. */
bool session_is_expensive(const struct session *s);
/* Run TLS, key exchange, timers. */
void session_advance(struct session *s, uint64_t now_ms, uint32_t wall_s);
/* Take the next datagram to send, if any; returns its length, 0 if there is none. `cap` must be
 * CONTROL_PACKET_MAX. */
size_t session_send(struct session *s, uint64_t now_ms, uint32_t wall_s, uint8_t *out, size_t cap);
/* How many messages session_send has repeated since the last call. */
uint32_t session_take_retransmits(struct session *s);
/* When session_advance and session_send are to be called again without input. UINT64_MAX: never. */
uint64_t session_deadline(const struct session *s);

/* The oldest event not yet taken. Returns false if there is none. */
bool session_next_event(struct session *s, struct session_event *out);

/* Facts for the owner; valid from SESSION_EVENT_AUTHORIZE on, not while lent. */
const char *session_common_name(const struct session *s); /* "UNDEF" before */
const char *session_username(const struct session *s);	  /* "" if none */
const char *session_password(const struct session *s);	  /* of the pending exchange; "" if none */
const struct identity *session_identity(const struct session *s);
const struct client_info *session_client_info(const struct session *s);
/* Negotiated; CIPHER_NONE before. */
enum cipher session_cipher(const struct session *s);
bool session_uses_peer_id(const struct session *s);
const struct session_id *session_own_sid(const struct session *s);
const struct session_id *session_peer_sid(const struct session *s);
bool session_is_established(const struct session *s);	  /* a usable key was authorised */
const char *session_tls_summary(const struct session *s); /* "" before */
/* Of session_set_push (server) or PUSH_REPLY (client); PEER_ID_NONE before, or if not used. */
uint32_t session_peer_id(const struct session *s);

/* What both sides agreed on beyond the cipher. */
enum session_flag {
	SESSION_FLAG_TLS_EKM = 1 << 0,	     /* data keys come from the exporter */
	SESSION_FLAG_CC_EXIT = 1 << 1,	     /* EXIT over the control channel is understood */
	SESSION_FLAG_DYN_TLS_CRYPT = 1 << 2, /* key-ids above 0 have a wrapping key of their own */
};
unsigned session_flags(const struct session *s);

/* Verdict on the key exchange of `key_id`. A refusal sends AUTH_FAILED[,reason] (reason may be
 * NULL), retires the old data keys and closes after a grace time; a late or repeated verdict has no
 * effect. */
void session_authorize(struct session *s, uint8_t key_id, bool is_ok, const char *reason,
		       uint64_t now_ms);

/* What PUSH_REPLY is to say (push.h); texts are copied. From SESSION_EVENT_AUTHORIZE on. Returns 0,
 * -EMSGSIZE (a single option, or all together, too long), -EINVAL (a comma or unprintable byte in
 * an option; too early), -ENOMEM. */
__attribute__((warn_unused_result)) int session_set_push(struct session *s,
							 const struct push_plan *plan);

/* Queue a control command (without NUL). Returns 0, -EMSGSIZE, -ENOBUFS (64 KiB are waiting). */
__attribute__((warn_unused_result)) int session_command(struct session *s, const char *text);
/* Begin a renegotiation now (both roles), e.g. because a key is nearly used up. No effect while one
 * is under way or before the first key. */
void session_renegotiate(struct session *s);
/* The certificates, CRL and policy of the next TLS handshake, a renegotiation's too; one that has
 * begun keeps its own. `tls` is referenced. */
void session_use_tls(struct session *s, struct tls_context *tls);
/* Leave: in the client role with EXIT if negotiated. SESSION_EVENT_CLOSED follows at or before
 * now_ms + linger_ms, once what is queued was sent and acknowledged. The first deadline wins. */
void session_close(struct session *s, enum session_reason reason, uint64_t now_ms,
		   uint32_t linger_ms);

#endif
