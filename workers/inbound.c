/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/inbound.h"

#include "crypto/packet.h"
#include "tun/ip.h"
#include "workers/payload.h"

#define DATA_V2_HEAD 4
#define FLOAT_ASK_MS 1000 /* a move that was refused or lost is asked for again after this */

void inbound_init(struct inbound *in, struct datapath *dp, struct outbound *out)
{
	in->dp = dp;
	in->out = out;
	in->count = 0;
}

static void drop(struct inbound *in, enum drop why, struct buffer *b)
{
	datapath_drop(in->dp, DIRECTION_INGRESS, why, b);
}

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
		inbound_flush(in);
	unsigned i = in->count++;
	for (; i > 0 && (uintptr_t)in->items[i - 1].key > (uintptr_t)k; i--)
		in->items[i] = in->items[i - 1];
	in->items[i].key = k;
	in->items[i].peer = p;
	in->items[i].buffer = b;
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
		gather(in, p, b);
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

void inbound_datagrams(struct inbound *in, struct buffer *const *datagrams, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		in->dp->count.link_received_packets++;
		in->dp->count.link_received_bytes += datagrams[i]->len;
		classify(in, datagrams[i], false);
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
	struct buffer *b = buffer_take(dp->pool);
	if (!b)
		return;
	b->link = *from;
	struct message m = {.kind = MESSAGE_FLOAT_REQUEST, .peer_id = p->setup.id, .buffer = b};
	if (mailbox_send(dp->mailboxes, dp->index, ACCEPTOR, &m))
		p->float_asked_ms = dp->now_ms;
	else
		buffer_give(dp->pool, b);
}

/* P_DATA_V1 is found by its address, so that only P_DATA_V2 can come from another. */
static void note_source(struct inbound *in, struct peer *p, const struct buffer *b)
{
	if (p->link.listener == b->link.listener &&
	    endpoint_equal(&p->link.remote, &b->link.remote))
		return;
	ask_float(in, p, &b->link);
}

static void answer_occ(struct inbound *in, struct peer *p, const uint8_t *data)
{
	if (payload_occ_op(data) == OCC_EXIT)
		datapath_announce(in->dp, p, PEER_FACT_EXIT);
	else if (payload_occ_op(data) == OCC_REQUEST && in->dp->occ_reply.len)
		outbound_message(in->out, p, in->dp->occ_reply.data,
				 (uint32_t)in->dp->occ_reply.len);
}

/* Does the inner source belong to this very client? */
static enum drop check_source(struct inbound *in, const struct peer *p, const struct buffer *b)
{
	struct ip_addr source;
	struct destination d;
	if (!ip_source(b->data, b->len, &source))
		return DROP_BAD_IP;
	if (route_reader_find(in->dp->routes, &source, &d) && d.id == p->setup.id &&
	    d.generation == p->setup.generation)
		return DROP_NONE;
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
	outbound_route(in->out, d, b);
	return true;
}

static void pass_packet(struct inbound *in, struct peer *p, struct buffer *b)
{
	enum drop why = check_source(in, p, b);
	if (why != DROP_NONE) {
		drop(in, why, b);
		return;
	}
	if (p->setup.mss4 || p->setup.mss6)
		ip_clamp_mss(b->data, b->len, p->setup.mss4, p->setup.mss6);
	if (pass_to_clients(in, p, b))
		return;
	in->dp->count.tun_written_packets++;
	in->dp->count.tun_written_bytes += b->len;
	io_write_tun(in->dp->io, b);
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
	note_source(in, p, b);
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

void inbound_flush(struct inbound *in)
{
	unsigned count = in->count;
	for (unsigned first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (in->items[next].key != in->items[first].key)
				break;
		if (next < count)
			__builtin_prefetch(in->items[next].key->open_schedule);
		open_run(in, first, next - first);
	}
	in->count = 0;
}
