/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_REPLAY_H
#define CRYPTO_REPLAY_H

/* Receive window of packet-ids, and the send counter that ends. Plain fields: one owner. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/drop.h"

#define REPLAY_WINDOW_DEFAULT 64
#define REPLAY_WINDOW_MAX 4096     /* ids remembered behind the highest; larger windows are refused at start */
#define PACKET_ID_RENEGOTIATE 0xFF000000u /* from here on a new key is due (wire.md, section 12.1) */

struct replay {
	uint64_t *bits;     /* window_size bits (multiple of 64); for <= 64 it points to `inline_bits` */
	uint64_t inline_bits;
	uint32_t window;    /* 0: strictly sequential, no gaps */
	uint32_t time_s;    /* an id is too old if a higher one arrived more than this many seconds ago; 0: off */
	uint32_t highest;   /* 0: nothing received yet */
	uint32_t reap_floor; /* ids at or below it are too old by the time rule */
	uint32_t reap_next;  /* becomes reap_floor at the next reap */
	uint64_t reap_at_ms;
};

struct send_counter {
	uint32_t last; /* last id given out, 0 before the first */
};

/* window: 0..REPLAY_WINDOW_MAX ids; time_s: 0..600 (wire.md, section 11). The caller may give
 * `bits` (window/64 rounded up words, zeroed, outliving `r`) for windows above 64. */
void replay_init(struct replay *r, uint32_t window, uint32_t time_s, uint64_t *bits);
/* Would packet `id` be accepted? Changes nothing. id in host order, 0 is never valid.
 * Thread: owner. Returns DROP_NONE, DROP_REPLAY_OLD or DROP_REPLAY_DUPLICATE. */
enum drop replay_check(const struct replay *r, uint32_t id);
/* Mark `id` as seen, after its tag was verified. Returns as replay_check: a copy in the same
 * batch may have won. Never blocks, never allocates. */
enum drop replay_commit(struct replay *r, uint32_t id, uint64_t now_ms);

/* Next packet-id into `*id`; false if the counter is exhausted (then a new key is needed). */
bool send_counter_next(struct send_counter *c, uint32_t *id);
bool send_counter_is_nearly_used(const struct send_counter *c);

#endif
