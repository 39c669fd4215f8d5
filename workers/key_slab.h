/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_KEY_SLAB_H
#define WORKERS_KEY_SLAB_H

/* A worker's data keys with their schedules, side by side on huge pages, so that a batch to many
 * peers misses the TLB rarely. Sized at start, never grows; memory is touched when first used. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/data_key.h"

struct key_slab;

/* What stands behind the schedules, for log and metrics. */
enum key_slab_pages {
	KEY_SLAB_PAGES_PLAIN,	/* not asked for: masked, or the slab is small */
	KEY_SLAB_PAGES_HUGE,	/* the first entry stands on one */
	KEY_SLAB_PAGES_REFUSED, /* asked for, but the kernel gives plain ones */
	KEY_SLAB_PAGES_UNKNOWN, /* asked for; /proc is not there to say */
};

/* Room for `count` keys. use_huge_pages: ask for them (they are a hint). Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int key_slab_new(uint32_t count, bool use_huge_pages,
						     struct key_slab **out);
/* All keys must have been dropped. */
void key_slab_free(struct key_slab *s);
enum key_slab_pages key_slab_pages(const struct key_slab *s);
/* Move `from` (schedules included; they are wiped where they were) into the slab, with a fresh
 * replay window. NULL if the slab is full; `from` is then untouched. Thread: owner. */
struct data_key *key_slab_adopt(struct key_slab *s, struct data_key *from);
/* Wipe a key and take its place back. Thread: owner. Never allocates. */
void key_slab_drop(struct key_slab *s, struct data_key *k, struct aead *a);

#endif
