/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handshake.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/clock.h"

#define NICE	    5  /* below the workers, which carry everybody's traffic */
#define MEAN_WEIGHT 16 /* the mean follows the last so many jobs */

struct handshake {
	handshake_fn run;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct handshake_job **heap; /* waiting; the oldest on top */
	unsigned count, cap;
	struct handshake_job *done; /* list, oldest first */
	struct handshake_job **done_tail;
	uint64_t mean_us;
	bool is_stopping;

	int fd;
	unsigned thread_count;
	pthread_t threads[];
};

static void heap_swap(struct handshake *h, unsigned a, unsigned b)
{
	struct handshake_job *t = h->heap[a];

	h->heap[a] = h->heap[b];
	h->heap[b] = t;
}

static void heap_push(struct handshake *h, struct handshake_job *job)
{
	unsigned i = h->count++;

	h->heap[i] = job;
	while (i > 0 && h->heap[(i - 1) / 2]->order_ms > h->heap[i]->order_ms) {
		heap_swap(h, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static struct handshake_job *heap_pop(struct handshake *h)
{
	struct handshake_job *top = h->heap[0];
	unsigned i = 0;

	h->heap[0] = h->heap[--h->count];
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= h->count)
			return top;
		if (child + 1 < h->count && h->heap[child + 1]->order_ms < h->heap[child]->order_ms)
			child++;
		if (h->heap[i]->order_ms <= h->heap[child]->order_ms)
			return top;
		heap_swap(h, i, child);
		i = child;
	}
}

static void job_run(struct handshake *h, struct handshake_job *job)
{
	uint64_t start_us = clock_boot_us();
	uint64_t took_us;

	h->run(job->session, start_us / 1000u, clock_wall_s());
	took_us = clock_boot_us() - start_us;

	pthread_mutex_lock(&h->lock);
	h->mean_us = (h->mean_us * (MEAN_WEIGHT - 1) + took_us) / MEAN_WEIGHT;
	job->next = NULL;
	*h->done_tail = job;
	h->done_tail = &job->next;
	pthread_mutex_unlock(&h->lock);
	(void)eventfd_write(h->fd, 1);
}

static void *thread_main(void *arg)
{
	struct handshake *h = arg;

	/* On Linux the nice value belongs to the thread. A refusal costs nothing but fairness. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	for (;;) {
		struct handshake_job *job;

		pthread_mutex_lock(&h->lock);
		while (h->count == 0 && !h->is_stopping)
			pthread_cond_wait(&h->wake, &h->lock);
		job = h->is_stopping ? NULL : heap_pop(h);
		pthread_mutex_unlock(&h->lock);
		if (!job)
			return NULL;
		job_run(h, job);
	}
}

static int thread_start(struct handshake *h)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&h->threads[h->thread_count], NULL, thread_main, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	h->thread_count++;
	return 0;
}

int handshake_new(unsigned threads, handshake_fn run, struct handshake **out)
{
	struct handshake *h = calloc(1, sizeof(*h) + threads * sizeof(h->threads[0]));
	int err = 0;

	if (!h)
		return -ENOMEM;
	h->run = run;
	h->done_tail = &h->done;
	h->mean_us = 1000;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, NULL);
	h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->fd < 0)
		err = -errno;
	for (unsigned i = 0; i < threads && !err; i++)
		err = thread_start(h);
	if (err) {
		handshake_free(h);
		return err;
	}
	*out = h;
	return 0;
}

void handshake_free(struct handshake *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->is_stopping = true;
	pthread_cond_broadcast(&h->wake);
	pthread_mutex_unlock(&h->lock);
	for (unsigned i = 0; i < h->thread_count; i++)
		pthread_join(h->threads[i], NULL);
	if (h->fd >= 0)
		close(h->fd);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
	free(h->heap);
	free(h);
}

static int heap_reserve(struct handshake *h)
{
	unsigned cap = h->cap ? 2 * h->cap : 64;
	struct handshake_job **heap;

	if (h->count < h->cap)
		return 0;
	heap = reallocarray(h->heap, cap, sizeof(struct handshake_job *));
	if (!heap)
		return -ENOMEM;
	h->heap = heap;
	h->cap = cap;
	return 0;
}

int handshake_lend(struct handshake *h, struct handshake_job *job)
{
	int err;

	pthread_mutex_lock(&h->lock);
	err = heap_reserve(h);
	if (!err) {
		heap_push(h, job);
		pthread_cond_signal(&h->wake);
	}
	pthread_mutex_unlock(&h->lock);
	return err;
}

struct handshake_job *handshake_take(struct handshake *h)
{
	struct handshake_job *job;
	eventfd_t ignored;

	pthread_mutex_lock(&h->lock);
	job = h->done;
	if (job) {
		h->done = job->next;
		if (!h->done)
			h->done_tail = &h->done;
		job->next = NULL;
	} else {
		(void)eventfd_read(h->fd, &ignored);
	}
	pthread_mutex_unlock(&h->lock);
	return job;
}

int handshake_fd(const struct handshake *h)
{
	return h->fd;
}

uint64_t handshake_backlog_ms(struct handshake *h)
{
	uint64_t wait_us;

	pthread_mutex_lock(&h->lock);
	wait_us = h->count * h->mean_us / (h->thread_count ? h->thread_count : 1);
	pthread_mutex_unlock(&h->lock);
	return wait_us / 1000u;
}
