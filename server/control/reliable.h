/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_RELIABLE_H
#define SERVER_CONTROL_RELIABLE_H

/* Acknowledge, repeat, order: the control packets of one key state (wire.md, section 3). Keeps the
 * plaintext of what was sent, so that every transmission is wrapped afresh; each entry owns its
 * bytes. Touched by one thread at a time; no clock: `now_ms` comes from the caller. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/bytes.h"
#include "crypto/packet.h"

#define RELIABLE_SEND_WINDOW	6
#define RELIABLE_RECV_WINDOW	12
#define RELIABLE_PAYLOAD_MAX	2048
#define RELIABLE_ACKS_PIGGYBACK 4 /* most acks in a packet that carries a message */
#define RELIABLE_OVERTAKEN_MAX	3 /* acks for later ids until a packet is repeated early */

struct reliable_sent {
	bool is_used, has_gone; /* has_gone: transmitted at least once */
	uint32_t id;
	enum opcode opcode;
	uint8_t *bytes; /* NULL if len is 0 */
	size_t len;
	uint64_t due_ms;
	uint64_t timeout_ms; /* doubled at each transmission */
	uint8_t overtaken;
};

struct reliable_received {
	bool is_used;
	uint8_t *bytes; /* NULL if len is 0 */
	size_t len;
};

struct reliable_acks {
	uint32_t ids[ACK_MAX]; /* oldest first */
	size_t count;
};

struct reliable {
	struct reliable_sent sent[RELIABLE_SEND_WINDOW];	 /* by id % window */
	struct reliable_received received[RELIABLE_RECV_WINDOW]; /* by id % window */
	uint32_t next_send;
	uint32_t next_recv;
	struct reliable_acks pending; /* to be sent once */
	struct reliable_acks recent;  /* were sent; repeated while there is room */
	uint64_t timeout_ms;
	bool is_finishing;
};

/* A message on its way out; the payload stays the queue's until the next call on it. */
struct reliable_message {
	uint32_t id;
	enum opcode opcode;
	bool is_repeated; /* has gone before */
	struct view payload;
};

/* Ids of the first message in each direction: 0, or 1 where the resets are behind us.
 * timeout_ms: of the first repetition (tls-timeout). */
void reliable_init(struct reliable *r, uint32_t first_send, uint32_t first_recv,
		   uint64_t timeout_ms);
/* Wipes and frees all entries. */
void reliable_fini(struct reliable *r);

/* There is room in the send window. */
bool reliable_can_queue(const struct reliable *r);
/* Queue a copy of `payload` (at most RELIABLE_PAYLOAD_MAX bytes), due at once. Returns 0, -ENOBUFS
 * (window), -EMSGSIZE, -ENOMEM. */
__attribute__((warn_unused_result)) int reliable_queue(struct reliable *r, enum opcode op,
						       struct view payload);
/* The next message that is due; counts as transmitted. Returns false if none is. */
bool reliable_next(struct reliable *r, uint64_t now_ms, struct reliable_message *out);
/* When the next message is due; UINT64_MAX if nothing waits for an ack. */
uint64_t reliable_deadline(const struct reliable *r);
/* The peer has received `id`. Unknown ids have no effect. */
void reliable_acked(struct reliable *r, uint32_t id, uint64_t now_ms);
/* Everything that was queued has been acknowledged. */
bool reliable_is_all_acked(const struct reliable *r);
/* Nothing is queued or repeated from now on: what has gone once is forgotten, the rest goes once.
 */
void reliable_finish(struct reliable *r);

/* A message arrived: it is kept if new, and acked even if old. Returns false if it was ignored:
 * beyond the window, too long, or no memory. */
bool reliable_receive(struct reliable *r, uint32_t id, struct view payload);
/* The next message in order, to be followed by reliable_consume; false if it has not come yet. */
bool reliable_peek(const struct reliable *r, struct view *payload);
void reliable_consume(struct reliable *r);
/* The message expected next will never come: go on with the one after it. */
void reliable_skip(struct reliable *r);

/* Acks wait that were never sent. */
bool reliable_has_acks(const struct reliable *r);
/* Acks for the next packet: at most `max` that were never sent, then recent ones again up to
 * RELIABLE_ACKS_PIGGYBACK in all. `out` holds ACK_MAX. Returns their number. */
size_t reliable_take_acks(struct reliable *r, size_t max, uint32_t *out);

#endif
