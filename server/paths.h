/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_PATHS_H
#define SERVER_PATHS_H

/* What the path to a client takes whole, as the route says it now. Thread: acceptor. */

#include <stdint.h>

struct acceptor_shared;
struct client;

/* MTU of the route to the client's address; 0: there is none. Kept in the client; a change is
 * logged. Some system calls. */
uint32_t path_look_up(const struct acceptor_shared *s, struct client *c);
/* Tell the client's worker: its answer to MESSAGE_PATH_MTU_ASK, or the client has moved. No effect
 * without a peer. */
void path_tell(struct acceptor_shared *s, struct client *c);

#endif
