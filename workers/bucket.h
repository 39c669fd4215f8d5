/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_BUCKET_H
#define WORKERS_BUCKET_H

/* A token bucket: what a peer may use up of a rate. A plain value of the thread that owns the peer.
 * Kept as the time at which it will be full again, so that a packet costs a multiplication and no
 * division, and so that no pause, however long, can overflow it. */

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t full_ns;	/* when it is full again if nothing more is taken; fraction below */
	uint32_t full_fraction; /* of a nanosecond, in 2^-32 */
	uint64_t byte_cost;	/* 2^-32 nanoseconds; 0: no limit */
	uint64_t burst_ns;	/* from empty to full */
	uint64_t wait_ns;	/* after a refusal: until there is something in it */
};

/* A full bucket. rate_bytes_s: 0 (no limit) .. 50e9; burst_bytes: what it holds, 0 takes 50 ms of
 * the rate, at least 64 KiB. now_ns: CLOCK_BOOTTIME. */
void bucket_init(struct bucket *b, uint64_t rate_bytes_s, uint32_t burst_bytes, uint64_t now_ns);

/* Take a packet of `bytes` out of it. Allowed while there is anything in it: it may go below
 * nothing by one packet, which the next ones wait for. Returns false and takes nothing if it is
 * empty. */
bool bucket_take(struct bucket *b, uint32_t bytes, uint64_t now_ns);

/* After bucket_take refused: nanoseconds from then until it allows again; at least 1. 0 after it
 * allowed. */
uint64_t bucket_wait_ns(const struct bucket *b);

#endif
