/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_UPLINK_H
#define PERF_UPLINK_H

/* What a thread sends: bursts of inner packets of one member, sealed in one batch into datagrams
 * that lie side by side, and handed over with one call. */

#include <stdint.h>

#include "perf/member.h"

struct uplink;

__attribute__((warn_unused_result)) int uplink_new(const struct client_world *w,
						   struct uplink **out);
void uplink_free(struct uplink *u);
/* Most packets of one burst. */
unsigned uplink_burst_max(const struct uplink *u);
/* `n` (1..uplink_burst_max) packets of a connected member. */
void uplink_send_burst(struct uplink *u, struct member *m, unsigned n, uint64_t now_ms);
/* One plaintext of `len` bytes, written by the caller to uplink_single's room. Returns whether the
 * kernel took it. */
uint8_t *uplink_single(struct uplink *u);
bool uplink_send_single(struct uplink *u, struct member *m, uint32_t len, uint64_t now_ms);

#endif
