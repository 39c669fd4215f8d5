/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "workers/datapath.h"
#include "workers/inbound.h"
#include "workers/keepalive.h"
#include "workers/moderation.h"
#include "workers/orders.h"
#include "workers/outbound.h"

#define TIMER_SLACK_NS	5000 /* a gathering wait is about as long as the kernel's default slack */
#define PUBLISH_NS	100000000ull
#define KEYS_PER_CLIENT 3 /* primary, lame duck, and the one that is being negotiated */
#define LISTENERS_MAX	16
#define NOTE_LEN	128
#define NAME_LEN	48
#define JOIN_MS		1 /* how often a thread that ends is looked after */
#define LARGE_MIN	16
#define SMALL_MIN	64

struct worker {
	const struct worker_shared *shared;
	unsigned index;
	int tun_fd;
	int cpu;
	pthread_t thread;
	sem_t started;
	int start_error;
	const char *start_step; /* what failed */
	char io_note[NOTE_LEN];
	char aead_name[NAME_LEN];
	const char *io_name;
	int sockets[LISTENERS_MAX];
	bool has_pktinfo[LISTENERS_MAX];

	struct datapath dp;
	struct inbound in;
	struct outbound out;
	struct orders orders;
	struct moderation moderation;
	uint64_t started_ns, now_ns, published_ns;
	bool is_owing;	     /* a ring was full: answers or buffers are still to be sent */
	bool is_unpublished; /* something was counted since the last publish */
	struct counters_shared published;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

int worker_new(const struct worker_shared *shared, unsigned index, int tun_fd, int cpu,
	       struct worker **out)
{
	if (shared->group_count > LISTENERS_MAX)
		return -E2BIG;
	struct worker *w = aligned_alloc(64, (sizeof(*w) + 63) & ~(size_t)63);
	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->shared = shared;
	w->index = index;
	w->tun_fd = tun_fd;
	w->cpu = cpu;
	for (unsigned i = 0; i < shared->group_count; i++) {
		w->sockets[i] = shared->groups[i].fds[index];
		w->has_pktinfo[i] = shared->groups[i].has_pktinfo;
	}
	if (sem_init(&w->started, 0, 0) != 0) {
		int err = -errno;
		free(w);
		return err;
	}
	*out = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	buffer_pool_free(w->dp.large);
	buffer_pool_free(w->dp.small);
	sem_destroy(&w->started);
	free(w);
}

static void done(void *ctx, struct buffer *chain, bool is_tun, int result)
{
	struct worker *w = ctx;
	datapath_done(&w->dp, chain, is_tun, result);
}

static int make_io(struct worker *w)
{
	const struct config *c = w->shared->config;
	struct io_setup setup = {
		.choice = c->io_engine,
		.disabled_features = c->disabled_features,
		.sockets = w->sockets,
		.has_pktinfo = w->has_pktinfo,
		.socket_count = w->shared->group_count,
		.tun_fd = w->tun_fd,
		.wake_fd = mailbox_fd(w->shared->mailboxes, w->index),
		.pool = w->dp.large,
		.busy_poll_us = c->busy_poll_us,
		.done = done,
		.ctx = w,
	};
	int rc = io_new(&setup, &w->dp.io, w->io_note, sizeof(w->io_note));
	if (rc == 0)
		w->io_name = io_name(w->dp.io);
	return rc;
}

/* Buffers of `share` bytes of the budget; never fewer than `least`, whatever it is. */
static int pool_new(struct worker *w, uint64_t share, uint32_t least, uint32_t storage,
		    struct buffer_pool **out)
{
	uint64_t count = share / storage;
	if (count < least)
		count = least;
	if (count > UINT16_MAX)
		count = UINT16_MAX;
	return buffer_pool_new((uint16_t)w->index, (uint32_t)count, storage, out);
}

/* Most of the budget is for what comes in, which may be super-packets. */
static int make_pools(struct worker *w)
{
	uint64_t budget = w->shared->config->worker_memory;
	int rc = pool_new(w, budget / 8 * 7, LARGE_MIN, BUFFER_LARGE, &w->dp.large);
	return rc ? rc : pool_new(w, budget / 8, SMALL_MIN, BUFFER_SMALL, &w->dp.small);
}

static int make_keys(struct worker *w)
{
	const struct config *c = w->shared->config;
	bool is_huge = !(c->disabled_features & FEATURE_HUGE_PAGES);
	uint32_t count = (c->max_clients + 64) * KEYS_PER_CLIENT;
	return key_slab_new(count, is_huge, &w->dp.keys);
}

static int make_peers(struct worker *w)
{
	return peer_table_new(w->shared->peer_id_limit, &w->dp.peers);
}

static int make_aead(struct worker *w)
{
	int rc = aead_new(w->shared->config->aead_engine, &w->dp.aead);
	if (rc == 0)
		snprintf(w->aead_name, sizeof(w->aead_name), "%s", aead_name(w->dp.aead));
	return rc;
}

static int make_routes(struct worker *w)
{
	return route_reader_new(w->shared->routes, &w->dp.routes);
}

static void init_datapath(struct worker *w)
{
	const struct config *c = w->shared->config;
	struct datapath *dp = &w->dp;
	w->started_ns = w->now_ns = clock_ns(CLOCK_BOOTTIME);
	dp->now_ns = w->now_ns;
	dp->now_ms = w->now_ns / 1000000;
	dp->index = w->index;
	dp->worker_count = w->shared->worker_count;
	dp->slots = w->shared->slots;
	dp->mailboxes = w->shared->mailboxes;
	dp->is_client_to_client = c->is_client_to_client;
	dp->rate = c->client_rate;
	dp->reneg_bytes = c->reneg_bytes;
	dp->reneg_pkts = c->reneg_pkts;
	dp->occ_reply = w->shared->occ_reply;
	dp->tun_offloads = w->shared->tun_offloads;
	dp->has_gso = (c->offloads & OFFLOAD_UDP_GSO) && !(c->disabled_features & FEATURE_UDP_GSO);
	timers_init(&dp->timers, dp->now_ms);
	outbound_init(&w->out, dp);
	inbound_init(&w->in, dp, &w->out);
	orders_init(&w->orders, dp, &w->in, &w->out);
}

static int set_up(struct worker *w)
{
	static const struct {
		const char *what;
		int (*make)(struct worker *w);
	} steps[] = {
		{"packet buffers (lower worker-memory)", make_pools},
		{"key slab (lower max-clients)", make_keys},
		{"peer table (lower max-clients)", make_peers},
		{"AEAD engine (set aead-engine auto)", make_aead},
		{"route table reader", make_routes},
		{"I/O engine (set io-engine auto)", make_io},
	};
	init_datapath(w);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int rc = steps[i].make(w);
		if (rc != 0) {
			w->start_step = steps[i].what;
			return rc;
		}
	}
	return 0;
}

static void tear_down(struct worker *w)
{
	struct datapath *dp = &w->dp;
	if (dp->peers && dp->keys)
		orders_drop_all(&w->orders);
	if (dp->io)
		io_free(dp->io);
	if (dp->routes)
		route_reader_free(dp->routes);
	aead_free(dp->aead);
	peer_table_free(dp->peers);
	key_slab_free(dp->keys);
	datapath_release_chain(dp, dp->refused);
	/* The pools stay until worker_free: other threads may still hold buffers of them. */
}

/* Busy is the thread's own CPU time: what a wait submits is work, though it looks like waiting.
 * Both clocks are read here, since `now_ns` lags behind by a turn; the rest never goes below zero
 * or back.
 */
static void count_time(struct worker *w)
{
	struct counters *c = &w->dp.count;
	c->busy_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t lived_ns = clock_ns(CLOCK_BOOTTIME) - w->started_ns;
	if (lived_ns > c->busy_ns + c->idle_ns)
		c->idle_ns = lived_ns - c->busy_ns;
}

static void publish(struct worker *w)
{
	struct counters *c = &w->dp.count;
	const struct io_stats *io = io_stats(w->dp.io);
	c->system_calls = io->system_calls;
	c->io_submissions = io->submissions;
	c->io_completions = io->completions;
	c->io_buffers_exhausted = io->buffers_exhausted;
	c->io_receive_errors = io->receive_errors;
	c->drops[DIRECTION_INGRESS][DROP_MTU] = io->truncated;
	count_time(w);
	c->peers = peer_table_count(w->dp.peers);
	c->buffers_free = buffer_pool_free_count(w->dp.large) + buffer_pool_free_count(w->dp.small);
	c->timers_armed = w->dp.timers.armed;
	counters_publish(c, &w->published);
	w->published_ns = w->now_ns;
	w->is_unpublished = false;
}

/* How long the loop may sleep: until a timer or a publish that is owed. Nothing else wakes an idle
 * worker. */
static uint64_t sleep_ms(const struct worker *w)
{
	uint64_t next = timers_next_ms(&w->dp.timers);
	uint64_t ms = next == UINT64_MAX    ? UINT64_MAX
		      : next > w->dp.now_ms ? next - w->dp.now_ms
					    : 0;
	if (w->is_unpublished && ms > PUBLISH_NS / 1000000)
		ms = PUBLISH_NS / 1000000;
	uint64_t left = outbound_wait_ms(&w->out);
	if (left < ms)
		ms = left;
	return w->is_owing && ms > 1 ? 1 : ms;
}

static int wait_for_work(struct worker *w, struct io_batch *batch)
{
	uint64_t timeout = sleep_ms(w);
	if (timeout > 0 && !mailbox_sleep(w->dp.mailboxes, w->index))
		timeout = 0;
	int rc = io_wait(w->dp.io, timeout, batch);
	w->now_ns = clock_ns(CLOCK_BOOTTIME);
	w->dp.now_ns = w->now_ns;
	w->dp.now_ms = w->now_ns / 1000000;
	mailbox_awake(w->dp.mailboxes, w->index);
	return rc;
}

static void count_turn(struct worker *w, const struct io_batch *batch, unsigned messages)
{
	struct counters *c = &w->dp.count;
	bool is_io = batch->datagram_count || batch->packet_count;
	c->turns++;
	c->wakeups[is_io ? WAKE_IO : batch->is_woken || messages ? WAKE_MESSAGE : WAKE_TIMER]++;
	w->is_unpublished = true;
}

static int turn(struct worker *w)
{
	struct io_batch batch;
	int rc = wait_for_work(w, &batch);
	if (rc != 0)
		return rc;
	route_reader_begin(w->dp.routes);
	unsigned messages = orders_receive(&w->orders);
	inbound_datagrams(&w->in, batch.datagrams, batch.datagram_count);
	inbound_flush(&w->in);
	outbound_frames(&w->out, batch.packets, batch.packet_count);
	keepalive_expire(&w->dp, &w->out);
	outbound_flush(&w->out);
	route_reader_end(w->dp.routes);
	bool is_answered = orders_send_backlog(&w->orders);
	w->is_owing = !datapath_send_home(&w->dp) || !is_answered;
	mailbox_flush(w->dp.mailboxes, w->index);
	count_turn(w, &batch, messages);
	io_gather(w->dp.io, moderation_turn(&w->moderation, w->now_ns,
					    batch.datagram_count + batch.packet_count));
	if (w->is_unpublished && w->now_ns - w->published_ns >= PUBLISH_NS)
		publish(w);
	return 0;
}

static void say_failed(struct worker *w, int rc)
{
	struct message m = {.kind = MESSAGE_FAILED, .arg = (uint8_t)-rc};
	while (!mailbox_send(w->dp.mailboxes, w->index, ACCEPTOR, &m))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	mailbox_flush(w->dp.mailboxes, w->index);
}

static void pin(const struct worker *w)
{
	char name[16];
	snprintf(name, sizeof(name), "worker-%u", w->index);
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	pthread_setname_np(pthread_self(), name);
	if (w->cpu < 0)
		return;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)w->cpu, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	pin(w);
	int rc = w->start_error = set_up(w);
	if (rc == 0)
		publish(w);
	sem_post(&w->started);
	while (rc == 0 && !w->orders.is_stopping)
		rc = turn(w);
	if (w->start_error == 0) {
		publish(w);
		if (!w->orders.is_stopping)
			say_failed(w, rc);
	}
	tear_down(w);
	return NULL;
}

static int create_thread(struct worker *w)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int worker_start(struct worker *w, char *why, size_t why_len)
{
	int rc = create_thread(w);
	if (rc != 0) {
		snprintf(
			why, why_len,
			"worker %u: cannot start a thread (%s): raise TasksMax= and LimitNPROC= of "
			"the service, or lower workers",
			w->index, strerrordesc_np(-rc));
		return rc;
	}
	while (sem_wait(&w->started) != 0)
		;
	if (w->start_error == 0)
		return 0;
	snprintf(why, why_len, "worker %u: %s: %s", w->index, w->start_step,
		 w->io_note[0] ? w->io_note : strerrordesc_np(-w->start_error));
	pthread_join(w->thread, NULL);
	return w->start_error;
}

static void forget_messages(struct mailboxes *m)
{
	struct message forgotten[ORDERS_BATCH];
	while (mailbox_receive(m, ACCEPTOR, forgotten, ORDERS_BATCH) > 0)
		;
}

/* Has the thread ended within JOIN_MS? */
static bool has_ended(struct worker *w)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until); /* the clock that the wait goes by */
	until.tv_nsec += JOIN_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(w->thread, NULL, &until) == 0;
}

void worker_join(struct worker *w)
{
	struct mailboxes *m = w->shared->mailboxes;
	const struct message stop = {.kind = MESSAGE_STOP};
	bool is_told = false;
	do {
		is_told = is_told || mailbox_send(m, ACCEPTOR, w->index, &stop);
		mailbox_flush(m, ACCEPTOR);
		forget_messages(m);
	} while (!has_ended(w));
}

struct counters_shared *worker_counters(struct worker *w)
{
	return &w->published;
}

const char *worker_io_name(const struct worker *w)
{
	return w->io_name;
}

const char *worker_io_note(const struct worker *w)
{
	return w->io_note;
}

const char *worker_aead_name(const struct worker *w)
{
	return w->aead_name;
}

int worker_cpu(const struct worker *w)
{
	return w->cpu;
}
