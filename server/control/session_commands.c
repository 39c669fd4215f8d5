/* SPDX-License-Identifier: Apache-2.0 */
/* Control commands of a session, both ways (wire.md, section 10). */

#include <errno.h>
#include <string.h>

#include "server/control/session.h"
#include "server/control/session_state.h"

/* --- in --- */

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void peer_exits(struct session *s, uint64_t now_ms)
{
	session_say(s, LOG_NOTE, "CC-EEN exit message received by peer");
	session_tell(s, &(struct session_event){.kind = SESSION_EVENT_EXIT});
	/* Our acks must get through, so that the peer stops repeating. */
	session_leave(s, SESSION_REASON_EXIT, now_ms + LEAVING_GRACE_MS);
}

static void server_command(struct session *s, const char *command, uint64_t now_ms)
{
	bool may_log = log_limit_pass(&s->command_lines, now_ms, COMMAND_LINES_PER_S);
	if (starts_with(command, "PUSH_REQUEST")) {
		if (may_log)
			session_say(s, LOG_INFO, "PUSH: Received control message: '%s'", command);
		s->is_push_asked = true;
	} else if (starts_with(command, "EXIT")) {
		peer_exits(s, now_ms);
	} else if (starts_with(command, "CR_RESPONSE,")) {
		session_tell(s, &(struct session_event){
					.kind = SESSION_EVENT_COMMAND,
					.key_id = s->primary->key_id,
					.text = command,
				});
	} else if (!starts_with(command, "INFO") && !starts_with(command, "ACC,") && may_log) {
		session_say(s, LOG_DEBUG, "WARNING: Received unknown control message: %s", command);
	}
}

void session_commands_read(struct session *s, struct view message, uint64_t now_ms)
{
	/* A record is no longer than a key exchange message, and so is a command in it. */
	char command[2048];
	while (!s->is_dead && commands_next(&message, command, sizeof(command))) {
		/* A client that goes has nothing more to say: not even, again and again, that it
		 * goes. Of a server that goes the reason is still wanted. */
		if (session_is_leaving(s) && (s->is_server || s->reason == SESSION_REASON_EXIT))
			return;
		if (s->is_server)
			server_command(s, command, now_ms);
		else if (starts_with(command, "EXIT"))
			peer_exits(s, now_ms);
		else
			session_client_command(s, command, now_ms);
	}
}

/* --- out --- */

/* A client with bit 2 gets it unasked; one that asks twice gets it once in half a minute. */
static bool is_push_due(const struct session *s)
{
	if (!s->is_server || !s->has_push || !s->primary->is_generated || session_is_leaving(s))
		return false;
	return s->is_push_asked || (!s->was_pushed && (s->client.iv_proto & IV_PROTO_REQUEST_PUSH));
}

static void push(struct session *s, uint64_t now_ms)
{
	s->is_push_asked = false;
	if (s->was_pushed && now_ms < s->pushed_ms + PUSH_AGAIN_MS)
		return;
	s->was_pushed = true;
	s->pushed_ms = now_ms;
	for (size_t i = 0; i < s->push.count; i++) {
		int err = commands_add(&s->commands, s->push.messages[i], i + 1 == s->push.count,
				       COMMANDS_WAITING_MAX + PUSH_TOTAL_MAX);
		if (err) {
			session_die(s, SESSION_REASON_LOCAL);
			return;
		}
	}
}

/* TLS gets the next command when it has handed over the one before. */
static bool can_write(const struct session *s)
{
	const struct key_state *k = s->primary;
	return s->commands.unsent && key_state_is_open(k) && tls_output_left(k->tls) == 0 &&
	       reliable_can_queue(&k->reliable);
}

bool session_commands_are_due(const struct session *s)
{
	return can_write(s) || is_push_due(s);
}

static void write_first(struct session *s)
{
	struct command *c = s->commands.unsent;
	struct key_state *k = s->primary;
	struct view with_nul = {(const uint8_t *)c->text, c->len + 1};
	if (tls_write(k->tls, with_nul) != TLS_OK ||
	    key_state_drain(k, session_payload_max(s)) != 0) {
		session_fail_key(s, SESSION_REASON_TLS_ERROR);
		return;
	}
	session_say(s, LOG_INFO, "SENT CONTROL [%s]: '%s' (status=1)", session_common_name(s),
		    c->text);
	if (c->is_push_end)
		session_tell(s, &(struct session_event){.kind = SESSION_EVENT_PUSHED});
	c->is_push_end = false;
	commands_sent(&s->commands);
}

void session_commands_advance(struct session *s, uint64_t now_ms)
{
	if (key_state_is_flushed(s->primary))
		commands_confirm(&s->commands);
	if (is_push_due(s))
		push(s, now_ms);
	while (!s->is_dead && can_write(s))
		write_first(s);
}
