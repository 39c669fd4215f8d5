/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_HTTP_H
#define SERVER_ADMIN_HTTP_H

/* The observer's HTTP endpoint: /metrics, /metrics/peers, /healthz. One request a connection, GET
 * and HEAD only, headers of at most 4 KiB, 2 seconds for a request, 64 connections, no TLS: for
 * this host, or behind a proxy. Not libevent's own server: that one bounds neither connections nor
 * the time of a client which sends a byte now and then. */

#include "server/admin/observer.h"

/* For observer_setup. */
extern const struct observer_ops http_ops;

#endif
