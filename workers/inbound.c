/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/inbound.h"

#include "crypto/packet.h"
#include "tun/coalesce.h"
#include "tun/ip.h"
#include "tun/segment.h"
#include "workers/payload.h"

#define DATA_V2_HEAD 4
#define FLOAT_ASK_MS 1000 /* a move that was refused or lost is asked for again after this */

void inbound_init(struct inbound *in, struct datapath *dp, struct outbound *out)
{
	in->dp = dp;
	in->out = out;
	in->count = in->foreign_count = in->packet_count = 0;
	in->known.peer = NULL;
}

static void drop(struct inbound *in, enum drop why, struct buffer *b)
{
	datapath_drop(in->dp, DIRECTION_INGRESS, why, b);
}

/* Opens what was gathered; defined below, where packets are passed on. */
static void open_gathered(struct inbound *in);

/* Sorted by key, in order of arrival within one: looked for from the end, since batches are short
 * and mostly sorted already. */
static void gather(struct inbound *in, struct peer *p, struct buffer *b)
{
	struct data_key *k = p->keys[packet_key_id(b->data[0])];
	if (!k) {
		drop(in, DROP_NO_KEY, b);
		return;
	}
	if (in->count == INBOUND_BATCH)
		open_gathered(in);
	unsigned i = in->count++;
	for (; i > 0 && (uintptr_t)in->items[i - 1].key > (uintptr_t)k; i--)
		in->items[i] = in->items[i - 1];
	in->items[i].key = k;
	in->items[i].peer = p;
	in->items[i].buffer = b;
}

static bool is_from(const struct peer *p, const struct link_addr *from)
{
	return p->link.listener == from->listener && endpoint_equal(&p->link.remote, &from->remote);
}

/* P_DATA_V1 is found by its address, so that only P_DATA_V2 can come from another. */
static void gather_from(struct inbound *in, struct peer *p, struct buffer *b)
{
	if (is_from(p, &b->link))
		gather(in, p, b);
	else if (in->foreign_count < INBOUND_FOREIGN)
		in->foreign[in->foreign_count++] = b;
	else
		drop(in, DROP_FOREIGN_SOURCE, b);
}

static uint32_t peer_id_of(const struct buffer *b)
{
	return (uint32_t)b->data[1] << 16 | (uint32_t)b->data[2] << 8 | b->data[3];
}

static void hand_over(struct inbound *in, unsigned to, enum message_kind kind, struct buffer *b)
{
	struct message m = {.kind = (uint8_t)kind, .buffer = b};
	datapath_hand_over(in->dp, to, DIRECTION_INGRESS, &m);
}

/* No peer-id: the source address names the peer. It is ours when steering sent it here for that
 * address; a client that knows its peer-id and sends P_DATA_V1 all the same may belong to any
 * worker, and only the acceptor knows all addresses. */
static void by_address(struct inbound *in, struct buffer *b, bool is_handed_over)
{
	struct peer *p = peer_find_by_addr(in->dp->peers, &b->link);
	if (p)
		gather(in, p, b);
	else if (is_handed_over)
		drop(in, DROP_UNKNOWN_PEER, b);
	else
		hand_over(in, ACCEPTOR, MESSAGE_DATAGRAM, b);
}

static void by_peer_id(struct inbound *in, struct buffer *b, bool is_handed_over)
{
	if (b->len < DATA_V2_HEAD) {
		drop(in, DROP_SHORT, b);
		return;
	}
	uint32_t id = peer_id_of(b);
	if (id == PEER_ID_NONE) {
		by_address(in, b, is_handed_over);
		return;
	}
	unsigned owner = slot_table_owner(in->dp->slots, id);
	if (owner != in->dp->index) {
		hand_over(in, owner, MESSAGE_DATAGRAM, b);
		return;
	}
	struct peer *p = peer_find_by_id(in->dp->peers, id);
	if (p)
		gather_from(in, p, b);
	else
		drop(in, DROP_UNKNOWN_PEER, b);
}

static void classify(struct inbound *in, struct buffer *b, bool is_handed_over)
{
	uint8_t opcode = b->len ? packet_opcode(b->data[0]) : 0;
	if (b->len == 0)
		drop(in, DROP_SHORT, b);
	else if (opcode == OPCODE_DATA_V2)
		by_peer_id(in, b, is_handed_over);
	else if (opcode == OPCODE_DATA_V1)
		by_address(in, b, is_handed_over);
	else if (packet_is_control(opcode))
		hand_over(in, ACCEPTOR, MESSAGE_CONTROL, b);
	else
		drop(in, DROP_BAD_OPCODE, b);
}

/* The segments of a super-datagram may differ in opcode, key and even peer-id. */
static void split(struct inbound *in, struct buffer *whole)
{
	struct datapath *dp = in->dp;
	uint8_t *end = whole->data + whole->len;
	for (uint8_t *at = whole->data; at < end; at += whole->gso_size) {
		uint32_t left = (uint32_t)(end - at);
		uint32_t len = left < whole->gso_size ? left : whole->gso_size;
		struct buffer *s = buffer_slice(dp->large, whole, at, len);
		dp->count.link_received_packets++;
		dp->count.udp_gro_segments++;
		if (s)
			classify(in, s, false);
		else
			dp->count.drops[DIRECTION_INGRESS][DROP_BUFFERS]++;
	}
	datapath_release(dp, whole);
}

void inbound_datagrams(struct inbound *in, struct buffer *const *datagrams, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct buffer *b = datagrams[i];
		in->dp->count.link_received_bursts++;
		in->dp->count.link_received_bytes += b->len;
		if (b->gso_size && b->len > b->gso_size) {
			split(in, b);
			continue;
		}
		in->dp->count.link_received_packets++;
		classify(in, b, false);
	}
}

void inbound_handed_over(struct inbound *in, struct buffer *b)
{
	in->dp->count.handoff_in_packets++;
	classify(in, b, true);
}

/* An authenticated, fresh packet came from another address than the recorded one. The acceptor
 * decides about the move, since another client may hold that address (security.md, section 5). */
static void ask_float(struct inbound *in, struct peer *p, const struct link_addr *from)
{
	struct datapath *dp = in->dp;
	if (p->float_asked_ms && dp->now_ms < p->float_asked_ms + FLOAT_ASK_MS)
		return;
	struct buffer *b = buffer_take(dp->small);
	if (!b)
		return;
	b->link = *from;
	struct message m = {.kind = MESSAGE_FLOAT_REQUEST, .peer_id = p->setup.id, .buffer = b};
	if (mailbox_send(dp->mailboxes, dp->index, ACCEPTOR, &m))
		p->float_asked_ms = dp->now_ms;
	else
		buffer_give(dp->small, b);
}

static void answer_occ(struct inbound *in, struct peer *p, const uint8_t *data)
{
	if (payload_occ_op(data) == OCC_EXIT)
		datapath_announce(in->dp, p, PEER_FACT_EXIT);
	else if (payload_occ_op(data) == OCC_REQUEST && in->dp->occ_reply.len)
		outbound_message(in->out, p, in->dp->occ_reply.data,
				 (uint32_t)in->dp->occ_reply.len);
}

static bool is_known_source(const struct inbound *in, const struct peer *p,
			    const struct ip_addr *source)
{
	return in->known.peer == p && ip_addr_equal(&in->known.source, source);
}

/* Does the inner source belong to this very client? Within a flush the answer stays the same. */
static enum drop check_source(struct inbound *in, const struct peer *p, const struct buffer *b)
{
	struct ip_addr source;
	struct destination d;
	if (!ip_source(b->data, b->len, &source))
		return DROP_BAD_IP;
	if (is_known_source(in, p, &source))
		return DROP_NONE;
	if (route_reader_find(in->dp->routes, &source, &d) && d.id == p->setup.id &&
	    d.generation == p->setup.generation) {
		in->known.peer = p;
		in->known.source = source;
		return DROP_NONE;
	}
	/* Every client sends some of these by itself; they say nothing about the client. */
	return ip_is_link_local(&source) ? DROP_FILTERED : DROP_SOURCE_SPOOFED;
}

/* Between clients: true if the packet was taken. A multicast packet is copied, and goes on. */
static bool pass_to_clients(struct inbound *in, const struct peer *from, struct buffer *b)
{
	struct ip_addr to;
	struct destination d;
	if (!in->dp->is_client_to_client || !ip_destination(b->data, b->len, &to))
		return false;
	if (ip_is_multicast(&to)) {
		outbound_broadcast(in->out, from->setup.id, b);
		return false;
	}
	if (!route_reader_find(in->dp->routes, &to, &d))
		return false;
	/* It is sealed in place: a slice has its neighbours' bytes around it. */
	if (b->whole)
		b = datapath_detach(in->dp, DIRECTION_EGRESS, b);
	if (b)
		outbound_route(in->out, d, b);
	return true;
}

/* A frame of the packets from `first` on. */
static void write_frame(struct inbound *in, const struct coalesce_item *items, unsigned first)
{
	for (unsigned i = first; i != COALESCE_NONE; i = items[i].next) {
		struct buffer *b = in->packets[i];
		b->data = items[i].data;
		b->len = items[i].len;
		b->next = items[i].next == COALESCE_NONE ? NULL : in->packets[items[i].next];
	}
	in->dp->count.tun_written_frames++;
	io_write_tun(in->dp->io, in->packets[first]);
}

static void write_packets(struct inbound *in)
{
	struct coalesce_item items[INBOUND_BATCH];
	static_assert(INBOUND_BATCH <= COALESCE_BATCH, "they are merged together");
	for (unsigned i = 0; i < in->packet_count; i++) {
		items[i].data = in->packets[i]->data;
		items[i].len = in->packets[i]->len;
	}
	coalesce(items, in->packet_count, in->dp->tun_offloads);
	for (unsigned i = 0; i < in->packet_count; i++)
		if (items[i].first == i)
			write_frame(in, items, i);
	in->packet_count = 0;
}

static void pass_packet(struct inbound *in, struct peer *p, struct buffer *b)
{
	enum drop why = check_source(in, p, b);
	if (why == DROP_NONE && !bucket_take(&p->up, b->len, in->dp->now_ns))
		why = DROP_RATE_LIMITED;
	if (why != DROP_NONE) {
		drop(in, why, b);
		return;
	}
	if (p->path.mss.mss4 || p->path.mss.mss6)
		ip_clamp_mss(b->data, b->len, p->path.mss.mss4, p->path.mss.mss6);
	if (pass_to_clients(in, p, b))
		return;
	in->dp->count.tun_written_packets++;
	in->dp->count.tun_written_bytes += b->len;
	if (in->packet_count == INBOUND_BATCH)
		write_packets(in);
	in->packets[in->packet_count++] = b;
}

static void pass_plaintext(struct inbound *in, struct peer *p, struct buffer *b)
{
	switch (payload_kind(b->data, b->len)) {
	case PAYLOAD_IP:
		pass_packet(in, p, b);
		return;
	case PAYLOAD_OCC:
		answer_occ(in, p, b->data);
		break;
	case PAYLOAD_PING:
		break;
	}
	datapath_release(in->dp, b);
}

static void pass_opened(struct inbound *in, struct peer *p, struct buffer *b,
			const struct data_segment *seg)
{
	if (seg->drop != DROP_NONE) {
		drop(in, seg->drop, b);
		return;
	}
	if (!is_from(p, &b->link))
		ask_float(in, p, &b->link);
	shared_add(&p->received_packets, 1);
	shared_add(&p->received_bytes, b->len);
	in->dp->count.opened_bytes += seg->len;
	in->dp->count.opened_packets++;
	p->last_received_ms = in->dp->now_ms;
	b->data = seg->data;
	b->len = seg->len;
	pass_plaintext(in, p, b);
}

/* Items first..first+n-1 have one key. */
static void open_run(struct inbound *in, unsigned first, unsigned n)
{
	struct datapath *dp = in->dp;
	struct data_key *k = in->items[first].key;
	struct peer *p = in->items[first].peer;
	struct data_segment seg[INBOUND_BATCH];
	for (unsigned i = 0; i < n; i++) {
		struct buffer *b = in->items[first + i].buffer;
		seg[i] = (struct data_segment){.data = b->data, .len = b->len};
	}
	data_key_open(k, dp->aead, seg, n, dp->now_ms);
	dp->count.open_batches++;
	for (unsigned i = 0; i < n; i++)
		pass_opened(in, p, in->items[first + i].buffer, &seg[i]);
	atomic_store_explicit(&p->seen_ms, p->last_received_ms, memory_order_relaxed);
	datapath_check_usage(dp, p, k);
}

/* The keys of the next runs are on their way while this one is opened. */
static void prefetch_ahead(const struct inbound *in, unsigned next)
{
	if (next < in->count)
		data_key_prefetch_open_schedule(in->items[next].key, in->dp->aead,
						in->items[next].buffer->len);
	if (next + 2 < in->count)
		data_key_prefetch_open(in->items[next + 2].key);
}

static void open_gathered(struct inbound *in)
{
	unsigned count = in->count;
	for (unsigned first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (in->items[next].key != in->items[first].key)
				break;
		prefetch_ahead(in, next);
		open_run(in, first, next - first);
	}
	in->count = 0;
}

/* Their peers may have gone or changed meanwhile. */
static void open_foreign(struct inbound *in)
{
	for (unsigned i = 0; i < in->foreign_count; i++) {
		struct buffer *b = in->foreign[i];
		struct peer *p = peer_find_by_id(in->dp->peers, peer_id_of(b));
		if (p)
			gather(in, p, b);
		else
			drop(in, DROP_UNKNOWN_PEER, b);
	}
	in->foreign_count = 0;
	open_gathered(in);
}

void inbound_flush(struct inbound *in)
{
	open_gathered(in);
	open_foreign(in);
	write_packets(in);
	in->known.peer = NULL;
}
