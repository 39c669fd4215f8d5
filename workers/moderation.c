/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/moderation.h"

#define ONE	  256u /* a packet, in units of load */
#define LOAD_MAX  (64u * ONE)
#define GATHER_NS (MODERATION_GATHER_US * 1000ull)

uint32_t moderation_turn(struct moderation *m, uint64_t now_ns, unsigned packets)
{
	uint64_t elapsed = now_ns > m->turned_ns ? now_ns - m->turned_ns : 1;
	uint64_t expected = packets * ONE * GATHER_NS / elapsed;
	if (expected > LOAD_MAX)
		expected = LOAD_MAX;
	m->load = (m->load * 7 + (uint32_t)expected) / 8;
	m->turned_ns = now_ns;
	return m->load > ONE ? MODERATION_GATHER_US : 0;
}
