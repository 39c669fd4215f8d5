/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_PUSHED_H
#define PERF_PUSHED_H

/* What a client without a device wants of PUSH_REPLY: its own inner address and the server's. */

#include <stdint.h>

/* Zeroed is nothing yet. */
struct pushed {
	uint32_t inner_be32;
	uint32_t server_be32; /* the gateway; without one, the first address of the net or the peer
			       */
};

/* Take one message; options without use for us, or malformed, change nothing. */
void pushed_take(struct pushed *p, const char *message);

#endif
