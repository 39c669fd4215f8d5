/* SPDX-License-Identifier: Apache-2.0 */
#include "server/placement.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "config/config.h"

#define ID_NONE UINT32_MAX

struct slot_queue {
	uint32_t first, last; /* ID_NONE: empty */
};

struct placement {
	const struct slot_table *slots;
	unsigned worker_count;
	uint32_t limit;
	struct slot_queue queues[STEERING_SLOTS];
	uint32_t *next;	      /* by id: the id behind it in its slot's queue */
	uint32_t *generation; /* by id: of the last holder */
	uint32_t load[WORKERS_MAX + 1];
	unsigned cursor[WORKERS_MAX + 1]; /* slot to look at first, so that all slots fill evenly */
};

static void queue_push(struct placement *p, uint32_t id)
{
	struct slot_queue *q = &p->queues[id % STEERING_SLOTS];

	p->next[id] = ID_NONE;
	if (q->first == ID_NONE)
		q->first = id;
	else
		p->next[q->last] = id;
	q->last = id;
}

static uint32_t queue_pop(struct placement *p, struct slot_queue *q)
{
	uint32_t id = q->first;

	q->first = p->next[id];
	return id;
}

int placement_new(const struct slot_table *slots, unsigned worker_count, uint32_t peer_id_limit,
		  struct placement **out)
{
	struct placement *p = calloc(1, sizeof(*p));

	assert(worker_count >= 1 && worker_count <= WORKERS_MAX);
	if (!p)
		return -ENOMEM;
	p->slots = slots;
	p->worker_count = worker_count;
	p->limit = peer_id_limit;
	p->next = calloc(peer_id_limit ? peer_id_limit : 1, sizeof(*p->next));
	p->generation = calloc(peer_id_limit ? peer_id_limit : 1, sizeof(*p->generation));
	if (!p->next || !p->generation) {
		placement_free(p);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < STEERING_SLOTS; i++)
		p->queues[i].first = ID_NONE;
	for (uint32_t id = 0; id < peer_id_limit; id++)
		queue_push(p, id);
	*out = p;
	return 0;
}

void placement_free(struct placement *p)
{
	if (!p)
		return;
	free(p->next);
	free(p->generation);
	free(p);
}

static struct slot_queue *queue_find(struct placement *p, unsigned worker)
{
	for (unsigned i = 0; i < STEERING_SLOTS; i++) {
		unsigned slot = (p->cursor[worker] + i) % STEERING_SLOTS;

		if (p->slots->owner[slot] != worker || p->queues[slot].first == ID_NONE)
			continue;
		p->cursor[worker] = slot + 1;
		return &p->queues[slot];
	}
	return NULL;
}

int placement_take_on(struct placement *p, unsigned worker, struct place *out)
{
	struct slot_queue *q;

	assert(worker >= 1 && worker <= p->worker_count);
	q = queue_find(p, worker);
	if (!q)
		return -ENOSPC;
	out->peer_id = queue_pop(p, q);
	if (++p->generation[out->peer_id] == 0)
		p->generation[out->peer_id] = 1;
	out->generation = p->generation[out->peer_id];
	out->worker = worker;
	p->load[worker]++;
	return 0;
}

/* Least loaded first; a worker whose slots are used up is passed over. */
int placement_take(struct placement *p, struct place *out)
{
	bool is_full[WORKERS_MAX + 1] = {false};

	for (unsigned tries = 0; tries < p->worker_count; tries++) {
		unsigned best = 0;

		for (unsigned w = 1; w <= p->worker_count; w++)
			if (!is_full[w] && (best == 0 || p->load[w] < p->load[best]))
				best = w;
		if (placement_take_on(p, best, out) == 0)
			return 0;
		is_full[best] = true;
	}
	return -ENOSPC;
}

void placement_release(struct placement *p, const struct place *place)
{
	assert(place->peer_id < p->limit && p->load[place->worker] > 0);
	p->load[place->worker]--;
	queue_push(p, place->peer_id);
}

uint32_t placement_load(const struct placement *p, unsigned worker)
{
	return p->load[worker];
}
