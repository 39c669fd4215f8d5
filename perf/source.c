/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic from a server's side of the tunnel to the clients of swarm. See --help.
 *
 * UDP goes through sockets, with UDP_SEGMENT; TCP goes as super-packets through the device's queue,
 * as the kernel's own TCP would hand them over: a device without TSO gets single segments, split by
 * the kernel. What comes the other way (swarm --up) disappears cheaply in the same namespace by
 *
 *	table inet swarm {
 *		chain sink {
 *			type filter hook prerouting priority raw;
 *			iifname "tun*" udp dport 9 counter drop
 *			iifname "tun*" tcp dport 9 counter drop
 *		}
 *	}
 *
 * and is counted there: payload = bytes - packets * 28 (UDP) or 40 (TCP), since each packet, merged
 * or not, has one header. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "crypto/secret.h"
#include "perf/cpu.h"
#include "perf/fit.h"
#include "perf/losses.h"
#include "perf/source_options.h"
#include "perf/source_thread.h"
#include "perf/ticks.h"

#define EXIT_NO_START 2
#define TICK_NS	      5000000

/* All threads' counts at one moment. */
struct moment {
	uint64_t packets, sends, refused;
	struct losses device;
	struct cpu_times cpu;
};

struct source {
	struct source_options options;
	struct source_shared shared;
	struct source_thread *threads[SOURCE_THREADS_MAX];
	unsigned count;
	struct moment begin, end, said;
	struct fit fit;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

static struct moment moment(const struct source *s)
{
	struct moment m = {.cpu = cpu_now(0)};

	m.device = losses_of_device(s->options.device);
	for (unsigned i = 0; i < s->count; i++) {
		const struct source_counts *c = source_thread_counts(s->threads[i]);
		m.packets += atomic_load_explicit(&c->packets, memory_order_relaxed);
		m.sends += atomic_load_explicit(&c->sends, memory_order_relaxed);
		m.refused += atomic_load_explicit(&c->refused, memory_order_relaxed);
	}
	return m;
}

static double mbit(const struct source *s, const struct moment *from, const struct moment *to)
{
	double seconds = to->cpu.wall - from->cpu.wall;

	return seconds > 0
		       ? (double)(to->packets - from->packets) * s->options.size * 8 / 1e6 / seconds
		       : 0;
}

static void say_progress(struct source *s)
{
	if (s->options.is_quiet || (double)ticks_ns() / 1e9 < s->said.cpu.wall + 1)
		return;
	struct moment now = moment(s);
	fprintf(stderr, "source: %.2f Gbit/s, %ju dropped by the device, %ju refused\n",
		mbit(s, &s->said, &now) / 1e3, (uintmax_t)(now.device.lost - s->said.device.lost),
		(uintmax_t)(now.refused - s->said.refused));
	s->said = now;
}

/* A queue that is full is seen by the device, or already by the sender. */
static void follow_losses(struct source *s)
{
	uint64_t now_ns = ticks_ns();

	if (!s->options.is_fitting || !fit_is_due(&s->fit, now_ns))
		return;
	struct moment now = moment(s);
	const struct losses seen = {now.device.lost + now.refused, now.device.passed};
	fit_step(&s->fit, &seen, now.packets + now.refused, now_ns);
	atomic_store_explicit(&s->shared.rate, s->fit.rate, memory_order_relaxed);
}

static void wait_for(struct source *s, double seconds)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	uint64_t end_ns = ticks_ns() + (uint64_t)(seconds * 1e9);

	while (!is_interrupted && ticks_ns() < end_ns) {
		nanosleep(&tick, NULL);
		follow_losses(s);
		say_progress(s);
	}
}

static void say(const char *text)
{
	puts(text);
	(void)fflush(stdout);
}

static bool start(struct source *s)
{
	const struct source_options *o = &s->options;

	s->shared.options = o;
	if (secret_random(&s->shared.stream, sizeof(s->shared.stream)) != 0)
		return false;
	s->begin = s->said = moment(s);
	fit_init(&s->fit, &s->begin.device, ticks_ns());
	atomic_store(&s->shared.rate, o->is_fitting ? s->fit.rate : o->mbit * 1e6 / 8 / o->size);
	for (; s->count < o->threads; s->count++)
		if (source_thread_new(&s->shared, s->count, &s->threads[s->count]) != 0)
			return false;
	return true;
}

static void run(struct source *s)
{
	wait_for(s, s->options.warmup);
	s->begin = moment(s);
	say("measuring");
	wait_for(s, s->options.seconds);
	s->end = moment(s);
	say("measured");
}

static void stop(struct source *s)
{
	atomic_store(&s->shared.is_over, true);
	for (unsigned i = 0; i < s->count; i++)
		source_thread_free(s->threads[i]);
}

static void report_json(const struct source *s)
{
	const struct source_options *o = &s->options;
	const struct moment *a = &s->begin, *b = &s->end;
	struct cpu_times cpu = cpu_between(&a->cpu, &b->cpu);
	uint64_t packets = b->packets - a->packets, sends = b->sends - a->sends;

	printf("{\"seconds\":%.6f,\"protocol\":\"%s\",\"size\":%u,\"to\":%u,", cpu.wall,
	       o->protocol == INNER_TCP ? "tcp" : "udp", o->size, o->count);
	printf("\"packets\":%ju,\"bytes\":%ju,\"mbit\":%.3f,\"sends\":%ju,", (uintmax_t)packets,
	       (uintmax_t)(packets * o->size), mbit(s, a, b), (uintmax_t)sends);
	printf("\"packets_per_send\":%.2f,\"refused\":%ju,\"device_dropped\":%ju,",
	       sends ? (double)packets / (double)sends : 0, (uintmax_t)(b->refused - a->refused),
	       (uintmax_t)(b->device.lost - a->device.lost));
	printf("\"source_cpu_s\":%.6f}\n", cpu.self);
}

static void report_text(const struct source *s)
{
	const struct moment *a = &s->begin, *b = &s->end;
	struct cpu_times cpu = cpu_between(&a->cpu, &b->cpu);

	printf("%ju packets to %u addresses, %.1f Mbit/s; %ju refused, %ju dropped by the device; "
	       "CPU %.3f s in %.2f s\n",
	       (uintmax_t)(b->packets - a->packets), s->options.count, mbit(s, a, b),
	       (uintmax_t)(b->refused - a->refused), (uintmax_t)(b->device.lost - a->device.lost),
	       cpu.self, cpu.wall);
}

int main(int argc, char **argv)
{
	static struct source s;
	bool wants_help;

	if (source_options_parse(argc, argv, &s.options, &wants_help) != 0)
		return EX_USAGE;
	if (wants_help) {
		source_options_print(stdout);
		return 0;
	}
	(void)signal(SIGINT, interrupt);
	(void)signal(SIGTERM, interrupt);
	bool is_up = start(&s);
	if (is_up)
		run(&s);
	stop(&s);
	if (!is_up)
		return EXIT_NO_START;
	if (s.options.is_json)
		report_json(&s);
	else
		report_text(&s);
	return 0;
}
