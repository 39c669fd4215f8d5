/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/udp.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/retry.h"

/* What is asked for if nothing is configured. The system's 208 KiB hold some 90 full datagrams, a
 * burst of one client at 1 Gb/s for one ms; a worker that writes 64 packets to the tun device does
 * not read for longer than that. Memory is taken only while datagrams wait. */
#define BUFFER_BYTES (4 << 20)

static const char *host_of(const struct listen_spec *spec)
{
	if (spec->host)
		return spec->host;
	return spec->family == LISTEN_IPV4 ? "0.0.0.0" : "::";
}

/* The address to bind to. */
static int resolve(const struct listen_spec *spec, union sockaddr_any *out, char *why,
		   size_t why_len)
{
	struct addrinfo hints = {.ai_family = spec->family == LISTEN_IPV4 ? AF_INET : AF_INET6,
				 .ai_socktype = SOCK_DGRAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found;
	char port[8];

	snprintf(port, sizeof(port), "%u", spec->port);
	int error = getaddrinfo(host_of(spec), port, &hints, &found);
	if (error) {
		snprintf(why, why_len, "cannot resolve %s to an %s address to listen on: %s",
			 host_of(spec), spec->family == LISTEN_IPV4 ? "IPv4" : "IPv6",
			 error == EAI_SYSTEM ? strerrordesc_np(errno) : gai_strerror(error));
		return error == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
	}
	assert(found->ai_addrlen <= sizeof(*out));
	memset(out, 0, sizeof(*out));
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

static bool is_wildcard(const union sockaddr_any *a)
{
	if (a->sa.sa_family == AF_INET)
		return a->in4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : -errno;
}

/* With privilege beyond net.core.rmem_max, else as far as that goes, which is no error. */
static void set_buffer(int fd, int force_option, int option, uint32_t bytes)
{
	int value = bytes > 0 && bytes <= INT32_MAX ? (int)bytes : BUFFER_BYTES;
	if (set_int(fd, SOL_SOCKET, force_option, value) != 0)
		(void)set_int(fd, SOL_SOCKET, option, value);
}

/* A bound socket. IP_MTU_DISCOVER stays the system's, as with the stock daemon: with the usual
 * setting datagrams that exceed the path's MTU leave in fragments. */
static int bound_socket(const union sockaddr_any *local, bool is_v6only, bool is_shared, int *out)
{
	int fd = socket(local->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return -errno;
	int error = 0;
	if (is_shared)
		error = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (error == 0 && local->sa.sa_family == AF_INET6)
		error = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_v6only);
	if (error == 0 && bind(fd, &local->sa, endpoint_len(local)) != 0)
		error = -errno;
	if (error) {
		close(fd);
		return error;
	}
	*out = fd;
	return 0;
}

/* Sockets of the same user may join a group, also those of another process or of a ring that died
 * just now, and would shift the places that steering counts on. A socket that does not share its
 * port shows whether we are alone; wait for that, for a while. */
static int wait_for_port(const union sockaddr_any *local, bool is_v6only)
{
	int fd = -1;
	unsigned tries = 0;
	int error = bound_socket(local, is_v6only, false, &fd);
	while (error == -EADDRINUSE && retry_wait(&tries))
		error = bound_socket(local, is_v6only, false, &fd);
	if (error == 0)
		close(fd);
	return error;
}

static int set_pktinfo(int fd, int family)
{
	/* On a dual-stack socket the IPv6 message brings IPv4 addresses, too, mapped. */
	if (family == AF_INET)
		return set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	return set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

/* One more member of the group. */
static int add_socket(struct udp_group *g, bool is_v6only, uint32_t sndbuf, uint32_t rcvbuf)
{
	int fd = -1;
	int error = bound_socket(&g->local, is_v6only, true, &fd);
	if (error)
		return error;
	g->fds[g->count++] = fd;
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, sndbuf);
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, rcvbuf);
	if (g->has_pktinfo)
		error = set_pktinfo(fd, g->local.sa.sa_family);
	/* The first one chooses the port, if none is given. */
	socklen_t len = sizeof(g->local);
	if (error == 0 && getsockname(fd, &g->local.sa, &len) != 0)
		error = -errno;
	return error;
}

static void explain(const union sockaddr_any *local, int error, char *why, size_t why_len)
{
	char text[ENDPOINT_TEXT_MAX];

	endpoint_print(local, text);
	if (error == EADDRINUSE)
		snprintf(
			why, why_len,
			"UDP %s is in use by another process; stop it or choose another port with: "
			"port N",
			text);
	else if (error == EADDRNOTAVAIL)
		snprintf(why, why_len,
			 "this machine has no address for UDP %s; correct: local ADDRESS", text);
	else if (error == EACCES || error == EPERM)
		snprintf(why, why_len,
			 "no permission to listen on UDP %s: start as root or with "
			 "CAP_NET_BIND_SERVICE",
			 text);
	else if (error == EAFNOSUPPORT)
		snprintf(why, why_len,
			 "cannot listen on UDP %s: this kernel has no IPv6; use: proto udp4", text);
	else if (error == EMFILE || error == ENFILE)
		snprintf(why, why_len, "cannot listen on UDP %s: raise the limit of open files",
			 text);
	else
		snprintf(why, why_len, "cannot listen on UDP %s: %s", text, strerrordesc_np(error));
}

int udp_group_open(const struct listen_spec *spec, unsigned worker_count, uint32_t sndbuf,
		   uint32_t rcvbuf, struct udp_group *out, char *why, size_t why_len)
{
	struct udp_group g = {.count = 0};

	assert(worker_count <= WORKERS_MAX);
	int error = resolve(spec, &g.local, why, why_len);
	if (error)
		return error;
	bool is_v6only = spec->family == LISTEN_IPV6_ONLY;
	g.has_pktinfo = is_wildcard(&g.local);
	error = wait_for_port(&g.local, is_v6only);
	while (error == 0 && g.count < worker_count + 1)
		error = add_socket(&g, is_v6only, sndbuf, rcvbuf);
	if (error) {
		explain(&g.local, -error, why, why_len);
		udp_group_close(&g);
		return error;
	}
	*out = g;
	return 0;
}

void udp_group_close(struct udp_group *g)
{
	while (g->count > 0)
		close(g->fds[--g->count]);
}

bool udp_group_merge(const struct udp_group *g)
{
	bool is_set = g->count > 0;
	for (unsigned i = 0; i < g->count; i++)
		is_set = set_int(g->fds[i], IPPROTO_UDP, UDP_GRO, 1) == 0 && is_set;
	return is_set;
}

static_assert(CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) <= UDP_CONTROL_LEN,
	      "room");
static_assert(CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(int)) <= UDP_CONTROL_LEN,
	      "room");

/* One more control message of `mh`. Returns where its content goes. */
static void *control_message(struct msghdr *mh, void *control, int level, int type, size_t len)
{
	struct cmsghdr *c = (void *)((uint8_t *)control + mh->msg_controllen);
	memset(c, 0, CMSG_SPACE(len));
	mh->msg_control = control;
	mh->msg_controllen += CMSG_SPACE(len);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	return CMSG_DATA(c);
}

/* Only the address: the way out is for the routes to say, except where an address means nothing
 * without its interface. */
static void put_local(struct msghdr *mh, const struct link_addr *l, void *control)
{
	if (l->remote.sa.sa_family == AF_INET) {
		struct in_pktinfo info = {.ipi_ifindex = 0};
		memcpy(&info.ipi_spec_dst, &l->local.s6_addr[12], 4);
		memcpy(control_message(mh, control, IPPROTO_IP, IP_PKTINFO, sizeof(info)), &info,
		       sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_addr = l->local, .ipi6_ifindex = l->local_ifindex};
		memcpy(control_message(mh, control, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info)),
		       &info, sizeof(info));
	}
}

void udp_msg_to(struct msghdr *mh, struct link_addr *l, bool has_pktinfo, void *control)
{
	mh->msg_name = &l->remote;
	mh->msg_namelen = endpoint_len(&l->remote);
	mh->msg_control = NULL;
	mh->msg_controllen = 0;
	mh->msg_flags = 0;
	if (has_pktinfo && !IN6_IS_ADDR_UNSPECIFIED(&l->local))
		put_local(mh, l, control);
}

void udp_msg_segment(struct msghdr *mh, void *control, uint16_t gso_size)
{
	memcpy(control_message(mh, control, IPPROTO_UDP, UDP_SEGMENT, sizeof(gso_size)), &gso_size,
	       sizeof(gso_size));
}

static void take_local4(const struct cmsghdr *c, struct link_addr *l)
{
	struct in_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	l->local.s6_addr[10] = 0xff;
	l->local.s6_addr[11] = 0xff;
	/* Of a broadcast, the address of the interface: one that we can send from. */
	memcpy(&l->local.s6_addr[12], &info.ipi_spec_dst, 4);
}

static void take_local6(const struct cmsghdr *c, struct link_addr *l)
{
	struct in6_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	l->local = info.ipi6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
		l->local_ifindex = info.ipi6_ifindex;
}

static void take_local(const struct cmsghdr *c, struct link_addr *l)
{
	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
	    c->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo)))
		take_local4(c, l);
	else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
		 c->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo)))
		take_local6(c, l);
}

/* The kernel says how long each datagram is, as an int. */
static uint16_t take_gso_size(const struct cmsghdr *c)
{
	int size;

	if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO ||
	    c->cmsg_len < CMSG_LEN(sizeof(size)))
		return 0;
	memcpy(&size, CMSG_DATA(c), sizeof(size));
	return size > 0 && size <= UINT16_MAX ? (uint16_t)size : 0;
}

uint16_t udp_msg_from(const struct msghdr *mh, struct link_addr *l)
{
	uint16_t gso_size = 0;
	struct msghdr copy = *mh; /* CMSG_NXTHDR takes no const */
	size_t len = mh->msg_namelen < sizeof(l->remote) ? mh->msg_namelen : sizeof(l->remote);

	memset(&l->remote, 0, sizeof(l->remote));
	memcpy(&l->remote, mh->msg_name, len);
	memset(&l->local, 0, sizeof(l->local));
	l->local_ifindex = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
		take_local(c, l);
		gso_size = gso_size ? gso_size : take_gso_size(c);
	}
	return gso_size;
}

int udp_send(int fd, const struct link_addr *l, bool has_pktinfo, const void *data, size_t len)
{
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
	struct link_addr to = *l;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	udp_msg_to(&mh, &to, has_pktinfo, control);
	return sendmsg(fd, &mh, MSG_DONTWAIT) < 0 ? -errno : 0;
}
