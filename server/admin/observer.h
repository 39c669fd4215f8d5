/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_OBSERVER_H
#define SERVER_ADMIN_OBSERVER_H

/* A thread of its own that answers HTTP from counters and from the snapshot the acceptor published.
 * It may be slow; nobody waits for it. One of the four places where threads meet. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "server/admin/snapshot.h"
#include "workers/worker.h"

struct observer;

struct observer_setup {
	const struct config *config;
	struct worker **workers; /* for their counters and names */
	unsigned worker_count;
	struct mailboxes *mailboxes; /* for ring depth */
	int64_t start_time_s;
};

/* Bind the endpoint (metrics_host, metrics_port). On failure `why` (256 bytes) says what to do.
 * Returns 0 or -errno. Thread: main, before the privilege drop. */
__attribute__((warn_unused_result)) int observer_new(const struct observer_setup *s,
						     struct observer **out, char *why,
						     size_t why_len);
/* Start the thread; all signals blocked. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int observer_start(struct observer *o);
/* Stop and join. */
void observer_stop(struct observer *o);
void observer_free(struct observer *o);
/* Somebody asked since the last publish: the acceptor need not make snapshots for nobody. */
bool observer_wants_snapshot(struct observer *o);
/* Hand over a snapshot (allocated in one piece with malloc); the observer frees it, and the one
 * before it once no reader holds that. Thread: acceptor. */
void observer_publish(struct observer *o, struct snapshot *s);

#endif
