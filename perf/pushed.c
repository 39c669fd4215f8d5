/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/pushed.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/addr.h"

#define OPTION_LEN 256
#define WORD_LEN   "47"

static bool parse(const char *text, uint32_t *be32)
{
	struct ip_addr a;

	if (!ip_addr_parse(text, &a) || a.family != 4)
		return false;
	memcpy(be32, a.bytes, sizeof(*be32));
	return true;
}

/* The second address is a netmask, or the other end with topologies net30 and p2p. */
static void take_ifconfig(struct pushed *p, const char *own, const char *other)
{
	uint32_t own_be32, other_be32;
	uint8_t bits;

	if (!parse(own, &own_be32) || !parse(other, &other_be32))
		return;
	p->inner_be32 = own_be32;
	if (p->server_be32 == 0)
		p->server_be32 = ip_mask_parse(other, &bits)
					 ? htonl(ntohl(own_be32 & other_be32) + 1)
					 : other_be32;
}

static void take_option(struct pushed *p, const char *text)
{
	char a[48], b[48];

	if (sscanf(text, "ifconfig %" WORD_LEN "s %" WORD_LEN "s", a, b) == 2)
		take_ifconfig(p, a, b);
	else if (sscanf(text, "route-gateway %" WORD_LEN "s", a) == 1)
		(void)parse(a, &p->server_be32);
}

void pushed_take(struct pushed *p, const char *message)
{
	char option[OPTION_LEN];

	while ((message = strchr(message, ','))) {
		size_t len = strcspn(++message, ",");
		if (len < sizeof(option)) {
			memcpy(option, message, len);
			option[len] = '\0';
			take_option(p, option);
		}
	}
}
