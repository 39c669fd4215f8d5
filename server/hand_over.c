/* SPDX-License-Identifier: Apache-2.0 */
#include "server/hand_over.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

#define ACCEPTOR 0
#define BUFFERS                                                                                    \
	128 /* for datagrams that the acceptor reads: large, but touched only as far as used */

/* Messages for one worker that found its ring full, in order. */
struct backlog {
	struct message *messages;
	unsigned first, count, cap; /* a ring of cap entries */
};

struct hand_over {
	struct mailboxes *mailboxes;
	unsigned worker_count;
	struct buffer_pool *pool;
	struct backlog backlogs[WORKERS_MAX + 1];
	struct buffer *chains[WORKERS_MAX + 1]; /* buffers on their way home */
};

int hand_over_new(struct mailboxes *mailboxes, unsigned worker_count, struct hand_over **out)
{
	struct hand_over *h = calloc(1, sizeof(*h));

	assert(worker_count >= 1 && worker_count <= WORKERS_MAX);
	if (!h)
		return -ENOMEM;
	h->mailboxes = mailboxes;
	h->worker_count = worker_count;
	if (buffer_pool_new(ACCEPTOR, BUFFERS, BUFFER_LARGE, &h->pool)) {
		free(h);
		return -ENOMEM;
	}
	*out = h;
	return 0;
}

void hand_over_free(struct hand_over *h)
{
	if (!h)
		return;
	for (unsigned w = 1; w <= h->worker_count; w++)
		free(h->backlogs[w].messages);
	buffer_pool_free(h->pool);
	free(h);
}

static int backlog_reserve(struct backlog *b)
{
	unsigned cap = b->cap ? 2 * b->cap : 64;
	struct message *messages;

	if (b->count < b->cap)
		return 0;
	messages = calloc(cap, sizeof(*messages));
	if (!messages)
		return -ENOMEM;
	for (unsigned i = 0; i < b->count; i++)
		messages[i] = b->messages[(b->first + i) % b->cap];
	free(b->messages);
	b->messages = messages;
	b->first = 0;
	b->cap = cap;
	return 0;
}

int hand_over_send(struct hand_over *h, unsigned worker, const struct message *m)
{
	struct backlog *b = &h->backlogs[worker];

	assert(worker >= 1 && worker <= h->worker_count);
	if (b->count == 0 && mailbox_send(h->mailboxes, ACCEPTOR, worker, m))
		return 0;
	if (backlog_reserve(b))
		return -ENOMEM;
	b->messages[(b->first + b->count++) % b->cap] = *m;
	return 0;
}

bool hand_over_datagram(struct hand_over *h, unsigned worker, struct buffer *b)
{
	struct message m = {.kind = MESSAGE_DATAGRAM, .buffer = b};

	return h->backlogs[worker].count == 0 && mailbox_send(h->mailboxes, ACCEPTOR, worker, &m);
}

static void chain_take_home(struct hand_over *h, struct buffer *b)
{
	while (b) {
		struct buffer *next = b->next;

		b->next = NULL;
		buffer_give(h->pool, b);
		b = next;
	}
}

unsigned hand_over_receive(struct hand_over *h, struct message *out, unsigned max)
{
	unsigned n = mailbox_receive(h->mailboxes, ACCEPTOR, out, max);
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (out[i].kind == MESSAGE_BUFFER_HOME)
			chain_take_home(h, out[i].buffer);
		else
			out[kept++] = out[i];
	}
	/* A full batch of buffers must not look like an empty mailbox. */
	if (n > 0 && kept == 0)
		return hand_over_receive(h, out, max);
	return kept;
}

struct buffer *hand_over_buffer(struct hand_over *h)
{
	return buffer_take(h->pool);
}

void hand_over_home(struct hand_over *h, struct buffer *b)
{
	if (b->home == ACCEPTOR) {
		b->next = NULL;
		buffer_give(h->pool, b);
		return;
	}
	b->next = h->chains[b->home];
	h->chains[b->home] = b;
}

static void backlog_flush(struct hand_over *h, unsigned worker)
{
	struct backlog *b = &h->backlogs[worker];

	while (b->count > 0 &&
	       mailbox_send(h->mailboxes, ACCEPTOR, worker, &b->messages[b->first])) {
		b->first = (b->first + 1) % b->cap;
		b->count--;
	}
}

static void chain_flush(struct hand_over *h, unsigned worker)
{
	struct message m = {.kind = MESSAGE_BUFFER_HOME, .buffer = h->chains[worker]};

	if (m.buffer && mailbox_send(h->mailboxes, ACCEPTOR, worker, &m))
		h->chains[worker] = NULL;
}

void hand_over_flush(struct hand_over *h)
{
	for (unsigned w = 1; w <= h->worker_count; w++) {
		backlog_flush(h, w);
		chain_flush(h, w);
	}
	mailbox_flush(h->mailboxes, ACCEPTOR);
}

bool hand_over_is_blocked(const struct hand_over *h)
{
	for (unsigned w = 1; w <= h->worker_count; w++)
		if (h->backlogs[w].count > 0 || h->chains[w])
			return true;
	return false;
}
