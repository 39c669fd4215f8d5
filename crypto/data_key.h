/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_DATA_KEY_H
#define CRYPTO_DATA_KEY_H

/* One generation of data channel keys of a peer: both directions, their counters and limits.
 * The packet path calls seal and open with (key, segment list); what a segment looks like on the
 * wire (AEAD today; CBC and epoch later) is this module's business alone. */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "crypto/drop.h"
#include "crypto/replay.h"

#define DATA_KEY_HEADROOM 32 /* bytes that must be free in front of a plaintext to seal */
#define DATA_KEY_TAILROOM 32 /* and behind it */
#define DATA_KEY_BATCH	  64 /* most segments in one call */
#define DATA_KEY_IV_LEN	  8  /* implicit part of the nonce */

/* Secret bytes of one generation, from prf to data_key_init; wiped by whoever made it. */
struct data_key_material {
	enum cipher cipher;
	uint8_t key_id; /* 0..7 */
	uint8_t seal_key[AEAD_KEY_MAX];
	uint8_t open_key[AEAD_KEY_MAX];
	uint8_t seal_iv[DATA_KEY_IV_LEN];
	uint8_t open_iv[DATA_KEY_IV_LEN];
};

/* A packet on its way through seal or open. */
struct data_segment {
	uint8_t *data; /* seal: plaintext -> datagram; open: datagram -> plaintext */
	uint32_t len;
	enum drop drop; /* result: DROP_NONE or why not */
};

struct data_key_options {
	uint32_t peer_id;	/* for the P_DATA_V2 header, or PEER_ID_NONE: P_DATA_V1 */
	uint32_t replay_window; /* 0..64; larger windows need `replay_bits` */
	uint32_t replay_time_s;
	uint64_t *replay_bits; /* NULL, or words for a larger window, outliving the key */
};

/* Owned by one worker after installation. Plain fields: nobody else looks. A packet to or from a
 * random peer costs little more than the cache lines that it misses: each direction has one here.
 */
struct data_key {
	/* For sealing. */
	_Alignas(64) struct aead_schedule *seal_schedule; /* in the owner's slab, or the control
							     side's copy */
	uint64_t seal_from_ms; /* BOOTTIME: not used for sending before, unless it is the only key;
				  UINT64_MAX: never */
	uint8_t seal_iv[DATA_KEY_IV_LEN];
	uint64_t sealed_packets, sealed_bytes; /* usage, for the AEAD limit and reneg-bytes */
	struct send_counter counter;
	uint8_t head[4];
	enum cipher cipher;
	uint8_t key_id;
	uint8_t head_len; /* 4: P_DATA_V2, 1: P_DATA_V1 */

	/* For opening. */
	_Alignas(64) struct aead_schedule *open_schedule;
	uint8_t open_iv[DATA_KEY_IV_LEN];
	uint64_t opened_packets, opened_bytes;
	enum cipher open_cipher; /* the same, once more, in this line */
	bool is_open_ended;	 /* too many tags failed */
	struct replay replay;
	uint64_t failed_tags;
};
static_assert(offsetof(struct data_key, head_len) < 64, "sealing touches one line");
static_assert(offsetof(struct data_key, replay) % 64 == 40 &&
		      offsetof(struct replay, reap_floor) == 24,
	      "opening touches one line");

/* Fill `k`; expands both schedules (the caller gives the two slots, which `k` then refers to; the
 * caller keeps the memory). Control side. Returns 0 or aead_schedule_init's error. */
__attribute__((warn_unused_result)) int data_key_init(struct data_key *k, struct aead *a,
						      const struct data_key_material *m,
						      const struct data_key_options *o,
						      struct aead_schedule *seal_slot,
						      struct aead_schedule *open_slot);
/* Wipe keys and schedules. The memory stays the caller's. Thread: the owner. */
void data_key_fini(struct data_key *k, struct aead *a);

/* Seal `n` (<= DATA_KEY_BATCH) plaintexts in place: data moves back by the overhead. Each needs
 * DATA_KEY_HEADROOM and DATA_KEY_TAILROOM. An exhausted counter gives DROP_KEY_EXPIRED.
 * Thread: the owner. Never allocates. */
void data_key_seal(struct data_key *k, struct aead *a, struct data_segment *seg, unsigned n);
/* Open `n` (<= DATA_KEY_BATCH) datagrams in place (P_DATA_V1 or V2, as each says): check the replay
 * window, open, commit; a second copy in the batch is dropped. Drops: SHORT, REPLAY_*, DECRYPT,
 * KEY_EXPIRED, BAD_OPCODE. */
void data_key_open(struct data_key *k, struct aead *a, struct data_segment *seg, unsigned n,
		   uint64_t now_ms);

/* For batches of many keys, in two steps: first the key itself, a few keys ahead; then, when it has
 * come, its schedule, for about `len` bytes. Change nothing. */
static inline void data_key_prefetch_seal(const struct data_key *k)
{
	__builtin_prefetch(k, 1);
}
static inline void data_key_prefetch_open(const struct data_key *k)
{
	__builtin_prefetch(&k->open_schedule, 1);
}
static inline void data_key_prefetch_seal_schedule(const struct data_key *k, const struct aead *a,
						   uint32_t len)
{
	aead_prefetch(a, k->cipher, k->seal_schedule, len);
}
static inline void data_key_prefetch_open_schedule(const struct data_key *k, const struct aead *a,
						   uint32_t len)
{
	aead_prefetch(a, k->open_cipher, k->open_schedule, len);
}

/* Bytes that seal adds. */
unsigned data_key_overhead(const struct data_key *k);
/* Packet-id, AEAD use or failed tags are near their limit (wire.md, sections 12.1 and 12.5). */
bool data_key_wants_renegotiation(const struct data_key *k);

#endif
