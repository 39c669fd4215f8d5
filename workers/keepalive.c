/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/keepalive.h"

#include <stddef.h>

#include "workers/payload.h"

#define NEVER		 UINT64_MAX
#define SILENCE_AGAIN_MS 5000 /* the acceptor may have heard control packets: say it again then */

static uint64_t ping_due(const struct peer *p)
{
	return p->setup.ping_s ? p->last_sent_ms + p->setup.ping_s * 1000ull : NEVER;
}

static uint64_t silence_due(const struct peer *p)
{
	if (!p->setup.ping_restart_s)
		return NEVER;
	uint64_t due = p->last_received_ms + p->setup.ping_restart_s * 1000ull;
	uint64_t again = p->silence_said_ms ? p->silence_said_ms + SILENCE_AGAIN_MS : 0;
	return due > again ? due : again;
}

static void arm(struct datapath *dp, struct peer *p)
{
	uint64_t ping = ping_due(p), silence = silence_due(p);
	uint64_t due = ping < silence ? ping : silence;
	if (due != NEVER && !timer_is_armed(&p->keepalive))
		timers_add(&dp->timers, &p->keepalive, due);
}

void keepalive_start(struct datapath *dp, struct peer *p)
{
	p->last_received_ms = dp->now_ms;
	p->last_sent_ms = dp->now_ms;
	arm(dp, p);
}

void keepalive_stop(struct datapath *dp, struct peer *p)
{
	if (timer_is_armed(&p->keepalive))
		timers_remove(&dp->timers, &p->keepalive);
}

static void look(struct datapath *dp, struct outbound *out, struct peer *p)
{
	if (p->facts)
		datapath_announce_pending(dp, p);
	if (peer_expire_path(p, dp->now_ms) || p->is_path_doubted)
		datapath_ask_path(dp, p);
	if (ping_due(p) <= dp->now_ms) {
		p->last_sent_ms = dp->now_ms; /* also if it cannot be sent: once a period */
		if (peer_seal_key(p, dp->now_ms))
			outbound_message(out, p, payload_ping, sizeof(payload_ping));
	}
	if (silence_due(p) <= dp->now_ms) {
		p->silence_said_ms = dp->now_ms;
		datapath_announce(dp, p, PEER_FACT_SILENT);
	}
	arm(dp, p);
}

void keepalive_expire(struct datapath *dp, struct outbound *out)
{
	struct timer *t;
	while ((t = timers_expire(&dp->timers, dp->now_ms)) != NULL) {
		struct peer *p =
			(struct peer *)(void *)((char *)t - offsetof(struct peer, keepalive));
		look(dp, out, p);
	}
}
