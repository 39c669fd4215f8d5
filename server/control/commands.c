/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

int commands_add(struct commands *q, const char *text, bool is_push_end, size_t limit)
{
	size_t len = strlen(text);
	if (q->waiting > limit || len + 1 > limit - q->waiting)
		return -ENOBUFS;
	struct command *c = malloc(sizeof(*c) + len + 1);
	if (!c)
		return -ENOMEM;
	*c = (struct command){.is_push_end = is_push_end, .len = len};
	memcpy(c->text, text, len + 1);
	if (q->last)
		q->last->next = c;
	else
		q->first = c;
	q->last = c;
	if (!q->unsent)
		q->unsent = c;
	q->waiting += len + 1;
	return 0;
}

static void remove_first(struct commands *q)
{
	struct command *c = q->first;
	q->first = c->next;
	if (!q->first)
		q->last = NULL;
	q->waiting -= c->len + 1;
	/* A command may carry a token. */
	secret_wipe(c->text, c->len);
	free(c);
}

void commands_fini(struct commands *q)
{
	while (q->first)
		remove_first(q);
	q->unsent = NULL;
}

void commands_sent(struct commands *q)
{
	q->unsent = q->unsent->next;
}

void commands_confirm(struct commands *q)
{
	while (q->first != q->unsent)
		remove_first(q);
}

void commands_rewind(struct commands *q)
{
	q->unsent = q->first;
}

static bool is_printable(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.data[i] < 0x20 || v.data[i] == 0x7F)
			return false;
	return true;
}

bool commands_next(struct view *rest, char *out, size_t cap)
{
	const uint8_t *nul;
	while (rest->len > 0 && (nul = memchr(rest->data, 0, rest->len))) {
		struct view v = {rest->data, (size_t)(nul - rest->data)};
		*rest = (struct view){nul + 1, rest->len - v.len - 1};
		while (v.len > 0 && (v.data[v.len - 1] == '\r' || v.data[v.len - 1] == '\n'))
			v.len--;
		if (v.len == 0 || v.len >= cap || !is_printable(v))
			continue;
		memcpy(out, v.data, v.len);
		out[v.len] = '\0';
		return true;
	}
	return false;
}
