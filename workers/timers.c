/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/timers.h"

#include <stddef.h>
#include <string.h>

/* Level L has one slot for each block of 256^L ticks, 256 blocks ahead. A timer stands at the level
 * whose slots just reach it, and moves down (cascades) when its block begins. All timers of level L
 * lie in the 256 blocks that begin at or after `tick`; that is why a slot holds one block only. */

#define LEVEL_BITS 8
#define SLOT_MASK  (TIMERS_SLOTS - 1)
#define WORDS	   (TIMERS_SLOTS / 64)
#define TICKS_MAX  ((UINT64_C(1) << (LEVEL_BITS * TIMERS_LEVELS)) - 1)

static void list_init(struct timer *head)
{
	head->next = head;
	head->prev = head;
}

static bool list_is_empty(const struct timer *head)
{
	return head->next == head;
}

static void list_append(struct timer *head, struct timer *node)
{
	node->next = head;
	node->prev = head->prev;
	head->prev->next = node;
	head->prev = node;
}

static void list_unlink(struct timer *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

/* Move all of `from` to the end of `to`. */
static void list_splice(struct timer *to, struct timer *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

void timers_init(struct timers *t, uint64_t now_ms)
{
	memset(t->occupied, 0, sizeof(t->occupied));
	for (int level = 0; level < TIMERS_LEVELS; level++)
		for (int slot = 0; slot < TIMERS_SLOTS; slot++)
			list_init(&t->slots[level][slot]);
	list_init(&t->due);
	t->tick = now_ms / TIMERS_TICK_MS + 1;
	t->armed = 0;
}

static void slot_clear(struct timers *t, unsigned level, unsigned slot)
{
	t->occupied[level][slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* Put a timer into the slot of its time. */
static void place(struct timers *t, struct timer *timer)
{
	uint64_t at = timer->at_ms / TIMERS_TICK_MS + (timer->at_ms % TIMERS_TICK_MS != 0);
	if (at < t->tick)
		at = t->tick;
	uint64_t delta = at - t->tick;
	if (delta > TICKS_MAX) { /* as far as the wheel reaches; placed again when that comes */
		delta = TICKS_MAX;
		at = t->tick + TICKS_MAX;
	}
	unsigned level = 0;
	while (delta >> LEVEL_BITS * (level + 1) != 0)
		level++;
	unsigned slot = (unsigned)(at >> LEVEL_BITS * level) & SLOT_MASK;
	list_append(&t->slots[level][slot], timer);
	t->occupied[level][slot / 64] |= UINT64_C(1) << slot % 64;
}

void timers_add(struct timers *t, struct timer *timer, uint64_t at_ms)
{
	timers_remove(t, timer);
	timer->at_ms = at_ms;
	place(t, timer);
	t->armed++;
}

void timers_remove(struct timers *t, struct timer *timer)
{
	if (!timer_is_armed(timer))
		return;
	struct timer *head = timer->next == timer->prev ? timer->next : NULL;
	list_unlink(timer);
	t->armed--;
	/* The last of its slot: both its neighbours were the head, which knows its place. */
	if (head && head != &t->due) {
		unsigned index = (unsigned)(head - &t->slots[0][0]);
		slot_clear(t, index / TIMERS_SLOTS, index % TIMERS_SLOTS);
	}
}

bool timer_is_armed(const struct timer *timer)
{
	return timer->next != NULL;
}

/* How many slots behind `from`, going round, the first occupied one of a level stands; -1: none. */
static int slots_ahead(const uint64_t occupied[WORDS], unsigned from)
{
	for (unsigned i = 0; i <= WORDS; i++) {
		unsigned word = (from / 64 + i) % WORDS;
		uint64_t bits = occupied[word];
		if (i == 0)
			bits &= UINT64_MAX << from % 64;
		else if (i == WORDS)
			bits &= ~(UINT64_MAX << from % 64);
		if (bits == 0)
			continue;
		unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
		return (int)((slot - from) & SLOT_MASK);
	}
	return -1;
}

/* The first tick, from `tick` on, at which a slot expires or cascades; UINT64_MAX if none does. */
static uint64_t next_tick(const struct timers *t)
{
	uint64_t next = UINT64_MAX;

	for (unsigned level = 0; level < TIMERS_LEVELS; level++) {
		unsigned shift = LEVEL_BITS * level;
		uint64_t block = (t->tick + (UINT64_C(1) << shift) - 1) >> shift;
		int ahead = slots_ahead(t->occupied[level], (unsigned)block & SLOT_MASK);
		if (ahead < 0)
			continue;
		uint64_t tick = (block + (unsigned)ahead) << shift;
		if (tick < next)
			next = tick;
	}
	return next;
}

static void cascade(struct timers *t, unsigned level)
{
	unsigned slot = (unsigned)(t->tick >> LEVEL_BITS * level) & SLOT_MASK;
	struct timer moved;

	list_init(&moved);
	list_splice(&moved, &t->slots[level][slot]);
	slot_clear(t, level, slot);
	while (!list_is_empty(&moved)) {
		struct timer *timer = moved.next;
		list_unlink(timer);
		place(t, timer);
	}
}

/* Look at tick `t->tick`: cascade the blocks that begin with it, from the top, then collect what
 * is due. */
static void look(struct timers *t)
{
	for (unsigned level = TIMERS_LEVELS - 1; level > 0; level--)
		if ((t->tick & ((UINT64_C(1) << LEVEL_BITS * level) - 1)) == 0)
			cascade(t, level);
	unsigned slot = (unsigned)t->tick & SLOT_MASK;
	list_splice(&t->due, &t->slots[0][slot]);
	slot_clear(t, 0, slot);
}

struct timer *timers_expire(struct timers *t, uint64_t now_ms)
{
	uint64_t now_tick = now_ms / TIMERS_TICK_MS;

	while (t->tick <= now_tick) {
		uint64_t next = next_tick(t);
		if (next > now_tick) {
			t->tick = now_tick + 1;
			break;
		}
		t->tick = next;
		look(t);
		t->tick++;
	}
	if (list_is_empty(&t->due))
		return NULL;
	struct timer *timer = t->due.next;
	list_unlink(timer);
	t->armed--;
	return timer;
}

uint64_t timers_next_ms(const struct timers *t)
{
	if (!list_is_empty(&t->due))
		return (t->tick - 1) * TIMERS_TICK_MS;
	uint64_t next = next_tick(t);
	return next == UINT64_MAX ? UINT64_MAX : next * TIMERS_TICK_MS;
}
