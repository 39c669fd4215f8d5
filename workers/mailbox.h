/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_MAILBOX_H
#define WORKERS_MAILBOX_H

/* Messages between threads: single-producer single-consumer rings (ck_ring), allocated when a pair
 * first talks, a bitmap of the non-empty ones for each receiver, and an eventfd that is written
 * only if the receiver announced that it sleeps.
 *
 * Threads are numbered 0 (acceptor) .. count-1. Each index is used by one thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "workers/messages.h"

struct mailboxes;

/* count: 2..WORKERS_MAX + 1. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int mailboxes_new(unsigned count, struct mailboxes **out);
void mailboxes_free(struct mailboxes *m);

/* Put one message into the ring from `from` to `to`, another thread (the copy's `from` is set).
 * Returns false if the ring is full, or has no memory (the caller still owns the pointer). Never
 * blocks; allocates only when the pair first talks. Thread: `from`. */
__attribute__((warn_unused_result)) bool mailbox_send(struct mailboxes *m, unsigned from,
						      unsigned to, const struct message *msg);
/* Once per loop turn: wake the receivers that sleep and were sent to since the last flush. Thread:
 * `from`. */
void mailbox_flush(struct mailboxes *m, unsigned from);
/* Take up to `max` messages that wait for `me`, visiting only non-empty rings, at most max/2 (but
 * at least 1) from one ring in a row. Returns their number. Thread: `me`. */
unsigned mailbox_receive(struct mailboxes *m, unsigned me, struct message *out, unsigned max);
/* Announce that `me` is about to sleep. Returns false, and takes the announcement back, if
 * messages wait. After waking call mailbox_awake. */
__attribute__((warn_unused_result)) bool mailbox_sleep(struct mailboxes *m, unsigned me);
/* Take the announcement back. Does not read the eventfd. */
void mailbox_awake(struct mailboxes *m, unsigned me);
/* The eventfd (blocking, to be read after a wake-up) that becomes readable when `me` is woken. */
int mailbox_fd(const struct mailboxes *m, unsigned me);
/* Messages waiting for `me`, roughly; any thread (metrics). */
unsigned mailbox_depth(const struct mailboxes *m, unsigned me);
/* Slots of the data rings (metrics); one of them always stays empty. */
unsigned mailbox_capacity(void);

#endif
