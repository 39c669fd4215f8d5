/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/observer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

/* The hand-over is one slot. The acceptor exchanges a new snapshot into it and frees what it gets
 * back, which the observer never saw; the observer exchanges NULL into it and frees the one it held
 * before. So each snapshot has one owner at any time and there is nothing to wait for. */
struct observer {
	struct observer_setup setup;
	struct event_base *base;
	struct event *stop_event;
	void *ops_ctx;
	pthread_t thread;
	bool is_running;
	int stop_fd, wanted_fd, fresh_fd;
	_Atomic(struct snapshot *) slot; /* exchanged by both, acquire-release */
	_Atomic uint64_t published_ms;	 /* written by the acceptor, relaxed; 0: never */
	atomic_bool is_wanted;		 /* set by the observer, cleared by the acceptor, relaxed */
	struct snapshot *current;	 /* the observer's */
};

static uint64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct observer *o = arg;
	(void)fd;
	(void)what;
	(void)event_base_loopbreak(o->base);
}

static int fds_open(struct observer *o)
{
	o->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->wanted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->fresh_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return o->stop_fd < 0 || o->wanted_fd < 0 || o->fresh_fd < 0 ? -errno : 0;
}

static int base_new(struct observer *o)
{
	o->base = event_base_new();
	if (o->base == NULL)
		return -ENOMEM;
	o->stop_event = event_new(o->base, o->stop_fd, EV_READ, on_stop, o);
	return o->stop_event != NULL && event_add(o->stop_event, NULL) == 0 ? 0 : -ENOMEM;
}

int observer_new(const struct observer_setup *s, struct observer **out, char *why, size_t why_len)
{
	snprintf(why, why_len, "metrics: out of memory or descriptors");
	struct observer *o = calloc(1, sizeof(*o));
	if (o == NULL)
		return -ENOMEM;
	o->setup = *s;
	o->stop_fd = o->wanted_fd = o->fresh_fd = -1;
	int err = fds_open(o);
	if (err == 0)
		err = base_new(o);
	if (err == 0)
		err = s->ops->open(o, o->base, s->config, &o->ops_ctx, why, why_len);
	if (err != 0) {
		observer_free(o);
		return err;
	}
	*out = o;
	return 0;
}

static void *run(void *arg)
{
	struct observer *o = arg;
	(void)event_base_dispatch(o->base);
	return NULL;
}

int observer_start(struct observer *o)
{
	sigset_t all, old;
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&o->thread, NULL, run, o);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		return -err;
	o->is_running = true;
	(void)pthread_setname_np(o->thread, "observer");
	return 0;
}

static void signal_fd(int fd)
{
	const uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one));
}

static void drain_fd(int fd)
{
	uint64_t count;
	(void)!read(fd, &count, sizeof(count));
}

void observer_stop(struct observer *o)
{
	if (!o->is_running)
		return;
	signal_fd(o->stop_fd);
	(void)pthread_join(o->thread, NULL);
	o->is_running = false;
}

static void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void observer_free(struct observer *o)
{
	if (o == NULL)
		return;
	if (o->ops_ctx != NULL)
		o->setup.ops->close(o->ops_ctx);
	if (o->stop_event != NULL)
		event_free(o->stop_event);
	if (o->base != NULL)
		event_base_free(o->base);
	fd_close(o->stop_fd);
	fd_close(o->wanted_fd);
	fd_close(o->fresh_fd);
	free(atomic_load(&o->slot));
	free(o->current);
	free(o);
}

bool observer_wants_snapshot(struct observer *o)
{
	return atomic_load_explicit(&o->is_wanted, memory_order_relaxed) ||
	       atomic_load_explicit(&o->published_ms, memory_order_relaxed) == 0;
}

int observer_wanted_fd(const struct observer *o)
{
	return o->wanted_fd;
}

void observer_publish(struct observer *o, struct snapshot *s)
{
	bool was_wanted = atomic_exchange_explicit(&o->is_wanted, false, memory_order_relaxed);
	atomic_store_explicit(&o->published_ms, now_ms(), memory_order_relaxed);
	free(atomic_exchange_explicit(&o->slot, s, memory_order_acq_rel));
	if (was_wanted) {
		drain_fd(o->wanted_fd);
		signal_fd(o->fresh_fd);
	}
}

static void snapshot_take(struct observer *o)
{
	struct snapshot *s = atomic_exchange_explicit(&o->slot, NULL, memory_order_acq_rel);
	if (s == NULL)
		return;
	free(o->current);
	o->current = s;
}

uint64_t observer_snapshot_age_ms(const struct observer *o)
{
	uint64_t at = atomic_load_explicit(&o->published_ms, memory_order_relaxed);
	uint64_t now = now_ms();
	if (at == 0)
		return UINT64_MAX;
	return now > at ? now - at : 0;
}

const struct snapshot *observer_snapshot(struct observer *o)
{
	if (observer_snapshot_age_ms(o) > OBSERVER_FRESH_MS) {
		struct pollfd p = {.fd = o->fresh_fd, .events = POLLIN};
		drain_fd(o->fresh_fd);
		atomic_store_explicit(&o->is_wanted, true, memory_order_relaxed);
		signal_fd(o->wanted_fd);
		(void)poll(&p, 1, OBSERVER_WAIT_MS);
	}
	snapshot_take(o);
	return o->current;
}

const struct observer_setup *observer_get_setup(const struct observer *o)
{
	return &o->setup;
}
