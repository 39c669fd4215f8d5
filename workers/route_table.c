/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/route_table.h"

#include <ck_epoch.h>
#include <ck_hs.h>
#include <ck_pr.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "workers/tsan.h"

#define INITIAL_ENTRIES 64
#define REBUILD_SLACK	64

/* Never changed once published: a replaced destination is a new entry. Told to TSan: an entry is
 * written before it is published, a reader's section ends before what it saw is freed. */
struct entry {
	struct ck_epoch_entry epoch_entry;
	struct route_table *table;
	unsigned long hash;
	struct ip_addr addr;
	struct destination destination;
};

/* In front of each map that ck_hs allocates, so that it can wait for readers, too. */
struct map_head {
	_Alignas(16) struct ck_epoch_entry epoch_entry;
	struct route_table *table;
};

/* Owner: the acceptor. Readers see `set` and `epoch` only. */
struct route_table {
	struct ck_hs set;
	struct ck_epoch epoch;
	struct ck_epoch_record writer;
	uint8_t hash_key[16];
	unsigned long removed; /* tombstones in the set, at most */
};

struct route_reader {
	struct ck_epoch_record record; /* first: found again through the epoch's list */
	struct route_table *table;
};

/* The table whose writer is at work in this thread: ck_hs gives its allocator no context. */
static _Thread_local struct route_table *writing;

static void *map_malloc(size_t size)
{
	if (size > SIZE_MAX - sizeof(struct map_head))
		return NULL;
	struct map_head *head = calloc(1, sizeof(*head) + size);
	return head ? head + 1 : NULL;
}

static void map_dispatch(struct ck_epoch_entry *e)
{
	struct map_head *head = (struct map_head *)(void *)e;
	TSAN_ACQUIRE(&head->table->epoch);
	free(head);
}

static void map_free(void *p, size_t size, bool is_deferred)
{
	struct map_head *head = (struct map_head *)p - 1;

	(void)size;
	if (!is_deferred) {
		free(head);
		return;
	}
	head->table = writing;
	ck_epoch_call(&writing->writer, &head->epoch_entry, map_dispatch);
}

static struct ck_malloc map_allocator = {.malloc = map_malloc, .free = map_free};

static unsigned long entry_hash(const void *object, unsigned long seed)
{
	(void)seed;
	return ((const struct entry *)object)->hash;
}

static bool entry_equal(const void *stored, const void *key)
{
	const struct entry *a = stored, *b = key;

	TSAN_ACQUIRE(a);
	return a->hash == b->hash && memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}

static unsigned long hash_of(const struct route_table *t, const struct ip_addr *addr)
{
	/* The length tells the families apart. */
	return (unsigned long)secret_siphash(t->hash_key, addr->bytes, addr->family == 4 ? 4 : 16);
}

static void entry_dispatch(struct ck_epoch_entry *e)
{
	struct entry *entry = (struct entry *)e;
	TSAN_ACQUIRE(&entry->table->epoch);
	free(entry);
}

static void entry_retire(struct route_table *t, struct entry *e)
{
	ck_epoch_call(&t->writer, &e->epoch_entry, entry_dispatch);
}

int route_table_new(struct route_table **out)
{
	struct route_table *t = aligned_alloc(CK_MD_CACHELINE, sizeof(*t));
	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	int error = secret_random(t->hash_key, sizeof(t->hash_key));
	if (error)
		goto free_table;
	error = -ENOMEM;
	if (!ck_hs_init(&t->set, CK_HS_MODE_SPMC | CK_HS_MODE_DIRECT | CK_HS_MODE_DELETE,
			entry_hash, entry_equal, &map_allocator, INITIAL_ENTRIES, 0))
		goto free_table;
	ck_epoch_init(&t->epoch);
	ck_epoch_register(&t->epoch, &t->writer, NULL);
	*out = t;
	return 0;

free_table:
	free(t);
	return error;
}

static void free_entries(struct route_table *t)
{
	struct ck_hs_iterator i = CK_HS_ITERATOR_INITIALIZER;
	void *entry;

	while (ck_hs_next(&t->set, &i, &entry))
		free(entry);
}

/* Records stay in the epoch's list for good; those of readers are ours to free. */
static void free_readers(struct route_table *t)
{
	struct ck_stack_entry *next = CK_STACK_FIRST(&t->epoch.records);
	while (next) {
		struct ck_epoch_record *record = (struct ck_epoch_record *)(void *)next;
		next = next->next;
		if (record != &t->writer)
			free(record);
	}
}

void route_table_free(struct route_table *t)
{
	if (!t)
		return;
	writing = t;
	ck_epoch_barrier(&t->writer);
	free_entries(t);
	ck_hs_destroy(&t->set);
	writing = NULL;
	free_readers(t);
	free(t);
}

int route_table_add(struct route_table *t, const struct ip_addr *addr, struct destination d)
{
	struct entry *e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct entry){.table = t, .hash = hash_of(t, addr), .addr = *addr, .destination = d};
	void *previous = NULL;
	TSAN_RELEASE(e);
	ck_pr_fence_store(); /* ck_hs_set does not order the content of what it publishes */
	writing = t;
	bool is_set = ck_hs_set(&t->set, e->hash, e, &previous);
	writing = NULL;
	if (!is_set) {
		free(e);
		return -ENOMEM;
	}
	if (previous)
		entry_retire(t, previous);
	return 0;
}

/* Tombstones make searches longer: renew the map when they outnumber the entries, which costs O(1)
 * a removal. Without memory the old map goes on. */
static void count_removal(struct route_table *t)
{
	t->removed++;
	if (t->removed <= ck_hs_count(&t->set) + REBUILD_SLACK)
		return;
	writing = t;
	if (ck_hs_rebuild(&t->set))
		t->removed = 0;
	writing = NULL;
}

bool route_table_remove(struct route_table *t, const struct ip_addr *addr, struct destination d)
{
	struct entry key = {.hash = hash_of(t, addr), .addr = *addr};
	struct entry *e = ck_hs_get(&t->set, key.hash, &key);
	if (!e || e->destination.id != d.id || e->destination.generation != d.generation)
		return false;
	ck_hs_remove(&t->set, key.hash, &key);
	entry_retire(t, e);
	count_removal(t);
	return true;
}

void route_table_poll(struct route_table *t)
{
	if (t->writer.n_pending > 0)
		ck_epoch_poll(&t->writer);
}

uint32_t route_table_count(const struct route_table *t)
{
	struct ck_hs set = t->set; /* ck_hs_count takes no const */
	return (uint32_t)ck_hs_count(&set);
}

int route_reader_new(struct route_table *t, struct route_reader **out)
{
	struct ck_epoch_record *old = ck_epoch_recycle(&t->epoch, NULL);
	struct route_reader *r = (struct route_reader *)old;
	if (!r) {
		r = aligned_alloc(CK_MD_CACHELINE, sizeof(*r));
		if (!r)
			return -ENOMEM;
		memset(r, 0, sizeof(*r));
		r->table = t;
		ck_epoch_register(&t->epoch, &r->record, NULL);
	}
	*out = r;
	return 0;
}

void route_reader_free(struct route_reader *r)
{
	if (r)
		ck_epoch_unregister(&r->record);
}

void route_reader_begin(struct route_reader *r)
{
	ck_epoch_begin(&r->record, NULL);
}

void route_reader_end(struct route_reader *r)
{
	TSAN_RELEASE(&r->table->epoch);
	ck_epoch_end(&r->record, NULL);
}

bool route_reader_find(const struct route_reader *r, const struct ip_addr *addr,
		       struct destination *out)
{
	struct route_table *t = r->table;
	struct entry key = {.hash = hash_of(t, addr), .addr = *addr};
	const struct entry *e = ck_hs_get(&t->set, key.hash, &key);
	if (!e)
		return false;
	*out = e->destination;
	return true;
}
