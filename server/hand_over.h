/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_HAND_OVER_H
#define SERVER_HAND_OVER_H

/* The acceptor's end of the message rings: what must arrive waits here while a ring is full,
 * foreign buffers go home in one chain a turn, and sleeping workers are woken once a turn. Thread:
 * acceptor (thread 0). */

#include <stdbool.h>
#include <stdint.h>

#include "workers/buffer.h"
#include "workers/mailbox.h"

struct hand_over;

/* `mailboxes` outlives it. Makes thread 0's own buffers. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int
hand_over_new(struct mailboxes *mailboxes, unsigned worker_count, struct hand_over **out);
/* After the workers were joined: their buffers are gone then, ours are freed here. */
void hand_over_free(struct hand_over *h);

/* Send, or keep until there is room; the order of one worker's messages is kept. Returns 0 or
 * -ENOMEM (the message is lost, what it points to stays the caller's). */
__attribute__((warn_unused_result)) int hand_over_send(struct hand_over *h, unsigned worker,
						       const struct message *m);
/* Pass a data packet in one of our buffers on, if there is room now: nothing waits for packets. */
__attribute__((warn_unused_result)) bool hand_over_datagram(struct hand_over *h, unsigned worker,
							    struct buffer *b);
/* Take up to `max` messages. Buffers that came home are already taken care of and not reported. */
unsigned hand_over_receive(struct hand_over *h, struct message *out, unsigned max);

/* A buffer of ours, or NULL. */
struct buffer *hand_over_buffer(struct hand_over *h);
/* Send a consumed buffer home (which may be here). */
void hand_over_home(struct hand_over *h, struct buffer *b);

/* End of a turn: chains and what waits go out, sleeping workers are woken. */
void hand_over_flush(struct hand_over *h);
/* Something waits for room in a ring: flush again soon. */
bool hand_over_is_blocked(const struct hand_over *h);

#endif
