/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/burst.h"

#include "tun/segment.h"

#define REST_MS	     10000 /* after a refusal; then the path may have changed */
#define DATAGRAM_MAX 65507 /* bytes of a burst over IPv4 */
#define HEAD_MAX     DATA_KEY_HEADROOM

static bool may_burst(const struct datapath *dp, const struct peer *p, uint32_t datagram_len)
{
	/* What the kernel would refuse goes singly from the start, or it would come late. */
	if (!dp->has_gso || datagram_len > p->path.datagram_max)
		return false;
	return !p->gso_max || datagram_len <= p->gso_max || dp->now_ms >= p->gso_rest_ms;
}

static void drop(struct datapath *dp, enum drop why, struct buffer *b)
{
	datapath_drop(dp, DIRECTION_EGRESS, why, b);
}

static void count_sent(struct datapath *dp, struct peer *p, uint64_t datagrams, uint64_t bytes)
{
	dp->count.link_sent_packets += datagrams;
	dp->count.link_sent_bytes += bytes;
	shared_add(&p->sent_packets, datagrams);
	shared_add(&p->sent_bytes, bytes);
}

/* A chain of `n` datagrams of `size` bytes, but for the last. */
static void send_chain(struct datapath *dp, struct peer *p, struct buffer *chain, uint32_t size,
		       unsigned n)
{
	chain->link = p->link;
	chain->gso_size = n > 1 ? (uint16_t)size : 0;
	dp->count.udp_gso_segments += n > 1 ? n : 0;
	dp->count.link_sent_bursts++;
	io_send(dp->io, chain);
}

/* Sealed datagrams in buffers of their own: equal ones that follow each other go together. The link
 * stands in each of them, in case they have to go singly after all. */
static void send_packets(struct datapath *dp, struct peer *p, struct buffer **b, unsigned n)
{
	for (unsigned i = 0, next; i < n; i = next) {
		uint32_t size = b[i]->len, total = size;
		bool is_open = may_burst(dp, p, size);
		for (next = i + 1; next < n && is_open; next++) {
			if (b[next]->len > size || total + b[next]->len > DATAGRAM_MAX)
				break;
			total += b[next]->len;
			is_open = b[next]->len == size;
			b[next]->link = p->link;
			b[next - 1]->next = b[next];
		}
		b[next - 1]->next = NULL;
		send_chain(dp, p, b[i], size, next - i);
	}
}

/* The key to seal with, having counted; NULL: there is none. */
static struct data_key *key_for(struct datapath *dp, struct peer *p, unsigned n)
{
	struct data_key *k = peer_seal_key(p, dp->now_ms);
	if (!k) {
		dp->count.drops[DIRECTION_EGRESS][DROP_NO_KEY] += n;
		return NULL;
	}
	dp->count.seal_batches++;
	p->last_sent_ms = dp->now_ms;
	return k;
}

void burst_packets(struct datapath *dp, struct peer *p, struct buffer *const *packets, unsigned n)
{
	struct data_segment seg[BURST_BATCH];
	struct buffer *sealed[BURST_BATCH];
	unsigned count = 0;
	uint64_t bytes = 0;
	struct data_key *k = key_for(dp, p, n);
	for (unsigned i = 0; !k && i < n; i++)
		datapath_release(dp, packets[i]);
	if (!k)
		return;
	for (unsigned i = 0; i < n; i++) {
		seg[i].data = packets[i]->data;
		seg[i].len = packets[i]->len;
		dp->count.sealed_bytes += packets[i]->len;
	}
	data_key_seal(k, dp->aead, seg, n);
	dp->count.sealed_packets += n;
	for (unsigned i = 0; i < n; i++) {
		if (seg[i].drop != DROP_NONE) {
			drop(dp, seg[i].drop, packets[i]);
			continue;
		}
		packets[i]->data = seg[i].data;
		packets[i]->len = seg[i].len;
		bytes += seg[i].len;
		sealed[count++] = packets[i];
	}
	count_sent(dp, p, count, bytes);
	send_packets(dp, p, sealed, count);
	datapath_check_usage(dp, p, k);
}

/* The datagrams that stand one behind the other in `whole`, each in a send of its own. */
static void send_singly(struct datapath *dp, struct buffer *whole, uint32_t size)
{
	uint8_t *end = whole->data + whole->len;
	for (uint8_t *at = whole->data; at < end; at += size) {
		uint32_t left = (uint32_t)(end - at);
		struct buffer *s = buffer_slice(dp->large, whole, at, left < size ? left : size);
		if (s)
			io_send(dp->io, s);
		else
			dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS]++;
	}
	datapath_release(dp, whole);
}

/* Datagrams of `size` bytes stand one behind the other in `out`. */
static void send_frame(struct datapath *dp, struct peer *p, struct buffer *out, uint32_t size,
		       unsigned n)
{
	count_sent(dp, p, n, out->len);
	if (n == 1 || may_burst(dp, p, size)) {
		send_chain(dp, p, out, size, n);
		return;
	}
	out->link = p->link;
	send_singly(dp, out, size);
}

/* Segments first..first+n-1, sealed where they are sent from. Sealing fails, if at all, from some
 * segment on, when the key is used up. */
static void seal_segments(struct datapath *dp, struct peer *p, struct data_key *k,
			  const struct super_packet *s, unsigned first, unsigned n)
{
	struct data_segment seg[BURST_BATCH];
	uint32_t overhead = data_key_overhead(k);
	uint32_t stride = overhead + s->header_len + s->payload_len;
	struct buffer *out = buffer_take(dp->large);
	if (!out) {
		dp->count.drops[DIRECTION_EGRESS][DROP_BUFFERS] += n;
		return;
	}
	super_packet_split(s, first, n, out->data + overhead, stride);
	for (unsigned i = 0; i < n; i++) {
		seg[i].data = out->data + overhead + (size_t)i * stride;
		seg[i].len = super_packet_segment_len(s, first + i);
		dp->count.sealed_bytes += seg[i].len;
	}
	data_key_seal(k, dp->aead, seg, n);
	dp->count.sealed_packets += n;
	unsigned sealed = 0;
	while (sealed < n && seg[sealed].drop == DROP_NONE)
		out->len += seg[sealed++].len;
	for (unsigned i = sealed; i < n; i++)
		dp->count.drops[DIRECTION_EGRESS][seg[i].drop]++;
	if (sealed > 0)
		send_frame(dp, p, out, stride, sealed);
	else
		datapath_release(dp, out);
}

static void split_and_seal(struct datapath *dp, struct peer *p, struct data_key *k,
			   const struct super_packet *s)
{
	unsigned most = DATAGRAM_MAX / (data_key_overhead(k) + s->header_len + s->payload_len);
	if (most > BURST_BATCH)
		most = BURST_BATCH;
	for (unsigned first = 0; first < s->count; first += most) {
		unsigned left = s->count - first;
		seal_segments(dp, p, k, s, first, left < most ? left : most);
	}
	datapath_check_usage(dp, p, k);
}

static bool is_too_large(const struct peer *p, const struct super_packet *s)
{
	uint32_t largest = s->header_len + s->payload_len;
	return largest > p->setup.tun_mtu || largest + HEAD_MAX > DATAGRAM_MAX;
}

void burst_frame(struct datapath *dp, struct peer *p, struct buffer *frame)
{
	struct super_packet s;
	enum drop why = super_packet_parse(frame->data, frame->len, &s);
	if (why == DROP_NONE && is_too_large(p, &s))
		why = DROP_MTU;
	if (why != DROP_NONE) {
		drop(dp, why, frame);
		return;
	}
	struct data_key *k = key_for(dp, p, s.count);
	if (k)
		split_and_seal(dp, p, k, &s);
	datapath_release(dp, frame);
}

static void rest(struct datapath *dp, const struct buffer *b)
{
	struct peer *p = peer_find_by_addr(dp->peers, &b->link);
	if (!p)
		return;
	p->gso_rest_ms = dp->now_ms + REST_MS;
	p->gso_max = (uint16_t)(b->gso_size - 1);
	datapath_ask_path(dp, p);
}

void burst_resend(struct datapath *dp)
{
	struct buffer *next;
	struct buffer *b = dp->refused;
	dp->refused = NULL;
	for (; b; b = next) {
		uint16_t size = b->gso_size;
		next = b->next;
		b->next = NULL;
		rest(dp, b);
		dp->count.bursts_refused++;
		b->gso_size = 0;
		if (b->len > size) {
			send_singly(dp, b, size);
			continue;
		}
		io_send(dp->io, b);
	}
}
