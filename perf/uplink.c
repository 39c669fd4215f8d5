/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/uplink.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define GSO_BYTES_MAX 65400 /* of a UDP_SEGMENT send, whatever the IP header */
#define OVERHEAD      24 /* of P_DATA_V2 with AEAD, and the most that is (wire.md, section 9.1) */
#define ROOM_LEN      (DATA_KEY_HEADROOM + SWARM_BURST_MAX * (INNER_SIZE_MAX + 128))

struct uplink {
	const struct client_world *world;
	uint32_t inner_len; /* of each packet, headers included */
	unsigned burst_max;
	struct data_segment segments[SWARM_BURST_MAX];
	struct mmsghdr messages[SWARM_BURST_MAX];
	struct iovec vectors[SWARM_BURST_MAX];
	_Alignas(64) uint8_t room[ROOM_LEN];
};

int uplink_new(const struct client_world *w, struct uplink **out)
{
	const struct swarm_options *o = w->options;
	struct uplink *u = aligned_alloc(64, (sizeof(*u) + 63) & ~(size_t)63);

	if (!u)
		return -ENOMEM;
	memset(u, 0, sizeof(*u));
	u->world = w;
	u->inner_len = inner_header_len(o->protocol) + o->size;
	u->burst_max = o->has_gso ? GSO_BYTES_MAX / (OVERHEAD + u->inner_len) : SWARM_BURST_MAX;
	if (u->burst_max > SWARM_BURST_MAX)
		u->burst_max = SWARM_BURST_MAX;
	for (unsigned i = 0; i < SWARM_BURST_MAX; i++)
		u->messages[i].msg_hdr =
			(struct msghdr){.msg_iov = &u->vectors[i], .msg_iovlen = 1};
	*out = u;
	return 0;
}

void uplink_free(struct uplink *u)
{
	free(u);
}

unsigned uplink_burst_max(const struct uplink *u)
{
	return u->burst_max;
}

/* The datagrams touch each other: head, packet-id and tag of one stand where the plaintext of the
 * one before ends, so all plaintexts are there before the first is sealed. */
static void fill(struct uplink *u, struct member *m, unsigned n, unsigned overhead)
{
	const struct swarm_options *o = u->world->options;
	struct inner_flow *f = &m->flows[m->next_flow];
	uint8_t *at = u->room + DATA_KEY_HEADROOM;

	m->next_flow = (m->next_flow + 1) % o->flows;
	for (unsigned i = 0; i < n; i++) {
		const struct inner_stamp stamp = {m->number, m->next_seq++};
		inner_write(f, &stamp, o->size, i + 1 == n, at);
		u->segments[i] = (struct data_segment){.data = at, .len = u->inner_len};
		at += u->inner_len + overhead;
	}
}

/* Returns how many datagrams the kernel took. */
static unsigned send_merged(struct uplink *u, int fd, unsigned n)
{
	const struct data_segment *first = &u->segments[0];
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct iovec v = {first->data, (size_t)first->len * n};
	struct msghdr mh = {.msg_iov = &v, .msg_iovlen = 1};

	if (n > 1) {
		uint16_t len = (uint16_t)first->len;
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(len));
		memcpy(CMSG_DATA(c), &len, sizeof(len));
	}
	return sendmsg(fd, &mh, MSG_DONTWAIT) < 0 ? 0 : n;
}

static unsigned send_singly(struct uplink *u, int fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		u->vectors[i] = (struct iovec){u->segments[i].data, u->segments[i].len};
	int sent = sendmmsg(fd, u->messages, n, MSG_DONTWAIT);
	return sent < 0 ? 0 : (unsigned)sent;
}

static void count(struct uplink *u, struct member *m, unsigned n, unsigned sent)
{
	struct counts *c = u->world->counts;
	uint64_t bytes = (uint64_t)sent * u->world->options->size;

	m->up_bytes += bytes;
	count_add(c, COUNT_UP_PACKETS, sent);
	count_add(c, COUNT_UP_BYTES, bytes);
	count_add(c, COUNT_UP_REFUSED, n - sent);
	count_add(c, COUNT_UP_SENDS, u->world->options->has_gso ? sent > 0 : sent);
}

void uplink_send_burst(struct uplink *u, struct member *m, unsigned n, uint64_t now_ms)
{
	struct data_key *k = client_seal_key(&m->client, now_ms);
	unsigned sent = 0;

	assert(n > 0 && n <= u->burst_max && data_key_overhead(k) <= OVERHEAD);
	fill(u, m, n, data_key_overhead(k));
	data_key_seal(k, u->world->aead, u->segments, n);
	/* A counter that ends takes all that follow with it. */
	if (u->segments[n - 1].drop == DROP_NONE)
		sent = u->world->options->has_gso ? send_merged(u, m->client.fd, n)
						  : send_singly(u, m->client.fd, n);
	count(u, m, n, sent);
	m->sent_ms = now_ms;
	if (data_key_wants_renegotiation(k))
		client_renegotiate(&m->client, u->world);
}

uint8_t *uplink_single(struct uplink *u)
{
	return u->room + DATA_KEY_HEADROOM;
}

bool uplink_send_single(struct uplink *u, struct member *m, uint32_t len, uint64_t now_ms)
{
	struct data_key *k = client_seal_key(&m->client, now_ms);
	struct data_segment s = {.data = uplink_single(u), .len = len};

	data_key_seal(k, u->world->aead, &s, 1);
	m->sent_ms = now_ms;
	return s.drop == DROP_NONE && send(m->client.fd, s.data, s.len, MSG_DONTWAIT) >= 0;
}
