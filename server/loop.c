/* SPDX-License-Identifier: Apache-2.0 */
#include "server/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <event2/event.h>

#define EVENTS_MAX 16

struct loop {
	struct event_base *base;
	struct event *wake; /* the deadline */
	struct entry {
		struct event *event;
		bool is_counter;
		loop_fn fn;
		void (*signal_fn)(void *ctx, int signal);
		void *ctx;
	} entries[EVENTS_MAX];
	unsigned count;
};

static void on_wake(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void on_eventfd(int fd, short what, void *arg)
{
	struct entry *e = arg;
	eventfd_t ignored;

	(void)what;
	/* It may be blocking, but the loop saw that it is readable. */
	if (e->is_counter)
		(void)eventfd_read(fd, &ignored);
	if (e->fn)
		e->fn(e->ctx);
}

static void on_period(int fd, short what, void *arg)
{
	struct entry *e = arg;

	(void)fd;
	(void)what;
	e->fn(e->ctx);
}

static void on_signal(int sig, short what, void *arg)
{
	struct entry *e = arg;

	(void)what;
	e->signal_fn(e->ctx, sig);
}

int loop_new(struct loop **out)
{
	struct event_config *ec = event_config_new();
	struct loop *l = calloc(1, sizeof(*l));

	if (ec && l) {
		event_config_set_flag(ec, EVENT_BASE_FLAG_NOLOCK);
		l->base = event_base_new_with_config(ec);
		if (l->base)
			l->wake = evtimer_new(l->base, on_wake, l);
	}
	if (ec)
		event_config_free(ec);
	if (!l || !l->wake) {
		loop_free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->count; i++)
		event_free(l->entries[i].event);
	if (l->wake)
		event_free(l->wake);
	if (l->base)
		event_base_free(l->base);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

static int add(struct loop *l, const struct entry *like, int fd, short what, event_callback_fn fn,
	       uint64_t every_ms)
{
	struct timeval tv = {.tv_sec = (time_t)(every_ms / 1000),
			     .tv_usec = (suseconds_t)(every_ms % 1000 * 1000)};
	struct entry *e = &l->entries[l->count];

	if (l->count == EVENTS_MAX)
		return -ENOMEM;
	*e = *like;
	e->event = event_new(l->base, fd, (short)(what | EV_PERSIST), fn, e);
	if (!e->event)
		return -ENOMEM;
	l->count++;
	return event_add(e->event, every_ms ? &tv : NULL) ? -ENOMEM : 0;
}

int loop_add_eventfd(struct loop *l, int fd, bool is_counter, loop_fn fn, void *ctx)
{
	const struct entry e = {.is_counter = is_counter, .fn = fn, .ctx = ctx};

	return add(l, &e, fd, EV_READ, on_eventfd, 0);
}

int loop_add_periodic(struct loop *l, uint64_t every_ms, loop_fn fn, void *ctx)
{
	const struct entry e = {.fn = fn, .ctx = ctx};

	return add(l, &e, -1, 0, on_period, every_ms);
}

int loop_add_signals(struct loop *l, void (*fn)(void *ctx, int signal), void *ctx)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
	const struct entry e = {.signal_fn = fn, .ctx = ctx};
	int err = 0;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]) && !err; i++)
		err = add(l, &e, signals[i], EV_SIGNAL, on_signal, 0);
	return err;
}

void loop_turn(struct loop *l, uint64_t in_ms, bool may_sleep)
{
	struct timeval tv = {.tv_sec = (time_t)(in_ms / 1000),
			     .tv_usec = (suseconds_t)(in_ms % 1000 * 1000)};

	if (in_ms == UINT64_MAX)
		evtimer_del(l->wake);
	else
		evtimer_add(l->wake, &tv);
	event_base_loop(l->base, EVLOOP_ONCE | (may_sleep ? 0 : EVLOOP_NONBLOCK));
}
