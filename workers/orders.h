/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_ORDERS_H
#define WORKERS_ORDERS_H

/* What a worker does with the messages it gets. Answers that must arrive wait in a backlog, and no
 * more messages are taken than it has room to answer. Thread: the worker. */

#include <stdbool.h>

#include "workers/datapath.h"
#include "workers/inbound.h"
#include "workers/outbound.h"

#define ORDERS_BATCH   64
#define ORDERS_BACKLOG 128

struct orders {
	struct datapath *dp;
	struct inbound *in;
	struct outbound *out;
	bool is_stopping;
	unsigned backlog_count;
	struct message backlog[ORDERS_BACKLOG]; /* for the acceptor, oldest first */
};

/* Nothing to answer yet; all three outlive it. */
void orders_init(struct orders *o, struct datapath *dp, struct inbound *in, struct outbound *out);
/* Take and carry out what waits, at most ORDERS_BATCH messages; returns their number. */
unsigned orders_receive(struct orders *o);
/* Send answers that wait. True if none is left. */
bool orders_send_backlog(struct orders *o);
/* At the thread's end: wipe every key of every peer that is still here. Peers stay the acceptor's.
 */
void orders_drop_all(struct orders *o);

#endif
