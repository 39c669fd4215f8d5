/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_HANDSHAKE_H
#define SERVER_HANDSHAKE_H

/* Threads for public-key work, which takes up to several milliseconds a login and must not stop the
 * acceptor. A session is lent, never shared: while a job is here, nobody else touches its session.
 * The oldest handshake goes first; the threads run at lower priority than the workers. */

#include <stdbool.h>
#include <stdint.h>

struct session;
struct handshake;

/* One session on loan. Embedded in its owner's object, which must not move or end meanwhile. */
struct handshake_job {
	struct session *session;
	uint64_t order_ms;	    /* when its handshake began: the oldest goes first */
	struct handshake_job *next; /* of the finished ones */
};

/* What a thread does with a lent session; session_advance, but for tests. */
typedef void (*handshake_fn)(struct session *s, uint64_t now_ms, uint32_t wall_s);

/* Start `threads` threads (all signals blocked). Returns 0 or -errno. Thread: acceptor, as for all
 * below. */
__attribute__((warn_unused_result)) int handshake_new(unsigned threads, handshake_fn run,
						      struct handshake **out);
/* Stop and join. Jobs that still wait are given up: their sessions are the owner's again. */
void handshake_free(struct handshake *h);
/* Lend job->session until the job comes back. Returns 0 or -ENOMEM (nothing was lent). */
__attribute__((warn_unused_result)) int handshake_lend(struct handshake *h,
						       struct handshake_job *job);
/* The next job that is done, or NULL. */
struct handshake_job *handshake_take(struct handshake *h);
/* An eventfd: readable when jobs are done. handshake_take empties it. */
int handshake_fd(const struct handshake *h);
/* How long a job lent now would wait, by the mean duration of the last ones. */
uint64_t handshake_backlog_ms(struct handshake *h);

#endif
