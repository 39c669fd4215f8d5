/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_ACCEPTOR_H
#define SERVER_ACCEPTOR_H

/* server/: the process and the acceptor thread. This module: the acceptor's event loop: control
 * packets in and out, sessions lent to handshake threads and back, peers handed to workers,
 * signals, status files. The only owner of sessions, tables, pool and push. Never on the fast path.
 */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "workers/mailbox.h"
#include "workers/route_table.h"
#include "workers/steering.h"
#include "workers/udp.h"
#include "workers/worker.h"

struct acceptor;
struct observer;
struct launcher;
struct ip_pool;
struct status_file;
struct tls_context;
struct tun_steering;

/* Everything stands already: device, sockets, keys; privileges are dropped. All pointers outlive
 * the acceptor and stay the caller's, except where taken is said. */
struct acceptor_setup {
	const struct config *config;
	struct mailboxes *mailboxes; /* the acceptor is thread 0 */
	struct route_table *routes;
	struct tun_steering *tun_steering; /* NULL: none */
	const struct slot_table *slots;
	const struct udp_group *groups; /* the acceptor reads socket 0 of each */
	unsigned group_count;
	struct worker **workers; /* workers[0] is thread 1 */
	unsigned worker_count;
	uint32_t peer_id_limit;
	struct tls_context *tls; /* a reference is taken */
	struct wrap_keys *wrap;
	const struct static_key *wrap_key; /* NULL without tls-auth or tls-crypt */
	struct ip_pool *pool;		   /* NULL: no pool */
	struct observer *observer;	   /* NULL: no metrics endpoint */
	struct netlink *netlink;	   /* to ask about the tun device; NULL: nobody */
	int tun_ifindex;
	struct status_file *status_file; /* opened before root was given up; NULL: none */
};

/* Make the loop and the handshake threads. Call before the workers start (buffers of thread 0 must
 * exist). On failure `why` (256 bytes) says what to do. Returns 0 or -errno. Thread: main. */
__attribute__((warn_unused_result)) int
acceptor_new(const struct acceptor_setup *s, struct acceptor **out, char *why, size_t why_len);
/* Run until SIGTERM or SIGINT (0), or a worker failed (1). Logs `Initialization Sequence Completed`
 * first; at the end tells clients RESTART if explicit-exit-notify is set, and the workers
 * MESSAGE_STOP. Returns the exit code. */
int acceptor_run(struct acceptor *a);
/* After the workers were joined. */
void acceptor_free(struct acceptor *a);

#endif
