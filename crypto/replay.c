/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/replay.h"

#include <assert.h>
#include <string.h>

#define REAP_INTERVAL_S 5 /* wire.md, section 11 */

void replay_init(struct replay *r, uint32_t window, uint32_t time_s, uint64_t *bits)
{
	assert(window <= REPLAY_WINDOW_MAX && (window <= 64 || bits));
	assert(time_s <= UINT16_MAX);
	*r = (struct replay){.window = (uint16_t)window, .time_s = (uint16_t)time_s};
	if (window <= 64)
		return;
	r->bits = bits;
	memset(bits, 0, (window + 63) / 64 * sizeof(*bits));
}

static uint32_t ring_bits(const struct replay *r)
{
	return r->window > 64 ? (r->window + 63u) / 64 * 64 : 64u;
}

/* The usual window spares the division. */
static uint32_t bit_of(const struct replay *r, uint32_t id)
{
	return r->window > 64 ? id % ring_bits(r) : id % 64;
}

static bool is_seen(const struct replay *r, uint32_t id)
{
	const uint64_t *words = r->window > 64 ? r->bits : &r->inline_bits;
	uint32_t bit = bit_of(r, id);
	return words[bit / 64] >> bit % 64 & 1;
}

static void mark(struct replay *r, uint32_t id, bool seen)
{
	uint64_t *words = r->window > 64 ? r->bits : &r->inline_bits;
	uint32_t bit = bit_of(r, id);
	uint64_t mask = UINT64_C(1) << bit % 64;
	words[bit / 64] = seen ? words[bit / 64] | mask : words[bit / 64] & ~mask;
}

/* Forget what the bits between highest and id said about ids one ring earlier. */
static void advance(struct replay *r, uint32_t id)
{
	uint32_t size = ring_bits(r);
	uint32_t first = id - r->highest > size ? id - size : r->highest;
	for (uint32_t i = first + 1; i != id; i++)
		mark(r, i, false);
	r->highest = id;
}

static enum drop check_sequential(const struct replay *r, uint32_t id)
{
	if (r->highest == 0 || (id > r->highest && id - r->highest == 1))
		return DROP_NONE;
	return id == r->highest ? DROP_REPLAY_DUPLICATE : DROP_REPLAY_OLD;
}

enum drop replay_check_behind(const struct replay *r, uint32_t id)
{
	if (id == 0)
		return DROP_REPLAY_OLD;
	if (r->window == 0)
		return check_sequential(r, id);
	if (r->highest - id >= r->window)
		return DROP_REPLAY_OLD;
	if (is_seen(r, id))
		return DROP_REPLAY_DUPLICATE;
	return id <= r->reap_floor ? DROP_REPLAY_OLD : DROP_NONE;
}

/* The highest id is noted every interval; a note that is time_s old is the new floor. The interval
 * is a fraction of time_s, 5 s or less if REPLAY_MARKS notes reach so far. */
static unsigned reap_depth(const struct replay *r)
{
	unsigned depth = (r->time_s + REAP_INTERVAL_S - 1u) / REAP_INTERVAL_S;
	return depth < REPLAY_MARKS ? depth : REPLAY_MARKS;
}

static void reap_once(struct replay *r)
{
	r->reap_floor = r->reap_marks[reap_depth(r) - 1];
	memmove(r->reap_marks + 1, r->reap_marks, (REPLAY_MARKS - 1) * sizeof(r->reap_marks[0]));
	r->reap_marks[0] = r->highest;
}

static void reap(struct replay *r, uint64_t now_ms)
{
	unsigned depth = reap_depth(r);
	uint64_t interval_ms = ((uint64_t)r->time_s * 1000 + depth - 1) / depth;
	if (r->reap_at_ms == 0) {
		r->reap_at_ms = now_ms + interval_ms;
		return;
	}
	uint64_t missed = (now_ms - r->reap_at_ms) / interval_ms + 1;
	r->reap_at_ms += missed * interval_ms;
	for (uint64_t i = 0; i < missed && i <= REPLAY_MARKS; i++)
		reap_once(r);
}

enum drop replay_commit(struct replay *r, uint32_t id, uint64_t now_ms)
{
	if (now_ms >= r->reap_at_ms && r->time_s > 0)
		reap(r, now_ms);
	enum drop drop = replay_check(r, id);
	if (drop != DROP_NONE)
		return drop;
	if (id > r->highest)
		advance(r, id);
	mark(r, id, true);
	return DROP_NONE;
}

bool send_counter_is_nearly_used(const struct send_counter *c)
{
	return c->last >= PACKET_ID_RENEGOTIATE;
}
