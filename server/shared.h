/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_SHARED_H
#define SERVER_SHARED_H

/* What the acceptor's modules share: the objects they work on, the counters, and the time of this
 * turn. Owned by the acceptor; one thread. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "server/admin/snapshot.h"
#include "workers/udp.h"

struct clients;
struct grants;
struct hand_over;
struct handshake;
struct initial_limit;
struct ip_pool;
struct placement;
struct route_table;
struct timers;
struct tls_context;
struct tun_steering;

struct acceptor_shared {
	const struct config *config;
	const struct udp_group *groups;
	unsigned group_count, worker_count;

	struct clients *clients;
	struct placement *placement;
	struct hand_over *hand_over;
	struct grants *grants;
	struct handshake *handshake;
	struct timers *timers;
	struct route_table *routes;
	struct tun_steering *tun_steering; /* follows the routes; NULL: the kernel's own serves */
	struct ip_pool *pool;		   /* NULL: none */
	struct initial_limit *initial_limit;
	struct tls_context *tls; /* of the next handshake; admission holds the reference */

	struct control_counters count;
	int64_t reloaded_s;	   /* when certificates, key and CRL in use were read, unix time */
	bool is_reload_failed;	   /* the last attempt on a signal left them as they were */
	uint32_t routes4, routes6; /* addresses in the route table */

	bool is_stopping; /* no new clients any more */
	uint64_t now_ms;  /* CLOCK_BOOTTIME */
	uint32_t wall_s;  /* unix time */
};

#endif
