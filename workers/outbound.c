/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/outbound.h"

#include <string.h>

#include "crypto/packet.h"
#include "tun/ip.h"
#include "tun/segment.h"
#include "workers/burst.h"

void outbound_init(struct outbound *o, struct datapath *dp)
{
	o->dp = dp;
	o->is_held_back = false;
	fair_queue_init(&o->queue, dp);
}

static void drop(struct outbound *o, enum drop why, struct buffer *b)
{
	datapath_drop(o->dp, DIRECTION_EGRESS, why, b);
}

static void to_peer(struct outbound *o, struct peer *p, struct buffer *b)
{
	if (!b->is_frame && b->len > p->setup.tun_mtu) {
		drop(o, DROP_MTU, b);
		return;
	}
	if (!b->is_frame && (p->path.mss.mss4 || p->path.mss.mss6))
		ip_clamp_mss(b->data, b->len, p->path.mss.mss4, p->path.mss.mss6);
	fair_queue_add(&o->queue, p, b);
}

static void to_own_peers(struct outbound *o, uint32_t except_id, const struct buffer *b)
{
	struct peer *p;
	for (uint32_t id = 0; (p = peer_next(o->dp->peers, &id)) != NULL; id++) {
		struct buffer *c =
			id == except_id ? NULL : datapath_copy(o->dp, DIRECTION_EGRESS, b);
		if (c)
			to_peer(o, p, c);
	}
}

void outbound_broadcast(struct outbound *o, uint32_t except_id, const struct buffer *b)
{
	to_own_peers(o, except_id, b);
	for (unsigned to = 1; to <= o->dp->worker_count; to++) {
		struct buffer *c =
			to == o->dp->index ? NULL : datapath_copy(o->dp, DIRECTION_EGRESS, b);
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
		drop(o, DROP_UNKNOWN_PEER, b);
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

/* A multicast super-packet is as rare as it is simple to treat as many packets. */
static void broadcast_frame(struct outbound *o, const struct super_packet *s)
{
	struct buffer *b = buffer_take(o->dp->large);
	if (!b) {
		o->dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS] += s->count;
		return;
	}
	for (unsigned i = 0; i < s->count; i++) {
		super_packet_split(s, i, 1, b->data, s->header_len + s->payload_len);
		b->len = super_packet_segment_len(s, i);
		outbound_broadcast(o, PEER_ID_NONE, b);
	}
	datapath_release(o->dp, b);
}

static void broadcast(struct outbound *o, const struct super_packet *s, struct buffer *b)
{
	if (b->is_frame)
		broadcast_frame(o, s);
	else
		outbound_broadcast(o, PEER_ID_NONE, b);
	datapath_release(o->dp, b);
}

/* A frame is kept whole until it is sealed; a single packet sheds its virtio header here. */
static enum drop unpack(struct outbound *o, struct buffer *b, struct super_packet *s)
{
	enum drop why = super_packet_parse(b->data, b->len, s);
	o->dp->count.tun_read_frames++;
	o->dp->count.tun_read_packets += why == DROP_NONE ? s->count : 1;
	o->dp->count.tun_read_bytes += b->len > VIRTIO_LEN ? b->len - VIRTIO_LEN : 0;
	if (why != DROP_NONE)
		return why;
	b->is_frame = s->count > 1;
	if (!b->is_frame) {
		b->data = s->packet;
		b->len = s->len;
	}
	return DROP_NONE;
}

static void from_tun(struct outbound *o, struct buffer *b)
{
	struct super_packet s;
	struct ip_addr to;
	struct destination d;
	enum drop why = unpack(o, b, &s);
	if (why != DROP_NONE)
		drop(o, why, b);
	else if (!ip_destination(s.packet, s.len, &to))
		drop(o, DROP_BAD_IP, b);
	else if (ip_is_multicast(&to))
		broadcast(o, &s, b);
	else if (!route_reader_find(o->dp->routes, &to, &d))
		drop(o, DROP_NO_ROUTE, b);
	else
		outbound_route(o, d, b);
}

void outbound_frames(struct outbound *o, struct buffer *const *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		from_tun(o, frames[i]);
}

void outbound_message(struct outbound *o, struct peer *p, const void *text, uint32_t len)
{
	struct buffer *b = buffer_take(o->dp->small);
	if (!b) {
		o->dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS]++;
		return;
	}
	if (len > BUFFER_SMALL_PAYLOAD) {
		drop(o, DROP_MTU, b);
		return;
	}
	memcpy(b->data, text, len);
	b->len = len;
	fair_queue_add(&o->queue, p, b);
}

/* As much as the peer's deficit allows, in order: single packets together, frames alone. */
static uint32_t serve(struct outbound *o, struct peer *p)
{
	struct buffer *run[BURST_BATCH];
	unsigned n = 0;
	uint32_t bytes = 0;
	struct buffer *b;
	while ((b = fair_queue_take(&o->queue, p)) != NULL) {
		bytes += b->len;
		if (n > 0 && (b->is_frame || n == BURST_BATCH)) {
			burst_packets(o->dp, p, run, n);
			n = 0;
		}
		if (b->is_frame)
			burst_frame(o->dp, p, b);
		else
			run[n++] = b;
	}
	if (n > 0)
		burst_packets(o->dp, p, run, n);
	return bytes;
}

/* Until the turn's share is sealed, nobody waits, or each that waits is held back by its rate. */
void outbound_flush(struct outbound *o)
{
	uint32_t left = OUTBOUND_TURN_BYTES;
	unsigned held = 0;
	struct peer *p;
	burst_resend(o->dp);
	while (left > 0 && held <= o->queue.peer_count &&
	       (p = fair_queue_next(&o->queue, left)) != NULL) {
		uint32_t bytes = serve(o, p);
		held = p->queue.is_held && bytes == 0 ? held + 1 : 0;
		fair_queue_return(&o->queue, p);
		left -= bytes < left ? bytes : left;
	}
	o->is_held_back = held > o->queue.peer_count;
	fair_queue_keep(&o->queue);
}

uint64_t outbound_wait_ms(const struct outbound *o)
{
	if (!o->queue.first && !o->dp->refused)
		return UINT64_MAX;
	return o->is_held_back ? 1 : 0;
}

void outbound_forget(struct outbound *o, struct peer *p)
{
	fair_queue_forget(&o->queue, p);
}
