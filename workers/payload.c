/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/payload.h"

#include <string.h>

const uint8_t payload_ping[PAYLOAD_MAGIC_LEN] = {0x2a, 0x18, 0x7b, 0xf3, 0x64, 0x1e, 0xb4, 0xcb,
						 0x07, 0xed, 0x2d, 0x0a, 0x98, 0x1f, 0xc7, 0x48};
const uint8_t payload_occ[PAYLOAD_MAGIC_LEN] = {0x28, 0x7f, 0x34, 0x6b, 0xd4, 0xef, 0x7a, 0x81,
						0x2d, 0x56, 0xb8, 0xd3, 0xaf, 0xc5, 0x45, 0x9c};

enum payload_kind payload_kind(const uint8_t *data, uint32_t len)
{
	if (len == PAYLOAD_MAGIC_LEN && memcmp(data, payload_ping, PAYLOAD_MAGIC_LEN) == 0)
		return PAYLOAD_PING;
	if (len > PAYLOAD_MAGIC_LEN && memcmp(data, payload_occ, PAYLOAD_MAGIC_LEN) == 0)
		return PAYLOAD_OCC;
	return PAYLOAD_IP;
}
