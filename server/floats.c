/* SPDX-License-Identifier: Apache-2.0 */
#include "server/floats.h"

#include <stdatomic.h>
#include <string.h>

#include "config/log.h"
#include "server/clients.h"
#include "server/hand_over.h"
#include "server/paths.h"
#include "server/removal.h"
#include "server/shared.h"
#include "workers/peer.h"

#define SILENT_MS 10000 /* a holder not heard for so long yields its address */
#define LOG_MS	  1000	/* F-5: one line a second and client */

enum claim { CLAIM_REFUSED, CLAIM_CLOSES, CLAIM_DISPLACES };

static uint64_t heard_ms(const struct client *c)
{
	uint64_t data_ms =
		c->peer ? atomic_load_explicit(&c->peer->seen_ms, memory_order_relaxed) : 0;

	return data_ms > c->control_seen_ms ? data_ms : c->control_seen_ms;
}

static bool is_same_identity(const struct client *a, const struct client *b)
{
	return a->identity.has_certificate && identity_equal(&a->identity, &b->identity) &&
	       strcmp(a->username ? a->username : "", b->username ? b->username : "") == 0;
}

/* What becomes of `holder`, whose address `c` has proved by authenticated data to be at. */
static enum claim claim(const struct acceptor_shared *s, const struct client *c,
			const struct client *holder)
{
	if (!holder->is_authenticated)
		return CLAIM_CLOSES;
	if (!holder->uses_peer_id)
		return CLAIM_REFUSED; /* it is found by its address alone */
	if (is_same_identity(c, holder))
		return CLAIM_CLOSES;
	return s->now_ms - heard_ms(holder) > SILENT_MS ? CLAIM_DISPLACES : CLAIM_REFUSED;
}

static bool is_allowed(struct acceptor_shared *s, const struct client *c,
		       const struct link_addr *to)
{
	struct client *holder = clients_at(s->clients, to);

	for (; holder; holder = clients_next_at(holder, to))
		if (holder != c && claim(s, c, holder) == CLAIM_REFUSED)
			return false;
	return true;
}

static void take_address(struct acceptor_shared *s, struct client *c, const struct link_addr *to)
{
	struct client *holder = clients_at(s->clients, to);

	while (holder) {
		struct client *next = clients_next_at(holder, to);

		if (holder != c && claim(s, c, holder) == CLAIM_CLOSES)
			removal_start(s, holder, CLIENT_END_REPLACED);
		else if (holder != c)
			client_displace(s->clients, holder);
		holder = next;
	}
}

static void log_float(struct acceptor_shared *s, struct client *c, const struct link_addr *to,
		      bool is_allowed_there)
{
	char from[ENDPOINT_TEXT_MAX], there[ENDPOINT_TEXT_MAX];

	if (s->now_ms - c->float_logged_ms < LOG_MS && c->float_logged_ms != 0)
		return;
	c->float_logged_ms = s->now_ms;
	endpoint_print(&c->link.remote, from);
	if (is_allowed_there)
		log_client(LOG_INFO, c->prefix, "peer %u (%s) floated from %s to %s",
			   c->place.peer_id, c->common_name, from,
			   endpoint_print_af(&to->remote, there));
	else
		log_client(LOG_WARN, c->prefix,
			   "Disallow float to an address taken by another client %s",
			   endpoint_print(&to->remote, there));
}

static void move(struct acceptor_shared *s, struct client *c, struct buffer *b)
{
	struct message m = {.kind = MESSAGE_PEER_MOVE, .peer_id = c->place.peer_id, .buffer = b};

	client_set_link(s->clients, c, &b->link);
	if (hand_over_send(s->hand_over, c->place.worker, &m))
		hand_over_home(s->hand_over, b);
	else
		path_tell(s, c);
}

void float_request(struct acceptor_shared *s, uint32_t peer_id, struct buffer *b)
{
	struct client *c = clients_find_by_peer_id(s->clients, peer_id);
	bool is_ok;

	if (!c || !c->is_peer_there || b->link.listener >= s->group_count) {
		hand_over_home(s->hand_over, b);
		return;
	}
	is_ok = is_allowed(s, c, &b->link);
	log_float(s, c, &b->link, is_ok);
	if (!is_ok) {
		s->count.floats_rejected++;
		hand_over_home(s->hand_over, b);
		return;
	}
	s->count.floats_accepted++;
	take_address(s, c, &b->link);
	move(s, c, b);
}
