/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "crypto/packet.h"
#include "crypto/wrap.h"
#include "server/clock.h"
#include "server/hand_over.h"
#include "server/shared.h"
#include "workers/steering.h"
#include "workers/udp.h"

#define BATCH	     32
#define DATA_V2_HEAD 4 /* opcode byte and peer-id */

/* What one receive brought, a datagram or a super-datagram, and what the kernel says of it. Read in
 * place; what is for a worker is copied. */
struct slot {
	struct buffer *buffer;
	struct iovec iov;
	union sockaddr_any from;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
};

struct listener {
	struct acceptor_shared *shared;
	const struct slot_table *slots;
	listener_fn on_control;
	void *ctx;
	struct mmsghdr messages[BATCH];
	struct slot received[BATCH];
	struct event **events; /* one a group */
};

static uint32_t room(const struct buffer *b)
{
	return b->cap - buffer_headroom(b) - BUFFER_TAILROOM;
}

static void slot_prepare(struct slot *slot, struct mmsghdr *m)
{
	slot->iov.iov_base = slot->buffer->data;
	slot->iov.iov_len = room(slot->buffer);
	m->msg_hdr = (struct msghdr){
		.msg_name = &slot->from,
		.msg_namelen = sizeof(slot->from),
		.msg_iov = &slot->iov,
		.msg_iovlen = 1,
		.msg_control = slot->control,
		.msg_controllen = sizeof(slot->control),
	};
}

/* The owner of a data packet: by its slot, or by where it came from as the steering program does.
 */
static unsigned owner_of(const struct listener *l, const struct link_addr *from, struct view packet)
{
	uint32_t peer_id = PEER_ID_NONE;

	if (packet_opcode(packet.data[0]) == OPCODE_DATA_V2) {
		struct reader r = reader_init(packet.data, packet.len);

		peer_id = reader_u32(&r) & PEER_ID_NONE;
	}
	if (peer_id != PEER_ID_NONE)
		return slot_table_owner(l->slots, peer_id);
	return steering_by_source(&from->remote, l->shared->worker_count);
}

static void pass_on(struct listener *l, const struct link_addr *from, struct view packet)
{
	struct acceptor_shared *s = l->shared;
	struct buffer *b;

	if (packet.len < DATA_V2_HEAD) {
		s->count.drops[DROP_SHORT]++;
		return;
	}
	b = hand_over_buffer(s->hand_over);
	if (!b) {
		s->count.drops[DROP_BUFFERS]++;
		return;
	}
	memcpy(b->data, packet.data, packet.len);
	b->len = (uint32_t)packet.len;
	b->link = *from;
	if (!hand_over_datagram(s->hand_over, owner_of(l, from, packet), b)) {
		hand_over_home(s->hand_over, b);
		s->count.drops[DROP_HANDOFF_FULL]++;
	}
}

static void datagram(struct listener *l, const struct link_addr *from, struct view packet)
{
	uint8_t opcode = packet.len > 0 ? packet_opcode(packet.data[0]) : 0;

	if (opcode == OPCODE_DATA_V1 || opcode == OPCODE_DATA_V2)
		pass_on(l, from, packet);
	else if (packet.len > CONTROL_PACKET_MAX)
		l->shared->count.drops[DROP_CONTROL_MALFORMED]++;
	else
		l->on_control(l->ctx, from, packet);
}

/* Each datagram of what was received: `size` bytes but the last, or all of it if size is 0. */
static void split(struct listener *l, const struct slot *slot, size_t len, size_t size)
{
	struct view rest = {slot->buffer->data, len};

	do {
		size_t n = size > 0 && size < rest.len ? size : rest.len;

		datagram(l, &slot->buffer->link, (struct view){rest.data, n});
		rest = (struct view){rest.data + n, rest.len - n};
	} while (rest.len > 0);
}

static void on_readable(int fd, short what, void *arg)
{
	struct listener *l = arg;
	uint16_t group = 0;
	int n;

	(void)what;
	while (l->shared->groups[group].fds[0] != fd)
		group++;
	for (unsigned i = 0; i < BATCH; i++)
		slot_prepare(&l->received[i], &l->messages[i]);
	/* Errors here are about some peer's unreachable address, never about the socket. */
	n = recvmmsg(fd, l->messages, BATCH, MSG_DONTWAIT, NULL);
	l->shared->now_ms = clock_boot_ms();
	l->shared->wall_s = clock_wall_s();
	for (int i = 0; i < n; i++) {
		struct slot *slot = &l->received[i];

		size_t size = udp_msg_from(&l->messages[i].msg_hdr, &slot->buffer->link);
		slot->buffer->link.listener = group;
		split(l, slot, l->messages[i].msg_len, size);
	}
}

static int events_add(struct listener *l, struct event_base *base)
{
	for (unsigned i = 0; i < l->shared->group_count; i++) {
		l->events[i] = event_new(base, l->shared->groups[i].fds[0], EV_READ | EV_PERSIST,
					 on_readable, l);
		if (!l->events[i] || event_add(l->events[i], NULL))
			return -ENOMEM;
	}
	return 0;
}

int listener_new(struct event_base *base, struct acceptor_shared *shared,
		 const struct slot_table *slots, listener_fn on_control, void *ctx,
		 struct listener **out)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->shared = shared;
	l->slots = slots;
	l->on_control = on_control;
	l->ctx = ctx;
	l->events = calloc(shared->group_count, sizeof(struct event *));
	for (unsigned i = 0; i < BATCH; i++)
		l->received[i].buffer = hand_over_buffer(shared->hand_over);
	if (!l->events || !l->received[BATCH - 1].buffer || events_add(l, base)) {
		listener_free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	for (unsigned i = 0; l->events && i < l->shared->group_count; i++)
		if (l->events[i])
			event_free(l->events[i]);
	for (unsigned i = 0; i < BATCH; i++)
		if (l->received[i].buffer)
			hand_over_home(l->shared->hand_over, l->received[i].buffer);
	free(l->events);
	free(l);
}
