/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/session_event.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

struct session_event_node {
	struct session_event_node *next;
	struct session_event event;
	char *text;
};

/* Nodes with a key stand on pages that are not dumped. */
static struct session_event_node *node_new(enum session_event_kind kind)
{
	if (kind == SESSION_EVENT_KEY)
		return secret_alloc(sizeof(struct session_event_node));
	return calloc(1, sizeof(struct session_event_node));
}

static void node_free(struct session_event_node *n)
{
	if (!n)
		return;
	free(n->text);
	if (n->event.kind == SESSION_EVENT_KEY)
		secret_free(n, sizeof(*n));
	else
		free(n);
}

bool session_events_push(struct session_events *q, const struct session_event *e)
{
	struct session_event_node *n = node_new(e->kind);
	if (!n)
		return false;
	n->event = *e;
	if (e->text) {
		n->text = strdup(e->text);
		n->event.text = n->text;
		if (!n->text) {
			node_free(n);
			return false;
		}
	}
	if (q->last)
		q->last->next = n;
	else
		q->first = n;
	q->last = n;
	return true;
}

bool session_events_next(struct session_events *q, struct session_event *out)
{
	node_free(q->taken);
	q->taken = q->first;
	if (!q->taken)
		return false;
	q->first = q->taken->next;
	if (!q->first)
		q->last = NULL;
	*out = q->taken->event;
	return true;
}

void session_events_fini(struct session_events *q)
{
	struct session_event e;
	while (session_events_next(q, &e))
		secret_wipe(&e, sizeof(e));
	*q = (struct session_events){0};
}
