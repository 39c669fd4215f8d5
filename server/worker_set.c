/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker_set.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "config/log.h"
#include "workers/mailbox.h"

#define ACCEPTOR_THREAD 0
#define STOP_TRIES	2000 /* a millisecond each: a dead worker does not empty its ring */

/* The CPUs of our affinity mask, in order; returns their number, at most `max`. */
static unsigned cpus_read(int *cpus, unsigned max)
{
	cpu_set_t set;
	unsigned count = 0;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < max; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			cpus[count++] = cpu;
	return count;
}

/* -1 for all if there are fewer CPUs than workers: then the kernel balances better than we could.
 */
static void cpus_choose(const struct config *c, unsigned count, int cpus[WORKERS_MAX])
{
	unsigned found = 0;
	if (c->worker_cpus == NULL)
		found = cpus_read(cpus, WORKERS_MAX);
	for (unsigned i = 0; i < count; i++) {
		if (c->worker_cpus != NULL)
			cpus[i] = c->worker_cpus[i];
		else if (found < count)
			cpus[i] = -1;
	}
}

int worker_set_new(const struct worker_shared *shared, const struct tun *tun,
		   struct worker_set *out)
{
	int cpus[WORKERS_MAX];
	cpus_choose(shared->config, shared->worker_count, cpus);
	*out = (struct worker_set){.mailboxes = shared->mailboxes};
	while (out->count < shared->worker_count) {
		unsigned i = out->count;
		int err = worker_new(shared, i + 1, tun->fds[i], cpus[i], &out->workers[i]);
		if (err != 0)
			return err;
		out->count++;
	}
	return 0;
}

int worker_set_start(struct worker_set *s, char *why, size_t why_len)
{
	while (s->started_count < s->count) {
		int err = worker_start(s->workers[s->started_count], why, why_len);
		if (err != 0)
			return err;
		s->started_count++;
	}
	return 0;
}

static void stop_send(struct mailboxes *m, unsigned thread)
{
	const struct message stop = {.kind = MESSAGE_STOP};
	const struct timespec pause = {.tv_nsec = 1000000};
	for (int i = 0; i < STOP_TRIES && !mailbox_send(m, ACCEPTOR_THREAD, thread, &stop); i++) {
		mailbox_flush(m, ACCEPTOR_THREAD);
		(void)nanosleep(&pause, NULL);
	}
}

void worker_set_stop(struct worker_set *s)
{
	for (unsigned i = 0; i < s->started_count; i++)
		stop_send(s->mailboxes, i + 1);
	if (s->started_count > 0)
		mailbox_flush(s->mailboxes, ACCEPTOR_THREAD);
	while (s->started_count > 0)
		worker_join(s->workers[--s->started_count]);
}

void worker_set_free(struct worker_set *s)
{
	while (s->count > 0)
		worker_free(s->workers[--s->count]);
}

/* "0,1,2" or "any"; cut short where the buffer ends. */
static const char *cpus_print(const struct worker_set *s, char *buf, size_t cap)
{
	size_t len = 0;
	buf[0] = '\0';
	for (unsigned i = 0; i < s->count; i++) {
		int cpu = worker_cpu(s->workers[i]);
		if (cpu < 0)
			return "any";
		int n = snprintf(buf + len, cap - len, "%s%d", i == 0 ? "" : ",", cpu);
		if (n < 0 || (size_t)n >= cap - len)
			break;
		len += (size_t)n;
	}
	return buf;
}

void worker_set_log(const struct worker_set *s, const struct config *c)
{
	char cpus[256];
	const struct worker *first = s->workers[0];
	log_line(LOG_NOTE,
		 "%u worker%s on CPUs %s, I/O by %s, AEAD by %s, %u handshake thread%s, "
		 "%" PRIu64 " KiB of packet buffers",
		 s->count, s->count == 1 ? "" : "s", cpus_print(s, cpus, sizeof(cpus)),
		 worker_io_name(first), worker_aead_name(first), c->handshake_threads,
		 c->handshake_threads == 1 ? "" : "s", c->worker_memory * s->count / 1024);
	if (worker_io_note(first)[0] != '\0')
		log_line(LOG_NOTE, "NOTE: io_uring is not used: %s", worker_io_note(first));
}
