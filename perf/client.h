/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_CLIENT_H
#define PERF_CLIENT_H

/* One emulated client: its socket, its control channel and its data keys, from the first reset to
 * the end. What is sent through the tunnel is not its business. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/data_key.h"
#include "perf/counts.h"
#include "perf/credentials.h"
#include "perf/histogram.h"
#include "perf/pushed.h"

struct key_slab;

#define CLIENT_KEY_IDS 8
#define CLIENT_KEYS_MAX                                                                            \
	3 /* at the same time: primary, lame duck, and one that is being replaced                  \
	   */

enum client_stage { CLIENT_UNBORN, CLIENT_CONNECTING, CLIENT_CONNECTED, CLIENT_GONE };

/* What the clients of one thread share; borrowed. */
struct client_world {
	const struct swarm_options *options;
	struct credentials *credentials;
	struct aead *aead;
	struct key_slab *slab;
	struct counts *counts;
	struct histogram *logins; /* us from the first packet to the data key */
};

/* Owned by one thread. Zeroed is unborn. */
struct client {
	enum client_stage stage;
	int fd;
	bool is_leaving, is_rekeyed;
	struct session *session;
	struct data_key *keys[CLIENT_KEY_IDS]; /* in the slab, by key-id */
	uint8_t key_ids[CLIENT_KEYS_MAX];      /* of those, the newest first */
	unsigned key_count;
	struct data_key *seal_key, *next_key; /* next_key: once next_from_ms is reached */
	uint64_t next_from_ms;
	uint64_t started_ns;
	struct pushed pushed;
};

/* Open the socket and send the first packet. Returns 0 or -errno, the client unborn. */
__attribute__((warn_unused_result)) int client_start(struct client *c,
						     const struct client_world *w);
/* A control packet came; client_advance is due. */
void client_take_control(struct client *c, struct view datagram);
/* Run the control channel, send what it has to say. */
void client_advance(struct client *c, const struct client_world *w);
/* When client_advance is due without input, ms; UINT64_MAX: never. */
uint64_t client_deadline(const struct client *c);
void client_renegotiate(struct client *c, const struct client_world *w);
/* Say goodbye; the client is gone within a second of advances. */
void client_leave(struct client *c, const struct client_world *w);
/* Free what it has, in any stage. */
void client_fini(struct client *c, const struct client_world *w);

/* The key to seal with now; only while connected. */
static inline struct data_key *client_seal_key(struct client *c, uint64_t now_ms)
{
	if (c->next_key && now_ms >= c->next_from_ms) {
		c->seal_key = c->next_key;
		c->next_key = NULL;
	}
	return c->seal_key;
}

/* The key that a data packet's first byte names, or NULL. */
static inline struct data_key *client_open_key(const struct client *c, uint8_t first)
{
	return c->keys[packet_key_id(first)];
}

#endif
