/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/sequence.h"

#include <stddef.h>

static struct sequence_stream *find(struct sequence *s, uint32_t id)
{
	for (unsigned i = 0; i < SEQUENCE_STREAMS; i++)
		if (s->streams[i].is_used && s->streams[i].id == id)
			return &s->streams[i];
	return NULL;
}

static void begin(struct sequence *s, const struct inner_stamp *stamp)
{
	s->streams[s->next] = (struct sequence_stream){true, stamp->stream, stamp->seq};
	s->next = (s->next + 1) % SEQUENCE_STREAMS;
}

struct sequence_change sequence_take(struct sequence *s, const struct inner_stamp *stamp)
{
	struct sequence_stream *t = find(s, stamp->stream);

	if (!t) {
		begin(s, stamp);
		return (struct sequence_change){0};
	}
	if (stamp->seq <= t->highest)
		return (struct sequence_change){.lost = -1, .is_late = true};
	int64_t lost = (int64_t)(stamp->seq - t->highest) - 1;
	t->highest = stamp->seq;
	return (struct sequence_change){.lost = lost};
}
