/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/client.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/log.h"
#include "crypto/secret.h"
#include "perf/ticks.h"
#include "workers/key_slab.h"

#define RECEIVE_BUFFER (4 << 20)
#define LINGER_MS      1000
#define COMPLAINTS_MAX 5 /* lines of all clients together */

static uint32_t wall_s(void)
{
	return (uint32_t)(ticks_wall_ns() / 1000000000u);
}

/* --- data keys --- */

static void drop_oldest_key(struct client *c, const struct client_world *w)
{
	uint8_t key_id = c->key_ids[--c->key_count];
	struct data_key *k = c->keys[key_id];

	c->keys[key_id] = NULL;
	if (c->next_key == k)
		c->next_key = NULL;
	if (c->seal_key == k)
		c->seal_key = NULL;
	key_slab_drop(w->slab, k, w->aead);
}

static void drop_keys(struct client *c, const struct client_world *w)
{
	while (c->key_count > 0)
		drop_oldest_key(c, w);
}

static void add_key(struct client *c, uint8_t key_id, struct data_key *k)
{
	memmove(c->key_ids + 1, c->key_ids, c->key_count);
	c->key_ids[0] = key_id;
	c->key_count++;
	c->keys[key_id] = k;
}

/* Packets that are under way may still have it, so it goes on opening until it is the oldest. But
 * the other side takes nothing more that is sealed with it. */
static void retire_key(struct client *c, uint8_t key_id)
{
	if (c->next_key && c->seal_key == c->keys[key_id]) {
		c->seal_key = c->next_key;
		c->next_key = NULL;
	}
}

static struct data_key *adopt_key(const struct client *c, const struct client_world *w,
				  const struct data_key_material *m)
{
	struct data_key_options o = {
		.peer_id = session_uses_peer_id(c->session) ? session_peer_id(c->session)
							    : PEER_ID_NONE,
		.replay_window = REPLAY_WINDOW_DEFAULT,
	};
	struct aead_schedule seal, open;
	struct data_key key;

	if (data_key_init(&key, w->aead, m, &o, &seal, &open) != 0)
		return NULL;
	struct data_key *k = key_slab_adopt(w->slab, &key);
	if (!k)
		data_key_fini(&key, w->aead);
	secret_wipe(&key, sizeof(key));
	return k;
}

static void be_connected(struct client *c, const struct client_world *w)
{
	c->stage = CLIENT_CONNECTED;
	histogram_add(w->logins, (ticks_ns() - c->started_ns) / 1000);
	count_add(w->counts, COUNT_CONNECTED, 1);
}

static void install(struct client *c, const struct client_world *w, const struct session_event *e)
{
	if (c->key_count == CLIENT_KEYS_MAX)
		drop_oldest_key(c, w);
	struct data_key *k = c->keys[e->key_id] ? NULL : adopt_key(c, w, &e->key);
	if (!k) {
		session_close(c->session, SESSION_REASON_LOCAL, ticks_ms(), 0);
		return;
	}
	add_key(c, e->key_id, k);
	if (c->seal_key) {
		c->next_key = k;
		c->next_from_ms = e->seal_from_ms;
	} else {
		c->seal_key = k;
	}
	if (c->stage == CLIENT_CONNECTED) {
		c->is_rekeyed = true;
		count_add(w->counts, COUNT_REKEYED, 1);
	} else {
		be_connected(c, w);
	}
}

/* --- control channel --- */

static void complain(const char *text)
{
	static _Atomic unsigned said; /* any thread; only a bound */

	if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS_MAX)
		fprintf(stderr, "swarm: %s\n", text);
}

static void close_socket(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void be_gone(struct client *c, const struct client_world *w)
{
	enum count which = c->is_leaving		  ? COUNT_LEFT
			   : c->stage == CLIENT_CONNECTED ? COUNT_CLOSED
							  : COUNT_FAILED;

	c->stage = CLIENT_GONE;
	drop_keys(c, w);
	close_socket(c);
	count_add(w->counts, which, 1);
}

static void take_command(struct client *c, const char *text)
{
	if (strncmp(text, "PUSH_REPLY", 10) == 0)
		pushed_take(&c->pushed, text);
	else if (strncmp(text, "AUTH_FAILED", 11) == 0)
		complain(text);
}

static void take_event(struct client *c, const struct client_world *w,
		       const struct session_event *e)
{
	switch (e->kind) {
	case SESSION_EVENT_AUTHORIZE:
		session_authorize(c->session, e->key_id, true, NULL, ticks_ms());
		break;
	case SESSION_EVENT_KEY:
		install(c, w, e);
		break;
	case SESSION_EVENT_KEY_SEAL_FROM:
		if (e->seal_from_ms == UINT64_MAX)
			retire_key(c, e->key_id);
		break;
	case SESSION_EVENT_KEY_RETIRED:
		retire_key(c, e->key_id);
		break;
	case SESSION_EVENT_COMMAND:
		take_command(c, e->text);
		break;
	case SESSION_EVENT_RENEGOTIATION:
		count_add(w->counts, COUNT_REKEY_FAILED, e->reason != SESSION_REASON_NONE);
		break;
	case SESSION_EVENT_LOG:
		if (e->log_level <= LOG_WARN)
			complain(e->text);
		break;
	case SESSION_EVENT_CLOSED:
		be_gone(c, w);
		break;
	case SESSION_EVENT_PUSHED:
	case SESSION_EVENT_EXIT:
	case SESSION_EVENT_NONE:
		break;
	}
}

static void take_events(struct client *c, const struct client_world *w)
{
	struct session_event e;
	WIPE_ON_EXIT(e);

	while (c->stage != CLIENT_GONE && session_next_event(c->session, &e))
		take_event(c, w, &e);
}

static void send_out(struct client *c)
{
	uint8_t out[CONTROL_PACKET_MAX];
	size_t len;

	while ((len = session_send(c->session, ticks_ms(), wall_s(), out, sizeof(out))) > 0)
		(void)!send(c->fd, out, len, MSG_DONTWAIT);
}

void client_advance(struct client *c, const struct client_world *w)
{
	if (c->stage != CLIENT_CONNECTING && c->stage != CLIENT_CONNECTED)
		return;
	session_advance(c->session, ticks_ms(), wall_s());
	send_out(c);
	take_events(c, w);
	/* A verdict asks for another round. */
	if (c->stage != CLIENT_GONE && session_deadline(c->session) == 0) {
		session_advance(c->session, ticks_ms(), wall_s());
		send_out(c);
		take_events(c, w);
	}
}

void client_take_control(struct client *c, struct view datagram)
{
	/* What does not belong to the session is none of the swarm's business. */
	if (c->stage == CLIENT_CONNECTING || c->stage == CLIENT_CONNECTED)
		(void)!session_receive(c->session, datagram, ticks_ms());
}

uint64_t client_deadline(const struct client *c)
{
	return c->stage == CLIENT_CONNECTING || c->stage == CLIENT_CONNECTED
		       ? session_deadline(c->session)
		       : UINT64_MAX;
}

/* --- beginning and end --- */

static void tune_socket(int fd, const struct swarm_options *o)
{
	int on = 1, size = RECEIVE_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (o->has_gro)
		(void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (o->ping_be32)
		(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

static int open_socket(const struct swarm_options *o)
{
	int fd = socket(o->server.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	tune_socket(fd, o);
	if (connect(fd, &o->server.sa, endpoint_len(&o->server)) == 0)
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

int client_start(struct client *c, const struct client_world *w)
{
	const struct session_start start = {
		.now_ms = ticks_ms(),
		.wall_s = wall_s(),
		.is_ipv6 = w->credentials->settings.is_ipv6,
	};
	int fd = open_socket(w->options);

	if (fd < 0)
		return fd;
	int err = session_new(&w->credentials->settings, w->credentials->tls, &start, &c->session);
	if (err) {
		close(fd);
		return err;
	}
	c->fd = fd;
	c->stage = CLIENT_CONNECTING;
	c->started_ns = ticks_ns();
	client_advance(c, w);
	return 0;
}

void client_renegotiate(struct client *c, const struct client_world *w)
{
	session_renegotiate(c->session);
	client_advance(c, w);
}

void client_leave(struct client *c, const struct client_world *w)
{
	c->is_leaving = true;
	session_close(c->session, SESSION_REASON_LOCAL, ticks_ms(), LINGER_MS);
	client_advance(c, w);
}

void client_fini(struct client *c, const struct client_world *w)
{
	if (c->stage == CLIENT_UNBORN)
		return;
	drop_keys(c, w);
	close_socket(c);
	session_free(c->session);
	*c = (struct client){0};
}
