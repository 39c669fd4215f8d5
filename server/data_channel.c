/* SPDX-License-Identifier: Apache-2.0 */
#include "server/data_channel.h"

#include <errno.h>
#include <string.h>

#include "config/log.h"
#include "server/clients.h"
#include "server/grants.h"
#include "server/hand_over.h"
#include "server/paths.h"
#include "server/shared.h"
#include "workers/mss.h"
#include "workers/peer.h"
#include "workers/route_table.h"
#include "workers/tun_steering.h"

static struct destination destination_of(const struct client *c)
{
	return (struct destination){.id = c->place.peer_id, .generation = c->place.generation};
}

static int peer_add(struct acceptor_shared *s, struct client *c)
{
	const struct config *config = s->config;
	bool is_ipv6 = client_is_ipv6(c);
	struct mss_limits mss =
		mss_limits(config->mssfix_mode, config->mssfix, c->uses_peer_id, is_ipv6);
	struct peer_setup setup = {
		.id = c->place.peer_id,
		.generation = c->place.generation,
		.is_v2 = c->uses_peer_id,
		.link = c->link,
		.ping_s = config->ping_s,
		.ping_restart_s = config->ping_restart_s,
		.mss4 = mss.mss4,
		.mss6 = mss.mss6,
		.path_mtu = path_look_up(s, c),
		.tun_mtu = config->tun_mtu,
	};
	struct message m = {.kind = MESSAGE_PEER_ADD, .peer_id = c->place.peer_id};
	int err;

	c->peer = m.peer = peer_new(&setup);
	if (!c->peer)
		return -ENOMEM;
	err = hand_over_send(s->hand_over, c->place.worker, &m);
	c->is_peer_there = err == 0;
	return err;
}

static struct ip_prefix host_of(const struct ip_addr *addr)
{
	return (struct ip_prefix){.addr = *addr, .bits = addr->family == 4 ? 32 : 128};
}

/* The client is served all the same: its packets are handed over between the workers. */
static void count_steering_error(struct acceptor_shared *s, int err)
{
	if (err != 0 && s->count.tun_steering_errors++ == 0)
		log_line(LOG_WARN,
			 "a change of the tun steering was refused: %s; this and what follows is "
			 "counted in shardvpn_tun_steering_errors",
			 strerror(-err));
}

static void steer(struct acceptor_shared *s, const struct client *c, const struct ip_addr *addr)
{
	struct ip_prefix host = host_of(addr);

	if (s->tun_steering)
		count_steering_error(s,
				     tun_steering_add(s->tun_steering, &host, c->place.worker - 1));
}

static int route_add(struct acceptor_shared *s, struct client *c, const struct ip_addr *addr,
		     uint32_t *count)
{
	bool is_v4 = addr->family == 4;
	char text[IP_ADDR_TEXT_MAX];
	int err;

	if (addr->family == 0)
		return 0;
	err = route_table_add(s->routes, addr, destination_of(c));
	if (err)
		return err;
	++*count;
	steer(s, c, addr);
	ip_addr_print(addr, text);
	log_client(LOG_INFO, c->prefix, "MULTI: Learn: %s -> %s", text, c->prefix);
	log_client(LOG_INFO, c->prefix, "MULTI: primary virtual %s for %s: %s",
		   is_v4 ? "IP" : "IPv6", c->prefix, text);
	return 0;
}

static int open_channel(struct acceptor_shared *s, struct client *c)
{
	int err = peer_add(s, c);

	if (err || !c->has_lease)
		return err;
	c->has_routes = true;
	err = route_add(s, c, &c->lease.addr4, &s->routes4);
	return err ? err : route_add(s, c, &c->lease.addr6, &s->routes6);
}

int data_channel_install(struct acceptor_shared *s, struct client *c, const struct session_event *e)
{
	struct data_key_options options = {
		.peer_id = c->uses_peer_id ? c->place.peer_id : PEER_ID_NONE,
		.replay_window = s->config->replay_window,
		.replay_time_s = s->config->replay_time_s,
	};
	struct message m = {.kind = MESSAGE_KEY_INSTALL, .peer_id = c->place.peer_id};
	int err = c->is_peer_there ? 0 : open_channel(s, c);

	if (err)
		return err;
	err = grant_new(s->grants, &e->key, &options, e->seal_from_ms, &m.key);
	if (err)
		return err;
	err = hand_over_send(s->hand_over, c->place.worker, &m);
	if (err)
		grant_free(s->grants, m.key);
	else
		c->newest_key_id = e->key.key_id;
	return err;
}

void data_channel_seal_from(struct acceptor_shared *s, struct client *c, uint8_t key_id,
			    uint64_t seal_from_ms)
{
	struct message m = {.kind = MESSAGE_KEY_SEAL_FROM,
			    .arg = key_id,
			    .peer_id = c->place.peer_id,
			    .at_ms = seal_from_ms};

	if (c->is_peer_there && hand_over_send(s->hand_over, c->place.worker, &m))
		log_client(LOG_ERROR, c->prefix, "out of memory: its new key is not sent with");
}

void data_channel_retire(struct acceptor_shared *s, struct client *c, uint8_t key_id)
{
	struct message m = {.kind = MESSAGE_KEY_RETIRE, .arg = key_id, .peer_id = c->place.peer_id};

	if (c->is_peer_there && hand_over_send(s->hand_over, c->place.worker, &m))
		log_client(LOG_ERROR, c->prefix, "out of memory: an old key stays in use");
}

/* Unless it leads to somebody else by now. */
static void route_remove(struct acceptor_shared *s, const struct client *c,
			 const struct ip_addr *addr, uint32_t *count)
{
	struct ip_prefix host = host_of(addr);

	if (addr->family == 0 || !route_table_remove(s->routes, addr, destination_of(c)))
		return;
	--*count;
	if (s->tun_steering)
		count_steering_error(s, tun_steering_remove(s->tun_steering, &host));
}

void data_channel_unroute(struct acceptor_shared *s, struct client *c)
{
	if (!c->has_routes)
		return;
	route_remove(s, c, &c->lease.addr4, &s->routes4);
	route_remove(s, c, &c->lease.addr6, &s->routes6);
	c->has_routes = false;
}

void data_channel_close(struct acceptor_shared *s, struct client *c)
{
	struct message m = {.kind = MESSAGE_PEER_REMOVE, .peer_id = c->place.peer_id};

	if (hand_over_send(s->hand_over, c->place.worker, &m))
		log_client(LOG_ERROR, c->prefix, "out of memory: its peer-id stays in use");
}
