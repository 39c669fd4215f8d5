/* SPDX-License-Identifier: Apache-2.0 */
#include "server/removal.h"

#include "config/log.h"
#include "server/data_channel.h"
#include "server/ip_pool.h"
#include "server/shared.h"
#include "workers/peer.h"

static void log_end(const struct client *c, enum client_end end)
{
	switch (end) {
	case CLIENT_END_OCC_EXIT:
		log_client(LOG_INFO, c->prefix,
			   "SIGTERM[soft,remote-exit] received, client-instance exiting");
		break;
	case CLIENT_END_PING_RESTART:
		log_client(LOG_INFO, c->prefix,
			   "SIGUSR1[soft,ping-restart] received, client-instance restarting");
		break;
	case CLIENT_END_EXIT:
	case CLIENT_END_AUTH_FAILED:
		log_client(LOG_INFO, c->prefix,
			   "SIGTERM[soft,delayed-exit] received, client-instance exiting");
		break;
	case CLIENT_END_TLS_ERROR:
		log_client(LOG_INFO, c->prefix,
			   "SIGUSR1[soft,tls-error] received, client-instance restarting");
		break;
	case CLIENT_END_SHUTDOWN:
		log_client(LOG_INFO, c->prefix, "SIGTERM[soft,] received, client-instance exiting");
		break;
	case CLIENT_END_NONE:
	case CLIENT_END_REPLACED:
		break;
	}
}

static void count_end(struct control_counters *count, enum client_end end)
{
	switch (end) {
	case CLIENT_END_EXIT:
	case CLIENT_END_OCC_EXIT:
		count->disconnect_exit_notify++;
		break;
	case CLIENT_END_PING_RESTART:
		count->disconnect_ping_restart++;
		break;
	case CLIENT_END_AUTH_FAILED:
		count->disconnect_auth_failed++;
		break;
	case CLIENT_END_TLS_ERROR:
		count->disconnect_tls_error++;
		break;
	case CLIENT_END_REPLACED:
		count->disconnect_replaced++;
		break;
	case CLIENT_END_SHUTDOWN:
		count->disconnect_shutdown++;
		break;
	case CLIENT_END_NONE:
		break;
	}
}

static void successor_release(struct acceptor_shared *s, struct client *c)
{
	struct client *next = c->successor;

	c->successor = NULL;
	if (next && --next->waits_for == 0)
		clients_resume(s->clients, next);
}

/* What `from` waited for, `to` (which may be NULL) waits for now. */
static void successor_change(struct acceptor_shared *s, struct client *from, struct client *to)
{
	struct client *c = clients_first_removed(s->clients);

	for (; c && from->waits_for > 0; c = clients_next_removed(s->clients, c)) {
		if (c->successor != from)
			continue;
		from->waits_for--;
		c->successor = to;
		if (to)
			to->waits_for++;
	}
}

/* Everything that others may have as soon as the worker has forgotten the peer. */
static void holdings_release(struct acceptor_shared *s, struct client *c)
{
	if (c->has_lease)
		ip_pool_release(s->pool, &c->lease);
	if (c->has_place)
		placement_release(s->placement, &c->place);
	peer_free(c->peer);
	c->peer = NULL;
	c->has_lease = c->has_place = c->is_peer_there = false;
	successor_release(s, c);
}

static void unlink_and_wait(struct acceptor_shared *s, struct client *c)
{
	data_channel_unroute(s, c);
	timers_remove(s->timers, &c->timer);
	successor_change(s, c, NULL);
	clients_unlink(s->clients, c);
	if (!c->is_peer_there)
		holdings_release(s, c);
	else
		data_channel_close(s, c);
}

void removal_start(struct acceptor_shared *s, struct client *c, enum client_end end)
{
	bool was_connected = c->connected_s != 0;

	if (c->stage == CLIENT_REMOVED)
		return;
	if (client_may_log(c))
		log_end(c, end);
	if (was_connected)
		count_end(&s->count, end);
	c->end = end;
	unlink_and_wait(s, c);
}

void removal_replace(struct acceptor_shared *s, struct client *old, struct client *successor)
{
	if (old->stage == CLIENT_REMOVED)
		return;
	successor_change(s, old, successor);
	old->successor = successor;
	successor->waits_for++;
	removal_start(s, old, CLIENT_END_REPLACED);
}

static struct client *find_removed(struct acceptor_shared *s, const struct peer *peer)
{
	struct client *c = clients_first_removed(s->clients);

	while (c && c->peer != peer)
		c = clients_next_removed(s->clients, c);
	return c;
}

void removal_peer_gone(struct acceptor_shared *s, struct peer *peer)
{
	struct client *c = find_removed(s, peer);

	if (c)
		holdings_release(s, c);
}

void removal_reap(struct acceptor_shared *s)
{
	struct client *c = clients_first_removed(s->clients);

	while (c) {
		struct client *next = clients_next_removed(s->clients, c);

		if (!c->is_lent && !c->is_peer_there)
			clients_drop(s->clients, c);
		c = next;
	}
}

void removal_all(struct acceptor_shared *s)
{
	struct client *c;

	while ((c = clients_first(s->clients)))
		unlink_and_wait(s, c);
	while ((c = clients_first_removed(s->clients))) {
		if (c->has_lease || c->has_place)
			holdings_release(s, c);
		c->is_lent = false;
		clients_drop(s->clients, c);
	}
}
