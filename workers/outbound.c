/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/outbound.h"

#include <string.h>

#include "crypto/packet.h"
#include "tun/ip.h"

void outbound_init(struct outbound *o, struct datapath *dp)
{
	o->dp = dp;
	o->count = 0;
}

/* Keep the items sorted by peer and in order of arrival within one: batches are short and mostly
 * sorted already, so the place is looked for from the end. */
static void gather(struct outbound *o, struct peer *p, struct buffer *b)
{
	if (o->count == OUTBOUND_BATCH)
		outbound_flush(o);
	unsigned i = o->count++;
	for (; i > 0 && (uintptr_t)o->items[i - 1].peer > (uintptr_t)p; i--)
		o->items[i] = o->items[i - 1];
	o->items[i].peer = p;
	o->items[i].buffer = b;
}

static void to_peer(struct outbound *o, struct peer *p, struct buffer *b)
{
	if (b->len > p->setup.tun_mtu) {
		datapath_drop(o->dp, DIRECTION_EGRESS, DROP_MTU, b);
		return;
	}
	if (p->setup.mss4 || p->setup.mss6)
		ip_clamp_mss(b->data, b->len, p->setup.mss4, p->setup.mss6);
	gather(o, p, b);
}

static struct buffer *copy(struct outbound *o, const struct buffer *b)
{
	struct buffer *c = buffer_take(o->dp->pool);
	if (!c || b->len > buffer_pool_payload(o->dp->pool)) {
		o->dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS]++;
		if (c)
			buffer_give(o->dp->pool, c);
		return NULL;
	}
	memcpy(c->data, b->data, b->len);
	c->len = b->len;
	return c;
}

static void to_own_peers(struct outbound *o, uint32_t except_id, const struct buffer *b)
{
	struct peer *p;
	for (uint32_t id = 0; (p = peer_next(o->dp->peers, &id)) != NULL; id++) {
		struct buffer *c = id == except_id ? NULL : copy(o, b);
		if (c)
			to_peer(o, p, c);
	}
}

void outbound_broadcast(struct outbound *o, uint32_t except_id, const struct buffer *b)
{
	to_own_peers(o, except_id, b);
	for (unsigned to = 1; to <= o->dp->worker_count; to++) {
		struct buffer *c = to == o->dp->index ? NULL : copy(o, b);
		if (!c)
			continue;
		c->generation = except_id;
		struct message m = {.kind = MESSAGE_INNER, .peer_id = PEER_ID_NONE, .buffer = c};
		datapath_hand_over(o->dp, to, DIRECTION_EGRESS, &m);
	}
}

void outbound_handed_over(struct outbound *o, uint32_t peer_id, struct buffer *b)
{
	if (peer_id == PEER_ID_NONE) {
		to_own_peers(o, b->generation, b);
		datapath_release(o->dp, b);
		return;
	}
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	/* The peer-id may have passed to somebody else while the packet was on its way. */
	if (!p || p->setup.generation != b->generation) {
		datapath_drop(o->dp, DIRECTION_EGRESS, DROP_UNKNOWN_PEER, b);
		return;
	}
	to_peer(o, p, b);
}

void outbound_route(struct outbound *o, struct destination d, struct buffer *b)
{
	unsigned owner = slot_table_owner(o->dp->slots, d.id);
	b->generation = d.generation;
	if (owner == o->dp->index) {
		outbound_handed_over(o, d.id, b);
		return;
	}
	struct message m = {.kind = MESSAGE_INNER, .peer_id = d.id, .buffer = b};
	datapath_hand_over(o->dp, owner, DIRECTION_EGRESS, &m);
}

static void from_tun(struct outbound *o, struct buffer *b)
{
	struct ip_addr to;
	struct destination d;
	o->dp->count.tun_read_packets++;
	o->dp->count.tun_read_bytes += b->len;
	if (!ip_destination(b->data, b->len, &to))
		datapath_drop(o->dp, DIRECTION_EGRESS, DROP_BAD_IP, b);
	else if (ip_is_multicast(&to)) {
		outbound_broadcast(o, PEER_ID_NONE, b);
		datapath_release(o->dp, b);
	} else if (!route_reader_find(o->dp->routes, &to, &d))
		datapath_drop(o->dp, DIRECTION_EGRESS, DROP_NO_ROUTE, b);
	else
		outbound_route(o, d, b);
}

void outbound_packets(struct outbound *o, struct buffer *const *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		from_tun(o, packets[i]);
}

void outbound_message(struct outbound *o, struct peer *p, const void *text, uint32_t len)
{
	struct buffer *b = buffer_take(o->dp->pool);
	if (!b) {
		o->dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS]++;
		return;
	}
	if (len > buffer_pool_payload(o->dp->pool)) {
		datapath_drop(o->dp, DIRECTION_EGRESS, DROP_MTU, b);
		return;
	}
	memcpy(b->data, text, len);
	b->len = len;
	gather(o, p, b);
}

/* The buffer, now holding a datagram, goes to the peer. */
static void send_sealed(struct outbound *o, struct peer *p, struct buffer *b,
			const struct data_segment *seg)
{
	struct counters *c = &o->dp->count;
	if (seg->drop != DROP_NONE) {
		datapath_drop(o->dp, DIRECTION_EGRESS, seg->drop, b);
		return;
	}
	b->data = seg->data;
	b->len = seg->len;
	b->link = p->link;
	c->link_sent_packets++;
	c->link_sent_bytes += seg->len;
	shared_add(&p->sent_packets, 1);
	shared_add(&p->sent_bytes, seg->len);
	io_send(o->dp->io, b);
}

/* Items first..first+n-1 are one peer's. */
static void seal_run(struct outbound *o, unsigned first, unsigned n)
{
	struct datapath *dp = o->dp;
	struct peer *p = o->items[first].peer;
	struct data_key *k = peer_seal_key(p, dp->now_ms);
	struct data_segment seg[OUTBOUND_BATCH];
	if (!k) {
		for (unsigned i = 0; i < n; i++)
			datapath_drop(dp, DIRECTION_EGRESS, DROP_NO_KEY,
				      o->items[first + i].buffer);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		struct buffer *b = o->items[first + i].buffer;
		seg[i] = (struct data_segment){.data = b->data, .len = b->len};
		dp->count.sealed_bytes += b->len;
	}
	data_key_seal(k, dp->aead, seg, n);
	dp->count.sealed_packets += n;
	dp->count.seal_batches++;
	p->last_sent_ms = dp->now_ms;
	for (unsigned i = 0; i < n; i++)
		send_sealed(o, p, o->items[first + i].buffer, &seg[i]);
	datapath_check_usage(dp, p, k);
}

void outbound_flush(struct outbound *o)
{
	unsigned count = o->count;
	for (unsigned first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (o->items[next].peer != o->items[first].peer)
				break;
		if (next < count && o->items[next].peer->seal_key)
			__builtin_prefetch(o->items[next].peer->seal_key->seal_schedule);
		seal_run(o, first, next - first);
	}
	o->count = 0;
}
