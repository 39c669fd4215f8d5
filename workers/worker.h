/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_WORKER_H
#define WORKERS_WORKER_H

/* A worker thread: one core's part of the data channel. It owns its tun queue, its UDP sockets, its
 * I/O engine, its buffers, its timers and its peers. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "crypto/bytes.h"
#include "workers/counters.h"
#include "workers/mailbox.h"
#include "workers/route_table.h"
#include "workers/steering.h"
#include "workers/udp.h"

/* Shared by all workers; outlives them. */
struct worker_shared {
	const struct config *config;
	struct mailboxes *mailboxes;
	struct route_table *routes;
	const struct slot_table *slots;
	const struct udp_group *groups; /* one per listener */
	unsigned group_count;
	unsigned worker_count;
	uint32_t peer_id_limit; /* ids given out are below it */
	uint32_t tun_offloads;	/* enum tun_offload that the device took */
	struct view occ_reply;	/* whole plaintext that answers an OCC request; empty: none */
};

struct worker;

/* index: 1..worker_count; tun_fd: its queue; cpu: to pin to, -1: not. Nothing runs yet. */
__attribute__((warn_unused_result)) int worker_new(const struct worker_shared *shared,
						   unsigned index, int tun_fd, int cpu,
						   struct worker **out);
/* Start the thread (all signals blocked) and wait until its engine stands. On failure `why` (256
 * bytes) says what to do. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int worker_start(struct worker *w, char *why, size_t why_len);
/* Tell the thread to stop, unless it was told already, and wait for its end. What workers still
 * send to the acceptor is taken and forgotten meanwhile: one that cannot answer takes no more
 * messages, and would not come to its MESSAGE_STOP. Thread: acceptor. */
void worker_join(struct worker *w);
void worker_free(struct worker *w);

/* Any thread. */
struct counters_shared *worker_counters(struct worker *w);
const char *worker_io_name(const struct worker *w); /* after worker_start */
const char *worker_io_note(const struct worker *w); /* why io_uring is not used, or "" */
const char *worker_aead_name(const struct worker *w);
int worker_cpu(const struct worker *w);

#endif
