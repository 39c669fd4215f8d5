/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_FAIR_QUEUE_H
#define WORKERS_FAIR_QUEUE_H

/* Inner packets on their way to peers: a queue for each peer, served in deficit round robin, so
 * that a peer with much to send costs the others no more than its share. Bounded by bytes, by age
 * and by the buffers there are; what is dropped is the oldest of the peer that has too much.
 * Thread: the worker. */

#include "workers/datapath.h"

#define FAIR_QUANTUM	16384  /* bytes of a peer in each round */
#define FAIR_PEER_BYTES 262144 /* most that waits for one peer */
#define FAIR_PEER_MS	20     /* and how long, once it was left over */

struct fair_queue {
	struct datapath *dp;
	struct peer *first, *last; /* those that have something, by queue.next_peer */
	unsigned peer_count;
};

/* Empty; `dp` outlives it. */
void fair_queue_init(struct fair_queue *q, struct datapath *dp);
/* Queue `b` for `p`, and take it over. */
void fair_queue_add(struct fair_queue *q, struct peer *p, struct buffer *b);
/* The peer whose turn it is, off the ring, with a quantum added to its deficit; NULL if nobody
 * waits. A peer that is alone may send `all` bytes. Its key is prefetched while another is served.
 */
struct peer *fair_queue_next(struct fair_queue *q, uint32_t all);
/* The oldest packet of the peer that fair_queue_next gave, while its deficit and its rate allow it
 * (if not the latter, queue.is_held says so); else NULL. */
struct buffer *fair_queue_take(struct fair_queue *q, struct peer *p);
/* The peer was served: back on the ring if something is left. */
void fair_queue_return(struct fair_queue *q, struct peer *p);
/* At the end of a turn: what is left waits for the next one. */
void fair_queue_keep(struct fair_queue *q);
/* Drop what waits for a peer that goes. */
void fair_queue_forget(struct fair_queue *q, struct peer *p);

#endif
