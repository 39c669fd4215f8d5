/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ip_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/admin/rewrite.h"
#include "server/ip_pool_slots.h"

#define POOL_MAX      65536	  /* addresses, as stock (options.md, section 5) */
#define POOL_FILE_MAX (16u << 20) /* bytes of an ipp file that are read */

struct ip_pool {
	struct pool_slots *slots;
	uint32_t size;
	enum topology topology;
	bool has4, has6;
	uint32_t base4; /* host order; net30: of the first block */
	struct ip_addr base6, server4;
	bool is_by_name;  /* not duplicate-cn */
	bool is_reserved; /* persist time 0: a remembered address is kept for its name */
	bool is_written;
	uint64_t saved_version; /* of the slots' names */
	int fd;			/* of the persist file; -1: none */
};

static uint32_t step4(const struct ip_pool *p)
{
	return p->topology == TOPOLOGY_NET30 ? 4 : 1;
}

static struct ip_addr addr4(uint32_t host)
{
	return ip_addr_from_be32(__builtin_bswap32(host));
}

static void lease_fill(const struct ip_pool *p, uint32_t i, struct ip_lease *out)
{
	*out = (struct ip_lease){.slot = i};
	uint32_t base = p->base4 + i * step4(p);
	if (p->has4 && p->topology == TOPOLOGY_NET30) {
		out->addr4 = addr4(base + 2);
		out->peer4 = addr4(base + 1);
	} else if (p->has4) {
		out->addr4 = addr4(base);
		if (p->topology == TOPOLOGY_P2P)
			out->peer4 = p->server4;
	}
	if (p->has6)
		out->addr6 = ip_addr_add(&p->base6, i);
}

int ip_pool_take(struct ip_pool *p, const char *common_name, struct ip_lease *out)
{
	uint32_t i = p->is_by_name ? pool_slots_take(p->slots, common_name, p->is_reserved)
				   : pool_slots_take_lowest(p->slots);
	if (i == SLOT_NONE)
		return -ENOSPC;
	lease_fill(p, i, out);
	return 0;
}

void ip_pool_release(struct ip_pool *p, const struct ip_lease *l)
{
	pool_slots_release(p->slots, l->slot);
}

/* The slot of an address in the file; SLOT_NONE if it is empty, broken or out of range. For net30
 * any address of a block names it. */
static uint32_t slot_of4(const struct ip_pool *p, const char *text)
{
	struct ip_addr a;
	if (!p->has4 || !ip_addr_parse(text, &a) || a.family != 4)
		return SLOT_NONE;
	uint32_t host = ip_addr_to_host32(&a);
	if (host < p->base4)
		return SLOT_NONE;
	uint32_t i = (host - p->base4) / step4(p);
	return i < p->size ? i : SLOT_NONE;
}

static uint32_t low32(const struct ip_addr *a)
{
	return (uint32_t)a->bytes[12] << 24 | (uint32_t)a->bytes[13] << 16 |
	       (uint32_t)a->bytes[14] << 8 | a->bytes[15];
}

static uint32_t slot_of6(const struct ip_pool *p, const char *text)
{
	struct ip_addr a;
	if (!p->has6 || !ip_addr_parse(text, &a) || a.family != 6)
		return SLOT_NONE;
	uint32_t i = low32(&a) - low32(&p->base6);
	if (i >= p->size)
		return SLOT_NONE;
	struct ip_addr back = ip_addr_add(&p->base6, i);
	return ip_addr_equal(&a, &back) ? i : SLOT_NONE;
}

/* Take "CN,IPv4,IPv6" or "CN,IPv4" apart, from its end, since a name may contain commas. */
static bool line_split(char *line, char **ip4, char **ip6)
{
	char *last = strrchr(line, ',');
	if (last == NULL)
		return false;
	*last = '\0';
	char *before = strrchr(line, ',');
	*ip4 = before != NULL ? before + 1 : last + 1;
	*ip6 = before != NULL ? last + 1 : last;
	if (before != NULL)
		*before = '\0';
	return true;
}

static void line_load(struct ip_pool *p, char *line)
{
	char *ip4, *ip6;
	if (line[0] == '#' || line[0] == ';' || !line_split(line, &ip4, &ip6))
		return;
	uint32_t i = slot_of4(p, ip4);
	if (i == SLOT_NONE)
		i = slot_of6(p, ip6);
	/* It counts as just released: addresses that were never used go first. */
	if (i != SLOT_NONE)
		pool_slots_remember(p->slots, i, line);
}

static void text_load(struct ip_pool *p, char *text)
{
	for (char *line = text; line != NULL;) {
		char *next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		size_t len = strlen(line);
		if (len > 0 && line[len - 1] == '\r')
			line[len - 1] = '\0';
		line_load(p, line);
		line = next;
	}
	p->saved_version = pool_slots_version(p->slots);
}

static int file_load(struct ip_pool *p)
{
	struct stat st;
	if (fstat(p->fd, &st) != 0)
		return -errno;
	if (st.st_size > (off_t)POOL_FILE_MAX)
		return -EFBIG;
	char *text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		return -ENOMEM;
	ssize_t n = pread(p->fd, text, (size_t)st.st_size, 0);
	int err = n < 0 ? -errno : 0;
	if (err == 0) {
		text[n] = '\0';
		text_load(p, text);
	}
	free(text);
	return err;
}

/* Opened once, before the privilege drop; with time 0 it is only read. */
static int file_open(struct ip_pool *p, const struct config *c)
{
	if (c->pool_persist_path == NULL)
		return 0;
	p->is_reserved = c->pool_persist_s == 0;
	p->is_written = !p->is_reserved;
	int flags = p->is_written ? O_RDWR | O_CREAT : O_RDONLY;
	p->fd = open(c->pool_persist_path, flags | O_CLOEXEC, 0600);
	if (p->fd < 0)
		return errno == ENOENT && !p->is_written ? 0 : -errno;
	return file_load(p);
}

static uint32_t size4(const struct ip_pool *p, const struct config *c)
{
	uint32_t end = ip_addr_to_host32(&c->pool_end);
	if (p->topology == TOPOLOGY_NET30)
		end |= 3;
	uint64_t count = end < p->base4 ? 0 : (uint64_t)end - p->base4 + 1;
	count /= step4(p);
	return count < POOL_MAX ? (uint32_t)count : POOL_MAX;
}

/* Addresses left behind the base in the last 32 bits of the prefix. */
static uint32_t size6(const struct ip_pool *p, uint8_t bits)
{
	uint32_t host_bits = bits >= 128 ? 0 : 128u - bits;
	uint64_t room = host_bits >= 32 ? UINT64_C(1) << 32 : UINT64_C(1) << host_bits;
	uint64_t left = room - (low32(&p->base6) & (room - 1));
	return left < POOL_MAX ? (uint32_t)left : POOL_MAX;
}

/* An address whose host part is zero is the anycast address of the routers: begin one later. */
static void base6_set(struct ip_pool *p, const struct config *c)
{
	p->base6 = c->pool6_base;
	uint32_t host_bits = c->pool6_bits >= 128 ? 0 : 128u - c->pool6_bits;
	uint32_t mask = host_bits >= 32 ? UINT32_MAX : (1u << host_bits) - 1;
	if (mask != 0 && (low32(&p->base6) & mask) == 0)
		p->base6 = ip_addr_add(&p->base6, 1);
}

static void range_set(struct ip_pool *p, const struct config *c)
{
	p->topology = c->topology;
	p->has4 = c->has_pool;
	p->has6 = c->has_pool6;
	p->is_by_name = !c->is_duplicate_cn;
	p->server4 = c->ifconfig_local;
	p->size = POOL_MAX;
	if (p->has4) {
		p->base4 = ip_addr_to_host32(&c->pool_start) & ~(step4(p) - 1);
		p->size = size4(p, c);
	}
	if (p->has6) {
		base6_set(p, c);
		uint32_t n = size6(p, c->pool6_bits);
		p->size = n < p->size ? n : p->size;
	}
}

int ip_pool_new(const struct config *c, struct ip_pool **out)
{
	if (!c->has_pool && !c->has_pool6) {
		*out = NULL;
		return 0;
	}
	struct ip_pool *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->fd = -1;
	range_set(p, c);
	int err = pool_slots_new(p->size, &p->slots);
	if (err == 0)
		err = file_open(p, c);
	if (err != 0) {
		ip_pool_free(p);
		return err;
	}
	*out = p;
	return 0;
}

void ip_pool_free(struct ip_pool *p)
{
	if (p == NULL)
		return;
	pool_slots_free(p->slots);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

/* IPv4 is the first address of the slot, for net30 that of its block. */
static void slot_print(const struct ip_pool *p, uint32_t i, FILE *f)
{
	char text4[IP_ADDR_TEXT_MAX] = "", text6[IP_ADDR_TEXT_MAX] = "";
	struct ip_addr a;
	if (p->has4) {
		a = addr4(p->base4 + i * step4(p));
		ip_addr_print(&a, text4);
	}
	if (p->has6) {
		a = ip_addr_add(&p->base6, i);
		ip_addr_print(&a, text6);
	}
	fprintf(f, "%s,%s,%s\n", pool_slots_name(p->slots, i), text4, text6);
}

int ip_pool_save(struct ip_pool *p)
{
	uint64_t version = pool_slots_version(p->slots);
	if (p->fd < 0 || !p->is_written || version == p->saved_version)
		return 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (f == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->size; i++)
		if (pool_slots_name(p->slots, i) != NULL)
			slot_print(p, i, f);
	int err = fclose(f) == 0 ? file_rewrite(p->fd, text, len) : -ENOMEM;
	free(text);
	if (err == 0)
		p->saved_version = version;
	return err;
}

uint32_t ip_pool_size4(const struct ip_pool *p)
{
	return p->has4 ? p->size : 0;
}

uint32_t ip_pool_size6(const struct ip_pool *p)
{
	return p->has6 ? p->size : 0;
}

uint32_t ip_pool_used(const struct ip_pool *p)
{
	return pool_slots_used(p->slots);
}
