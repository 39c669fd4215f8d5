/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_REPLAY_H
#define CRYPTO_REPLAY_H

/* Receive window of packet-ids, and the send counter that ends. Plain fields: one owner. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/drop.h"

#define REPLAY_WINDOW_DEFAULT 64
/* Ids remembered behind the highest; larger windows are refused at start. */
#define REPLAY_WINDOW_MAX 4096
/* From here on a new key is due (wire.md, section 12.1). */
#define PACKET_ID_RENEGOTIATE 0xFF000000u
#define REPLAY_MARKS	      3 /* notes of the time rule: 15 s in steps of 5 s */

/* May be moved byte by byte: no pointer into itself. What the usual packet touches stands in front,
 * so that it shares a cache line with what the key's owner keeps before it. */
struct replay {
	union {
		uint64_t inline_bits; /* the window, up to 64 ids */
		uint64_t *bits;	      /* a larger one: ring of bits, rounded up to 64 */
	};
	uint64_t reap_at_ms;
	uint32_t highest;    /* 0: nothing received yet */
	uint16_t window;     /* 0: strictly sequential, no gaps */
	uint16_t time_s;     /* ids are too old if a higher one came longer ago; 0: off */
	uint32_t reap_floor; /* ids at or below it are too old by the time rule */
	uint32_t reap_marks[REPLAY_MARKS]; /* `highest` at the last reaps, latest first */
};

struct send_counter {
	uint32_t last; /* last id given out, 0 before the first */
};

/* window: 0..REPLAY_WINDOW_MAX ids; time_s: 0..600 (wire.md, section 11). For windows above 64 the
 * caller gives `bits`: window/64 words, rounded up, outliving `r`; else NULL. */
void replay_init(struct replay *r, uint32_t window, uint32_t time_s, uint64_t *bits);
/* The rest of replay_check: ids that are not beyond the highest, and the window of 0. */
enum drop replay_check_behind(const struct replay *r, uint32_t id);
/* Would packet `id` be accepted? Changes nothing. id in host order, 0 is never valid.
 * Thread: owner. Returns DROP_NONE, DROP_REPLAY_OLD or DROP_REPLAY_DUPLICATE. */
static inline enum drop replay_check(const struct replay *r, uint32_t id)
{
	return id > r->highest && r->window > 0 ? DROP_NONE : replay_check_behind(r, id);
}
/* Mark `id` as seen, after its tag was verified. Returns as replay_check: a copy in the same
 * batch may have won. Applies the time rule, reaping every 5 s (time_s/3 if that is more).
 * Never blocks, never allocates. */
enum drop replay_commit(struct replay *r, uint32_t id, uint64_t now_ms);

/* Next packet-id into `*id`; false if the counter is exhausted (then a new key is needed). */
static inline bool send_counter_next(struct send_counter *c, uint32_t *id)
{
	if (c->last == UINT32_MAX)
		return false;
	*id = ++c->last;
	return true;
}

/* So few ids are left that a new key is due (wire.md, section 12.1). */
bool send_counter_is_nearly_used(const struct send_counter *c);

#endif
