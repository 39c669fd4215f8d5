/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/reliable.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

/* Longest pause between two repetitions: only keeps the doubling from overflowing, since
 * hand-window ends a key state long before. */
#define TIMEOUT_MS_MAX (UINT64_C(1) << 32)

void reliable_init(struct reliable *r, uint32_t first_send, uint32_t first_recv,
		   uint64_t timeout_ms)
{
	*r = (struct reliable){
		.next_send = first_send,
		.next_recv = first_recv,
		.timeout_ms = timeout_ms ? timeout_ms : 1,
	};
}

static void bytes_free(uint8_t *bytes, size_t len)
{
	if (bytes)
		secret_wipe(bytes, len);
	free(bytes);
}

static void sent_forget(struct reliable_sent *p)
{
	bytes_free(p->bytes, p->len);
	*p = (struct reliable_sent){0};
}

void reliable_fini(struct reliable *r)
{
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++)
		sent_forget(&r->sent[i]);
	for (size_t i = 0; i < RELIABLE_RECV_WINDOW; i++)
		bytes_free(r->received[i].bytes, r->received[i].len);
	*r = (struct reliable){0};
}

/* Copy that the entry owns; NULL for an empty payload. Returns 0 or -ENOMEM. */
static int bytes_copy(struct view from, uint8_t **out)
{
	*out = NULL;
	if (from.len == 0)
		return 0;
	*out = malloc(from.len);
	if (!*out)
		return -ENOMEM;
	memcpy(*out, from.data, from.len);
	return 0;
}

/* --- sending --- */

/* The window is bounded by the oldest unacked id, not by the number of entries in use: a slot is
 * id % window, so the slot of the next id is free exactly if id - window is acked, and older ones
 * must be too. */
bool reliable_can_queue(const struct reliable *r)
{
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++) {
		const struct reliable_sent *p = &r->sent[i];
		if (p->is_used && r->next_send - p->id >= RELIABLE_SEND_WINDOW)
			return false;
	}
	return !r->is_finishing;
}

int reliable_queue(struct reliable *r, enum opcode op, struct view payload)
{
	if (payload.len > RELIABLE_PAYLOAD_MAX)
		return -EMSGSIZE;
	if (!reliable_can_queue(r))
		return -ENOBUFS;
	uint8_t *bytes;
	int err = bytes_copy(payload, &bytes);
	if (err)
		return err;
	struct reliable_sent *p = &r->sent[r->next_send % RELIABLE_SEND_WINDOW];
	assert(!p->is_used);
	*p = (struct reliable_sent){
		.is_used = true,
		.id = r->next_send++,
		.opcode = op,
		.bytes = bytes,
		.len = payload.len,
		.timeout_ms = r->timeout_ms,
	};
	return 0;
}

/* Age of an entry: how many ids before the next one. The oldest goes first. */
static uint32_t sent_age(const struct reliable *r, const struct reliable_sent *p)
{
	return r->next_send - p->id;
}

static struct reliable_sent *sent_due(struct reliable *r, uint64_t now_ms)
{
	struct reliable_sent *due = NULL;
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++) {
		struct reliable_sent *p = &r->sent[i];
		if (!p->is_used || p->due_ms > now_ms || (r->is_finishing && p->has_gone))
			continue;
		if (!due || sent_age(r, p) > sent_age(r, due))
			due = p;
	}
	return due;
}

bool reliable_next(struct reliable *r, uint64_t now_ms, struct reliable_message *out)
{
	struct reliable_sent *p = sent_due(r, now_ms);
	if (!p)
		return false;
	bool is_repeated = p->has_gone;
	p->has_gone = true;
	p->overtaken = 0;
	p->due_ms = now_ms + p->timeout_ms;
	if (p->timeout_ms < TIMEOUT_MS_MAX)
		p->timeout_ms *= 2;
	*out = (struct reliable_message){
		.id = p->id,
		.opcode = p->opcode,
		.is_repeated = is_repeated,
		.payload = {p->bytes, p->len},
	};
	return true;
}

uint64_t reliable_deadline(const struct reliable *r)
{
	uint64_t first = UINT64_MAX;
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++) {
		const struct reliable_sent *p = &r->sent[i];
		if (p->is_used && !(r->is_finishing && p->has_gone) && p->due_ms < first)
			first = p->due_ms;
	}
	return first;
}

void reliable_acked(struct reliable *r, uint32_t id, uint64_t now_ms)
{
	struct reliable_sent *acked = &r->sent[id % RELIABLE_SEND_WINDOW];
	/* An ack for what has not gone yet is made up. */
	if (!acked->is_used || acked->id != id || !acked->has_gone)
		return;
	uint32_t age = sent_age(r, acked);
	sent_forget(acked);
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++) {
		struct reliable_sent *p = &r->sent[i];
		if (!p->is_used || !p->has_gone || sent_age(r, p) <= age)
			continue;
		if (++p->overtaken >= RELIABLE_OVERTAKEN_MAX && p->due_ms > now_ms)
			p->due_ms = now_ms;
	}
}

bool reliable_is_all_acked(const struct reliable *r)
{
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++)
		if (r->sent[i].is_used)
			return false;
	return true;
}

void reliable_finish(struct reliable *r)
{
	r->is_finishing = true;
	for (size_t i = 0; i < RELIABLE_SEND_WINDOW; i++)
		if (r->sent[i].is_used && r->sent[i].has_gone)
			sent_forget(&r->sent[i]);
}

/* --- receiving --- */

static bool acks_contain(const struct reliable_acks *a, uint32_t id)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->ids[i] == id)
			return true;
	return false;
}

static void acks_remove_first(struct reliable_acks *a, size_t n)
{
	memmove(a->ids, a->ids + n, (a->count - n) * sizeof(a->ids[0]));
	a->count -= n;
}

/* With a full list the ack is left out: the peer repeats the message and gets it then. */
static void ack_later(struct reliable *r, uint32_t id)
{
	if (r->pending.count < ACK_MAX && !acks_contain(&r->pending, id))
		r->pending.ids[r->pending.count++] = id;
}

static bool received_store(struct reliable *r, uint32_t id, struct view payload)
{
	struct reliable_received *p = &r->received[id % RELIABLE_RECV_WINDOW];
	if (p->is_used)
		return true;
	uint8_t *bytes;
	if (bytes_copy(payload, &bytes) != 0)
		return false;
	*p = (struct reliable_received){.is_used = true, .bytes = bytes, .len = payload.len};
	return true;
}

/* Ids start at 0 or 1 and a key state sees far fewer than 2^31 messages, so an id below the next
 * one is old and everything else beyond the window is made up. */
bool reliable_receive(struct reliable *r, uint32_t id, struct view payload)
{
	if (payload.len > RELIABLE_PAYLOAD_MAX)
		return false;
	if (id - r->next_recv < RELIABLE_RECV_WINDOW) {
		if (!received_store(r, id, payload))
			return false;
	} else if (id >= r->next_recv) {
		return false;
	}
	ack_later(r, id);
	return true;
}

bool reliable_peek(const struct reliable *r, struct view *payload)
{
	const struct reliable_received *p = &r->received[r->next_recv % RELIABLE_RECV_WINDOW];
	if (!p->is_used)
		return false;
	*payload = (struct view){p->bytes, p->len};
	return true;
}

void reliable_consume(struct reliable *r)
{
	struct reliable_received *p = &r->received[r->next_recv % RELIABLE_RECV_WINDOW];
	assert(p->is_used);
	bytes_free(p->bytes, p->len);
	*p = (struct reliable_received){0};
	r->next_recv++;
}

void reliable_skip(struct reliable *r)
{
	assert(!r->received[r->next_recv % RELIABLE_RECV_WINDOW].is_used);
	r->next_recv++;
}

/* --- acks --- */

bool reliable_has_acks(const struct reliable *r)
{
	return r->pending.count > 0;
}

static void recent_add(struct reliable_acks *recent, uint32_t id)
{
	if (acks_contain(recent, id))
		return;
	if (recent->count == ACK_MAX)
		acks_remove_first(recent, 1);
	recent->ids[recent->count++] = id;
}

size_t reliable_take_acks(struct reliable *r, size_t max, uint32_t *out)
{
	size_t fresh = r->pending.count < max ? r->pending.count : max;
	size_t n = 0;
	for (; n < fresh; n++)
		out[n] = r->pending.ids[n];
	acks_remove_first(&r->pending, fresh);
	for (size_t i = r->recent.count; i > 0 && n < RELIABLE_ACKS_PIGGYBACK; i--) {
		uint32_t id = r->recent.ids[i - 1];
		bool is_in = false;
		for (size_t j = 0; j < fresh; j++)
			is_in |= out[j] == id;
		if (!is_in)
			out[n++] = id;
	}
	for (size_t i = 0; i < fresh; i++)
		recent_add(&r->recent, out[i]);
	return n;
}
