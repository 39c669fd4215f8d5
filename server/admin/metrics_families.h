/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_METRICS_FAMILIES_H
#define SERVER_ADMIN_METRICS_FAMILIES_H

/* The families by where their numbers come from. */

#include "server/admin/metrics.h"

/* The process itself: build, memory, CPU, descriptors, allocator. */
void metrics_process(struct metrics_text *m, const struct metrics_input *in);
/* The control side, from the snapshot; nothing without one. */
void metrics_control(struct metrics_text *m, const struct metrics_input *in);
/* The data channel, a series a worker. */
void metrics_workers(struct metrics_text *m, const struct metrics_input *in);
/* Each client. */
void metrics_peers(struct metrics_text *m, const struct metrics_input *in);

#endif
