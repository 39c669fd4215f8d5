/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_WORKER_SET_H
#define SERVER_WORKER_SET_H

/* All workers of the process: on which CPUs, started and stopped together. Thread: main, which is
 * thread 0 of the data channel. */

#include <stddef.h>

#include "config/config.h"
#include "tun/tun.h"
#include "workers/worker.h"

struct worker_set {
	struct worker *workers[WORKERS_MAX]; /* workers[0] is thread 1 */
	unsigned count, started_count;
	struct mailboxes *mailboxes;
};

/* Make shared->worker_count workers, worker i with queue i-1 of `tun`. They are pinned if
 * `worker-cpus` says where, or if there is a CPU for each. `shared` outlives the set. On failure
 * worker_set_free takes what there is. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int
worker_set_new(const struct worker_shared *shared, const struct tun *tun, struct worker_set *out);
/* Start the threads; those that run are stopped by worker_set_stop even if one fails. `why` as for
 * worker_start. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int worker_set_start(struct worker_set *s, char *why,
							 size_t why_len);
/* Tell every worker to leave its loop, and join it. */
void worker_set_stop(struct worker_set *s);
void worker_set_free(struct worker_set *s);
/* One line for the start: how many, where, which engines, how much memory; after worker_set_start.
 */
void worker_set_log(const struct worker_set *s, const struct config *c);

#endif
