/* SPDX-License-Identifier: Apache-2.0 */
#include "server/reports.h"

#include <string.h>

#include "config/log.h"
#include "server/clients.h"
#include "server/conversation.h"
#include "server/floats.h"
#include "server/grants.h"
#include "server/hand_over.h"
#include "server/paths.h"
#include "server/removal.h"
#include "server/shared.h"

static void on_packet(struct acceptor_shared *s, struct buffer *b, listener_fn on_control,
		      void *ctx)
{
	if (b->link.listener < s->group_count)
		on_control(ctx, &b->link, (struct view){b->data, b->len});
	hand_over_home(s->hand_over, b);
}

/* A data packet without peer-id whose address that worker does not know: the client has a peer-id,
 * and so another owner, but does not use it. Only here are all addresses known. */
static void on_stray(struct acceptor_shared *s, struct buffer *b)
{
	struct client *c = clients_at(s->clients, &b->link);

	while (c && !c->has_place)
		c = clients_next_at(c, &b->link);
	if (!c)
		s->count.drops[DROP_UNKNOWN_PEER]++;
	else if (hand_over_datagram(s->hand_over, c->place.worker, b))
		return;
	else
		s->count.drops[DROP_HANDOFF_FULL]++;
	hand_over_home(s->hand_over, b);
}

/* The worker knows of data only. While the client talks on the control channel it is alive; the
 * worker will say it again. */
static void on_silent(struct acceptor_shared *s, struct client *c)
{
	if (s->now_ms - c->control_seen_ms < (uint64_t)s->config->ping_restart_s * 1000)
		return;
	log_client(LOG_INFO, c->prefix, "[%s] Inactivity timeout (--ping-restart), restarting",
		   c->common_name[0] ? c->common_name : "UNDEF");
	removal_start(s, c, CLIENT_END_PING_RESTART);
}

static void on_exit_message(struct acceptor_shared *s, struct client *c)
{
	log_client(LOG_INFO, c->prefix, "OCC exit message received by peer");
	removal_start(s, c, CLIENT_END_OCC_EXIT);
}

/* What a worker says of one of its peers. The client may have been unlinked meanwhile. */
static void on_fact(struct acceptor_shared *s, const struct message *m)
{
	struct client *c = clients_find_by_peer_id(s->clients, m->peer_id);

	if (!c)
		return;
	if (m->kind == MESSAGE_PEER_SILENT)
		on_silent(s, c);
	else if (m->kind == MESSAGE_PEER_EXIT)
		on_exit_message(s, c);
	else if (m->kind == MESSAGE_PATH_MTU_ASK)
		path_tell(s, c);
	else
		conversation_renegotiate(s, c, m->arg);
}

int report_take(struct acceptor_shared *s, const struct message *m, listener_fn on_control,
		void *ctx)
{
	switch ((enum message_kind)m->kind) {
	case MESSAGE_CONTROL:
		on_packet(s, m->buffer, on_control, ctx);
		break;
	case MESSAGE_DATAGRAM:
		on_stray(s, m->buffer);
		break;
	case MESSAGE_PEER_REMOVED:
		removal_peer_gone(s, m->peer);
		break;
	case MESSAGE_KEY_INSTALLED:
		grant_free(s->grants, m->key);
		break;
	case MESSAGE_FLOAT_REQUEST:
		float_request(s, m->peer_id, m->buffer);
		break;
	case MESSAGE_PEER_SILENT:
	case MESSAGE_PEER_EXIT:
	case MESSAGE_PATH_MTU_ASK:
	case MESSAGE_KEY_EXHAUSTED:
		on_fact(s, m);
		break;
	case MESSAGE_FAILED:
		log_line(LOG_ERROR, "worker %u cannot go on: %s", m->from, strerror(m->arg));
		return -m->arg;
	case MESSAGE_NONE:
	case MESSAGE_PEER_ADD:
	case MESSAGE_PEER_REMOVE:
	case MESSAGE_KEY_INSTALL:
	case MESSAGE_KEY_SEAL_FROM:
	case MESSAGE_KEY_RETIRE:
	case MESSAGE_PEER_MOVE:
	case MESSAGE_PATH_MTU:
	case MESSAGE_PING:
	case MESSAGE_STOP:
	case MESSAGE_PONG:
	case MESSAGE_INNER:
	case MESSAGE_BUFFER_HOME:
		break;
	}
	return 0;
}
