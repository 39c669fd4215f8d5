/* SPDX-License-Identifier: Apache-2.0 */
#include "server/conversation.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "server/clients.h"
#include "server/connect.h"
#include "server/control/initial.h"
#include "server/data_channel.h"
#include "server/removal.h"
#include "server/shared.h"
#include "workers/udp.h"

#define ROUNDS_MAX	  8  /* advances in a row; a session that wants more gets them later */
#define SENDS_MAX	  64 /* datagrams in a row */
#define RESTART_LINGER_MS 2000

/* --- what the session says --- */

static void send_all(struct acceptor_shared *s, struct client *c)
{
	const struct udp_group *g = &s->groups[c->link.listener];
	uint8_t out[CONTROL_PACKET_MAX];
	size_t len;

	for (int i = 0; i < SENDS_MAX; i++) {
		len = session_send(c->session, s->now_ms, s->wall_s, out, sizeof(out));
		if (len == 0)
			break;
		s->count.control_sent[packet_opcode(out[0]) % CONTROL_OPCODES]++;
		c->control_sent_bytes += len;
		/* What does not get out is lost like any datagram, and repeated. */
		(void)udp_send(g->fds[0], &c->link, g->has_pktinfo, out, len);
	}
	s->count.control_retransmits += session_take_retransmits(c->session);
}

/* --- events --- */

static void count_handshake(struct control_counters *count, uint64_t took_ms)
{
	static const uint32_t limits_ms[HANDSHAKE_BUCKETS - 1] = {
		5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000};
	unsigned i = 0;

	while (i < HANDSHAKE_BUCKETS - 1 && took_ms > limits_ms[i])
		i++;
	count->handshake_buckets[i]++;
	count->handshake_sum_us += took_ms * 1000;
	count->handshake_count++;
	count->handshakes_ok++;
	count->connects++;
}

static void on_renegotiated(struct acceptor_shared *s, const struct client *c)
{
	if (c->is_initiator)
		s->count.renegotiations_local_ok++;
	else
		s->count.renegotiations_peer_ok++;
}

static void on_key(struct acceptor_shared *s, struct client *c, const struct session_event *e)
{
	if (!c->has_place)
		return;
	if (data_channel_install(s, c, e)) {
		log_client(LOG_ERROR, c->prefix,
			   "out of memory: its data channel cannot be set up");
		removal_start(s, c, CLIENT_END_TLS_ERROR);
		return;
	}
	if (c->connected_s != 0)
		return;
	c->cipher = cipher_name(e->key.cipher);
	c->connected_s = s->wall_s;
	count_handshake(&s->count, s->now_ms - c->started_ms);
	initial_limit_give(s->initial_limit, &c->link.remote);
}

static void on_seal_from(struct acceptor_shared *s, struct client *c, const struct session_event *e)
{
	data_channel_seal_from(s, c, e->key_id, e->seal_from_ms);
	if (e->seal_from_ms != UINT64_MAX)
		on_renegotiated(s, c);
}

static void log_pushed(struct acceptor_shared *s, const struct client *c)
{
	unsigned flags = session_flags(c->session);

	log_client(LOG_INFO, c->prefix, "Data Channel: cipher '%s', peer-id: %u",
		   cipher_name(session_cipher(c->session)), c->uses_peer_id ? c->place.peer_id : 0);
	log_client(LOG_INFO, c->prefix, "Timers: ping %u, ping-restart %u", s->config->ping_s,
		   s->config->ping_restart_s);
	log_client(LOG_INFO, c->prefix, "Protocol options: explicit-exit-notify %d%s%s%s%s",
		   s->config->explicit_exit_notify, flags ? ", protocol-flags" : "",
		   flags & SESSION_FLAG_CC_EXIT ? " cc-exit" : "",
		   flags & SESSION_FLAG_TLS_EKM ? " tls-ekm" : "",
		   flags & SESSION_FLAG_DYN_TLS_CRYPT ? " dyn-tls-crypt" : "");
}

static void on_renegotiation(struct acceptor_shared *s, struct client *c,
			     const struct session_event *e)
{
	if (e->reason == SESSION_REASON_NONE) {
		c->is_initiator = e->is_initiator;
		c->job.order_ms = s->now_ms; /* its turn at the handshake threads is by this one */
		return;
	}
	if (c->is_initiator)
		s->count.renegotiations_local_failed++;
	else
		s->count.renegotiations_peer_failed++;
}

static void count_failed(struct control_counters *count, enum session_reason reason)
{
	switch (reason) {
	case SESSION_REASON_CERT_REJECTED:
		count->handshakes_cert_rejected++;
		break;
	case SESSION_REASON_AUTH_FAILED:
		count->handshakes_auth_failed++;
		break;
	case SESSION_REASON_TIMEOUT:
		count->handshakes_timeout++;
		break;
	case SESSION_REASON_TLS_ERROR:
	case SESSION_REASON_NO_CIPHER:
		count->handshakes_tls_error++;
		break;
	case SESSION_REASON_NONE:
	case SESSION_REASON_EXIT:
	case SESSION_REASON_LOCAL:
	case SESSION_REASON_OK:
		break;
	}
}

static enum client_end end_of(const struct client *c, enum session_reason reason)
{
	if (c->end != CLIENT_END_NONE)
		return c->end;
	switch (reason) {
	case SESSION_REASON_TLS_ERROR:
	case SESSION_REASON_CERT_REJECTED:
	case SESSION_REASON_TIMEOUT:
		return CLIENT_END_TLS_ERROR;
	case SESSION_REASON_AUTH_FAILED:
	case SESSION_REASON_NO_CIPHER:
		return CLIENT_END_AUTH_FAILED;
	case SESSION_REASON_EXIT:
		return CLIENT_END_EXIT;
	case SESSION_REASON_NONE:
	case SESSION_REASON_LOCAL:
	case SESSION_REASON_OK:
		break;
	}
	return CLIENT_END_SHUTDOWN;
}

static void on_exit_command(struct acceptor_shared *s, struct client *c)
{
	log_client(LOG_INFO, c->prefix, "Delayed exit in 5 seconds");
	client_set_stage(s->clients, c, CLIENT_CLOSING);
}

static void on_closed(struct acceptor_shared *s, struct client *c, enum session_reason reason)
{
	if (c->connected_s == 0)
		count_failed(&s->count, reason);
	removal_start(s, c, end_of(c, reason));
}

static void on_command(struct acceptor_shared *s, struct client *c, const char *text)
{
	static struct log_limit limit;
	char printable[COMMAND_MAX];

	if (!log_limit_pass(&limit, s->now_ms, 10))
		return;
	log_printable(text, strlen(text), printable, sizeof(printable));
	log_client(LOG_DEBUG, c->prefix, "unknown control command: '%s'", printable);
}

static void on_log(struct client *c, const struct session_event *e)
{
	if (client_may_log(c))
		log_client((enum log_level)e->log_level, c->prefix, "%s", e->text);
}

static void on_event(struct acceptor_shared *s, struct client *c, const struct session_event *e)
{
	switch (e->kind) {
	case SESSION_EVENT_AUTHORIZE:
		connect_authorize(s, c, e->key_id);
		break;
	case SESSION_EVENT_KEY:
		on_key(s, c, e);
		break;
	case SESSION_EVENT_KEY_SEAL_FROM:
		on_seal_from(s, c, e);
		break;
	case SESSION_EVENT_KEY_RETIRED:
		data_channel_retire(s, c, e->key_id);
		break;
	case SESSION_EVENT_PUSHED:
		log_pushed(s, c);
		break;
	case SESSION_EVENT_COMMAND:
		on_command(s, c, e->text);
		break;
	case SESSION_EVENT_EXIT:
		on_exit_command(s, c);
		break;
	case SESSION_EVENT_RENEGOTIATION:
		on_renegotiation(s, c, e);
		break;
	case SESSION_EVENT_LOG:
		on_log(c, e);
		break;
	case SESSION_EVENT_CLOSED:
		on_closed(s, c, e->reason);
		break;
	case SESSION_EVENT_NONE:
		break;
	}
}

static bool is_removed(const struct client *c)
{
	return c->stage == CLIENT_REMOVED;
}

static void take_events(struct acceptor_shared *s, struct client *c)
{
	struct session_event e;

	while (!is_removed(c) && session_next_event(c->session, &e)) {
		on_event(s, c, &e);
		secret_wipe(&e, sizeof(e));
	}
}

/* Events first: a key is on its way to the worker before the answer that makes the peer use it. The
 * end is told after the last words are sent. */
static void settle(struct acceptor_shared *s, struct client *c)
{
	take_events(s, c);
	if (is_removed(c))
		return;
	send_all(s, c);
	take_events(s, c);
}

/* --- running it --- */

static bool lend(struct acceptor_shared *s, struct client *c)
{
	c->job.session = c->session;
	c->is_lent = handshake_lend(s->handshake, &c->job) == 0;
	c->has_progress = true;
	return c->is_lent;
}

static void arm(struct acceptor_shared *s, struct client *c)
{
	uint64_t at_ms = session_deadline(c->session);

	if (at_ms == UINT64_MAX)
		timers_remove(s->timers, &c->timer);
	else
		timers_add(s->timers, &c->timer, at_ms > s->now_ms ? at_ms : s->now_ms + 1);
}

void conversation_step(struct acceptor_shared *s, struct client *c)
{
	for (int i = 0; i < ROUNDS_MAX && !c->is_lent && !is_removed(c); i++) {
		session_use_tls(c->session, s->tls);
		if (session_is_expensive(c->session) && lend(s, c))
			return;
		session_advance(c->session, s->now_ms, s->wall_s);
		settle(s, c);
		if (!is_removed(c) && session_deadline(c->session) > s->now_ms)
			break;
	}
	if (!c->is_lent && !is_removed(c))
		arm(s, c);
}

static void feed(struct acceptor_shared *s, struct client *c, struct view datagram)
{
	enum drop drop = session_receive(c->session, datagram, s->now_ms);

	if (drop == DROP_NONE)
		c->control_seen_ms = s->now_ms;
	else
		s->count.drops[drop]++;
}

void conversation_receive(struct acceptor_shared *s, struct client *c, struct view datagram)
{
	c->control_received_bytes += datagram.len;
	if (c->is_lent) {
		if (!client_push_waiting(c, datagram.data, datagram.len))
			s->count.drops[DROP_QUEUE_FULL]++;
		return;
	}
	feed(s, c, datagram);
	conversation_step(s, c);
}

/* What could not be said to the session while it was away. */
static void catch_up(struct acceptor_shared *s, struct client *c)
{
	struct waiting *w;

	if (c->stage == CLIENT_CONNECTING && c->waits_for == 0)
		connect_resume(s, c);
	if (c->is_renegotiation_due)
		session_renegotiate(c->session);
	c->is_renegotiation_due = false;
	if (c->is_restart_due)
		conversation_restart(s, c);
	while (!is_removed(c) && (w = client_pop_waiting(c))) {
		feed(s, c, (struct view){w->data, w->len});
		free(w);
	}
}

void conversation_returned(struct acceptor_shared *s, struct handshake_job *job)
{
	struct client *c = (struct client *)(void *)((char *)job - offsetof(struct client, job));

	assert(c->is_lent);
	c->is_lent = false;
	if (is_removed(c))
		return;
	settle(s, c);
	if (is_removed(c))
		return;
	catch_up(s, c);
	conversation_step(s, c);
}

void conversation_renegotiate(struct acceptor_shared *s, struct client *c, uint8_t key_id)
{
	if (c->stage != CLIENT_CONNECTED || key_id != c->newest_key_id)
		return;
	if (c->is_lent) {
		c->is_renegotiation_due = true;
		return;
	}
	session_renegotiate(c->session);
	conversation_step(s, c);
}

void conversation_restart(struct acceptor_shared *s, struct client *c)
{
	const char *text = s->config->explicit_exit_notify == 2 ? "RESTART,[N]" : "RESTART";

	if (c->is_lent) {
		c->is_restart_due = true;
		return;
	}
	c->is_restart_due = false;
	c->end = CLIENT_END_SHUTDOWN;
	client_set_stage(s->clients, c, CLIENT_CLOSING);
	/* Without room for it the client finds out by its ping-restart. */
	if (session_command(c->session, text))
		log_client(LOG_WARN, c->prefix, "RESTART cannot be sent");
	session_close(c->session, SESSION_REASON_LOCAL, s->now_ms, RESTART_LINGER_MS);
	conversation_step(s, c);
}
