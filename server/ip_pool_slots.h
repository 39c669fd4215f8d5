/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_IP_POOL_SLOTS_H
#define SERVER_IP_POOL_SLOTS_H

/* Numbered slots that remember who held them last: which one a name gets (options.md, section 5).
 * Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

#define SLOT_NONE UINT32_MAX

struct pool_slots;

/* Slots 0..count-1, all free and nameless. Returns 0, -ENOMEM or -EIO (no randomness). */
__attribute__((warn_unused_result)) int pool_slots_new(uint32_t count, struct pool_slots **out);
void pool_slots_free(struct pool_slots *s);

/* A free slot whose last holder was `name`, else the one that is unused for longest (never used
 * ones first, by index); with `is_reserved` never one that somebody else held. The slot is taken
 * and remembers the name. SLOT_NONE if there is none. */
uint32_t pool_slots_take(struct pool_slots *s, const char *name, bool is_reserved);
/* The lowest free slot, whose name is left as it is. SLOT_NONE if there is none. */
uint32_t pool_slots_take_lowest(struct pool_slots *s);
/* Free a taken slot; it keeps its name. */
void pool_slots_release(struct pool_slots *s, uint32_t slot);
/* A free slot was held by `name` until now. */
void pool_slots_remember(struct pool_slots *s, uint32_t slot, const char *name);

/* Who holds the slot, or held it last; NULL: nobody. Valid until the next call. */
const char *pool_slots_name(const struct pool_slots *s, uint32_t slot);
uint32_t pool_slots_used(const struct pool_slots *s);
/* Grows whenever a name changes. */
uint64_t pool_slots_version(const struct pool_slots *s);

#endif
