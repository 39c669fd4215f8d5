/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/orders.h"

#include <string.h>

#include "workers/keepalive.h"

void orders_init(struct orders *o, struct datapath *dp, struct inbound *in, struct outbound *out)
{
	o->dp = dp;
	o->in = in;
	o->out = out;
	o->is_stopping = false;
	o->backlog_count = 0;
}

static void answer(struct orders *o, const struct message *m)
{
	if (o->backlog_count == 0 && mailbox_send(o->dp->mailboxes, o->dp->index, ACCEPTOR, m))
		return;
	o->backlog[o->backlog_count++] = *m; /* there is room: see orders_receive */
}

bool orders_send_backlog(struct orders *o)
{
	unsigned sent = 0;
	while (sent < o->backlog_count &&
	       mailbox_send(o->dp->mailboxes, o->dp->index, ACCEPTOR, &o->backlog[sent]))
		sent++;
	o->backlog_count -= sent;
	memmove(o->backlog, o->backlog + sent, o->backlog_count * sizeof(o->backlog[0]));
	return o->backlog_count == 0;
}

static void drop_key(struct orders *o, struct peer *p, unsigned key_id)
{
	if (!p->keys[key_id])
		return;
	key_slab_drop(o->dp->keys, p->keys[key_id], o->dp->aead);
	p->keys[key_id] = NULL;
	p->seal_key = NULL;
	p->exhausted_keys &= (uint8_t) ~(1u << key_id);
}

/* Gathered packets point to peers and keys: open them, and seal what is queued, before one goes. */
static void settle(struct orders *o)
{
	inbound_flush(o->in);
	outbound_flush(o->out);
}

static void peer_add(struct orders *o, struct peer *p)
{
	const struct client_rate *r = &o->dp->rate;
	bucket_init(&p->up, r->up_bytes_s, r->burst_bytes, o->dp->now_ns);
	bucket_init(&p->down, r->down_bytes_s, r->burst_bytes, o->dp->now_ns);
	if (peer_table_add(o->dp->peers, p) == 0) {
		peer_learn_path(p, p->setup.path_mtu, o->dp->now_ms);
		keepalive_start(o->dp, p);
		return;
	}
	struct message m = {.kind = MESSAGE_PEER_REMOVED, .peer_id = p->setup.id, .peer = p};
	answer(o, &m);
}

static void forget_peer(struct orders *o, struct peer *p)
{
	keepalive_stop(o->dp, p);
	outbound_forget(o->out, p);
	for (unsigned i = 0; i < PEER_KEYS; i++)
		drop_key(o, p, i);
	peer_table_remove(o->dp->peers, p);
}

static void peer_remove(struct orders *o, uint32_t peer_id)
{
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	if (!p)
		return;
	settle(o);
	forget_peer(o, p);
	struct message m = {.kind = MESSAGE_PEER_REMOVED, .peer_id = peer_id, .peer = p};
	answer(o, &m);
}

static void key_install(struct orders *o, uint32_t peer_id, struct data_key *key)
{
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	settle(o);
	if (p) {
		drop_key(o, p, key->key_id);
		p->keys[key->key_id] = key_slab_adopt(o->dp->keys, key);
	}
	if (!p || !p->keys[key->key_id])
		data_key_fini(key, o->dp->aead);
	struct message m = {.kind = MESSAGE_KEY_INSTALLED, .peer_id = peer_id, .key = key};
	answer(o, &m);
}

static void key_seal_from(struct orders *o, const struct message *m)
{
	struct peer *p = peer_find_by_id(o->dp->peers, m->peer_id);
	if (!p || m->arg >= PEER_KEYS || !p->keys[m->arg])
		return;
	settle(o);
	p->keys[m->arg]->seal_from_ms = m->at_ms;
}

static void key_retire(struct orders *o, uint32_t peer_id, unsigned key_id)
{
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	if (!p || key_id >= PEER_KEYS)
		return;
	settle(o);
	drop_key(o, p, key_id);
}

static void peer_move(struct orders *o, uint32_t peer_id, struct buffer *b)
{
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	if (p) {
		peer_table_move(o->dp->peers, p, &b->link);
		p->float_asked_ms = 0;
	}
	datapath_release(o->dp, b);
}

static void path_mtu(struct orders *o, uint32_t peer_id, uint32_t mtu)
{
	struct peer *p = peer_find_by_id(o->dp->peers, peer_id);
	if (p)
		peer_learn_path(p, mtu, o->dp->now_ms);
}

static void take_home(struct buffer *chain)
{
	while (chain) {
		struct buffer *next = chain->next;
		buffer_give(chain->pool, chain);
		chain = next;
	}
}

static void carry_out(struct orders *o, const struct message *m)
{
	switch ((enum message_kind)m->kind) {
	case MESSAGE_PEER_ADD:
		peer_add(o, m->peer);
		break;
	case MESSAGE_PEER_REMOVE:
		peer_remove(o, m->peer_id);
		break;
	case MESSAGE_KEY_INSTALL:
		key_install(o, m->peer_id, m->key);
		break;
	case MESSAGE_KEY_SEAL_FROM:
		key_seal_from(o, m);
		break;
	case MESSAGE_KEY_RETIRE:
		key_retire(o, m->peer_id, m->arg);
		break;
	case MESSAGE_PEER_MOVE:
		peer_move(o, m->peer_id, m->buffer);
		break;
	case MESSAGE_PATH_MTU:
		path_mtu(o, m->peer_id, m->path_mtu);
		break;
	case MESSAGE_PING:
		answer(o, &(struct message){.kind = MESSAGE_PONG});
		break;
	case MESSAGE_STOP:
		o->is_stopping = true;
		break;
	case MESSAGE_DATAGRAM:
		inbound_handed_over(o->in, m->buffer);
		break;
	case MESSAGE_INNER:
		o->dp->count.handoff_in_packets++;
		outbound_handed_over(o->out, m->peer_id, m->buffer);
		break;
	case MESSAGE_BUFFER_HOME:
		take_home(m->buffer);
		break;
	case MESSAGE_NONE:
	case MESSAGE_CONTROL:
	case MESSAGE_PEER_REMOVED:
	case MESSAGE_KEY_INSTALLED:
	case MESSAGE_FLOAT_REQUEST:
	case MESSAGE_PATH_MTU_ASK:
	case MESSAGE_PEER_SILENT:
	case MESSAGE_PEER_EXIT:
	case MESSAGE_KEY_EXHAUSTED:
	case MESSAGE_PONG:
	case MESSAGE_FAILED:
		break; /* only workers send these, and only to the acceptor */
	}
}

unsigned orders_receive(struct orders *o)
{
	struct message m[ORDERS_BATCH];
	unsigned room = ORDERS_BACKLOG - o->backlog_count;
	unsigned n = mailbox_receive(o->dp->mailboxes, o->dp->index, m,
				     room < ORDERS_BATCH ? room : ORDERS_BATCH);
	for (unsigned i = 0; i < n; i++)
		carry_out(o, &m[i]);
	return n;
}

void orders_drop_all(struct orders *o)
{
	struct peer *p;
	for (uint32_t id = 0; (p = peer_next(o->dp->peers, &id)) != NULL; id++)
		forget_peer(o, p);
}
