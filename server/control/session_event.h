/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_SESSION_EVENT_H
#define SERVER_CONTROL_SESSION_EVENT_H

/* What a session tells its owner; included by session.h. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/data_key.h"

enum session_event_kind {
	SESSION_EVENT_NONE,
	/* Server role: a key exchange is complete and waits for a verdict: session_authorize. For
	 * key-id 0 the owner also has to give what to push: session_set_push, first. For later ones
	 * name, certificate and username are those of the first (security.md, F-6). */
	SESSION_EVENT_AUTHORIZE,
	/* Data keys are there. The owner installs `key` in the worker, and wipes the event. Taken
	 * before session_send: the peer may seal with the key as soon as it has what is sent. */
	SESSION_EVENT_KEY,
	/* Of the key with that key-id `seal_from_ms` has changed: the peer has confirmed that it
	 * has the key, or (UINT64_MAX) drops it now and may still have packets on the way. */
	SESSION_EVENT_KEY_SEAL_FROM,
	/* The key with that key-id is gone (transition window over, replaced, or its peer refused).
	 */
	SESSION_EVENT_KEY_RETIRED,
	/* PUSH_REPLY was handed to TLS: the peer may send data now. */
	SESSION_EVENT_PUSHED,
	/* A control command that the session does not handle itself, e.g. PUSH_REPLY or AUTH_FAILED
	 * in the client role, CR_RESPONSE in the server role. */
	SESSION_EVENT_COMMAND,
	/* The peer said EXIT: closed after a grace time, by the session itself. */
	SESSION_EVENT_EXIT,
	/* A renegotiation began (reason NONE) or failed (TIMEOUT, TLS_ERROR, ...). After a failure
	 * the session lives on with its old key until that retires. For counters and log. */
	SESSION_EVENT_RENEGOTIATION,
	/* A line for the log at that level, with the client's prefix (VERIFY OK, peer info, ...).
	 */
	SESSION_EVENT_LOG,
	/* The end; `reason` says why. No more output; free it. */
	SESSION_EVENT_CLOSED,
};

enum session_reason {
	SESSION_REASON_NONE,
	SESSION_REASON_TLS_ERROR,     /* TLS failed, or a malformed key exchange */
	SESSION_REASON_CERT_REJECTED, /* verification refused the certificate */
	SESSION_REASON_AUTH_FAILED,
	SESSION_REASON_TIMEOUT, /* hand-window passed without a usable key */
	SESSION_REASON_EXIT,	/* the peer left */
	SESSION_REASON_NO_CIPHER,
	SESSION_REASON_LOCAL, /* session_close */
	SESSION_REASON_OK,
};

/* A value; `text` and `info` stay the session's and are valid until the next call on it. */
struct session_event {
	enum session_event_kind kind;
	enum session_reason reason;
	uint8_t key_id;
	int log_level;		      /* enum log_level, for SESSION_EVENT_LOG */
	const char *text;	      /* command, log line */
	bool is_initiator;	      /* RENEGOTIATION: we began it */
	struct data_key_material key; /* KEY; secret */
	/* KEY, KEY_SEAL_FROM: sending with it begins then (wire.md, section 12.3); UINT64_MAX: not
	 * for now, it is there to open. */
	uint64_t seal_from_ms;
};

/* Events not yet taken, oldest first; private to session. */
struct session_events {
	struct session_event_node *first, *last;
	struct session_event_node *taken; /* owns the text that the owner may still read */
};
/* Queue a copy of `e` and its text. Returns false without memory. */
__attribute__((warn_unused_result)) bool session_events_push(struct session_events *q,
							     const struct session_event *e);
/* Take the oldest; what was taken before is wiped and freed. Returns false if there is none. */
bool session_events_next(struct session_events *q, struct session_event *out);
void session_events_fini(struct session_events *q);

#endif
