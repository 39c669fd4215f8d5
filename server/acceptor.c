/* SPDX-License-Identifier: Apache-2.0 */
#include "server/acceptor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/log.h"
#include "server/admin/observer.h"
#include "server/admission.h"
#include "server/clients.h"
#include "server/clock.h"
#include "server/connect.h"
#include "server/conversation.h"
#include "server/grants.h"
#include "server/hand_over.h"
#include "server/listener.h"
#include "server/loop.h"
#include "server/removal.h"
#include "server/reports.h"
#include "server/shared.h"
#include "server/snapshots.h"

#define ACCEPTOR    0
#define REPORTS_MAX 64	 /* messages a turn */
#define RETRY_MS    5	 /* while a ring is full */
#define LINGER_MS   2000 /* for clients that are told RESTART */
#define STOP_TRIES  200

struct acceptor {
	struct acceptor_setup setup;
	struct acceptor_shared shared;
	struct timers timers;
	struct loop *loop;
	struct listener *listener;
	struct admission *admission;
	struct snapshots *snapshots;
	bool has_more; /* work that needs no event is left for the next turn */
	bool is_done;
	uint64_t stop_at_ms; /* while stopping */
	int exit_code;
	const char *stop_signal;
};

static void clock_update(struct acceptor *a)
{
	a->shared.now_ms = clock_boot_ms();
	a->shared.wall_s = clock_wall_s();
}

/* --- packets --- */

static void on_control(void *ctx, const struct link_addr *from, struct view datagram)
{
	struct acceptor *a = ctx;
	struct reader r = reader_of(datagram);
	uint8_t opcode = packet_opcode(reader_u8(&r));
	struct session_id sid;
	struct client *c;

	reader_copy(&r, sid.bytes, sizeof(sid.bytes));
	a->shared.count.control_received[opcode % CONTROL_OPCODES]++;
	if (!reader_ok(&r)) {
		a->shared.count.drops[DROP_SHORT]++;
		return;
	}
	c = clients_find(a->shared.clients, from, &sid);
	if (!c)
		c = admission_judge(a->admission, from, datagram);
	if (c)
		conversation_receive(&a->shared, c, datagram);
}

/* --- a turn --- */

static void stop_now(struct acceptor *a, int exit_code)
{
	a->is_done = true;
	a->exit_code = exit_code;
}

static void take_reports(struct acceptor *a)
{
	struct message messages[REPORTS_MAX];
	unsigned n = hand_over_receive(a->shared.hand_over, messages, REPORTS_MAX);

	for (unsigned i = 0; i < n; i++)
		if (report_take(&a->shared, &messages[i], on_control, a))
			stop_now(a, 1);
}

static void take_sessions(struct acceptor *a)
{
	struct handshake_job *job;

	while ((job = handshake_take(a->shared.handshake)))
		conversation_returned(&a->shared, job);
}

static void expire_timers(struct acceptor *a)
{
	struct timer *t;

	while ((t = timers_expire(&a->timers, a->shared.now_ms))) {
		char *at = (char *)t - offsetof(struct client, timer);

		conversation_step(&a->shared, (struct client *)(void *)at);
	}
}

static void resume_clients(struct acceptor *a)
{
	struct client *c;

	while ((c = clients_take_resumed(a->shared.clients))) {
		if (c->is_lent || c->stage != CLIENT_CONNECTING)
			continue; /* looked at again when it is back */
		connect_resume(&a->shared, c);
		conversation_step(&a->shared, c);
	}
}

static void work(struct acceptor *a)
{
	take_reports(a);
	take_sessions(a);
	expire_timers(a);
	resume_clients(a);
	removal_reap(&a->shared);
	admission_check_crl(a->admission);
	a->has_more = snapshots_continue(a->snapshots);
	route_table_poll(a->shared.routes);
	hand_over_flush(a->shared.hand_over);
	if (a->stop_at_ms != 0 &&
	    (clients_count(a->shared.clients) == 0 || a->shared.now_ms >= a->stop_at_ms))
		stop_now(a, 0);
}

static uint64_t next_ms(const struct acceptor *a)
{
	uint64_t next = timers_next_ms(&a->timers);
	uint64_t retry = a->shared.now_ms + RETRY_MS;

	if (hand_over_is_blocked(a->shared.hand_over) && next > retry)
		next = retry;
	if (a->stop_at_ms != 0 && next > a->stop_at_ms)
		next = a->stop_at_ms;
	return next;
}

static void turn(struct acceptor *a)
{
	struct mailboxes *m = a->setup.mailboxes;
	uint64_t next = next_ms(a);
	uint64_t in_ms = next > a->shared.now_ms ? next - a->shared.now_ms : 0;
	bool may_sleep = !a->has_more && mailbox_sleep(m, ACCEPTOR);

	loop_turn(a->loop, next == UINT64_MAX ? next : in_ms, may_sleep);
	mailbox_awake(m, ACCEPTOR);
	clock_update(a);
	work(a);
}

/* --- events --- */

static void begin_stop(struct acceptor *a, const char *signal_name)
{
	struct client *c, *next;

	if (a->shared.is_stopping) {
		stop_now(a, 0);
		return;
	}
	a->stop_signal = signal_name;
	a->shared.is_stopping = true;
	a->stop_at_ms = a->shared.now_ms;
	if (a->setup.config->explicit_exit_notify == 0)
		return;
	a->stop_at_ms += LINGER_MS;
	for (c = clients_first(a->shared.clients); c; c = next) {
		next = clients_next(a->shared.clients, c);
		if (c->stage == CLIENT_CONNECTED)
			conversation_restart(&a->shared, c);
		else
			removal_start(&a->shared, c, CLIENT_END_SHUTDOWN);
	}
}

static void on_signal(void *ctx, int signal)
{
	struct acceptor *a = ctx;

	clock_update(a);
	switch (signal) {
	case SIGTERM:
		begin_stop(a, "SIGTERM");
		break;
	case SIGINT:
		begin_stop(a, "SIGINT");
		break;
	case SIGUSR2:
		snapshots_write_now(a->snapshots, true);
		break;
	default:
		log_line(LOG_NOTE,
			 "%s[hard,] received: reading certificates, key and CRL again; "
			 "other changes of the configuration need a restart",
			 signal == SIGHUP ? "SIGHUP" : "SIGUSR1");
		admission_reload(a->admission);
		break;
	}
}

static void on_status(void *ctx)
{
	struct acceptor *a = ctx;

	clock_update(a);
	snapshots_begin(a->snapshots, true);
}

/* Somebody scrapes, and waits for the picture. */
static void on_wanted(void *ctx)
{
	struct acceptor *a = ctx;

	clock_update(a);
	snapshots_begin(a->snapshots, false);
}

static void save_pool(struct acceptor *a)
{
	int err = a->setup.pool ? ip_pool_save(a->setup.pool) : 0;

	if (err)
		log_line(LOG_WARN, "cannot write the file of ifconfig-pool-persist: %s",
			 strerror(-err));
}

static void on_persist(void *ctx)
{
	save_pool(ctx);
}

/* --- making it --- */

static int add_periodic(struct acceptor *a)
{
	const struct config *c = a->setup.config;
	int err = 0;

	if (a->setup.status_file && c->status_interval_s)
		err = loop_add_periodic(a->loop, c->status_interval_s * 1000ull, on_status, a);
	if (!err && a->setup.pool && c->pool_persist_path && c->pool_persist_s)
		err = loop_add_periodic(a->loop, c->pool_persist_s * 1000ull, on_persist, a);
	return err;
}

static int make_loop(struct acceptor *a)
{
	int err = loop_new(&a->loop);

	if (!err)
		err = loop_add_eventfd(a->loop, mailbox_fd(a->setup.mailboxes, ACCEPTOR), true,
				       NULL, NULL);
	if (!err)
		err = loop_add_eventfd(a->loop, handshake_fd(a->shared.handshake), false, NULL,
				       NULL);
	if (!err && a->setup.observer)
		err = loop_add_eventfd(a->loop, observer_wanted_fd(a->setup.observer), true,
				       on_wanted, a);
	if (!err)
		err = loop_add_signals(a->loop, on_signal, a);
	return err ? err : add_periodic(a);
}

static int make_tables(struct acceptor *a)
{
	struct acceptor_shared *s = &a->shared;
	const struct acceptor_setup *setup = &a->setup;
	int err;

	err = clients_new(setup->config->max_clients, setup->peer_id_limit, secret_random,
			  &s->clients);
	if (!err)
		err = placement_new(setup->slots, setup->worker_count, setup->peer_id_limit,
				    &s->placement);
	if (!err)
		err = hand_over_new(setup->mailboxes, setup->worker_count, &s->hand_over);
	if (!err)
		err = grants_new(setup->config->aead_engine, &s->grants);
	if (!err)
		err = handshake_new(setup->config->handshake_threads, session_advance,
				    &s->handshake);
	return err;
}

static int make_modules(struct acceptor *a)
{
	struct acceptor_shared *s = &a->shared;
	struct admission_setup admission = {
		.tls = a->setup.tls, .wrap = a->setup.wrap, .wrap_key = a->setup.wrap_key};
	struct snapshots_setup snapshots = {
		.shared = s,
		.observer = a->setup.observer,
		.status_file = a->setup.status_file,
		.netlink = a->setup.netlink,
		.ifindex = a->setup.tun_ifindex,
	};
	int err;

	err = admission_new(s, &admission, &a->admission);
	snapshots.admission = a->admission;
	if (!err)
		err = snapshots_new(&snapshots, &a->snapshots);
	if (!err)
		err = listener_new(loop_base(a->loop), s, a->setup.slots, on_control, a,
				   &a->listener);
	return err;
}

int acceptor_new(const struct acceptor_setup *setup, struct acceptor **out, char *why,
		 size_t why_len)
{
	struct acceptor *a = calloc(1, sizeof(*a));
	int err = -ENOMEM;

	if (a) {
		a->setup = *setup;
		a->shared = (struct acceptor_shared){
			.config = setup->config,
			.groups = setup->groups,
			.group_count = setup->group_count,
			.worker_count = setup->worker_count,
			.timers = &a->timers,
			.routes = setup->routes,
			.tun_steering = setup->tun_steering,
			.pool = setup->pool,
		};
		clock_update(a);
		timers_init(&a->timers, a->shared.now_ms);
		err = make_tables(a);
		if (!err)
			err = make_loop(a);
		if (!err)
			err = make_modules(a);
	}
	if (err) {
		snprintf(why, why_len, "acceptor: %s%s", strerror(-err),
			 err == -EAGAIN ? ": raise TasksMax= and LimitNPROC= of the service" : "");
		acceptor_free(a);
		return err;
	}
	*out = a;
	return 0;
}

/* --- running and ending it --- */

static void stop_workers(struct acceptor *a)
{
	struct message m = {.kind = MESSAGE_STOP};
	struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};

	for (unsigned w = 1; w <= a->setup.worker_count; w++)
		if (hand_over_send(a->shared.hand_over, w, &m))
			log_line(LOG_ERROR, "out of memory: worker %u cannot be told to stop", w);
	hand_over_flush(a->shared.hand_over);
	for (int i = 0; i < STOP_TRIES && hand_over_is_blocked(a->shared.hand_over); i++) {
		nanosleep(&pause, NULL);
		hand_over_flush(a->shared.hand_over);
	}
}

int acceptor_run(struct acceptor *a)
{
	log_line(LOG_NOTE, "Initialization Sequence Completed");
	clock_update(a);
	snapshots_begin(a->snapshots, true);
	work(a);
	while (!a->is_done)
		turn(a);
	if (a->setup.status_file)
		snapshots_write_now(a->snapshots, false);
	save_pool(a);
	stop_workers(a);
	if (a->stop_signal)
		log_line(LOG_NOTE, "%s[hard,] received, process exiting", a->stop_signal);
	return a->exit_code;
}

void acceptor_free(struct acceptor *a)
{
	if (!a)
		return;
	/* The threads first: after this every session is ours again. */
	handshake_free(a->shared.handshake);
	if (a->shared.clients)
		removal_all(&a->shared);
	listener_free(a->listener);
	snapshots_free(a->snapshots);
	admission_free(a->admission);
	loop_free(a->loop);
	grants_free(a->shared.grants);
	hand_over_free(a->shared.hand_over);
	placement_free(a->shared.placement);
	clients_free(a->shared.clients);
	free(a);
}
