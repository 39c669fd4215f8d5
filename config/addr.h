/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_ADDR_H
#define CONFIG_ADDR_H

/* config/: text -> one immutable struct config, or refusals with line numbers.
 * This module: addresses, prefixes, endpoints; parse, print, compare. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An inner (tunnel) address. Bytes in network order; IPv4 uses the first four, the rest is zero. */
struct ip_addr {
	uint8_t family; /* 4, 6, or 0: none */
	uint8_t bytes[16];
};

struct ip_prefix {
	struct ip_addr addr;
	uint8_t bits; /* 0..32 or 0..128 */
};

/* An outer endpoint: address and port as the kernel wants them. */
union sockaddr_any {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/* How a peer is reached over UDP. Plain value, belongs to the peer's owner. An IPv4 peer on a
 * dual-stack socket stays in IPv4-mapped form here and is unmapped only when printed. */
struct link_addr {
	union sockaddr_any remote;
	struct in6_addr local;	/* our address the packet came to (IPv4 mapped); :: if unknown */
	uint32_t local_ifindex; /* only for link-local local addresses, else 0 */
	uint16_t listener;	/* index into the configured listeners */
};

#define IP_ADDR_TEXT_MAX  48 /* longest printed address with NUL */
#define ENDPOINT_TEXT_MAX 80 /* longest "[AF_INET6]addr%scope:port" with NUL */

/* Parse exactly one literal address (no name, no blanks). Returns false if it is none. */
bool ip_addr_parse(const char *text, struct ip_addr *out);
/* Dotted netmask -> prefix length; false if not contiguous. */
bool ip_mask_parse(const char *text, uint8_t *bits);
/* "2001:db8::/32"; without "/n" the whole address. IPv4 likewise. */
bool ip_prefix_parse(const char *text, struct ip_prefix *out);
/* Print; returns `buf`, which must hold IP_ADDR_TEXT_MAX bytes. Family 0 prints "". */
const char *ip_addr_print(const struct ip_addr *a, char *buf);
bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b);
bool ip_prefix_contains(const struct ip_prefix *p, const struct ip_addr *a);
/* Clear host bits. */
void ip_prefix_mask(struct ip_prefix *p);
/* a + n in the low 32 bits; used for pools. */
struct ip_addr ip_addr_add(const struct ip_addr *a, uint32_t n);
struct ip_addr ip_addr_from_be32(uint32_t v4_be32);
uint32_t ip_addr_to_host32(const struct ip_addr *a); /* IPv4, host order */

/* "192.0.2.7:40000" or "[2001:db8::7]:40000"; mapped IPv4 prints as IPv4. Returns `buf`, which
 * must hold ENDPOINT_TEXT_MAX bytes. */
const char *endpoint_print(const union sockaddr_any *e, char *buf);
/* "[AF_INET]192.0.2.7:40000" or "[AF_INET6]2001:db8::7:40000", as log lines have it.
 * `buf`: ENDPOINT_TEXT_MAX. */
const char *endpoint_print_af(const union sockaddr_any *e, char *buf);
/* Family, address, port (and scope of link-local addresses) are equal. */
bool endpoint_equal(const union sockaddr_any *a, const union sockaddr_any *b);
uint16_t endpoint_port(const union sockaddr_any *e);
socklen_t endpoint_len(const union sockaddr_any *e);
/* Canonical bytes for hashing and cookies (no padding): family, address, port, scope.
 * Writes ENDPOINT_KEY_LEN bytes. */
#define ENDPOINT_KEY_LEN 24
void endpoint_key(const union sockaddr_any *e, uint8_t out[ENDPOINT_KEY_LEN]);

/* Whole-string decimal number: no sign, no blanks, no overflow. */
bool number_parse(const char *text, uint64_t max, uint64_t *out);

#endif
