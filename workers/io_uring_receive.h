/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_URING_RECEIVE_H
#define WORKERS_IO_URING_RECEIVE_H

/* What the io_uring engine receives: datagrams, packets, and the wake-up; arming the requests, and
 * taking their completions into `ready`. Part of the io_uring engine.
 *
 * `ready` cannot overflow: a source is armed and its group filled only by uring_arm, and no further
 * than `ready` has room for. */

#include "workers/io_uring_engine.h"

/* See which kinds of multishot there are, and register their groups. */
void uring_receive_init(struct uring *e);
/* Arm what is not armed, and fill the groups; sets is_starved if that takes more buffers than the
 * pool has. */
void uring_arm(struct uring *e);
/* A datagram of socket `listener`, or why there is none. */
void uring_on_receive(struct uring *e, unsigned listener, const struct io_uring_cqe *cqe);
/* A packet from the tun queue, or why there is none; sets `error` if there will be none. */
void uring_on_read(struct uring *e, const struct io_uring_cqe *cqe);
/* The eventfd was read. */
void uring_on_wake(struct uring *e, const struct io_uring_cqe *cqe);
/* Give to the pool what was received and not handed over, and what receives held. After the last
 * completion. */
void uring_receive_fini(struct uring *e);

#endif
