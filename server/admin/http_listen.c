/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

static void fill(char *why, size_t why_len, const struct config *c, const char *what)
{
	snprintf(why, why_len, "metrics: cannot listen on %s port %u: %s", c->metrics_host,
		 c->metrics_port, what);
}

static bool is_loopback(const struct sockaddr *sa)
{
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
	if (sa->sa_family == AF_INET) {
		memcpy(&in4, sa, sizeof(in4));
		return ntohl(in4.sin_addr.s_addr) >> 24 == 127;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	memcpy(&in6, sa, sizeof(in6));
	return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

/* A listening socket for one address, or -errno. */
static int listen_on(const struct addrinfo *a)
{
	const int on = 1;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
		int err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static const char *bind_hint(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return "another program has it; stop that one or choose another port in `metrics`";
	case -EADDRNOTAVAIL:
		return "this host has no such address; change it in `metrics`";
	case -EACCES:
		return "not permitted; choose a port above 1023 in `metrics`";
	default:
		return strerror(-err);
	}
}

static int open_address(const struct config *c, const struct addrinfo *a, char *why, size_t why_len)
{
	if (!is_loopback(a->ai_addr) && !c->is_metrics_remote_ok) {
		fill(why, why_len, c,
		     "it is no loopback address, and there is no password; say "
		     "`metrics-allow-remote` if that is meant");
		return -EPERM;
	}
	int fd = listen_on(a);
	if (fd < 0)
		fill(why, why_len, c, bind_hint(fd));
	return fd;
}

int http_listen(const struct config *c, char *why, size_t why_len)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char port[8];
	snprintf(port, sizeof(port), "%u", c->metrics_port);
	int gai = getaddrinfo(c->metrics_host, port, &hints, &found);
	if (gai != 0) {
		fill(why, why_len, c, gai_strerror(gai));
		return -EINVAL;
	}
	int fd = open_address(c, found, why, why_len);
	freeaddrinfo(found);
	return fd;
}
