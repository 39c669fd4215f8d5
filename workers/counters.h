/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_COUNTERS_H
#define WORKERS_COUNTERS_H

/* A worker counts in plain fields and publishes them in housekeeping; the observer reads what was
 * published. One of the four places where threads meet. */

#include <stdatomic.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "crypto/drop.h"

enum wake_cause { WAKE_IO, WAKE_TIMER, WAKE_MESSAGE, WAKE_COUNT };

/* X(field): one 64-bit counter each. */
#define COUNTER_FIELDS(X)                                                                          \
	X(link_received_bursts)                                                                    \
	X(link_received_packets)                                                                   \
	X(link_received_bytes)                                                                     \
	X(link_sent_bursts)                                                                        \
	X(link_sent_packets)                                                                       \
	X(link_sent_bytes)                                                                         \
	X(udp_gro_segments)                                                                        \
	X(udp_gso_segments)                                                                        \
	X(bursts_refused)                                                                          \
	X(tun_read_frames)                                                                         \
	X(tun_read_packets)                                                                        \
	X(tun_read_bytes)                                                                          \
	X(tun_written_frames)                                                                      \
	X(tun_written_packets)                                                                     \
	X(tun_written_bytes)                                                                       \
	X(opened_packets)                                                                          \
	X(opened_bytes)                                                                            \
	X(sealed_packets)                                                                          \
	X(sealed_bytes)                                                                            \
	X(open_batches)                                                                            \
	X(seal_batches)                                                                            \
	X(handoff_in_packets)                                                                      \
	X(handoff_out_packets)                                                                     \
	X(handoff_full)                                                                            \
	X(busy_ns)                                                                                 \
	X(idle_ns)                                                                                 \
	X(turns)                                                                                   \
	X(system_calls)                                                                            \
	X(io_submissions)                                                                          \
	X(io_completions)                                                                          \
	X(io_buffers_exhausted)                                                                    \
	X(io_receive_errors)                                                                       \
	X(peers)                                                                                   \
	X(buffers_free)                                                                            \
	X(timers_armed)

enum counter_direction { DIRECTION_INGRESS, DIRECTION_EGRESS, DIRECTION_COUNT };

struct counters {
#define X(f) uint64_t f;
	COUNTER_FIELDS(X)
#undef X
	uint64_t wakeups[WAKE_COUNT];
	uint64_t drops[DIRECTION_COUNT][DROP_COUNT];
};

#define COUNTERS_WORDS (sizeof(struct counters) / sizeof(uint64_t))

/* Written by its worker with relaxed stores (never read-modify-write), read by anyone relaxed. */
struct counters_shared {
	_Alignas(64) _Atomic uint64_t words[COUNTERS_WORDS];
};

/* Thread: the owner, in housekeeping. */
void counters_publish(const struct counters *local, struct counters_shared *shared);
/* Thread: any. A snapshot whose fields may be from different moments. */
void counters_read(struct counters_shared *shared, struct counters *out);

#endif
