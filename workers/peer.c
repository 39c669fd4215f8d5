/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "crypto/secret.h"

#define LINE 64

struct peer_table {
	struct peer **by_id; /* id_limit entries, touched when used */
	uint32_t id_limit;
	uint32_t count;
	uint8_t hash_key[16];
	uint32_t bucket_mask;
	struct peer **by_addr;
};

static struct path_peer path_peer(const struct peer *p)
{
	const struct sockaddr_in6 *in6 = &p->link.remote.in6;
	bool is_ipv6 =
		p->link.remote.sa.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
	return (struct path_peer){
		.mss = {p->setup.mss4, p->setup.mss6}, .is_v2 = p->setup.is_v2, .is_ipv6 = is_ipv6};
}

void peer_learn_path(struct peer *p, uint32_t path_mtu, uint64_t now_ms)
{
	struct path_peer peer = path_peer(p);
	path_mtu_learn(&p->path, &peer, path_mtu, now_ms);
}

bool peer_expire_path(struct peer *p, uint64_t now_ms)
{
	struct path_peer peer = path_peer(p);
	return path_mtu_expire(&p->path, &peer, now_ms);
}

struct peer *peer_new(const struct peer_setup *s)
{
	/* Whole cache lines: the next peer may be another worker's. */
	size_t len = (sizeof(struct peer) + LINE - 1) / LINE * LINE;
	struct peer *p = aligned_alloc(LINE, len);
	if (!p)
		return NULL;
	memset(p, 0, len);
	p->setup = *s;
	p->link = s->link;
	struct path_peer peer = path_peer(p);
	path_mtu_init(&p->path, &peer);
	return p;
}

void peer_free(struct peer *p)
{
	free(p);
}

/* A key is newer if its turn to seal comes later; among those whose turn has come the newest wins,
 * and before any has come the oldest serves. One that is only there to open has no turn. */
struct data_key *peer_seal_key(struct peer *p, uint64_t now_ms)
{
	struct data_key *best = NULL;
	for (unsigned i = 0; i < PEER_KEYS; i++) {
		struct data_key *k = p->keys[i];
		if (!k || k->seal_from_ms == UINT64_MAX)
			continue;
		if (!best) {
			best = k;
			continue;
		}
		bool k_ready = k->seal_from_ms <= now_ms;
		bool best_ready = best->seal_from_ms <= now_ms;
		if (k_ready != best_ready ? k_ready
					  : (k->seal_from_ms > best->seal_from_ms) == k_ready)
			best = k;
	}
	p->seal_key = best;
	return best;
}

static uint32_t bucket_count(uint32_t id_limit)
{
	uint32_t n = 64;
	while (n < id_limit && n < 1u << 20)
		n *= 2;
	return n;
}

int peer_table_new(uint32_t id_limit, struct peer_table **out)
{
	struct peer_table *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	uint32_t buckets = bucket_count(id_limit);
	t->id_limit = id_limit;
	t->bucket_mask = buckets - 1;
	t->by_id = calloc(id_limit, sizeof(struct peer *));
	t->by_addr = calloc(buckets, sizeof(struct peer *));
	if (!t->by_id || !t->by_addr || secret_random(t->hash_key, sizeof(t->hash_key)) != 0) {
		peer_table_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void peer_table_free(struct peer_table *t)
{
	if (!t)
		return;
	free(t->by_id);
	free(t->by_addr);
	free(t);
}

static struct peer **bucket(const struct peer_table *t, const struct link_addr *l)
{
	uint8_t key[ENDPOINT_KEY_LEN + sizeof(l->listener)];
	endpoint_key(&l->remote, key);
	memcpy(key + ENDPOINT_KEY_LEN, &l->listener, sizeof(l->listener));
	return &t->by_addr[secret_siphash(t->hash_key, key, sizeof(key)) & t->bucket_mask];
}

static void link_by_addr(struct peer_table *t, struct peer *p)
{
	struct peer **b = bucket(t, &p->link);
	p->next_by_addr = *b;
	*b = p;
}

static void unlink_by_addr(struct peer_table *t, struct peer *p)
{
	for (struct peer **b = bucket(t, &p->link); *b; b = &(*b)->next_by_addr) {
		if (*b == p) {
			*b = p->next_by_addr;
			return;
		}
	}
}

int peer_table_add(struct peer_table *t, struct peer *p)
{
	if (p->setup.id >= t->id_limit)
		return -ERANGE;
	if (t->by_id[p->setup.id])
		return -EEXIST;
	t->by_id[p->setup.id] = p;
	link_by_addr(t, p);
	t->count++;
	return 0;
}

void peer_table_remove(struct peer_table *t, struct peer *p)
{
	assert(t->by_id[p->setup.id] == p);
	t->by_id[p->setup.id] = NULL;
	unlink_by_addr(t, p);
	t->count--;
}

struct peer *peer_find_by_id(const struct peer_table *t, uint32_t id)
{
	return id < t->id_limit ? t->by_id[id] : NULL;
}

struct peer *peer_find_by_addr(const struct peer_table *t, const struct link_addr *l)
{
	for (struct peer *p = *bucket(t, l); p; p = p->next_by_addr) {
		if (p->link.listener == l->listener && endpoint_equal(&p->link.remote, &l->remote))
			return p;
	}
	return NULL;
}

void peer_table_move(struct peer_table *t, struct peer *p, const struct link_addr *l)
{
	unlink_by_addr(t, p);
	p->link = *l;
	link_by_addr(t, p);
}

struct peer *peer_next(const struct peer_table *t, uint32_t *id)
{
	while (*id < t->id_limit && !t->by_id[*id])
		++*id;
	return *id < t->id_limit ? t->by_id[*id] : NULL;
}

uint32_t peer_table_count(const struct peer_table *t)
{
	return t->count;
}
