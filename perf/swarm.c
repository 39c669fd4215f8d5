/* SPDX-License-Identifier: Apache-2.0 */
/* Many OpenVPN clients in one process, to load a server with. See --help. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <time.h>

#include "perf/fit.h"
#include "perf/losses.h"
#include "perf/swarm_options.h"
#include "perf/swarm_report.h"
#include "perf/swarm_thread.h"
#include "perf/ticks.h"

#define EXIT_SOME_FAILED 1
#define EXIT_NO_START	 2
#define TICK_NS		 5000000
#define REST_MS		 1200 /* the engine spaces renegotiations by a second */
#define DRAIN_MS	 300
#define LEAVE_MS_MAX	 5000
#define SPARE_FILES	 256

struct swarm {
	struct swarm_options options;
	struct swarm_shared shared;
	struct swarm_thread *threads[SWARM_THREADS_MAX];
	unsigned count;
	struct swarm_report report;
	struct swarm_moment said; /* the last line of progress */
	struct fit fit;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

/* --- moments --- */

static uint64_t total(const struct swarm *s, enum count which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->count; i++)
		sum += count_read(swarm_thread_counts(s->threads[i]), which);
	return sum;
}

static struct swarm_moment moment(const struct swarm *s)
{
	struct swarm_moment m = {.cpu = cpu_now((pid_t)s->options.cpu_of)};

	m.own_overflows = losses_of_sockets(0).lost;
	for (int i = 0; i < COUNT_COUNT; i++)
		m.counts[i] = total(s, (enum count)i);
	return m;
}

static void say(const char *text)
{
	puts(text);
	(void)fflush(stdout);
}

static void say_progress(struct swarm *s)
{
	if (s->options.is_quiet || (double)ticks_ns() / 1e9 < s->said.cpu.wall + 1)
		return;
	struct swarm_moment now = moment(s);
	swarm_progress(&s->said, &now, now.cpu.wall - s->report.start.cpu.wall, stderr);
	s->said = now;
}

/* --- phases --- */

static void enter(struct swarm *s, enum swarm_phase phase)
{
	atomic_store_explicit(&s->shared.phase, phase, memory_order_relaxed);
}

static bool is_over(const struct swarm *s)
{
	return is_interrupted || atomic_load(&s->shared.is_lost);
}

static void follow_losses(struct swarm *s)
{
	uint64_t now_ns = ticks_ns();

	/* Before the data begins, there is nothing to follow. */
	if (s->fit.rate <= 0 || !fit_is_due(&s->fit, now_ns))
		return;
	const struct losses seen = losses_of_sockets((pid_t)s->options.fit_to);
	fit_step(&s->fit, &seen, total(s, COUNT_UP_PACKETS), now_ns);
	atomic_store_explicit(&s->shared.rate, s->fit.rate, memory_order_relaxed);
}

/* Until `is_done`, or `seconds` (0: for ever) have passed. */
static void wait_for(struct swarm *s, double seconds, bool (*is_done)(const struct swarm *s))
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	uint64_t end_ns = seconds > 0 ? ticks_ns() + (uint64_t)(seconds * 1e9) : UINT64_MAX;

	while (!is_over(s) && ticks_ns() < end_ns && !(is_done && is_done(s))) {
		nanosleep(&tick, NULL);
		follow_losses(s);
		say_progress(s);
	}
}

static bool is_logged_in(const struct swarm *s)
{
	return total(s, COUNT_CONNECTED) + total(s, COUNT_FAILED) >= s->options.clients;
}

static bool is_rekeyed(const struct swarm *s)
{
	return total(s, COUNT_REKEYED) + total(s, COUNT_REKEY_FAILED) + total(s, COUNT_FAILED) +
		       total(s, COUNT_CLOSED) >=
	       s->options.clients;
}

static bool is_deserted(const struct swarm *s)
{
	return total(s, COUNT_LEFT) + total(s, COUNT_FAILED) + total(s, COUNT_CLOSED) >=
	       s->options.clients;
}

static void log_in(struct swarm *s)
{
	wait_for(s, 0, is_logged_in);
	s->report.ready = moment(s);
	printf("ready: %ju connected, %ju failed\n",
	       (uintmax_t)s->report.ready.counts[COUNT_CONNECTED],
	       (uintmax_t)s->report.ready.counts[COUNT_FAILED]);
	(void)fflush(stdout);
}

static void rekey(struct swarm *s)
{
	enter(s, PHASE_REST);
	wait_for(s, REST_MS / 1e3, NULL);
	enter(s, PHASE_REKEY);
	wait_for(s, 0, is_rekeyed);
	printf("renegotiated: %ju\n", (uintmax_t)total(s, COUNT_REKEYED));
	(void)fflush(stdout);
}

static double packets_a_second(const struct swarm_options *o)
{
	return o->up_mbit * 1e6 / 8 / o->size;
}

/* Answers to what was sent while it was measured are waited for; all else is counted to the end of
 * the measuring. */
static void move_data(struct swarm *s)
{
	struct swarm_report *r = &s->report;
	const struct losses seen = losses_of_sockets((pid_t)s->options.fit_to);

	if (s->options.fit_to)
		fit_init(&s->fit, &seen, ticks_ns());
	atomic_store(&s->shared.rate,
		     s->options.fit_to ? s->fit.rate : packets_a_second(&s->options));
	enter(s, PHASE_WARMUP);
	if (s->options.warmup > 0)
		wait_for(s, s->options.warmup, NULL);
	r->begin = moment(s);
	enter(s, PHASE_MEASURE);
	say("measuring");
	if (s->options.seconds > 0)
		wait_for(s, s->options.seconds, NULL);
	r->end = moment(s);
	enter(s, PHASE_DRAIN);
	say("measured");
	r->has_data = true;
	wait_for(s, DRAIN_MS / 1e3, NULL);
	r->end.counts[COUNT_PINGS_SENT] = total(s, COUNT_PINGS_SENT);
	r->end.counts[COUNT_PINGS_ANSWERED] = total(s, COUNT_PINGS_ANSWERED);
}

static void run(struct swarm *s)
{
	log_in(s);
	if (!s->options.is_connect_only && s->options.is_rekeying_once)
		rekey(s);
	if (!s->options.is_connect_only && !is_over(s))
		move_data(s);
	for (int i = 0; i < COUNT_COUNT; i++)
		s->report.total[i] = total(s, (enum count)i);
	is_interrupted = 0; /* a second signal ends the goodbyes */
	enter(s, PHASE_LEAVE);
	wait_for(s, LEAVE_MS_MAX / 1e3, is_deserted);
	enter(s, PHASE_END);
}

/* --- the report --- */

struct extent {
	uint64_t least, most, sum;
	unsigned count;
};

static void extent_take(struct extent *e, uint64_t v)
{
	if (e->count == 0 || v < e->least)
		e->least = v;
	if (v > e->most)
		e->most = v;
	e->sum += v;
	e->count++;
}

static double extent_percent(const struct extent *e, uint64_t v)
{
	return e->sum ? 100.0 * (double)v * e->count / (double)e->sum : 0;
}

static void share_out(struct swarm *s)
{
	struct extent up = {0}, down = {0};

	for (unsigned i = 0; i < s->count; i++) {
		unsigned n;
		const struct member *m = swarm_thread_members(s->threads[i], &n);
		for (; n > 0; n--, m++) {
			extent_take(&up, m->up_share);
			extent_take(&down, m->down_share);
		}
	}
	s->report.share = (struct swarm_share){
		.up_least = extent_percent(&up, up.least),
		.up_most = extent_percent(&up, up.most),
		.down_least = extent_percent(&down, down.least),
		.down_most = extent_percent(&down, down.most),
	};
}

static void say_report(struct swarm *s)
{
	struct swarm_report *r = &s->report;
	uint64_t connected = r->ready.counts[COUNT_CONNECTED];

	for (unsigned i = 0; i < s->count; i++) {
		histogram_merge(&r->logins, swarm_thread_logins(s->threads[i]));
		histogram_merge(&r->pings, swarm_thread_pings(s->threads[i]));
	}
	share_out(s);
	r->options = &s->options;
	r->aead = swarm_thread_aead(s->threads[0]);
	if (s->options.is_json) {
		swarm_report_json(r, stdout);
		return;
	}
	swarm_report_text(r, stdout);
	printf("alive: %ju\n", (uintmax_t)(connected - r->total[COUNT_CLOSED]));
}

/* --- start and end --- */

static void raise_limits(const struct swarm_options *o)
{
	struct rlimit r;
	rlim_t wanted = o->clients + SPARE_FILES;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= wanted)
		return;
	r.rlim_cur = wanted;
	if (r.rlim_max < wanted)
		r.rlim_max = wanted;
	/* If it does not help, opening the sockets says so. */
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static bool start(struct swarm *s)
{
	raise_limits(&s->options);
	s->shared.options = &s->options;
	s->report.start = s->said = moment(s);
	for (; s->count < s->options.threads; s->count++)
		if (swarm_thread_new(&s->shared, s->count, &s->threads[s->count]) != 0)
			return false;
	return true;
}

static void finish(struct swarm *s)
{
	enter(s, PHASE_END);
	for (unsigned i = 0; i < s->count; i++)
		swarm_thread_join(s->threads[i]);
}

int main(int argc, char **argv)
{
	static struct swarm s;
	bool wants_help;

	if (swarm_options_parse(argc, argv, &s.options, &wants_help) != 0)
		return EX_USAGE;
	if (wants_help) {
		swarm_options_print(stdout);
		return 0;
	}
	(void)signal(SIGINT, interrupt);
	(void)signal(SIGTERM, interrupt);
	bool is_up = start(&s);
	if (is_up)
		run(&s);
	is_up = is_up && !atomic_load(&s.shared.is_lost);
	finish(&s);
	if (is_up)
		say_report(&s);
	for (unsigned i = 0; i < s.count; i++)
		swarm_thread_free(s.threads[i]);
	if (!is_up)
		return EXIT_NO_START;
	return s.report.ready.counts[COUNT_CONNECTED] < s.options.clients ||
			       s.report.total[COUNT_CLOSED]
		       ? EXIT_SOME_FAILED
		       : 0;
}
