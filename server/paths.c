/* SPDX-License-Identifier: Apache-2.0 */
#include "server/paths.h"

#include "config/log.h"
#include "server/clients.h"
#include "server/hand_over.h"
#include "server/shared.h"
#include "workers/udp_path.h"

static uint32_t mtu_to(const struct acceptor_shared *s, const struct link_addr *l)
{
	uint32_t mtu;

	if (l->listener >= s->group_count ||
	    udp_path_mtu(l, &s->groups[l->listener].local, &mtu) != 0)
		return 0;
	return mtu;
}

uint32_t path_look_up(const struct acceptor_shared *s, struct client *c)
{
	uint32_t before = c->path_mtu;

	c->path_mtu = mtu_to(s, &c->link);
	if (before != 0 && c->path_mtu != 0 && c->path_mtu != before)
		log_client(LOG_INFO, c->prefix, "the path takes packets of %u bytes now, not %u",
			   c->path_mtu, before);
	return c->path_mtu;
}

void path_tell(struct acceptor_shared *s, struct client *c)
{
	struct message m = {.kind = MESSAGE_PATH_MTU, .peer_id = c->place.peer_id};

	if (!c->is_peer_there)
		return;
	m.path_mtu = path_look_up(s, c);
	/* Without memory it stays as it was; the worker asks again. */
	(void)!hand_over_send(s->hand_over, c->place.worker, &m);
}
