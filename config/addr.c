/* SPDX-License-Identifier: Apache-2.0 */
#include "config/addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static size_t family_len(uint8_t family)
{
	return family == 4 ? 4 : family == 6 ? 16 : 0;
}

bool ip_addr_parse(const char *text, struct ip_addr *out)
{
	struct ip_addr a = {0};
	if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.family = 4;
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.family = 6;
	else
		return false;
	*out = a;
	return true;
}

bool ip_mask_parse(const char *text, uint8_t *bits)
{
	struct in_addr in;
	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	uint32_t host_bits = ~ntohl(in.s_addr);
	/* The complement of a netmask is 2^n - 1. */
	if (host_bits & (host_bits + 1))
		return false;
	*bits = (uint8_t)(32 - __builtin_popcount(host_bits));
	return true;
}

bool ip_prefix_parse(const char *text, struct ip_prefix *out)
{
	char addr[IP_ADDR_TEXT_MAX];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	if (len >= sizeof(addr))
		return false;
	memcpy(addr, text, len);
	addr[len] = '\0';
	struct ip_prefix p = {0};
	if (!ip_addr_parse(addr, &p.addr))
		return false;
	uint64_t bits = p.addr.family == 4 ? 32 : 128;
	if (slash && !number_parse(slash + 1, bits, &bits))
		return false;
	p.bits = (uint8_t)bits;
	*out = p;
	return true;
}

const char *ip_addr_print(const struct ip_addr *a, char *buf)
{
	buf[0] = '\0';
	if (a->family == 4)
		inet_ntop(AF_INET, a->bytes, buf, IP_ADDR_TEXT_MAX);
	else if (a->family == 6)
		inet_ntop(AF_INET6, a->bytes, buf, IP_ADDR_TEXT_MAX);
	return buf;
}

bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, family_len(a->family)) == 0;
}

bool ip_prefix_contains(const struct ip_prefix *p, const struct ip_addr *a)
{
	if (p->addr.family != a->family || family_len(a->family) == 0)
		return false;
	size_t whole = p->bits / 8;
	unsigned rest = p->bits % 8;
	if (memcmp(p->addr.bytes, a->bytes, whole) != 0)
		return false;
	return rest == 0 || (p->addr.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0;
}

void ip_prefix_mask(struct ip_prefix *p)
{
	size_t len = family_len(p->addr.family);
	size_t whole = p->bits / 8;
	if (whole >= len)
		return;
	p->addr.bytes[whole] &= (uint8_t)(0xFF00 >> (p->bits % 8));
	memset(p->addr.bytes + whole + 1, 0, len - whole - 1);
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

struct ip_addr ip_addr_add(const struct ip_addr *a, uint32_t n)
{
	struct ip_addr sum = *a;
	if (a->family == 0)
		return sum;
	uint8_t *low = sum.bytes + (a->family == 4 ? 0 : 12);
	store_be32(low, load_be32(low) + n);
	return sum;
}

struct ip_addr ip_addr_from_be32(uint32_t v4_be32)
{
	struct ip_addr a = {.family = 4};
	memcpy(a.bytes, &v4_be32, 4);
	return a;
}

uint32_t ip_addr_to_host32(const struct ip_addr *a)
{
	return load_be32(a->bytes);
}

/* The address to print of an IPv4 or IPv4-mapped endpoint; NULL for other IPv6. */
static const void *endpoint_v4(const union sockaddr_any *e)
{
	if (e->sa.sa_family == AF_INET)
		return &e->in4.sin_addr;
	if (e->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&e->in6.sin6_addr))
		return e->in6.sin6_addr.s6_addr + 12;
	return NULL;
}

static bool has_scope(const struct sockaddr_in6 *in6)
{
	return in6->sin6_scope_id != 0 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
}

/* "2001:db8::7" or "fe80::7%eth0". */
static void print_v6_host(const struct sockaddr_in6 *in6, char *buf, size_t cap)
{
	char addr[INET6_ADDRSTRLEN] = "";
	char name[IF_NAMESIZE];
	inet_ntop(AF_INET6, &in6->sin6_addr, addr, sizeof(addr));
	if (!has_scope(in6))
		snprintf(buf, cap, "%s", addr);
	else if (if_indextoname(in6->sin6_scope_id, name))
		snprintf(buf, cap, "%s%%%s", addr, name);
	else
		snprintf(buf, cap, "%s%%%u", addr, in6->sin6_scope_id);
}

/* How an endpoint is dressed: what stands before an IPv4 host, before and after an IPv6 host. */
struct dress {
	const char *before4, *before6, *after6;
};

static const char *print_endpoint(const union sockaddr_any *e, struct dress d, char *buf)
{
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE];
	const void *v4 = endpoint_v4(e);
	unsigned port = endpoint_port(e);
	if (v4) {
		inet_ntop(AF_INET, v4, host, sizeof(host));
		snprintf(buf, ENDPOINT_TEXT_MAX, "%s%s:%u", d.before4, host, port);
	} else if (e->sa.sa_family == AF_INET6) {
		print_v6_host(&e->in6, host, sizeof(host));
		snprintf(buf, ENDPOINT_TEXT_MAX, "%s%s%s:%u", d.before6, host, d.after6, port);
	} else {
		snprintf(buf, ENDPOINT_TEXT_MAX, "[undef]");
	}
	return buf;
}

const char *endpoint_print(const union sockaddr_any *e, char *buf)
{
	return print_endpoint(e, (struct dress){"", "[", "]"}, buf);
}

const char *endpoint_print_af(const union sockaddr_any *e, char *buf)
{
	return print_endpoint(e, (struct dress){"[AF_INET]", "[AF_INET6]", ""}, buf);
}

bool endpoint_equal(const union sockaddr_any *a, const union sockaddr_any *b)
{
	uint8_t ka[ENDPOINT_KEY_LEN], kb[ENDPOINT_KEY_LEN];
	endpoint_key(a, ka);
	endpoint_key(b, kb);
	return memcmp(ka, kb, sizeof(ka)) == 0;
}

uint16_t endpoint_port(const union sockaddr_any *e)
{
	if (e->sa.sa_family == AF_INET)
		return ntohs(e->in4.sin_port);
	return e->sa.sa_family == AF_INET6 ? ntohs(e->in6.sin6_port) : 0;
}

socklen_t endpoint_len(const union sockaddr_any *e)
{
	if (e->sa.sa_family == AF_INET)
		return sizeof(e->in4);
	return e->sa.sa_family == AF_INET6 ? sizeof(e->in6) : 0;
}

void endpoint_key(const union sockaddr_any *e, uint8_t out[ENDPOINT_KEY_LEN])
{
	memset(out, 0, ENDPOINT_KEY_LEN);
	if (e->sa.sa_family == AF_INET) {
		out[1] = 4;
		memcpy(out + 2, &e->in4.sin_addr, 4);
		memcpy(out + 18, &e->in4.sin_port, 2);
	} else if (e->sa.sa_family == AF_INET6) {
		out[1] = 6;
		memcpy(out + 2, &e->in6.sin6_addr, 16);
		memcpy(out + 18, &e->in6.sin6_port, 2);
		if (has_scope(&e->in6))
			store_be32(out + 20, e->in6.sin6_scope_id);
	}
}

bool number_parse(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;
	if (*text == '\0')
		return false;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9')
			return false;
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n) || n > max)
			return false;
	}
	*out = n;
	return true;
}
