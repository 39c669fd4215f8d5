/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_PAYLOAD_H
#define WORKERS_PAYLOAD_H

/* Inside the plaintext of a data packet: an IP packet, a ping, or an OCC message (wire.md, section
 * 9.8). Looked at only after the tag was verified. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAGIC_LEN 16

extern const uint8_t payload_ping[PAYLOAD_MAGIC_LEN];
extern const uint8_t payload_occ[PAYLOAD_MAGIC_LEN];

enum payload_kind {
	PAYLOAD_IP, /* everything else: whether it is one is the IP view's business */
	PAYLOAD_PING,
	PAYLOAD_OCC,
};

enum occ_op { OCC_REQUEST = 0, OCC_REPLY = 1, OCC_EXIT = 6 };

/* What `len` bytes of plaintext are. A ping is the whole plaintext; an OCC message has at least its
 * op byte behind the prefix. */
enum payload_kind payload_kind(const uint8_t *data, uint32_t len);
/* The op byte of a PAYLOAD_OCC. */
static inline uint8_t payload_occ_op(const uint8_t *data)
{
	return data[PAYLOAD_MAGIC_LEN];
}

#endif
