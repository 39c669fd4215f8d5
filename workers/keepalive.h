/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_KEEPALIVE_H
#define WORKERS_KEEPALIVE_H

/* ping and ping-restart of a worker's peers, by one lazy timer each. Thread: the worker. */

#include "workers/datapath.h"
#include "workers/outbound.h"

/* The peer was added: its silence counts from now on. */
void keepalive_start(struct datapath *dp, struct peer *p);
void keepalive_stop(struct datapath *dp, struct peer *p);
/* Look at every timer that is due: send pings, announce silence, tell pending facts, re-arm. */
void keepalive_expire(struct datapath *dp, struct outbound *out);

#endif
