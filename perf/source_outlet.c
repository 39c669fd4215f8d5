/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/source_outlet.h"

#include <assert.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_BUFFER   (4 << 20)
#define GSO_BYTES_MAX 65400 /* payload of a super-packet, whatever its headers */

/* Of one burst: where it goes, and what stands in front of its payload. */
struct envelope {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_ll ll;
	} name;
	struct iovec parts[2];
	uint8_t front[sizeof(struct virtio_net_hdr) + INNER_TCP_LEN];
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
};

struct outlet {
	const struct source_options *options;
	int fds[SOURCE_FLOWS_MAX]; /* UDP: one a flow; TCP: one for all */
	unsigned fd_count, burst_max;
	struct envelope envelopes[OUTLET_BURSTS_MAX];
	struct mmsghdr messages[OUTLET_BURSTS_MAX];
	uint8_t payload[]; /* OUTLET_PACKETS_MAX * size: zeros, stamps in between */
};

/* --- sockets --- */

static int open_udp(const struct source_options *o, unsigned thread, unsigned flow)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(INNER_PORT_FIRST + thread * SOURCE_FLOWS_MAX + flow)),
		.sin_addr.s_addr = o->from_be32,
	};
	int size = SEND_BUFFER, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0)
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

static int open_packet(void)
{
	int on = 1, size = SEND_BUFFER;
	/* Protocol 0: it receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) == 0)
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

static int open_all(struct outlet *t, unsigned thread)
{
	const struct source_options *o = t->options;
	unsigned count = o->protocol == INNER_TCP ? 1 : o->flows;

	for (; t->fd_count < count; t->fd_count++) {
		int fd =
			o->protocol == INNER_TCP ? open_packet() : open_udp(o, thread, t->fd_count);
		if (fd < 0) {
			fprintf(stderr, "source: socket: %s\n", strerror(-fd));
			return fd;
		}
		t->fds[t->fd_count] = fd;
	}
	return 0;
}

/* --- envelopes --- */

static void prepare_udp(struct outlet *t, struct envelope *e, struct msghdr *mh)
{
	uint16_t len = (uint16_t)t->options->size;

	e->name.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(INNER_PORT)};
	*mh = (struct msghdr){
		.msg_name = &e->name,
		.msg_namelen = sizeof(e->name.in),
		.msg_iov = &e->parts[1],
		.msg_iovlen = 1,
		.msg_control = e->control,
		.msg_controllen = sizeof(e->control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(mh);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(len));
	memcpy(CMSG_DATA(c), &len, sizeof(len));
}

static void prepare_tcp(struct outlet *t, struct envelope *e, struct msghdr *mh)
{
	e->name.ll = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = t->options->device_index,
	};
	e->parts[0] = (struct iovec){e->front, sizeof(e->front)};
	*mh = (struct msghdr){
		.msg_name = &e->name,
		.msg_namelen = sizeof(e->name.ll),
		.msg_iov = e->parts,
		.msg_iovlen = 2,
	};
}

static void address_udp(struct envelope *e, struct msghdr *mh, const struct inner_flow *f,
			unsigned packets)
{
	e->name.in.sin_addr.s_addr = f->target_be32;
	mh->msg_controllen = packets > 1 ? sizeof(e->control) : 0;
}

static void address_tcp(struct outlet *t, struct envelope *e, struct inner_flow *f,
			unsigned packets)
{
	const struct source_options *o = t->options;
	struct virtio_net_hdr v = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = packets > 1 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_NONE,
		.hdr_len = INNER_TCP_LEN,
		.gso_size = (uint16_t)(packets > 1 ? o->size : 0),
		.csum_start = INNER_IP_LEN,
		.csum_offset = 16,
	};

	memcpy(e->front, &v, sizeof(v));
	inner_write_super(f, packets * o->size, o->size, e->front + sizeof(v));
}

/* Stamps of a burst's packets at `at`; returns where the next burst's payload goes. */
static uint8_t *fill(struct outlet *t, struct envelope *e, struct source_target *target,
		     unsigned packets, uint8_t *at)
{
	unsigned size = t->options->size;

	e->parts[1] = (struct iovec){at, (size_t)packets * size};
	for (unsigned i = 0; i < packets; i++, at += size) {
		inner_stamp_write(&target->stamp, at);
		target->stamp.seq++;
	}
	return at;
}

unsigned outlet_send(struct outlet *t, const struct source_burst *bursts, unsigned count,
		     unsigned flow)
{
	bool is_tcp = t->options->protocol == INNER_TCP;
	uint8_t *at = t->payload;

	for (unsigned i = 0; i < count; i++) {
		struct envelope *e = &t->envelopes[i];
		struct inner_flow *f = &bursts[i].target->flows[flow];
		if (is_tcp)
			address_tcp(t, e, f, bursts[i].packets);
		else
			address_udp(e, &t->messages[i].msg_hdr, f, bursts[i].packets);
		at = fill(t, e, bursts[i].target, bursts[i].packets, at);
	}
	assert(at <= t->payload + (size_t)OUTLET_PACKETS_MAX * t->options->size);
	int sent = sendmmsg(t->fds[is_tcp ? 0 : flow], t->messages, count, 0);
	return sent < 0 ? 0 : (unsigned)sent;
}

/* --- beginning and end --- */

int outlet_new(const struct source_options *o, unsigned thread, struct outlet **out)
{
	struct outlet *t = calloc(1, sizeof(*t) + (size_t)OUTLET_PACKETS_MAX * o->size);

	if (!t)
		return -ENOMEM;
	t->options = o;
	t->burst_max = o->has_gso ? GSO_BYTES_MAX / o->size : 1;
	if (t->burst_max > SOURCE_BURST_MAX)
		t->burst_max = SOURCE_BURST_MAX;
	for (unsigned i = 0; i < OUTLET_BURSTS_MAX; i++) {
		if (o->protocol == INNER_TCP)
			prepare_tcp(t, &t->envelopes[i], &t->messages[i].msg_hdr);
		else
			prepare_udp(t, &t->envelopes[i], &t->messages[i].msg_hdr);
	}
	int err = open_all(t, thread);
	if (err) {
		outlet_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void outlet_free(struct outlet *t)
{
	for (unsigned i = 0; t && i < t->fd_count; i++)
		close(t->fds[i]);
	free(t);
}

unsigned outlet_burst_max(const struct outlet *t)
{
	return t->burst_max;
}
