/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_IP_POOL_H
#define SERVER_IP_POOL_H

/* Virtual addresses by common name, and the file that remembers them (options.md, section 5).
 * Thread: acceptor. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"
#include "config/config.h"

struct ip_pool;

struct ip_lease {
	uint32_t slot;
	struct ip_addr addr4; /* the client's; family 0: no IPv4 pool */
	struct ip_addr peer4; /* net30: the server's end of the /30; p2p: the server's address;
				 subnet: family 0 */
	struct ip_addr addr6; /* family 0: no IPv6 pool */
};

/* From the configuration; reads the file of ifconfig-pool-persist if there is one. *out is NULL if
 * neither pool is configured. Returns 0, -ENOMEM or the file's error (a missing file is none). */
__attribute__((warn_unused_result)) int ip_pool_new(const struct config *c, struct ip_pool **out);
void ip_pool_free(struct ip_pool *p);
/* The address last held by `common_name` if free, else the longest unused. With is_duplicate_cn
 * the lowest free one. Returns 0 or -ENOSPC. */
__attribute__((warn_unused_result)) int ip_pool_take(struct ip_pool *p, const char *common_name,
						     struct ip_lease *out);
void ip_pool_release(struct ip_pool *p, const struct ip_lease *l);
/* Write the file if something changed since (in place: one pwrite, then ftruncate). 0 or -errno. */
int ip_pool_save(struct ip_pool *p);
uint32_t ip_pool_size4(const struct ip_pool *p);
uint32_t ip_pool_size6(const struct ip_pool *p);
uint32_t ip_pool_used(const struct ip_pool *p);

#endif
