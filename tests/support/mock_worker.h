/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_MOCK_WORKER_H
#define TESTS_SUPPORT_MOCK_WORKER_H

/* What the acceptor's modules work on, without sockets, threads or sessions; the test plays the
 * workers: it takes their messages and answers when it likes. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/log.h"
#include "crypto/secret.h"
#include "server/clients.h"
#include "server/data_channel.h"
#include "server/grants.h"
#include "server/hand_over.h"
#include "server/ip_pool.h"
#include "server/removal.h"
#include "server/reports.h"
#include "server/shared.h"
#include "workers/peer.h"
#include "workers/route_table.h"

#define MOCK_WORKERS  2
#define MOCK_PEER_IDS 512

struct mock {
	struct config config;
	struct acceptor_shared shared;
	struct mailboxes *mailboxes;
	struct timers timers;
	struct slot_table slots;
	struct udp_group group;
};

static inline struct ip_addr mock_addr(const char *text)
{
	struct ip_addr a;

	assert_true(ip_addr_parse(text, &a));
	return a;
}

static inline struct link_addr mock_link(const char *host, uint16_t port)
{
	struct link_addr l = {0};

	l.remote.in4.sin_family = AF_INET;
	l.remote.in4.sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, host, &l.remote.in4.sin_addr), 1);
	return l;
}

static inline void mock_config(struct config *c)
{
	c->topology = TOPOLOGY_SUBNET;
	c->has_pool = true;
	c->pool_start = mock_addr("10.8.0.2");
	c->pool_end = mock_addr("10.8.0.9");
	c->pool_bits = 24;
	c->ifconfig_local = mock_addr("10.8.0.1");
	c->ping_restart_s = 60;
	c->max_clients = 100;
	c->replay_window = 64;
	c->replay_time_s = 15;
	c->tun_mtu = 1500;
	c->mssfix_mode = MSSFIX_MTU;
	c->mssfix = 1492;
	c->hand_window_s = 60;
}

static inline int mock_set_up(void **state)
{
	struct mock *m = test_calloc(1, sizeof(*m));
	struct acceptor_shared *s = &m->shared;

	/* Lines are made, but not between those of the test. */
	assert_int_equal(log_open(&(struct log_options){.verb = 4, .file = "/dev/null"}), 0);
	mock_config(&m->config);
	s->config = &m->config;
	s->groups = &m->group;
	s->group_count = 1;
	s->worker_count = MOCK_WORKERS;
	s->timers = &m->timers;
	s->now_ms = 1000000;
	s->wall_s = 1700000000;
	timers_init(&m->timers, s->now_ms);
	slot_table_init(&m->slots, MOCK_WORKERS);
	assert_int_equal(mailboxes_new(MOCK_WORKERS + 1, &m->mailboxes), 0);
	assert_int_equal(clients_new(100, MOCK_PEER_IDS, secret_random, &s->clients), 0);
	assert_int_equal(placement_new(&m->slots, MOCK_WORKERS, MOCK_PEER_IDS, &s->placement), 0);
	assert_int_equal(hand_over_new(m->mailboxes, MOCK_WORKERS, &s->hand_over), 0);
	assert_int_equal(grants_new(AEAD_OPENSSL, &s->grants), 0);
	assert_int_equal(route_table_new(&s->routes), 0);
	assert_int_equal(ip_pool_new(&m->config, &s->pool), 0);
	*state = m;
	return 0;
}

static inline int mock_tear_down(void **state)
{
	struct mock *m = *state;

	removal_all(&m->shared);
	ip_pool_free(m->shared.pool);
	route_table_free(m->shared.routes);
	grants_free(m->shared.grants);
	hand_over_free(m->shared.hand_over);
	placement_free(m->shared.placement);
	clients_free(m->shared.clients);
	mailboxes_free(m->mailboxes);
	test_free(m);
	return 0;
}

/* The next message for `worker`, or MESSAGE_NONE. */
static inline struct message mock_next(struct mock *m, unsigned worker)
{
	struct message out = {.kind = MESSAGE_NONE};

	hand_over_flush(m->shared.hand_over);
	(void)mailbox_receive(m->mailboxes, worker, &out, 1);
	return out;
}

static inline void mock_expect_none(struct mock *m)
{
	for (unsigned w = 1; w <= MOCK_WORKERS; w++)
		assert_int_equal(mock_next(m, w).kind, MESSAGE_NONE);
}

/* A message from `worker` reaches the acceptor. */
static inline int mock_report(struct mock *m, unsigned worker, struct message msg)
{
	struct message got;

	assert_true(mailbox_send(m->mailboxes, worker, 0, &msg));
	assert_int_equal(hand_over_receive(m->shared.hand_over, &got, 1), 1);
	return report_take(&m->shared, &got, NULL, NULL);
}

/* A half-open client without a session. */
static inline struct client *mock_stranger(struct mock *m, struct link_addr link)
{
	static uint64_t next;
	struct session_id own = {{0}}, peer = {{0}};
	struct client *c;

	next++;
	memcpy(own.bytes, &next, sizeof(next));
	memcpy(peer.bytes, &next, sizeof(next));
	peer.bytes[7] = 1;
	c = clients_add(m->shared.clients, &link, &own, &peer, m->shared.now_ms);
	assert_non_null(c);
	return c;
}

/* The same after authentication. */
static inline struct client *mock_authenticated(struct mock *m, struct link_addr link,
						const char *name)
{
	struct client *c = mock_stranger(m, link);
	struct identity identity = {.has_certificate = true};

	snprintf(identity.common_name, sizeof(identity.common_name), "%s", name);
	snprintf((char *)identity.chain_hash, sizeof(identity.chain_hash), "%s", name);
	client_set_stage(m->shared.clients, c, CLIENT_CONNECTING);
	assert_int_equal(client_authenticate(m->shared.clients, c, name, "", &identity), 0);
	return c;
}

static inline struct session_event mock_key(uint8_t key_id)
{
	struct session_event e = {.kind = SESSION_EVENT_KEY, .key_id = key_id};

	e.key.cipher = CIPHER_AES_256_GCM;
	e.key.key_id = key_id;
	memset(e.key.seal_key, 1 + key_id, sizeof(e.key.seal_key));
	memset(e.key.open_key, 101 + key_id, sizeof(e.key.open_key));
	return e;
}

/* The same with address, peer-id and key; the worker has taken both and answered. */
static inline struct client *mock_connected(struct mock *m, struct link_addr link, const char *name)
{
	struct client *c = mock_authenticated(m, link, name);
	struct session_event e = mock_key(0);
	struct message msg;
	struct place place;

	c->uses_peer_id = true;
	assert_int_equal(placement_take(m->shared.placement, &place), 0);
	client_set_place(m->shared.clients, c, &place);
	assert_int_equal(ip_pool_take(m->shared.pool, name, &c->lease), 0);
	c->has_lease = true;
	client_set_stage(m->shared.clients, c, CLIENT_CONNECTED);
	c->connected_s = m->shared.wall_s;
	assert_int_equal(data_channel_install(&m->shared, c, &e), 0);
	assert_int_equal(mock_next(m, place.worker).kind, MESSAGE_PEER_ADD);
	msg = mock_next(m, place.worker);
	assert_int_equal(msg.kind, MESSAGE_KEY_INSTALL);
	msg.kind = MESSAGE_KEY_INSTALLED;
	assert_int_equal(mock_report(m, place.worker, msg), 0);
	return c;
}

/* The worker forgot the peer of a client that was told to go. */
static inline void mock_answer_removal(struct mock *m, struct client *c)
{
	struct message msg = mock_next(m, c->place.worker);

	assert_int_equal(msg.kind, MESSAGE_PEER_REMOVE);
	assert_int_equal(msg.peer_id, c->place.peer_id);
	msg.kind = MESSAGE_PEER_REMOVED;
	msg.peer = c->peer;
	assert_int_equal(mock_report(m, c->place.worker, msg), 0);
}

#endif
