/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/datapath.h"

#include <errno.h>
#include <string.h>

void datapath_release(struct datapath *dp, struct buffer *b)
{
	if (b->home == dp->index) {
		buffer_give(b->pool, b);
		return;
	}
	b->next = dp->homeward[b->home];
	dp->homeward[b->home] = b;
}

void datapath_release_chain(struct datapath *dp, struct buffer *chain)
{
	while (chain) {
		struct buffer *next = chain->next;
		datapath_release(dp, chain);
		chain = next;
	}
}

struct buffer *datapath_copy(struct datapath *dp, enum counter_direction d,
			     const struct buffer *from)
{
	struct buffer_pool *pool = from->len <= BUFFER_SMALL_PAYLOAD ? dp->small : dp->large;
	struct buffer *c = buffer_take(pool);
	if (!c) {
		dp->count.drops[d][DROP_BUFFERS]++;
		return NULL;
	}
	memcpy(c->data, from->data, from->len);
	c->len = from->len;
	c->is_frame = from->is_frame;
	c->generation = from->generation;
	c->link = from->link;
	return c;
}

struct buffer *datapath_detach(struct datapath *dp, enum counter_direction d, struct buffer *b)
{
	bool is_wasteful = b->cap > BUFFER_SMALL && b->len <= BUFFER_SMALL_PAYLOAD;
	if (!b->whole && !is_wasteful)
		return b;
	struct buffer *c = datapath_copy(dp, d, b);
	datapath_release(dp, b);
	return c;
}

void datapath_drop(struct datapath *dp, enum counter_direction d, enum drop why, struct buffer *b)
{
	dp->count.drops[d][why]++;
	datapath_release(dp, b);
}

/* A burst that the route refuses can go datagram by datagram. The path does that later, since an
 * engine is at work here. */
static void keep_refused(struct datapath *dp, struct buffer *chain)
{
	uint16_t gso_size = chain->gso_size;
	struct buffer **end = &dp->refused;
	while (*end)
		end = &(*end)->next;
	*end = chain;
	for (; chain; chain = chain->next)
		chain->gso_size = gso_size;
}

static uint64_t datagrams_of(const struct buffer *chain)
{
	uint32_t size = chain->gso_size;
	return io_is_burst(chain) ? (buffer_chain_len(chain) + size - 1) / size : 1;
}

/* The path to somebody takes less than was thought (mtu-disc yes). */
static void ask_path_to(struct datapath *dp, const struct link_addr *link)
{
	struct peer *p = peer_find_by_addr(dp->peers, link);
	if (p)
		datapath_ask_path(dp, p);
}

static bool is_refusal(int result)
{
	return result == -EMSGSIZE || result == -EINVAL || result == -EIO;
}

void datapath_done(struct datapath *dp, struct buffer *chain, bool is_tun, int result)
{
	if (result == 0) {
		datapath_release_chain(dp, chain);
		return;
	}
	if (!is_tun && is_refusal(result) && io_is_burst(chain)) {
		dp->has_gso =
			dp->has_gso && result != -EIO; /* no checksum offload on the way out */
		keep_refused(dp, chain);
		return;
	}
	if (!is_tun && result == -EMSGSIZE)
		ask_path_to(dp, &chain->link);
	if (is_tun)
		dp->count.drops[DIRECTION_INGRESS][DROP_TUN_WRITE]++;
	else
		dp->count.drops[DIRECTION_EGRESS][DROP_LINK_SEND] += datagrams_of(chain);
	datapath_release_chain(dp, chain);
}

bool datapath_send_home(struct datapath *dp)
{
	bool is_all_sent = true;
	for (unsigned i = 0; i <= WORKERS_MAX; i++) {
		if (!dp->homeward[i])
			continue;
		struct message m = {.kind = MESSAGE_BUFFER_HOME, .buffer = dp->homeward[i]};
		if (mailbox_send(dp->mailboxes, dp->index, i, &m))
			dp->homeward[i] = NULL;
		else
			is_all_sent = false;
	}
	return is_all_sent;
}

void datapath_hand_over(struct datapath *dp, unsigned to, enum counter_direction d,
			const struct message *m)
{
	struct message detached = *m;
	detached.buffer = datapath_detach(dp, d, m->buffer);
	if (!detached.buffer)
		return;
	if (mailbox_send(dp->mailboxes, dp->index, to, &detached)) {
		dp->count.handoff_out_packets++;
		return;
	}
	dp->count.handoff_full++;
	datapath_drop(dp, d, DROP_HANDOFF_FULL, detached.buffer);
}

static bool announce(struct datapath *dp, const struct peer *p, enum peer_fact fact)
{
	struct message m = {.peer_id = p->setup.id};
	switch (fact) {
	case PEER_FACT_SILENT:
		m.kind = MESSAGE_PEER_SILENT;
		break;
	case PEER_FACT_EXIT:
		m.kind = MESSAGE_PEER_EXIT;
		break;
	case PEER_FACT_PATH_MTU:
		m.kind = MESSAGE_PATH_MTU_ASK;
		break;
	case PEER_FACT_EXHAUSTED:
		m.kind = MESSAGE_KEY_EXHAUSTED;
		m.arg = p->exhausted_key_id;
		break;
	}
	return mailbox_send(dp->mailboxes, dp->index, ACCEPTOR, &m);
}

void datapath_announce_pending(struct datapath *dp, struct peer *p)
{
	static const enum peer_fact facts[] = {PEER_FACT_EXIT, PEER_FACT_SILENT,
					       PEER_FACT_EXHAUSTED, PEER_FACT_PATH_MTU};
	for (unsigned i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if ((p->facts & facts[i]) && announce(dp, p, facts[i]))
			p->facts &= ~(uint32_t)facts[i];
	}
	if (p->facts)
		timers_add(&dp->timers, &p->keepalive, dp->now_ms + TIMERS_TICK_MS);
}

void datapath_announce(struct datapath *dp, struct peer *p, enum peer_fact fact)
{
	p->facts |= fact;
	datapath_announce_pending(dp, p);
}

void datapath_ask_path(struct datapath *dp, struct peer *p)
{
	p->is_path_doubted = !path_mtu_may_ask(&p->path, dp->now_ms);
	if (!p->is_path_doubted)
		datapath_announce(dp, p, PEER_FACT_PATH_MTU);
}

void datapath_check_usage(struct datapath *dp, struct peer *p, const struct data_key *k)
{
	bool is_used_up =
		data_key_wants_renegotiation(k) ||
		(dp->reneg_bytes && k->sealed_bytes + k->opened_bytes >= dp->reneg_bytes) ||
		(dp->reneg_pkts && k->sealed_packets + k->opened_packets >= dp->reneg_pkts);
	uint8_t bit = (uint8_t)(1u << k->key_id);
	if (!is_used_up || (p->exhausted_keys & bit))
		return;
	p->exhausted_keys |= bit;
	p->exhausted_key_id = k->key_id;
	datapath_announce(dp, p, PEER_FACT_EXHAUSTED);
}
