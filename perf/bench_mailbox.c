/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between threads: what sending and receiving cost one thread alone, one way and to and
 * fro between two pinned threads, and what it costs to wake a receiver that sleeps. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "perf/bench.h"
#include "workers/mailbox.h"

#define NAME	"bench_mailbox"
#define BURST	32
#define SAMPLES 15
#define A	1 /* thread indices: two workers */
#define B	2

struct pair {
	struct mailboxes *mailboxes;
	unsigned rounds;
	bool sleeps; /* the receiver blocks when there is nothing */
	double cpu_ns[2], wall_ns;
};

static unsigned rounds_max = 200000;

static void pin(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void send_one(struct mailboxes *m, unsigned from, unsigned to)
{
	const struct message msg = {.kind = MESSAGE_PING};
	while (!mailbox_send(m, from, to, &msg))
		sched_yield();
}

/* Send and receive by one thread: the instructions alone, without a line that moves. */
static void run_alone(void *context, unsigned rounds)
{
	struct mailboxes *m = context;
	struct message got[BURST];
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < BURST; i++)
			send_one(m, A, B);
		mailbox_flush(m, A);
		if (mailbox_receive(m, B, got, BURST) != BURST)
			abort();
	}
}

static void wait_for(struct pair *p, unsigned me)
{
	eventfd_t count;
	if (!p->sleeps) {
		sched_yield();
		return;
	}
	if (mailbox_sleep(p->mailboxes, me))
		(void)eventfd_read(mailbox_fd(p->mailboxes, me), &count);
	mailbox_awake(p->mailboxes, me);
}

static void receive_all(struct pair *p, unsigned me, unsigned count)
{
	struct message got[BURST];
	while (count > 0) {
		unsigned n = mailbox_receive(p->mailboxes, me, got, BURST);
		count -= n < count ? n : count;
		if (n == 0)
			wait_for(p, me);
	}
}

static void *receiver(void *context)
{
	struct pair *p = context;
	pin(1);
	double start = bench_cpu_ns();
	receive_all(p, B, p->rounds);
	p->cpu_ns[1] = bench_cpu_ns() - start;
	return NULL;
}

static void *echo(void *context)
{
	struct pair *p = context;
	pin(1);
	double start = bench_cpu_ns();
	for (unsigned i = 0; i < p->rounds; i++) {
		receive_all(p, B, 1);
		send_one(p->mailboxes, B, A);
		mailbox_flush(p->mailboxes, B);
	}
	p->cpu_ns[1] = bench_cpu_ns() - start;
	return NULL;
}

static void send_bursts(struct pair *p)
{
	for (unsigned i = 0; i < p->rounds; i++) {
		send_one(p->mailboxes, A, B);
		if (i % BURST == BURST - 1)
			mailbox_flush(p->mailboxes, A);
	}
	mailbox_flush(p->mailboxes, A);
}

static void ping(struct pair *p)
{
	for (unsigned i = 0; i < p->rounds; i++) {
		send_one(p->mailboxes, A, B);
		mailbox_flush(p->mailboxes, A);
		receive_all(p, A, 1);
	}
}

/* One sample of two threads. */
static void pair_run(struct pair *p, void *(*other)(void *), void (*own)(struct pair *))
{
	pthread_t thread;
	if (mailboxes_new(3, &p->mailboxes) != 0 || pthread_create(&thread, NULL, other, p) != 0)
		abort();
	double cpu = bench_cpu_ns(), wall = bench_wall_ns();
	own(p);
	p->cpu_ns[0] = bench_cpu_ns() - cpu;
	pthread_join(thread, NULL);
	p->wall_ns = bench_wall_ns() - wall;
	mailboxes_free(p->mailboxes);
}

static void measure_pair(const char *which, bool sleeps, void *(*other)(void *),
			 void (*own)(struct pair *), unsigned rounds)
{
	double wall[SAMPLES], cpu[SAMPLES];
	char name[64];
	for (unsigned s = 0; s < SAMPLES; s++) {
		struct pair p = {.rounds = rounds, .sleeps = sleeps};
		pair_run(&p, other, own);
		wall[s] = p.wall_ns / rounds;
		cpu[s] = (p.cpu_ns[0] + p.cpu_ns[1]) / rounds;
	}
	snprintf(name, sizeof(name), "%s/%s", which, sleeps ? "sleeping" : "awake");
	bench_print(NAME, name, bench_median(wall, SAMPLES), "ns");
	snprintf(name, sizeof(name), "%s/%s/cpu", which, sleeps ? "sleeping" : "awake");
	bench_print(NAME, name, bench_median(cpu, SAMPLES), "ns");
}

int main(int argc, char **argv)
{
	struct mailboxes *m;
	bench_start(argc, argv);
	if (argc > 1)
		rounds_max = 2000;
	pin(0);
	if (mailboxes_new(3, &m) != 0)
		abort();
	bench_print(NAME, "one-thread", bench_ns(run_alone, m) / BURST, "ns");
	mailboxes_free(m);
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		measure_pair("one-way", sleeps, receiver, send_bursts, rounds_max);
		measure_pair("ping-pong", sleeps, echo, ping, rounds_max / 20);
	}
	return 0;
}
