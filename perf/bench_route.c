/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up where a packet goes: ns of CPU a look-up, in a table of 100,000 entries of which 1,000
 * are asked for again and again, and in one asked for at random. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/bench.h"
#include "workers/route_table.h"

#define NAME  "bench_route"
#define TABLE 100000
#define HOT   1000
#define ASKED 4096 /* a power of 2 */
#define BATCH 64   /* look-ups of a section */

struct route_bench {
	struct route_table *table;
	struct route_reader *reader;
	struct ip_addr asked[ASKED];
};

static struct ip_addr host(unsigned i, unsigned family)
{
	struct ip_addr a = {.family = (uint8_t)family};
	uint64_t random = i;
	uint64_t bits = bench_random(&random);
	if (family == 4) {
		a.bytes[0] = 10;
		memcpy(a.bytes + 1, &i, 3);
		return a;
	}
	memcpy(a.bytes, "\x20\x01\x0d\xb8", 4);
	memcpy(a.bytes + 4, &bits, sizeof(bits));
	memcpy(a.bytes + 12, &i, sizeof(i));
	return a;
}

static void run(void *context, unsigned rounds)
{
	struct route_bench *b = context;
	static unsigned at;
	for (unsigned r = 0; r < rounds; r++) {
		route_reader_begin(b->reader);
		for (unsigned i = 0; i < BATCH; i++) {
			struct destination d = {0};
			bool is_found = route_reader_find(b->reader, &b->asked[at++ % ASKED], &d);
			assert(is_found && d.generation == 1);
		}
		route_reader_end(b->reader);
	}
}

static void measure(struct route_bench *b, const char *kind, unsigned family, unsigned hot)
{
	char which[64];
	uint64_t random = 3;
	for (unsigned i = 0; i < ASKED; i++)
		b->asked[i] = host((unsigned)(bench_random(&random) % hot) * (TABLE / hot), family);
	snprintf(which, sizeof(which), "%s-ipv%u/%s", kind, family,
		 hot < TABLE ? "hot-1000" : "random");
	bench_print(NAME, which, bench_ns(run, b) / BATCH, "ns");
}

static void measure_hosts(unsigned family)
{
	struct route_bench b;
	if (route_table_new(&b.table) != 0 || route_reader_new(b.table, &b.reader) != 0)
		abort();
	for (unsigned i = 0; i < TABLE; i++) {
		const struct ip_addr a = host(i, family);
		if (route_table_add(b.table, &a, (struct destination){i, 1}) != 0)
			abort();
		route_table_poll(b.table);
	}
	measure(&b, "hosts", family, HOT);
	measure(&b, "hosts", family, TABLE);
	route_reader_free(b.reader);
	route_table_free(b.table);
}

int main(int argc, char **argv)
{
	bench_start(argc, argv);
	measure_hosts(4);
	measure_hosts(6);
	return 0;
}
