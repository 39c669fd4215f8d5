/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ADMIN_HTTP_LISTEN_H
#define SERVER_ADMIN_HTTP_LISTEN_H

/* The endpoint's listening socket. */

#include <stddef.h>

#include "config/config.h"

/* Bind metrics_host and metrics_port; an address that is not loopback only if the configuration
 * allows it. Returns a non-blocking descriptor, or -errno and one sentence in `why`. Resolves
 * names: before threads. */
__attribute__((warn_unused_result)) int http_listen(const struct config *c, char *why,
						    size_t why_len);

#endif
