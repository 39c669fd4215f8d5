/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_COMMANDS_H
#define SERVER_CONTROL_COMMANDS_H

/* Control commands: those that wait to be sent or acknowledged, and the taking apart of what came
 * (wire.md, section 10). */

#include <stdbool.h>
#include <stddef.h>

#include "crypto/bytes.h"

#define COMMANDS_WAITING_MAX 65536 /* bytes of all that wait, with NULs */

struct command {
	struct command *next;
	bool is_push_end; /* the last part of a PUSH_REPLY, not yet told of */
	size_t len;
	char text[]; /* NUL-terminated */
};

struct commands {
	struct command *first, *last;
	struct command *unsent; /* the first that TLS has not got; NULL: none */
	size_t waiting;		/* bytes of all */
};

/* Queue a copy, if then at most `limit` bytes wait. Returns 0, -ENOBUFS, -ENOMEM. */
__attribute__((warn_unused_result)) int commands_add(struct commands *q, const char *text,
						     bool is_push_end, size_t limit);
/* The first unsent one was handed to TLS. */
void commands_sent(struct commands *q);
/* The peer has all that was sent: it is forgotten. */
void commands_confirm(struct commands *q);
/* The key that they were sent with is gone, and with it what was not acknowledged: all of it is
 * unsent again. A command can so arrive twice, which does no harm; never none. */
void commands_rewind(struct commands *q);
void commands_fini(struct commands *q);

/* The next command of a decrypted message, moving `rest` behind it: up to its NUL, without CR and
 * LF at its end. Commands with an unprintable byte are left out, and so is a tail without NUL
 * (security.md, S-25). `out` holds `cap` bytes; a command that does not fit is left out. Returns
 * false at the end. */
bool commands_next(struct view *rest, char *out, size_t cap);

#endif
