/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_WRAP_H
#define CRYPTO_WRAP_H

/* The outer protection of control packets: none, tls-auth, tls-crypt (wire.md, section 2). */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/bytes.h"
#include "crypto/drop.h"
#include "crypto/packet.h"
#include "crypto/replay.h"
#include "crypto/static_key.h"

enum wrap_mode { WRAP_NONE, WRAP_TLS_AUTH, WRAP_TLS_CRYPT };

#define WRAP_OVERHEAD_MAX  72	/* HMAC-SHA512 + packet-id + time */
#define CONTROL_PACKET_MAX 2304 /* largest control packet we build or take apart */

/* Keys of both directions; immutable and shared by all sessions, or one session's own (dynamic
 * tls-crypt). Holds the raw keys and prepared library contexts. */
struct wrap_keys;

/* mode and key as configured. WRAP_NONE takes key = NULL.
 * tls-auth: `digest` is the name of --auth ("SHA1", never "none"), `direction` as configured.
 * tls-crypt: digest is ignored; `direction` is KEY_DIRECTION_0 for the TLS server,
 * KEY_DIRECTION_1 for the client (wire.md, section 4).
 * Returns 0, -EINVAL (unknown digest, all-zero key), -ENOMEM. */
__attribute__((warn_unused_result)) int wrap_keys_new(enum wrap_mode mode,
						      const struct static_key *key,
						      enum key_direction direction,
						      const char *digest, struct wrap_keys **out);
/* Wipe and free; NULL is accepted. */
void wrap_keys_free(struct wrap_keys *keys);
enum wrap_mode wrap_keys_mode(const struct wrap_keys *keys);
/* Bytes that wrapping adds to `[op|kid][sid] body`. */
unsigned wrap_overhead(const struct wrap_keys *keys);

/* A control packet after unwrapping. */
struct wrapped {
	enum opcode opcode;
	uint8_t key_id;
	struct session_id sid; /* the sender's */
	uint32_t packet_id;    /* of the wrapping; 0 with WRAP_NONE */
	uint32_t time;
	struct view body; /* in clear; points into `scratch` or the datagram */
};

/* Verify and take apart one control packet. `scratch` must hold CONTROL_PACKET_MAX bytes when the
 * mode decrypts. No state is touched, no replay is checked; thread-safe on shared keys.
 * Returns DROP_NONE, DROP_SHORT, DROP_BAD_OPCODE, DROP_CONTROL_HMAC, or DROP_CONTROL_MALFORMED if
 * the datagram is longer than CONTROL_PACKET_MAX. */
__attribute__((warn_unused_result)) enum drop wrap_open(const struct wrap_keys *keys,
							struct view datagram, uint8_t *scratch,
							struct wrapped *out);
/* Build `[op|kid][sid] wrap(body)`. Thread-safe on shared keys. The writer fails without room. */
void wrap_seal(const struct wrap_keys *keys, enum opcode op, uint8_t key_id,
	       const struct session_id *sid, uint32_t packet_id, uint32_t time, struct view body,
	       struct writer *out);

/* One session's counters for one set of keys (wire.md, section 2.5). */
struct wrap_state {
	uint32_t send_id;   /* last used */
	uint32_t send_time; /* unix seconds fixed at first use; 0 before */
	uint32_t recv_time; /* high word of the receive window; 0 before the first packet */
	struct replay recv;
};

/* replay_window: as configured; more than 64 ids are not remembered here. */
void wrap_state_init(struct wrap_state *s, uint32_t replay_window, uint32_t replay_time_s);
/* Next (packet-id, time) to send with; on wrap of the id a new time is set.
 * wall_s: unix seconds now. Returns false if time has not moved since (nothing may be sent). */
bool wrap_state_next(struct wrap_state *s, uint32_t wall_s, uint32_t *packet_id, uint32_t *time);
/* Accept the packet-id of a verified packet, or DROP_CONTROL_REPLAY. */
enum drop wrap_state_accept(struct wrap_state *s, uint32_t packet_id, uint32_t time,
			    uint64_t now_ms);

#endif
