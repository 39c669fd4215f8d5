/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_PLACEMENT_H
#define SERVER_PLACEMENT_H

/* Where a client's data goes: a peer-id from a slot of the worker that is to own it. Ids of a slot
 * are given out first in, first out, so that a late packet of a client that left meets nobody for
 * as long as possible. Thread: acceptor. */

#include <stdint.h>

#include "workers/steering.h"

struct placement;

struct place {
	uint32_t peer_id;
	uint32_t generation; /* differs from the last holder of the id; never 0 */
	unsigned worker;     /* thread index, 1..N */
};

/* Ids are below `peer_id_limit`. `slots` outlives the placement. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int placement_new(const struct slot_table *slots,
						      unsigned worker_count, uint32_t peer_id_limit,
						      struct placement **out);
void placement_free(struct placement *p);

/* An id on the worker with the fewest clients that still has one. Returns 0 or -ENOSPC. */
__attribute__((warn_unused_result)) int placement_take(struct placement *p, struct place *out);
/* An id on `worker`, for a client that is steered by its address. Returns 0 or -ENOSPC. */
__attribute__((warn_unused_result)) int placement_take_on(struct placement *p, unsigned worker,
							  struct place *out);
/* Give an id back, after its worker forgot the peer. */
void placement_release(struct placement *p, const struct place *place);
/* Ids held on `worker`. */
uint32_t placement_load(const struct placement *p, unsigned worker);

#endif
