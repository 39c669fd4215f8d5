/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/datapath.h"

void datapath_release(struct datapath *dp, struct buffer *b)
{
	if (b->home == dp->index) {
		buffer_give(dp->pool, b);
		return;
	}
	b->next = dp->homeward[b->home];
	dp->homeward[b->home] = b;
}

void datapath_drop(struct datapath *dp, enum counter_direction d, enum drop why, struct buffer *b)
{
	dp->count.drops[d][why]++;
	datapath_release(dp, b);
}

bool datapath_send_home(struct datapath *dp)
{
	bool is_all_sent = true;
	for (unsigned i = 0; i <= WORKERS_MAX; i++) {
		if (!dp->homeward[i])
			continue;
		struct message m = {.kind = MESSAGE_BUFFER_HOME, .buffer = dp->homeward[i]};
		if (mailbox_send(dp->mailboxes, dp->index, i, &m))
			dp->homeward[i] = NULL;
		else
			is_all_sent = false;
	}
	return is_all_sent;
}

void datapath_hand_over(struct datapath *dp, unsigned to, enum counter_direction d,
			const struct message *m)
{
	if (mailbox_send(dp->mailboxes, dp->index, to, m)) {
		dp->count.handoff_out_packets++;
		return;
	}
	dp->count.handoff_full++;
	datapath_drop(dp, d, DROP_HANDOFF_FULL, m->buffer);
}

static bool announce(struct datapath *dp, const struct peer *p, enum peer_fact fact)
{
	struct message m = {.peer_id = p->setup.id};
	switch (fact) {
	case PEER_FACT_SILENT:
		m.kind = MESSAGE_PEER_SILENT;
		break;
	case PEER_FACT_EXIT:
		m.kind = MESSAGE_PEER_EXIT;
		break;
	case PEER_FACT_EXHAUSTED:
		m.kind = MESSAGE_KEY_EXHAUSTED;
		m.arg = p->exhausted_key_id;
		break;
	}
	return mailbox_send(dp->mailboxes, dp->index, ACCEPTOR, &m);
}

void datapath_announce_pending(struct datapath *dp, struct peer *p)
{
	static const enum peer_fact facts[] = {PEER_FACT_EXIT, PEER_FACT_SILENT,
					       PEER_FACT_EXHAUSTED};
	for (unsigned i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if ((p->facts & facts[i]) && announce(dp, p, facts[i]))
			p->facts &= ~(uint32_t)facts[i];
	}
	if (p->facts)
		timers_add(&dp->timers, &p->keepalive, dp->now_ms + TIMERS_TICK_MS);
}

void datapath_announce(struct datapath *dp, struct peer *p, enum peer_fact fact)
{
	p->facts |= fact;
	datapath_announce_pending(dp, p);
}

void datapath_check_usage(struct datapath *dp, struct peer *p, const struct data_key *k)
{
	bool is_used_up =
		data_key_wants_renegotiation(k) ||
		(dp->reneg_bytes && k->sealed_bytes + k->opened_bytes >= dp->reneg_bytes) ||
		(dp->reneg_pkts && k->sealed_packets + k->opened_packets >= dp->reneg_pkts);
	uint8_t bit = (uint8_t)(1u << k->key_id);
	if (!is_used_up || (p->exhausted_keys & bit))
		return;
	p->exhausted_keys |= bit;
	p->exhausted_key_id = k->key_id;
	datapath_announce(dp, p, PEER_FACT_EXHAUSTED);
}
