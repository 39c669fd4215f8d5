/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_ROUTE_TABLE_H
#define WORKERS_ROUTE_TABLE_H

/* Virtual address -> destination. One writer (the acceptor), lock-free readers (the workers). A
 * value is a destination id with its generation, never a pointer, so that a reader can hold it
 * while the destination goes away. Keyed SipHash; memory behind readers is freed through an epoch.
 */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"

struct route_table;
struct route_reader; /* one per reading thread */

struct destination {
	uint32_t id;	     /* peer-id of the peer that has the address */
	uint32_t generation; /* of that peer; a different one means the peer is another by now */
};

/* Returns 0 or -ENOMEM. Thread: acceptor. */
__attribute__((warn_unused_result)) int route_table_new(struct route_table **out);
/* After all readers are gone. */
void route_table_free(struct route_table *t);

/* Add or replace; O(1). Thread: acceptor. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int
route_table_add(struct route_table *t, const struct ip_addr *addr, struct destination d);
/* Remove if it still belongs to `d`; returns whether it did. */
bool route_table_remove(struct route_table *t, const struct ip_addr *addr, struct destination d);
/* Free what no reader can see any more; never blocks. Call now and then. */
void route_table_poll(struct route_table *t);
uint32_t route_table_count(const struct route_table *t);

/* Register the calling thread as a reader. Before its first section. */
__attribute__((warn_unused_result)) int route_reader_new(struct route_table *t,
							 struct route_reader **out);
void route_reader_free(struct route_reader *r);
/* A section spans a batch and never a wait. */
void route_reader_begin(struct route_reader *r);
void route_reader_end(struct route_reader *r);
/* Inside a section. Returns false if nobody has the address. */
bool route_reader_find(const struct route_reader *r, const struct ip_addr *addr,
		       struct destination *out);

#endif
