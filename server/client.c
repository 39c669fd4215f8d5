/* SPDX-License-Identifier: Apache-2.0 */
#include "server/client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)IP_ADDR_TEXT_MAX <= (int)ENDPOINT_TEXT_MAX, "either address fits");

const char *client_real_addr(const struct client *c, char *out)
{
	struct ip_addr a = {.family = 6};

	if (!client_is_ipv6(c))
		return endpoint_print(&c->link.remote, out);
	memcpy(a.bytes, &c->link.remote.in6.sin6_addr, sizeof(a.bytes));
	return ip_addr_print(&a, out);
}

void client_set_prefix(struct client *c)
{
	char addr[ENDPOINT_TEXT_MAX];

	/* Stock leaves the port of an IPv6 client out here too; but then two clients behind one
	 * address cannot be told apart in the log. */
	snprintf(c->prefix, sizeof(c->prefix), "%s%s%s", c->common_name,
		 c->common_name[0] ? "/" : "", endpoint_print(&c->link.remote, addr));
}

bool client_may_log(const struct client *c)
{
	return c->is_authenticated || !c->is_quiet;
}

bool client_is_ipv6(const struct client *c)
{
	const union sockaddr_any *r = &c->link.remote;

	return r->sa.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&r->in6.sin6_addr);
}

bool client_push_waiting(struct client *c, const void *data, size_t len)
{
	struct waiting *w;

	if (c->waiting_count == CLIENT_WAITING_MAX)
		return false;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return false;
	w->next = NULL;
	w->len = len;
	memcpy(w->data, data, len);
	*c->waiting_tail = w;
	c->waiting_tail = &w->next;
	c->waiting_count++;
	return true;
}

struct waiting *client_pop_waiting(struct client *c)
{
	struct waiting *w = c->waiting;

	if (!w)
		return NULL;
	c->waiting = w->next;
	if (!c->waiting)
		c->waiting_tail = &c->waiting;
	c->waiting_count--;
	return w;
}
