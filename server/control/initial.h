/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_INITIAL_H
#define SERVER_CONTROL_INITIAL_H

/* The first packets of a stranger: no state, no answer larger than the question, nothing expensive
 * before the HMAC and the cookie (wire.md, section 5; security.md, section 3). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/addr.h"
#include "crypto/bytes.h"
#include "crypto/drop.h"
#include "crypto/packet.h"
#include "crypto/wrap.h"

#define COOKIE_KEY_LEN 32

struct hmac;

struct initial_settings {
	const struct wrap_keys *wrap;
	const struct hmac *cookie_key; /* COOKIE_KEY_LEN random bytes, made once a process */
	uint32_t hand_window_s;	       /* slot = (hand_window + 1) / 2 */
};

enum initial_verdict {
	INITIAL_DROP,	/* say nothing; `drop` says why */
	INITIAL_RESET,	/* a valid hard reset: ask the rate limit, then initial_reply */
	INITIAL_ACCEPT, /* cookie is right: create a session and give it this datagram */
};

struct initial_result {
	enum initial_verdict verdict;
	enum drop drop;
	struct session_id client_sid;
	struct session_id server_sid; /* INITIAL_ACCEPT: the cookie, which is our session-id */
};

/* Judge a datagram from `from`, which belongs to no session. boot_s: CLOCK_BOOTTIME seconds.
 * is_live: whether a server session-id is in use by a live session (then its cookie does not open a
 * second one). Touches no state. */
struct initial_result initial_judge(const struct initial_settings *s, struct view datagram,
				    const union sockaddr_any *from, uint16_t listener,
				    uint64_t boot_s,
				    bool (*is_live)(void *ctx, const struct session_id *server_sid),
				    void *ctx);
/* The stateless answer to a hard reset (never larger than 2 x the smallest reset); returns its
 * length, 0 without memory. wall_s: for the wrapping. */
size_t initial_reply(const struct initial_settings *s, const struct initial_result *r,
		     const union sockaddr_any *from, uint16_t listener, uint64_t boot_s,
		     uint32_t wall_s, uint8_t *out, size_t cap);

/* Token buckets for replies: one a source prefix (/32, /56) in a fixed table hashed with a key, and
 * one for all (security.md, P-3). */
struct initial_limit;
struct initial_limit_setup {
	uint32_t prefix_burst, prefix_per_s; /* 500, 100 */
	uint32_t total_per_s;		     /* 20000 */
};
__attribute__((warn_unused_result)) int initial_limit_new(const struct initial_limit_setup *s,
							  struct initial_limit **out);
void initial_limit_free(struct initial_limit *l);
/* Take a token; false: over the limit, stay silent. */
bool initial_limit_take(struct initial_limit *l, const union sockaddr_any *from, uint64_t now_ms);
/* A handshake was completed: its token comes back. */
void initial_limit_give(struct initial_limit *l, const union sockaddr_any *from);

#endif
