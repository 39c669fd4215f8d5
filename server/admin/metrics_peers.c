/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "server/admin/metrics_families.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Keyed by client id and name only: addresses change, and a series should not. */
struct key {
	char cid[24];
	struct label labels[2];
};

static void key_set(struct key *k, const struct snapshot_client *c)
{
	snprintf(k->cid, sizeof(k->cid), "%" PRIu64, c->client_id);
	k->labels[0] = (struct label){"cid", k->cid};
	k->labels[1] = (struct label){"common_name", c->common_name};
}

static void info(struct metrics_text *m, const struct snapshot *s)
{
	metrics_family(m, "shardvpn_peer", METRIC_INFO, NULL, "A client; join on cid.");
	for (size_t i = 0; i < s->client_count; i++) {
		const struct snapshot_client *c = &s->clients[i];
		char worker[16];
		struct key k;
		key_set(&k, c);
		snprintf(worker, sizeof(worker), "%u", c->worker);
		const char *virtual_addr = c->virtual4[0] != '\0' ? c->virtual4 : c->virtual6;
		const struct label labels[] = {k.labels[0],
					       k.labels[1],
					       {"virtual_address", virtual_addr},
					       {"real_address", c->real_addr},
					       {"cipher", c->cipher},
					       {"worker", worker}};
		metrics_integer(m, labels, COUNT(labels), 1);
	}
}

static void each(const struct metrics_text *m, const struct snapshot *s,
		 uint64_t (*get)(const struct snapshot_client *c))
{
	for (size_t i = 0; i < s->client_count; i++) {
		struct key k;
		key_set(&k, &s->clients[i]);
		metrics_integer(m, k.labels, COUNT(k.labels), get(&s->clients[i]));
	}
}

static uint64_t received(const struct snapshot_client *c)
{
	return c->received_bytes;
}

static uint64_t sent(const struct snapshot_client *c)
{
	return c->sent_bytes;
}

static uint64_t connected(const struct snapshot_client *c)
{
	return (uint64_t)c->connected_s;
}

static uint64_t last_activity(const struct snapshot_client *c)
{
	return (uint64_t)c->last_ref_s;
}

void metrics_peers(struct metrics_text *m, const struct metrics_input *in)
{
	const struct snapshot *s = in->snapshot;
	if (s == NULL)
		return;
	info(m, s);
	metrics_family(m, "shardvpn_peer_received_bytes", METRIC_COUNTER, "bytes",
		       "Bytes from the client.");
	each(m, s, received);
	metrics_family(m, "shardvpn_peer_sent_bytes", METRIC_COUNTER, "bytes",
		       "Bytes to the client.");
	each(m, s, sent);
	metrics_family(m, "shardvpn_peer_connected_timestamp_seconds", METRIC_GAUGE, "seconds",
		       "When the client connected, unix time.");
	each(m, s, connected);
	metrics_family(m, "shardvpn_peer_last_activity_timestamp_seconds", METRIC_GAUGE, "seconds",
		       "When the client was last heard, unix time.");
	each(m, s, last_activity);
}
