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
struct event_base;

/* How the endpoint is served; filled in by server/admin/http (http_ops). */
struct observer_ops {
	/* Bind where the configuration says and serve on `base` from then on. *ctx is for close. On
	 * failure `why` (256 bytes) says what to do. Returns 0 or -errno. Thread: main. */
	int (*open)(struct observer *o, struct event_base *base, const struct config *c, void **ctx,
		    char *why, size_t why_len);
	void (*close)(void *ctx);
};

struct observer_setup {
	const struct config *config;
	struct worker **workers; /* for their counters and names; read after observer_start */
	unsigned worker_count;
	struct mailboxes *mailboxes; /* for ring depth */
	int64_t start_time_s;
	const struct observer_ops *ops;
};

/* Bind the endpoint (metrics_host, metrics_port). On failure `why` (256 bytes) says what to do.
 * Returns 0 or -errno. Thread: main, before the privilege drop. */
__attribute__((warn_unused_result)) int
observer_new(const struct observer_setup *s, struct observer **out, char *why, size_t why_len);
/* Start the thread; all signals blocked. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int observer_start(struct observer *o);
/* Stop and join. */
void observer_stop(struct observer *o);
void observer_free(struct observer *o);
/* Somebody asked since the last publish: the acceptor need not make snapshots for nobody. Also true
 * before the first one. Thread: acceptor. */
bool observer_wants_snapshot(struct observer *o);
/* Readable (an eventfd) from the moment somebody asks until the next publish, for an acceptor that
 * would rather be woken than look. */
int observer_wanted_fd(const struct observer *o);
/* Hand over a snapshot (allocated in one piece with malloc); the observer frees it, and the one
 * before it once no reader holds that. Thread: acceptor. */
void observer_publish(struct observer *o, struct snapshot *s);

/* The newest snapshot, asked for and waited for (at most OBSERVER_WAIT_MS) if the last one is older
 * than OBSERVER_FRESH_MS. NULL before the first; valid until the next call. Thread: observer. */
#define OBSERVER_FRESH_MS 900
#define OBSERVER_WAIT_MS  1500
const struct snapshot *observer_snapshot(struct observer *o);
/* Milliseconds since the acceptor published what observer_snapshot returned; UINT64_MAX: never.
 * Thread: observer. */
uint64_t observer_snapshot_age_ms(const struct observer *o);
/* As given to observer_new. */
const struct observer_setup *observer_get_setup(const struct observer *o);

#endif
