/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_COUNTS_H
#define PERF_COUNTS_H

/* What a thread of the swarm has counted since its start. Written by that thread, read by main. */

#include <stdatomic.h>
#include <stdint.h>

enum count {
	COUNT_CONNECTED,
	COUNT_FAILED, /* closed before they were connected */
	COUNT_CLOSED, /* closed later, without being asked to */
	COUNT_LEFT,   /* closed because they were asked to */
	COUNT_REKEYED,
	COUNT_REKEY_FAILED,
	COUNT_UP_PACKETS, /* handed to the kernel */
	COUNT_UP_BYTES,	  /* their payload */
	COUNT_UP_SENDS,
	COUNT_UP_REFUSED,   /* packets that the kernel or the key did not take */
	COUNT_DOWN_PACKETS, /* inner packets that carry a stamp of ours */
	COUNT_DOWN_BYTES,   /* their payload */
	COUNT_DOWN_DATAGRAMS,
	COUNT_DOWN_RECEIVES, /* super-datagrams and single ones */
	COUNT_DOWN_LOST,     /* may go back: a difference of two moments may be negative */
	COUNT_DOWN_LATE,
	COUNT_DOWN_DROPPED,  /* replayed, forged, without a key */
	COUNT_DOWN_UNMARKED, /* inner packets of somebody else */
	COUNT_PINGS_SENT,
	COUNT_PINGS_ANSWERED,
	COUNT_COUNT
};

struct counts {
	_Alignas(64) _Atomic uint64_t value[COUNT_COUNT]; /* written by owner, relaxed */
};

/* Thread: the owner. */
static inline void count_add(struct counts *c, enum count which, uint64_t n)
{
	uint64_t v = atomic_load_explicit(&c->value[which], memory_order_relaxed);
	atomic_store_explicit(&c->value[which], v + n, memory_order_relaxed);
}

/* Thread: any. */
static inline uint64_t count_read(const struct counts *c, enum count which)
{
	return atomic_load_explicit(&c->value[which], memory_order_relaxed);
}

#endif
