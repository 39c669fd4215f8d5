/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet costs in coalesce, in batches of 64: of 1, 4 and 16 flows in turns, of 64 flows
 * that have one packet each, and of one flow whose segments never fit (each is longer than the one
 * in front of it). The batch is made anew each round; what that takes is measured beside it and
 * left out. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/bench.h"
#include "tests/support/made_packet.h"
#include "tun/coalesce.h"
#include "tun/segment.h"

#define NAME	    "bench_coalesce"
#define STRIDE	    1536
#define HEADERS_MAX 80 /* of what a merge changes: IPv6, TCP with a timestamp */
#define OFFLOADS    (TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_UDP)
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

struct subject {
	_Alignas(64) uint8_t packets[COALESCE_BATCH][STRIDE];
	uint8_t headers[COALESCE_BATCH][HEADERS_MAX];
	uint32_t lens[COALESCE_BATCH];
	struct coalesce_item items[COALESCE_BATCH];
	uint32_t offloads;
	unsigned frames;
};

/* Shape of a batch: `flows` in turns; 0: a single one that cannot be merged. */
static void subject_init(struct subject *s, const struct made_packet *kind, unsigned flows)
{
	struct made_packet m = *kind;

	s->offloads = OFFLOADS;
	for (unsigned i = 0; i < COALESCE_BATCH; i++) {
		unsigned nth = flows > 0 ? i / flows : i;
		m.port = (uint16_t)(flows > 0 ? i % flows : 0);
		m.payload_len = flows > 0 ? kind->payload_len : kind->payload_len - 63 + i;
		m.seq = nth * kind->payload_len;
		m.id = (uint16_t)nth;
		s->lens[i] = made_write(&m, s->packets[i] + VIRTIO_LEN);
		memcpy(s->headers[i], s->packets[i] + VIRTIO_LEN, HEADERS_MAX);
	}
}

static void make_anew(struct subject *s)
{
	for (unsigned i = 0; i < COALESCE_BATCH; i++) {
		memcpy(s->packets[i] + VIRTIO_LEN, s->headers[i], HEADERS_MAX);
		s->items[i].data = s->packets[i] + VIRTIO_LEN;
		s->items[i].len = s->lens[i];
	}
	bench_use(s);
}

static void only_make(void *context, unsigned rounds)
{
	while (rounds-- > 0)
		make_anew(context);
}

static void merge(void *context, unsigned rounds)
{
	struct subject *s = context;

	while (rounds-- > 0) {
		make_anew(s);
		s->frames = coalesce(s->items, COALESCE_BATCH, s->offloads);
		bench_use(s);
	}
}

static void report(struct subject *s, const char *which, uint32_t size)
{
	struct bench_subject both[2] = {{.run = merge, .context = s},
					{.run = only_make, .context = s}};
	char name[80];

	bench_measure(both, 2);
	double ns = (both[0].ns - both[1].ns) / COALESCE_BATCH;
	bench_print(NAME, which, ns, "ns/packet");
	snprintf(name, sizeof(name), "%s/rate", which);
	bench_print(NAME, name, size / ns, "GB/s");
	snprintf(name, sizeof(name), "%s/frames", which);
	bench_print(NAME, name, s->frames, "of 64");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		struct made_packet m;
	} kinds[] = {
		{"tcp4", {.flags = 0x10, .option = 1}},
		{"tcp6", {.flags = 0x10, .option = 1, .is_ipv6 = true}},
		{"udp4", {.is_udp = true}},
		{"udp6", {.is_udp = true, .is_ipv6 = true}},
	};
	static const uint32_t sizes[] = {64, 500, 1400};
	static const struct {
		const char *name;
		unsigned flows;
	} shapes[] = {
		{"1flow", 1}, {"4flows", 4}, {"16flows", 16}, {"64flows", 64}, {"misfits", 0}};
	static struct subject s;
	char which[64];

	bench_start(argc, argv);
	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(kinds) * COUNT_OF(shapes); i++) {
		size_t shape = i % COUNT_OF(shapes), k = i / COUNT_OF(shapes) % COUNT_OF(kinds);
		uint32_t size = sizes[i / COUNT_OF(shapes) / COUNT_OF(kinds)];
		struct made_packet m = kinds[k].m;
		m.payload_len = size;
		subject_init(&s, &m, shapes[shape].flows);
		snprintf(which, sizeof(which), "%s/%u/%s", kinds[k].name, size, shapes[shape].name);
		report(&s, which, size);
	}
	return 0;
}
