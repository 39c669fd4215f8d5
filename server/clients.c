/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clients.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/client_lists.h"

#define BUCKETS_MIN  64u
#define BUCKETS_MAX  (1u << 18)
#define ADDR_KEY_LEN (ENDPOINT_KEY_LEN + 2)

struct clients {
	uint8_t key[16];
	uint32_t mask; /* buckets - 1 */
	struct client **by_addr, **by_sid, **by_name;
	struct client **by_peer_id;
	uint32_t peer_id_limit;
	struct client_list all, half_open, removed;
	struct client *walk, *resumed, **resumed_tail;
	uint32_t count, half_open_count, removed_count;
	uint64_t next_id;
};

static struct client **bucket(const struct clients *t, struct client **table, const void *key,
			      size_t len)
{
	return &table[secret_siphash(t->key, key, len) & t->mask];
}

static struct client **bucket_of_addr(const struct clients *t, const struct link_addr *l)
{
	uint8_t key[ADDR_KEY_LEN];

	endpoint_key(&l->remote, key);
	memcpy(key + ENDPOINT_KEY_LEN, &l->listener, sizeof(l->listener));
	return bucket(t, t->by_addr, key, sizeof(key));
}

static struct client **bucket_of_sid(const struct clients *t, const struct session_id *sid)
{
	return bucket(t, t->by_sid, sid->bytes, sizeof(sid->bytes));
}

static struct client **bucket_of_name(const struct clients *t, const char *name)
{
	return bucket(t, t->by_name, name, strlen(name));
}

static uint32_t bucket_count(uint32_t max_clients)
{
	uint32_t n = BUCKETS_MIN;

	while (n < max_clients && n < BUCKETS_MAX)
		n *= 2;
	return n;
}

int clients_new(uint32_t max_clients, uint32_t peer_id_limit, random_fn random,
		struct clients **out)
{
	struct clients *t = calloc(1, sizeof(*t));
	uint32_t n = bucket_count(max_clients);
	int err = -ENOMEM;

	if (!t)
		return err;
	t->mask = n - 1;
	t->peer_id_limit = peer_id_limit;
	t->resumed_tail = &t->resumed;
	t->by_addr = calloc(n, sizeof(struct client *));
	t->by_sid = calloc(n, sizeof(struct client *));
	t->by_name = calloc(n, sizeof(struct client *));
	t->by_peer_id = calloc(peer_id_limit ? peer_id_limit : 1, sizeof(struct client *));
	if (t->by_addr && t->by_sid && t->by_name && t->by_peer_id)
		err = random(t->key, sizeof(t->key));
	if (err) {
		clients_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void clients_free(struct clients *t)
{
	if (!t)
		return;
	assert(!t->all.first && !t->removed.first);
	free(t->by_addr);
	free(t->by_sid);
	free(t->by_name);
	free(t->by_peer_id);
	free(t);
}

static void addr_add(struct clients *t, struct client *c)
{
	struct client **head = bucket_of_addr(t, &c->link);

	CHAIN_ADD(head, c, by_addr);
	c->is_in_addr = true;
}

static void addr_remove(struct clients *t, struct client *c)
{
	struct client **head = bucket_of_addr(t, &c->link);

	if (c->is_in_addr)
		CHAIN_REMOVE(head, c, by_addr);
	c->is_in_addr = false;
}

static void half_open_remove(struct clients *t, struct client *c)
{
	if (!c->is_half_open)
		return;
	LIST_REMOVE(&t->half_open, c, half_open);
	c->is_half_open = false;
	t->half_open_count--;
}

static void name_remove(struct clients *t, struct client *c)
{
	struct client **head = bucket_of_name(t, c->common_name);

	if (c->is_in_name)
		CHAIN_REMOVE(head, c, by_name);
	c->is_in_name = false;
}

struct client *clients_add(struct clients *t, const struct link_addr *link,
			   const struct session_id *own_sid, const struct session_id *peer_sid,
			   uint64_t now_ms)
{
	struct client *c = calloc(1, sizeof(*c));
	struct client **sid_head = bucket_of_sid(t, own_sid);

	if (!c)
		return NULL;
	c->id = t->next_id++;
	c->link = *link;
	c->own_sid = *own_sid;
	c->peer_sid = *peer_sid;
	c->started_ms = c->control_seen_ms = c->job.order_ms = now_ms;
	c->waiting_tail = &c->waiting;
	client_set_prefix(c);
	LIST_APPEND(&t->all, c, all);
	LIST_APPEND(&t->half_open, c, half_open);
	c->is_half_open = true;
	CHAIN_ADD(sid_head, c, by_sid);
	addr_add(t, c);
	t->count++;
	t->half_open_count++;
	return c;
}

static void resumed_remove(struct clients *t, struct client *c)
{
	struct client **at = &t->resumed;

	if (!c->is_resumed)
		return;
	while (*at != c)
		at = &(*at)->next_resumed;
	*at = c->next_resumed;
	if (t->resumed_tail == &c->next_resumed)
		t->resumed_tail = at;
	c->is_resumed = false;
}

void clients_unlink(struct clients *t, struct client *c)
{
	struct client **sid_head = bucket_of_sid(t, &c->own_sid);

	assert(c->stage != CLIENT_REMOVED);
	if (t->walk == c)
		t->walk = c->all.next;
	LIST_REMOVE(&t->all, c, all);
	half_open_remove(t, c);
	CHAIN_REMOVE(sid_head, c, by_sid);
	addr_remove(t, c);
	name_remove(t, c);
	resumed_remove(t, c);
	if (c->has_place)
		t->by_peer_id[c->place.peer_id] = NULL;
	t->count--;
	t->removed_count++;
	c->stage = CLIENT_REMOVED;
	LIST_APPEND(&t->removed, c, all);
}

void clients_drop(struct clients *t, struct client *c)
{
	struct waiting *w;

	assert(c->stage == CLIENT_REMOVED && !c->is_lent && !timer_is_armed(&c->timer));
	LIST_REMOVE(&t->removed, c, all);
	t->removed_count--;
	while ((w = client_pop_waiting(c)))
		free(w);
	session_free(c->session);
	free(c->username);
	free(c);
}

static bool is_at(const struct client *c, const struct link_addr *link)
{
	return c->link.listener == link->listener && endpoint_equal(&c->link.remote, &link->remote);
}

struct client *clients_at(const struct clients *t, const struct link_addr *link)
{
	struct client *c = *bucket_of_addr(t, link);

	return !c || is_at(c, link) ? c : clients_next_at(c, link);
}

struct client *clients_next_at(const struct client *c, const struct link_addr *link)
{
	struct client *next = c->by_addr.next;

	while (next && !is_at(next, link))
		next = next->by_addr.next;
	return next;
}

struct client *clients_find(const struct clients *t, const struct link_addr *link,
			    const struct session_id *peer_sid)
{
	struct client *c = clients_at(t, link);

	while (c && !session_id_equal(&c->peer_sid, peer_sid))
		c = clients_next_at(c, link);
	return c;
}

bool clients_is_live_sid(const struct clients *t, const struct session_id *own_sid)
{
	const struct client *c = *bucket_of_sid(t, own_sid);

	while (c && !session_id_equal(&c->own_sid, own_sid))
		c = c->by_sid.next;
	return c;
}

struct client *clients_find_by_peer_id(const struct clients *t, uint32_t peer_id)
{
	return peer_id < t->peer_id_limit ? t->by_peer_id[peer_id] : NULL;
}

static struct client *skip_to_name(struct client *c, const char *name)
{
	while (c && strcmp(c->common_name, name) != 0)
		c = c->by_name.next;
	return c;
}

struct client *clients_named(const struct clients *t, const char *common_name)
{
	return skip_to_name(*bucket_of_name(t, common_name), common_name);
}

struct client *clients_next_named(const struct client *c)
{
	return skip_to_name(c->by_name.next, c->common_name);
}

void client_set_link(struct clients *t, struct client *c, const struct link_addr *link)
{
	addr_remove(t, c);
	c->link = *link;
	addr_add(t, c);
	client_set_prefix(c);
}

void client_displace(struct clients *t, struct client *c)
{
	addr_remove(t, c);
}

int client_authenticate(struct clients *t, struct client *c, const char *common_name,
			const char *username, const struct identity *identity)
{
	struct client **head;

	assert(!c->is_authenticated);
	if (username[0]) {
		c->username = strdup(username);
		if (!c->username)
			return -ENOMEM;
	}
	snprintf(c->common_name, sizeof(c->common_name), "%s", common_name);
	if (identity)
		c->identity = *identity;
	c->is_authenticated = true;
	client_set_prefix(c);
	head = bucket_of_name(t, c->common_name);
	CHAIN_ADD(head, c, by_name);
	c->is_in_name = true;
	return 0;
}

void client_set_place(struct clients *t, struct client *c, const struct place *place)
{
	assert(place->peer_id < t->peer_id_limit && !t->by_peer_id[place->peer_id]);
	c->place = *place;
	c->has_place = true;
	t->by_peer_id[place->peer_id] = c;
}

void client_set_stage(struct clients *t, struct client *c, enum client_stage stage)
{
	assert(stage != CLIENT_REMOVED && c->stage != CLIENT_REMOVED);
	if (stage != CLIENT_HANDSHAKING)
		half_open_remove(t, c);
	c->stage = stage;
}

uint32_t clients_count(const struct clients *t)
{
	return t->count;
}

uint32_t clients_half_open_count(const struct clients *t)
{
	return t->half_open_count;
}

struct client *clients_oldest_half_open(const struct clients *t)
{
	return t->half_open.first;
}

struct client *clients_next_half_open(const struct clients *t, const struct client *c)
{
	(void)t;
	return c->half_open.next;
}

struct client *clients_first(const struct clients *t)
{
	return t->all.first;
}

struct client *clients_next(const struct clients *t, const struct client *c)
{
	(void)t;
	return c->all.next;
}

uint32_t clients_removed_count(const struct clients *t)
{
	return t->removed_count;
}

struct client *clients_first_removed(const struct clients *t)
{
	return t->removed.first;
}

struct client *clients_next_removed(const struct clients *t, const struct client *c)
{
	(void)t;
	return c->all.next;
}

void clients_walk_begin(struct clients *t)
{
	t->walk = t->all.first;
}

struct client *clients_walk_next(struct clients *t)
{
	struct client *c = t->walk;

	if (c)
		t->walk = c->all.next;
	return c;
}

void clients_resume(struct clients *t, struct client *c)
{
	if (c->is_resumed)
		return;
	c->is_resumed = true;
	c->next_resumed = NULL;
	*t->resumed_tail = c;
	t->resumed_tail = &c->next_resumed;
}

struct client *clients_take_resumed(struct clients *t)
{
	struct client *c = t->resumed;

	if (!c)
		return NULL;
	t->resumed = c->next_resumed;
	if (!t->resumed)
		t->resumed_tail = &t->resumed;
	c->is_resumed = false;
	return c;
}
