/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/downlink.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "perf/probe.h"
#include "perf/ticks.h"
#include "workers/payload.h"

#define ARENA_LEN    (1u << 20)
#define MERGED_LEN   (1u << 16) /* a super-datagram */
#define SINGLE_LEN   (1u << 14)
#define MESSAGES_MAX (ARENA_LEN / SINGLE_LEN)
#define CONTROL_LEN  (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec)))

/* Data packets of one member and key on their way through data_key_open. */
struct batch {
	struct data_segment segments[DATA_KEY_BATCH];
	uint64_t arrived_ns[DATA_KEY_BATCH];
	unsigned n;
	struct data_key *key;
};

struct downlink {
	const struct client_world *world;
	struct histogram *pings;
	unsigned message_count;
	uint32_t message_len;
	uint64_t now_ms;
	uint64_t arrived_ns; /* of the message in hand; unix time, 0: nobody asks */
	bool has_control;
	struct batch batch;
	struct mmsghdr messages[MESSAGES_MAX];
	struct iovec vectors[MESSAGES_MAX];
	_Alignas(struct cmsghdr) uint8_t control[MESSAGES_MAX][CONTROL_LEN];
	_Alignas(64) uint8_t arena[ARENA_LEN];
};

int downlink_new(const struct client_world *w, struct histogram *pings, struct downlink **out)
{
	struct downlink *d = aligned_alloc(64, (sizeof(*d) + 63) & ~(size_t)63);

	if (!d)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->world = w;
	d->pings = pings;
	d->message_len = w->options->has_gro ? MERGED_LEN : SINGLE_LEN;
	d->message_count = ARENA_LEN / d->message_len;
	for (unsigned i = 0; i < d->message_count; i++) {
		d->vectors[i] =
			(struct iovec){d->arena + (size_t)i * d->message_len, d->message_len};
		d->messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &d->vectors[i],
			.msg_iovlen = 1,
			.msg_control = d->control[i],
		};
	}
	*out = d;
	return 0;
}

void downlink_free(struct downlink *d)
{
	free(d);
}

/* --- what was opened --- */

static void take_stamped(struct downlink *d, struct member *m, const struct inner_seen *seen)
{
	struct counts *c = d->world->counts;
	struct sequence_change change = sequence_take(&m->sequence, &seen->stamp);

	m->down_bytes += seen->payload_len;
	count_add(c, COUNT_DOWN_PACKETS, 1);
	count_add(c, COUNT_DOWN_BYTES, seen->payload_len);
	count_add(c, COUNT_DOWN_LOST, (uint64_t)change.lost);
	count_add(c, COUNT_DOWN_LATE, change.is_late);
}

static void take_plaintext(struct downlink *d, struct member *m, const struct data_segment *s,
			   uint64_t arrived_ns)
{
	if (payload_kind(s->data, s->len) != PAYLOAD_IP)
		return;
	struct inner_seen seen = inner_read(s->data, s->len);
	switch (seen.kind) {
	case INNER_STAMPED:
		take_stamped(d, m, &seen);
		break;
	case INNER_ECHO:
		probe_take(&seen, arrived_ns, d->world->counts, d->pings);
		break;
	case INNER_OTHER:
		count_add(d->world->counts, COUNT_DOWN_UNMARKED, 1);
		break;
	}
}

static void flush(struct downlink *d, struct member *m)
{
	struct batch *b = &d->batch;

	if (b->n == 0)
		return;
	data_key_open(b->key, d->world->aead, b->segments, b->n, d->now_ms);
	for (unsigned i = 0; i < b->n; i++) {
		if (b->segments[i].drop == DROP_NONE)
			take_plaintext(d, m, &b->segments[i], b->arrived_ns[i]);
		else
			count_add(d->world->counts, COUNT_DOWN_DROPPED, 1);
	}
	b->n = 0;
}

/* --- what came --- */

static void take_data(struct downlink *d, struct member *m, uint8_t *data, uint32_t len)
{
	struct batch *b = &d->batch;
	struct data_key *k = client_open_key(&m->client, data[0]);

	if (!k) {
		count_add(d->world->counts, COUNT_DOWN_DROPPED, 1);
		return;
	}
	if (b->n == DATA_KEY_BATCH || b->key != k)
		flush(d, m);
	b->key = k;
	b->arrived_ns[b->n] = d->arrived_ns;
	b->segments[b->n++] = (struct data_segment){.data = data, .len = len};
}

static void take_datagram(struct downlink *d, struct member *m, uint8_t *data, uint32_t len)
{
	if (packet_is_control(packet_opcode(data[0]))) {
		client_take_control(&m->client, (struct view){data, len});
		d->has_control = true;
	} else {
		take_data(d, m, data, len);
	}
}

/* Segment length and arrival, as the kernel says; `len` and now if it does not. */
static uint32_t read_control(struct downlink *d, struct msghdr *mh, uint32_t len)
{
	uint32_t segment_len = len;

	d->arrived_ns = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			int n;
			memcpy(&n, CMSG_DATA(c), sizeof(n));
			if (n > 0)
				segment_len = (uint32_t)n;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			d->arrived_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		}
	}
	if (d->arrived_ns == 0 && d->world->options->ping_be32)
		d->arrived_ns = ticks_wall_ns();
	return segment_len;
}

static void take_message(struct downlink *d, struct member *m, struct mmsghdr *message)
{
	uint8_t *data = message->msg_hdr.msg_iov->iov_base;
	uint32_t len = message->msg_len, segment_len = read_control(d, &message->msg_hdr, len);
	unsigned n = 0;

	for (uint32_t at = 0; at < len; at += segment_len, n++)
		take_datagram(d, m, data + at, len - at < segment_len ? len - at : segment_len);
	count_add(d->world->counts, COUNT_DOWN_RECEIVES, 1);
	count_add(d->world->counts, COUNT_DOWN_DATAGRAMS, n);
}

bool downlink_receive(struct downlink *d, struct member *m, uint64_t now_ms)
{
	d->now_ms = now_ms;
	d->has_control = false;
	for (unsigned i = 0; i < d->message_count; i++)
		d->messages[i].msg_hdr.msg_controllen = CONTROL_LEN;
	int n = recvmmsg(m->client.fd, d->messages, d->message_count, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take_message(d, m, &d->messages[i]);
	flush(d, m);
	return d->has_control;
}
