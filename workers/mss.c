/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/mss.h"

#define TCP_IP4	  40u /* inner headers without options */
#define TCP_IP6	  60u
#define UDP_IP4	  28u /* outer headers */
#define UDP_IP6	  48u
#define PACKET_ID 4u
#define TAG	  16u
#define SMALLEST  64u /* a limit below this cannot be meant */

static uint16_t less(uint32_t target, uint32_t headers)
{
	if (target < headers + SMALLEST)
		return 0;
	uint32_t mss = target - headers;
	return mss > UINT16_MAX ? 0 : (uint16_t)mss;
}

/* Bytes of the outer packet that are not the inner one. */
static uint32_t overhead(enum mssfix_mode mode, bool is_v2, bool is_ipv6)
{
	uint32_t data_header = (is_v2 ? 4u : 1u) + PACKET_ID + TAG;
	if (mode == MSSFIX_MTU)
		return data_header + (is_ipv6 ? UDP_IP6 : UDP_IP4);
	return mode == MSSFIX_PLAIN ? data_header : 0;
}

struct mss_limits mss_limits(enum mssfix_mode mode, uint32_t mssfix, bool is_v2, bool is_ipv6)
{
	if (mode == MSSFIX_OFF)
		return (struct mss_limits){0, 0};
	uint32_t around = overhead(mode, is_v2, is_ipv6);
	return (struct mss_limits){less(mssfix, around + TCP_IP4), less(mssfix, around + TCP_IP6)};
}
