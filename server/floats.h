/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_FLOATS_H
#define SERVER_FLOATS_H

/* A client's authenticated data came from another address: whether it may move there (security.md,
 * section 5, F-1 to F-5). Thread: acceptor. */

#include <stdint.h>

struct acceptor_shared;
struct buffer;

/* MESSAGE_FLOAT_REQUEST. Takes over the buffer: it goes to the worker with MESSAGE_PEER_MOVE, or
 * home. */
void float_request(struct acceptor_shared *s, uint32_t peer_id, struct buffer *b);

#endif
