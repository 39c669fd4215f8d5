/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/udp_path.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workers/udp.h"

/* What a mapped address means: the kernel keeps the MTU of IPv4 paths with IPv4. */
static void unmap(union sockaddr_any *a)
{
	if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = a->in6.sin6_port};
	memcpy(&in4.sin_addr, &a->in6.sin6_addr.s6_addr[12], sizeof(in4.sin_addr));
	memset(a, 0, sizeof(*a));
	a->in4 = in4;
}

/* Our address towards the peer, port 0. */
static union sockaddr_any local_of(const struct link_addr *l, const union sockaddr_any *bound)
{
	union sockaddr_any a = *bound;
	if (!IN6_IS_ADDR_UNSPECIFIED(&l->local)) {
		memset(&a, 0, sizeof(a));
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_addr = l->local;
		a.in6.sin6_scope_id = l->local_ifindex;
	}
	unmap(&a);
	if (a.sa.sa_family == AF_INET)
		a.in4.sin_port = 0;
	else
		a.in6.sin6_port = 0;
	return a;
}

static int mtu_of(int fd, int family, uint32_t *mtu)
{
	int value = 0;
	socklen_t len = sizeof(value);
	int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	if (getsockopt(fd, level, family == AF_INET ? IP_MTU : IPV6_MTU, &value, &len) != 0)
		return -errno;
	if (value <= 0)
		return -ENODATA;
	*mtu = value > UINT16_MAX ? UINT16_MAX : (uint32_t)value;
	return 0;
}

int udp_path_mtu(const struct link_addr *l, const union sockaddr_any *bound, uint32_t *mtu)
{
	union sockaddr_any remote = l->remote;
	unmap(&remote);
	union sockaddr_any local = local_of(l, bound);
	int fd = socket(remote.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return -errno;
	int error = 0;
	/* A wildcard of the other family, or a mapped peer's: the route chooses the address. */
	if (local.sa.sa_family == remote.sa.sa_family &&
	    bind(fd, &local.sa, endpoint_len(&local)) != 0)
		error = -errno;
	if (error == 0 && connect(fd, &remote.sa, endpoint_len(&remote)) != 0)
		error = -errno;
	if (error == 0)
		error = mtu_of(fd, remote.sa.sa_family, mtu);
	close(fd);
	return error;
}

static int set_discover(int fd, int family, enum mtu_disc disc)
{
	static const int for4[] = {[MTU_DISC_NO] = IP_PMTUDISC_DONT,
				   [MTU_DISC_MAYBE] = IP_PMTUDISC_WANT,
				   [MTU_DISC_YES] = IP_PMTUDISC_DO};
	static const int for6[] = {[MTU_DISC_NO] = IPV6_PMTUDISC_DONT,
				   [MTU_DISC_MAYBE] = IPV6_PMTUDISC_WANT,
				   [MTU_DISC_YES] = IPV6_PMTUDISC_DO};
	/* On a dual-stack socket both count: the first for mapped addresses. */
	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &for4[disc], sizeof(for4[disc])) != 0)
		return -errno;
	if (family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &for6[disc], sizeof(for6[disc])) != 0)
		return -errno;
	return 0;
}

int udp_path_discover(const struct udp_group *g, enum mtu_disc disc)
{
	int error = 0;
	for (unsigned i = 0; error == 0 && disc != MTU_DISC_SYSTEM && i < g->count; i++)
		error = set_discover(g->fds[i], g->local.sa.sa_family, disc);
	return error;
}
