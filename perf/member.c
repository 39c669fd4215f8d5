/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/member.h"

#include <errno.h>
#include <stdlib.h>

int member_init(struct member *m, unsigned number, const struct swarm_options *o)
{
	*m = (struct member){.number = number, .client.fd = -1};
	m->flows = calloc(o->flows, sizeof(*m->flows));
	return m->flows ? 0 : -ENOMEM;
}

void member_fini(struct member *m, const struct client_world *w)
{
	client_fini(&m->client, w);
	free(m->flows);
	m->flows = NULL;
}

void member_address(struct member *m, const struct swarm_options *o)
{
	const struct pushed *p = &m->client.pushed;
	uint32_t target_be32 = o->target_be32 ? o->target_be32 : p->server_be32;

	for (unsigned i = 0; i < o->flows; i++) {
		m->flows[i] = (struct inner_flow){
			.protocol = o->protocol,
			.source_be32 = p->inner_be32,
			.target_be32 = target_be32,
			.source_port = (uint16_t)(INNER_PORT_FIRST + i),
			.target_port = INNER_PORT,
			.tcp_seq = 1,
		};
	}
	m->probe = (struct inner_flow){
		.source_be32 = p->inner_be32,
		.target_be32 = o->ping_be32,
		.source_port = (uint16_t)m->number,
	};
}
