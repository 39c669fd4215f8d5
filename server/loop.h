/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

/* The acceptor's event loop (libevent): descriptors, signals, periodic work, and one deadline.
 * Nothing happens in it while nothing is due. Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct loop;

typedef void (*loop_fn)(void *ctx);

/* Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int loop_new(struct loop **out);
void loop_free(struct loop *l);
/* For those who add events of their own; they free them before loop_free. */
struct event_base *loop_base(struct loop *l);

/* Wake up when `fd`, an eventfd, is readable, and call `fn` unless it is NULL. It is read first if
 * `is_counter`; else whoever looks after it empties it. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int loop_add_eventfd(struct loop *l, int fd, bool is_counter,
							 loop_fn fn, void *ctx);
/* Call `fn` every `every_ms` milliseconds. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int loop_add_periodic(struct loop *l, uint64_t every_ms,
							  loop_fn fn, void *ctx);
/* Call `fn` with each SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2; SIGPIPE is ignored from now on.
 * Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int
loop_add_signals(struct loop *l, void (*fn)(void *ctx, int signal), void *ctx);

/* Wait until something happens or `in_ms` have passed (UINT64_MAX: for ever), and call what is due.
 * may_sleep false: only look. */
void loop_turn(struct loop *l, uint64_t in_ms, bool may_sleep);

#endif
