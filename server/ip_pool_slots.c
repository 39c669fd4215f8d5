/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ip_pool_slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

#define SLOT_NAME_MAX 63 /* bytes of a name that is remembered, as in struct snapshot_client */

/* Free slots stand in a list, the longest unused first; a remembered name also puts the slot into a
 * chain of the name table. */
struct slot {
	char *name; /* NULL: never used, or not worth remembering */
	uint32_t next_free, prev_free;
	uint32_t next_named;
	bool is_used;
};

struct pool_slots {
	struct slot *slots;
	uint32_t count, used;
	uint32_t first_free, last_free;
	uint32_t *names;     /* heads of chains */
	uint32_t name_count; /* a power of two */
	uint8_t hash_key[16];
	uint64_t version;
};

static void free_append(struct pool_slots *s, uint32_t i)
{
	s->slots[i].next_free = SLOT_NONE;
	s->slots[i].prev_free = s->last_free;
	if (s->last_free == SLOT_NONE)
		s->first_free = i;
	else
		s->slots[s->last_free].next_free = i;
	s->last_free = i;
}

static void free_unlink(struct pool_slots *s, uint32_t i)
{
	const struct slot *slot = &s->slots[i];
	if (slot->prev_free == SLOT_NONE)
		s->first_free = slot->next_free;
	else
		s->slots[slot->prev_free].next_free = slot->next_free;
	if (slot->next_free == SLOT_NONE)
		s->last_free = slot->prev_free;
	else
		s->slots[slot->next_free].prev_free = slot->prev_free;
}

static uint32_t *name_chain(const struct pool_slots *s, const char *name)
{
	uint64_t h = secret_siphash(s->hash_key, name, strlen(name));
	return &s->names[h & (s->name_count - 1)];
}

static void name_forget(struct pool_slots *s, uint32_t i)
{
	struct slot *slot = &s->slots[i];
	if (slot->name == NULL)
		return;
	uint32_t *link = name_chain(s, slot->name);
	while (*link != i)
		link = &s->slots[*link].next_named;
	*link = slot->next_named;
	free(slot->name);
	slot->name = NULL;
	s->version++;
}

/* A name that would not survive a file of lines is not remembered: a comment, or one with breaks.
 */
static bool name_is_storable(const char *name)
{
	if (name[0] == '\0' || name[0] == '#' || name[0] == ';' || strlen(name) > SLOT_NAME_MAX)
		return false;
	for (const char *c = name; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

/* Without memory the slot stays nameless: the client gets another one next time. */
static void name_set(struct pool_slots *s, uint32_t i, const char *name)
{
	struct slot *slot = &s->slots[i];
	if (slot->name != NULL && strcmp(slot->name, name) == 0)
		return;
	name_forget(s, i);
	if (!name_is_storable(name) || (slot->name = strdup(name)) == NULL)
		return;
	uint32_t *head = name_chain(s, name);
	slot->next_named = *head;
	*head = i;
	s->version++;
}

static uint32_t find_by_name(const struct pool_slots *s, const char *name)
{
	for (uint32_t i = *name_chain(s, name); i != SLOT_NONE; i = s->slots[i].next_named)
		if (!s->slots[i].is_used && strcmp(s->slots[i].name, name) == 0)
			return i;
	return SLOT_NONE;
}

static uint32_t take(struct pool_slots *s, uint32_t i)
{
	if (i == SLOT_NONE)
		return i;
	free_unlink(s, i);
	s->slots[i].is_used = true;
	s->used++;
	return i;
}

uint32_t pool_slots_take(struct pool_slots *s, const char *name, bool is_reserved)
{
	uint32_t i = find_by_name(s, name);
	if (i == SLOT_NONE) {
		i = s->first_free;
		while (is_reserved && i != SLOT_NONE && s->slots[i].name != NULL)
			i = s->slots[i].next_free;
	}
	if (take(s, i) != SLOT_NONE)
		name_set(s, i, name);
	return i;
}

uint32_t pool_slots_take_lowest(struct pool_slots *s)
{
	for (uint32_t i = 0; s->used < s->count && i < s->count; i++)
		if (!s->slots[i].is_used)
			return take(s, i);
	return SLOT_NONE;
}

void pool_slots_release(struct pool_slots *s, uint32_t slot)
{
	assert(slot < s->count && s->slots[slot].is_used);
	s->slots[slot].is_used = false;
	s->used--;
	free_append(s, slot);
}

void pool_slots_remember(struct pool_slots *s, uint32_t slot, const char *name)
{
	assert(slot < s->count && !s->slots[slot].is_used);
	if (!name_is_storable(name))
		return;
	name_set(s, slot, name);
	free_unlink(s, slot);
	free_append(s, slot);
}

const char *pool_slots_name(const struct pool_slots *s, uint32_t slot)
{
	return s->slots[slot].name;
}

uint32_t pool_slots_used(const struct pool_slots *s)
{
	return s->used;
}

uint64_t pool_slots_version(const struct pool_slots *s)
{
	return s->version;
}

static int tables_new(struct pool_slots *s)
{
	s->name_count = 16;
	while (s->name_count < s->count)
		s->name_count *= 2;
	s->slots = calloc(s->count > 0 ? s->count : 1, sizeof(*s->slots));
	s->names = malloc(s->name_count * sizeof(*s->names));
	if (s->slots == NULL || s->names == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->name_count; i++)
		s->names[i] = SLOT_NONE;
	for (uint32_t i = 0; i < s->count; i++)
		free_append(s, i);
	return secret_random(s->hash_key, sizeof(s->hash_key));
}

int pool_slots_new(uint32_t count, struct pool_slots **out)
{
	struct pool_slots *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->count = count;
	s->first_free = s->last_free = SLOT_NONE;
	int err = tables_new(s);
	if (err != 0) {
		pool_slots_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void pool_slots_free(struct pool_slots *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; s->slots != NULL && i < s->count; i++)
		free(s->slots[i].name);
	free(s->slots);
	free(s->names);
	free(s);
}
