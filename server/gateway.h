/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_GATEWAY_H
#define SERVER_GATEWAY_H

/* Everything the process is made of, put together in the order of the design (launcher, device,
 * sockets, keys, privilege drop, threads) and taken apart the other way round. */

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

struct gateway;

#define GATEWAY_WHY 512

/* All of the start except what runs on threads: the launcher, the device, the sockets, the keys,
 * the files, then root is given up. `c` stays the caller's and must outlive the gateway. On failure
 * nothing is left and `why` (GATEWAY_WHY bytes) is one sentence that says what to do. Returns 0 or
 * -errno. Thread: main, the only one. */
__attribute__((warn_unused_result)) int gateway_new(const struct config *c, struct gateway **out,
						    char *why, size_t why_len);
/* Start workers, observer and acceptor, tell whoever waits that we are ready, and run until a
 * signal or a failure. Returns the exit code; `why` is "" or says what failed. */
__attribute__((warn_unused_result)) int gateway_run(struct gateway *g, char *why, size_t why_len);
/* After gateway_run, whatever it returned. */
void gateway_free(struct gateway *g);

/* Peer-ids that are given out for `max_clients` clients are below this: a multiple of 256, so that
 * every slot has as many, with room for those whose removal is not complete. */
uint32_t gateway_peer_id_limit(uint32_t max_clients);

#endif
