/* SPDX-License-Identifier: Apache-2.0 */
#include "server/connect.h"

#include <stdio.h>
#include <string.h>

#include "config/log.h"
#include "server/clients.h"
#include "server/ip_pool.h"
#include "server/removal.h"
#include "server/shared.h"
#include "workers/steering.h"

static void mask_print(uint8_t bits, char *out)
{
	uint32_t mask = bits ? UINT32_MAX << (32 - bits) : 0;
	struct ip_addr a = ip_addr_from_be32(0);

	for (int i = 0; i < 4; i++)
		a.bytes[i] = (uint8_t)(mask >> (24 - 8 * i));
	ip_addr_print(&a, out);
}

void connect_ifconfig_text(const struct config *c, const struct ip_lease *l, char *out)
{
	char addr[IP_ADDR_TEXT_MAX], second[IP_ADDR_TEXT_MAX];

	out[0] = '\0';
	if (l->addr4.family == 0)
		return;
	ip_addr_print(&l->addr4, addr);
	if (c->topology == TOPOLOGY_SUBNET)
		mask_print(c->pool_bits, second);
	else
		ip_addr_print(&l->peer4, second);
	snprintf(out, CONNECT_TEXT_MAX, "%s %s", addr, second);
}

void connect_ifconfig_ipv6_text(const struct config *c, const struct ip_lease *l, char *out)
{
	char addr[IP_ADDR_TEXT_MAX], gateway[IP_ADDR_TEXT_MAX];

	out[0] = '\0';
	if (l->addr6.family == 0)
		return;
	ip_addr_print(&l->addr6, addr);
	ip_addr_print(&c->ifconfig_ipv6_local, gateway);
	snprintf(out, CONNECT_TEXT_MAX, "%s/%u %s", addr, (unsigned)c->ifconfig_ipv6_bits, gateway);
}

static const char *text_or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int set_push(struct acceptor_shared *s, struct client *c)
{
	char ifconfig[CONNECT_TEXT_MAX], ifconfig_ipv6[CONNECT_TEXT_MAX];
	struct push_plan plan = {
		.options = s->config->push,
		.option_count = s->config->push_count,
		.peer_id = c->place.peer_id,
	};

	connect_ifconfig_text(s->config, &c->lease, ifconfig);
	connect_ifconfig_ipv6_text(s->config, &c->lease, ifconfig_ipv6);
	plan.ifconfig = text_or_null(ifconfig);
	plan.ifconfig_ipv6 = text_or_null(ifconfig_ipv6);
	return session_set_push(c->session, &plan);
}

/* A client without peer-id is steered by its address, so it belongs where that leads. */
static int take_place(struct acceptor_shared *s, struct client *c)
{
	struct place place;
	int err;

	c->uses_peer_id = session_uses_peer_id(c->session);
	if (c->uses_peer_id)
		err = placement_take(s->placement, &place);
	else
		err = placement_take_on(
			s->placement, steering_by_source(&c->link.remote, s->worker_count), &place);
	if (err)
		log_client(LOG_WARN, c->prefix,
			   "MULTI: no peer-id is free for this client: raise max-clients");
	else
		client_set_place(s->clients, c, &place);
	return err;
}

static void log_lease(const struct client *c)
{
	char addr4[IP_ADDR_TEXT_MAX], addr6[IP_ADDR_TEXT_MAX];

	ip_addr_print(&c->lease.addr4, addr4);
	ip_addr_print(&c->lease.addr6, addr6);
	log_client(LOG_INFO, c->prefix, "MULTI_sva: pool returned IPv4=%s, IPv6=%s",
		   c->lease.addr4.family ? addr4 : "(Not enabled)",
		   c->lease.addr6.family ? addr6 : "(Not enabled)");
}

static int take_lease(struct acceptor_shared *s, struct client *c)
{
	static struct log_limit limit;
	int err;

	if (!s->pool) {
		log_client(LOG_INFO, c->prefix,
			   "MULTI: no dynamic or static remote --ifconfig address is available for "
			   "%s",
			   c->prefix);
		return 0;
	}
	err = ip_pool_take(s->pool, c->common_name, &c->lease);
	if (!err) {
		c->has_lease = true;
		log_lease(c);
		return 0;
	}
	s->count.handshakes_pool_empty++;
	if (s->config->has_pool && ip_pool_size4(s->pool) <= ip_pool_used(s->pool))
		s->count.pool4_exhausted++;
	else
		s->count.pool6_exhausted++;
	if (log_limit_pass(&limit, s->now_ms, 1))
		log_client(LOG_WARN, c->prefix,
			   "MULTI: no free --ifconfig-pool addresses are available");
	return err;
}

static void refuse(struct acceptor_shared *s, struct client *c, uint8_t key_id, const char *reason)
{
	session_authorize(c->session, key_id, false, reason, s->now_ms);
	client_set_stage(s->clients, c, CLIENT_CLOSING);
}

void connect_resume(struct acceptor_shared *s, struct client *c)
{
	int err = take_place(s, c);

	if (!err)
		err = take_lease(s, c);
	if (err) {
		refuse(s, c, 0, NULL);
		return;
	}
	err = set_push(s, c);
	if (err) {
		log_client(LOG_ERROR, c->prefix, "cannot push its options: %s", strerror(-err));
		refuse(s, c, 0, NULL);
		return;
	}
	client_set_stage(s->clients, c, CLIENT_CONNECTED);
	session_authorize(c->session, 0, true, NULL, s->now_ms);
}

/* Who has the same name goes, unless duplicate-cn; who had the address before goes in any case. */
static void evict_same_name(struct acceptor_shared *s, struct client *c)
{
	struct client *old = clients_named(s->clients, c->common_name);
	bool is_said = false;

	while (old) {
		struct client *next = clients_next_named(old);

		if (old != c) {
			if (!is_said)
				log_line(LOG_INFO,
					 "MULTI: new connection by client '%s' will cause previous "
					 "active sessions by this client to be dropped.  Remember "
					 "to use the --duplicate-cn option if you want multiple "
					 "clients using the same certificate or username to "
					 "concurrently connect.",
					 c->common_name);
			is_said = true;
			removal_replace(s, old, c);
		}
		old = next;
	}
}

static void evict_same_address(struct acceptor_shared *s, struct client *c)
{
	struct client *old = clients_at(s->clients, &c->link);

	while (old) {
		struct client *next = clients_next_at(old, &c->link);

		if (old != c)
			removal_replace(s, old, c);
		old = next;
	}
}

static void log_authenticated(const struct client *c)
{
	char addr[ENDPOINT_TEXT_MAX];

	log_client(LOG_INFO, c->prefix, "Control Channel: %s", session_tls_summary(c->session));
	log_client(LOG_INFO, c->prefix, "[%s] Peer Connection Initiated with %s",
		   session_common_name(c->session), endpoint_print_af(&c->link.remote, addr));
}

static void authorize_first(struct acceptor_shared *s, struct client *c, uint8_t key_id)
{
	const struct identity *identity = session_identity(c->session);

	log_authenticated(c);
	client_set_stage(s->clients, c, CLIENT_CONNECTING);
	if (client_authenticate(s->clients, c, session_common_name(c->session),
				session_username(c->session), identity)) {
		refuse(s, c, key_id, NULL);
		return;
	}
	if (!s->config->is_duplicate_cn && identity && identity->common_name[0])
		evict_same_name(s, c);
	evict_same_address(s, c);
	if (c->waits_for == 0)
		connect_resume(s, c);
}

void connect_authorize(struct acceptor_shared *s, struct client *c, uint8_t key_id)
{
	/* Of a later key the session itself has seen that it is the same peer's. */
	if (c->is_authenticated)
		session_authorize(c->session, key_id, true, NULL, s->now_ms);
	else
		authorize_first(s, c, key_id);
}
