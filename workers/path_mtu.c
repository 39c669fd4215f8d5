/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/path_mtu.h"

#define UDP_IP4	      28u
#define UDP_IP6	      48u
#define UDP_DATA_MAX  65507u /* over IPv4 */
#define PATH_MTU_MOST 65535u

static uint16_t less_of(uint16_t configured, uint16_t by_path)
{
	if (configured == 0 || by_path == 0)
		return configured;
	return by_path < configured ? by_path : configured;
}

static uint32_t bounded(uint32_t mtu, bool is_ipv6)
{
	uint32_t least = is_ipv6 ? PATH_MTU_MIN6 : PATH_MTU_MIN4;
	if (mtu < least)
		return least;
	return mtu > PATH_MTU_MOST ? PATH_MTU_MOST : mtu;
}

static void forget(struct path_mtu *m, const struct path_peer *p)
{
	m->mtu = 0;
	m->datagram_max = UDP_DATA_MAX;
	m->mss = p->mss;
	m->expiry_ms = UINT64_MAX;
}

void path_mtu_init(struct path_mtu *m, const struct path_peer *p)
{
	forget(m, p);
	m->asked_ms = 0;
}

void path_mtu_learn(struct path_mtu *m, const struct path_peer *p, uint32_t mtu, uint64_t now_ms)
{
	if (mtu == 0) {
		forget(m, p);
		return;
	}
	m->mtu = bounded(mtu, p->is_ipv6);
	m->datagram_max = m->mtu - (p->is_ipv6 ? UDP_IP6 : UDP_IP4);
	if (m->datagram_max > UDP_DATA_MAX)
		m->datagram_max = UDP_DATA_MAX;
	struct mss_limits by_path = mss_limits(MSSFIX_MTU, m->mtu, p->is_v2, p->is_ipv6);
	m->mss.mss4 = less_of(p->mss.mss4, by_path.mss4);
	m->mss.mss6 = less_of(p->mss.mss6, by_path.mss6);
	m->expiry_ms = now_ms + PATH_MTU_EXPIRY_MS;
}

bool path_mtu_expire(struct path_mtu *m, const struct path_peer *p, uint64_t now_ms)
{
	if (now_ms < m->expiry_ms)
		return false;
	forget(m, p);
	return true;
}

bool path_mtu_may_ask(struct path_mtu *m, uint64_t now_ms)
{
	if (m->asked_ms != 0 && now_ms - m->asked_ms < PATH_MTU_ASK_MS)
		return false;
	m->asked_ms = now_ms;
	return true;
}
