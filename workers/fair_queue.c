/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/fair_queue.h"

#include <assert.h>

void fair_queue_init(struct fair_queue *q, struct datapath *dp)
{
	*q = (struct fair_queue){.dp = dp};
}

/* ---- the packets of a peer ---- */

static struct buffer *pop(struct peer_queue *pq)
{
	struct buffer *b = pq->first;
	pq->first = b->next;
	if (!pq->first)
		pq->last = NULL;
	pq->bytes -= b->len;
	b->next = NULL;
	return b;
}

static void push(struct peer_queue *pq, struct buffer *b)
{
	b->next = NULL;
	if (pq->last)
		pq->last->next = b;
	else
		pq->first = b;
	pq->last = b;
	pq->bytes += b->len;
}

/* Large buffers are what the next packets are received into. */
static bool is_short_of_buffers(const struct datapath *dp)
{
	return buffer_pool_free_count(dp->large) < buffer_pool_size(dp->large) / 8;
}

static bool is_over(const struct datapath *dp, const struct peer_queue *pq)
{
	if (pq->bytes > FAIR_PEER_BYTES)
		return true;
	if (!pq->is_kept)
		return false;
	return (uint32_t)dp->now_ms - pq->first->queued_ms > FAIR_PEER_MS ||
	       (is_short_of_buffers(dp) && pq->first->cap > BUFFER_SMALL);
}

/* A peer that has too much loses its oldest packets, which makes its senders slow down soonest. */
static void shorten(struct fair_queue *q, struct peer_queue *pq)
{
	while (pq->first != pq->last && is_over(q->dp, pq))
		datapath_drop(q->dp, DIRECTION_EGRESS, DROP_QUEUE_FULL, pop(pq));
}

/* ---- the ring of peers ---- */

static void ring_append(struct fair_queue *q, struct peer *p)
{
	p->queue.next_peer = NULL;
	if (q->last)
		q->last->queue.next_peer = p;
	else
		q->first = p;
	q->last = p;
	q->peer_count++;
}

static struct peer *ring_pop(struct fair_queue *q)
{
	struct peer *p = q->first;
	q->first = p->queue.next_peer;
	if (!q->first)
		q->last = NULL;
	q->peer_count--;
	return p;
}

static void ring_remove(struct fair_queue *q, struct peer *p)
{
	struct peer *before = NULL;
	struct peer **at = &q->first;
	while (*at != p) {
		before = *at;
		at = &before->queue.next_peer;
	}
	*at = p->queue.next_peer;
	if (q->last == p)
		q->last = before;
	q->peer_count--;
}

/* ---- together ---- */

void fair_queue_add(struct fair_queue *q, struct peer *p, struct buffer *b)
{
	struct peer_queue *pq = &p->queue;
	if (pq->is_kept)
		b = datapath_detach(q->dp, DIRECTION_EGRESS, b);
	if (!b)
		return;
	b->queued_ms = (uint32_t)q->dp->now_ms;
	push(pq, b);
	shorten(q, pq);
	if (pq->is_active)
		return;
	pq->is_active = true;
	ring_append(q, p);
}

/* The keys of those who come next are on their way while this one is served. */
static void prefetch_ahead(const struct fair_queue *q)
{
	const struct peer *next = q->first;
	const struct peer *after = next ? next->queue.next_peer : NULL;
	if (next && next->seal_key)
		data_key_prefetch_seal_schedule(next->seal_key, q->dp->aead, next->queue.bytes);
	if (after && after->seal_key)
		data_key_prefetch_seal(after->seal_key);
}

struct peer *fair_queue_next(struct fair_queue *q, uint32_t all)
{
	if (!q->first)
		return NULL;
	struct peer *p = ring_pop(q);
	int32_t share = q->first ? FAIR_QUANTUM : (int32_t)all;
	p->queue.deficit += share;
	if (p->queue.deficit > share)
		p->queue.deficit = share;
	prefetch_ahead(q);
	return p;
}

struct buffer *fair_queue_take(struct fair_queue *q, struct peer *p)
{
	struct peer_queue *pq = &p->queue;
	pq->is_held = false;
	if (!pq->first || pq->deficit <= 0)
		return NULL;
	pq->is_held = !bucket_take(&p->down, pq->first->len, q->dp->now_ns);
	if (pq->is_held)
		return NULL;
	pq->deficit -= (int32_t)pq->first->len;
	return pop(pq);
}

void fair_queue_return(struct fair_queue *q, struct peer *p)
{
	if (p->queue.first) {
		ring_append(q, p);
		return;
	}
	p->queue.is_active = p->queue.is_kept = false;
	p->queue.deficit = 0;
}

void fair_queue_keep(struct fair_queue *q)
{
	for (struct peer *p = q->first; p; p = p->queue.next_peer)
		p->queue.is_kept = true;
}

void fair_queue_forget(struct fair_queue *q, struct peer *p)
{
	if (!p->queue.is_active)
		return;
	ring_remove(q, p);
	p->queue.is_active = false;
	while (p->queue.first)
		datapath_drop(q->dp, DIRECTION_EGRESS, DROP_PEER_CLOSING, pop(&p->queue));
}
