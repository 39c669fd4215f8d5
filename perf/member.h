/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_MEMBER_H
#define PERF_MEMBER_H

/* A client of the swarm with the traffic it makes and takes. */

#include "perf/client.h"
#include "perf/inner.h"
#include "perf/sequence.h"

/* Owned by one thread. */
struct member {
	struct client client;
	unsigned number;	  /* in the whole swarm; names its stream of stamps */
	struct inner_flow *flows; /* options.flows of them, owned */
	unsigned next_flow;
	uint64_t next_seq; /* of its stamps */
	struct inner_flow probe;
	uint64_t probe_seq;
	struct sequence sequence; /* of what comes */
	uint64_t up_bytes, down_bytes;
	uint64_t up_from, down_from;   /* the two when the measuring began */
	uint64_t up_share, down_share; /* what was added while it lasted */
	uint64_t sent_ms, probe_at_ms;
};

/* Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int member_init(struct member *m, unsigned number,
						    const struct swarm_options *o);
void member_fini(struct member *m, const struct client_world *w);
/* Just connected: its addresses are known now. */
void member_address(struct member *m, const struct swarm_options *o);

#endif
