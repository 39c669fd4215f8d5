/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_REPORTS_H
#define SERVER_REPORTS_H

/* What the workers tell the acceptor, and what it does about that. Thread: acceptor. */

#include "server/listener.h"
#include "workers/messages.h"

struct acceptor_shared;

/* Act on one message from a worker. Control packets go to `on_control`. Returns 0, or the negative
 * errno with which a worker failed. */
__attribute__((warn_unused_result)) int
report_take(struct acceptor_shared *s, const struct message *m, listener_fn on_control, void *ctx);

#endif
