/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_OCC_H
#define SERVER_OCC_H

/* The answer to a client's OCC request: our options string (wire.md, section 9.8). */

#include "config/config.h"
#include "crypto/bytes.h"

#define OCC_REPLY_MAX 544 /* prefix, operation, longest options string */

/* Write the whole plaintext to `out` (OCC_REPLY_MAX bytes); the view points into it. */
struct view occ_reply(const struct config *c, uint8_t *out);

#endif
