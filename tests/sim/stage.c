/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/stage.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config/log.h"
#include "server/clock.h"
#include "server/control/tls.h"
#include "server/ip_pool.h"
#include "tests/support/pki.h"
#include "workers/buffer.h"
#include "workers/mailbox.h"
#include "workers/peer.h"

#define CIPHERS	    "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305"
#define PEER_IDS    512
#define PATIENCE_MS 10000
#define YEAR_S	    31536000
#define SERIAL	    7 /* of every certificate */

static struct pki_name *ca;

static struct pki_name *name_new(const char *cn, enum pki_usage usage)
{
	int64_t now = time(NULL);
	struct pki_request r = {.cn = cn,
				.usage = usage,
				.serial = SERIAL,
				.not_before = now - YEAR_S,
				.not_after = now + YEAR_S};

	return pki_make(&r, usage == PKI_CA ? NULL : ca);
}

static struct config_file inline_file(const char *text)
{
	return (struct config_file){.text = text, .text_len = strlen(text)};
}

static struct tls_context *context_new(const struct config *c, bool is_server)
{
	struct tls_context *t;
	char why[512];

	if (tls_context_new(c, is_server, &t, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return t;
}

static struct tls_context *client_context_new(const char *cn)
{
	struct pki_name *own = name_new(cn, PKI_CLIENT);
	const struct config c = {
		.ca = inline_file(pki_cert(ca)),
		.cert = inline_file(pki_cert(own)),
		.key = inline_file(pki_key(own)),
		.remote_cert_tls = REMOTE_CERT_SERVER,
		.tls_version_min = 12,
	};
	struct tls_context *t = context_new(&c, false);

	pki_free(own);
	return t;
}

/* --- the stage --- */

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	if (!ip_addr_parse(text, &a))
		abort();
	return a;
}

void stage_init(struct stage *s)
{
	ca = name_new("ca", PKI_CA);
	*s = (struct stage){.config = {
				    .topology = TOPOLOGY_SUBNET,
				    .has_pool = true,
				    .pool_start = addr("10.8.0.2"),
				    .pool_end = addr("10.8.0.20"),
				    .pool_bits = 24,
				    .ifconfig_local = addr("10.8.0.1"),
				    .max_clients = 100,
				    .max_packet_size = 1250,
				    .hand_window_s = 60,
				    .tran_window_s = 3600,
				    .tls_timeout_s = 2,
				    .ping_restart_s = 60,
				    .replay_window = 64,
				    .replay_time_s = 15,
				    .data_ciphers = CIPHERS,
				    .auth = "SHA1",
				    .tls_auth_direction = -1,
				    .tun_mtu = 1500,
				    .workers = STAGE_WORKERS,
				    .handshake_threads = 2,
				    .aead_engine = AEAD_OPENSSL,
				    .remote_cert_tls = REMOTE_CERT_CLIENT,
				    .status_version = 2,
			    }};
	s->server_name = name_new("server", PKI_SERVER);
	s->config.ca = inline_file(pki_cert(ca));
	s->config.cert = inline_file(pki_cert(s->server_name));
	s->config.key = inline_file(pki_key(s->server_name));
}

static void *run(void *arg)
{
	struct stage *s = arg;

	s->exit_code = acceptor_run(s->acceptor);
	return NULL;
}

/* Signals go to the acceptor alone, as in the daemon. */
static void start_thread(struct stage *s)
{
	sigset_t all, before;

	if (pthread_create(&s->thread, NULL, run, s) != 0)
		abort();
	sigfillset(&all);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &before);
}

static int open_all(struct stage *s, char *why, size_t why_len)
{
	struct listen_spec spec = {.host = "127.0.0.1"};
	int err = wrap_keys_new(WRAP_NONE, NULL, KEY_DIRECTION_NONE, NULL, &s->wrap);

	if (!err)
		err = mailboxes_new(STAGE_WORKERS + 1, &s->mailboxes);
	if (!err)
		err = route_table_new(&s->routes);
	if (!err)
		err = ip_pool_new(&s->config, &s->pool);
	/* One socket, the acceptor's: everything leaks to it. */
	if (!err)
		err = udp_group_open(&spec, 0, 0, 0, &s->group, why, why_len);
	return err;
}

void stage_start(struct stage *s)
{
	struct acceptor_setup setup = {
		.config = &s->config,
		.slots = &s->slots,
		.groups = &s->group,
		.group_count = 1,
		.worker_count = STAGE_WORKERS,
		.peer_id_limit = PEER_IDS,
	};
	char why[512] = "";

	/* Lines are made, but not between those of the test. */
	if (log_open(&(struct log_options){.verb = 4, .file = "/dev/null"}) != 0)
		abort();
	s->tls = context_new(&s->config, true);
	slot_table_init(&s->slots, STAGE_WORKERS);
	if (open_all(s, why, sizeof(why)) != 0)
		abort();
	setup.tls = s->tls;
	setup.wrap = s->wrap;
	setup.mailboxes = s->mailboxes;
	setup.routes = s->routes;
	setup.pool = s->pool;
	if (acceptor_new(&setup, &s->acceptor, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	start_thread(s);
}

static bool is_over(void *ctx)
{
	struct stage *s = ctx;

	if (!s->is_joined)
		s->is_joined = pthread_tryjoin_np(s->thread, NULL) == 0;
	return s->is_joined;
}

int stage_wait_end(struct stage *s)
{
	stage_until(s, is_over, s);
	stage_pass(s, 1);
	return s->exit_code;
}

int stage_stop(struct stage *s)
{
	if (!s->is_joined)
		kill(getpid(), SIGTERM);
	return stage_wait_end(s);
}

void stage_fini(struct stage *s)
{
	sigset_t none;

	if (!s->is_joined)
		stage_stop(s);
	acceptor_free(s->acceptor);
	while (s->clients)
		stage_drop(s->clients);
	mailboxes_free(s->mailboxes);
	route_table_free(s->routes);
	ip_pool_free(s->pool);
	tls_context_unref(s->tls);
	wrap_keys_free(s->wrap);
	udp_group_close(&s->group);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	pki_free(s->server_name);
	pki_free(ca);
	ca = NULL;
}

void stage_write_crl(const char *path, bool is_revoking)
{
	char *text = pki_crl(ca, is_revoking ? SERIAL : 0, time(NULL) + YEAR_S);
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
	free(text);
}

/* --- workers --- */

void stage_say(struct stage *s, unsigned w, struct message m)
{
	while (!mailbox_send(s->mailboxes, w, 0, &m))
		usleep(1000);
	mailbox_flush(s->mailboxes, w);
}

static void answer_removal(struct stage *s, unsigned w, struct message m)
{
	struct stage_worker *worker = &s->workers[w];

	m.kind = MESSAGE_PEER_REMOVED;
	m.peer = worker->peers[m.peer_id];
	worker->peers[m.peer_id] = NULL;
	stage_say(s, w, m);
}

/* A real worker moves the schedules away; here it is enough to forget them. */
static void answer_install(struct stage *s, unsigned w, struct message m)
{
	struct stage_worker *worker = &s->workers[w];

	worker->installs++;
	worker->last_key_id = m.key->key_id;
	worker->last_cipher = m.key->cipher;
	assert(worker->peers[m.peer_id]); /* the peer comes before its keys */
	m.kind = MESSAGE_KEY_INSTALLED;
	stage_say(s, w, m);
}

static void buffer_back(struct stage *s, unsigned w, struct buffer *b)
{
	b->next = NULL;
	stage_say(s, w, (struct message){.kind = MESSAGE_BUFFER_HOME, .buffer = b});
}

/* Control packets of is_through_worker came in buffers of the test's own. */
static void buffers_free(struct buffer *b)
{
	while (b) {
		struct buffer *next = b->next;

		free(b);
		b = next;
	}
}

static void take_message(struct stage *s, unsigned w, struct message m)
{
	struct stage_worker *worker = &s->workers[w];

	switch (m.kind) {
	case MESSAGE_PEER_ADD:
		worker->adds++;
		worker->last_peer_id = m.peer_id;
		assert(!worker->peers[m.peer_id]); /* an id is nobody's before it is somebody's */
		assert(slot_table_owner(&s->slots, m.peer_id) == w);
		worker->peers[m.peer_id] = m.peer;
		break;
	case MESSAGE_PEER_REMOVE:
		worker->removes++;
		if (worker->is_holding)
			worker->held[worker->held_count++] = m;
		else
			answer_removal(s, w, m);
		break;
	case MESSAGE_KEY_INSTALL:
		answer_install(s, w, m);
		break;
	case MESSAGE_KEY_SEAL_FROM:
		break;
	case MESSAGE_KEY_RETIRE:
		worker->retires++;
		break;
	case MESSAGE_PEER_MOVE:
		worker->moves++;
		buffers_free(m.buffer);
		break;
	case MESSAGE_DATAGRAM:
		worker->datagrams++;
		buffer_back(s, w, m.buffer);
		break;
	case MESSAGE_BUFFER_HOME:
		worker->homes++;
		buffers_free(m.buffer);
		break;
	case MESSAGE_STOP:
		worker->stops++;
		break;
	default:
		abort();
	}
}

static void play_workers(struct stage *s)
{
	struct message m;

	for (unsigned w = 1; w <= STAGE_WORKERS; w++)
		while (!s->workers[w].is_deaf && mailbox_receive(s->mailboxes, w, &m, 1) == 1)
			take_message(s, w, m);
}

void stage_release(struct stage *s, unsigned w)
{
	struct stage_worker *worker = &s->workers[w];

	for (unsigned i = 0; i < worker->held_count; i++)
		answer_removal(s, w, worker->held[i]);
	worker->held_count = 0;
	worker->is_holding = false;
}

unsigned stage_peers(const struct stage *s)
{
	unsigned n = 0;

	for (unsigned w = 1; w <= STAGE_WORKERS; w++)
		for (unsigned id = 0; id < PEER_IDS; id++)
			n += s->workers[w].peers[id] != NULL;
	return n;
}

/* --- clients --- */

int stage_socket(const struct stage *s)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &s->group.local.sa, sizeof(s->group.local.in4)) != 0)
		abort();
	return fd;
}

void stage_reconnect(struct stage_client *c)
{
	struct session_start start = {.now_ms = clock_boot_ms(), .wall_s = clock_wall_s()};

	session_free(c->session);
	c->session = NULL;
	c->has_key = c->is_closed = false;
	c->push[0] = c->command[0] = '\0';
	if (session_new(&c->settings, c->tls, &start, &c->session) != 0)
		abort();
}

struct stage_client *stage_connect(struct stage *s, const char *name)
{
	struct stage_client *c = calloc(1, sizeof(*c));

	if (!c || wrap_keys_new(WRAP_NONE, NULL, KEY_DIRECTION_NONE, NULL, &c->wrap) != 0)
		abort();
	c->stage = s;
	c->fd = stage_socket(s);
	c->tls = client_context_new(name);
	c->settings = (struct session_settings){
		.role = SESSION_CLIENT,
		.wrap = c->wrap,
		.max_packet_size = 1250,
		.hand_window_s = 60,
		.tran_window_s = 3600,
		.tls_timeout_s = 2,
		.replay_window = 64,
		.replay_time_s = 15,
		.data_ciphers = CIPHERS,
		.key_direction = -1,
		.tun_mtu = 1500,
		.is_client_cert_required = true,
		.random = secret_random,
	};
	c->next = s->clients;
	s->clients = c;
	stage_reconnect(c);
	return c;
}

void stage_drop(struct stage_client *c)
{
	struct stage_client **at = &c->stage->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	session_free(c->session);
	tls_context_unref(c->tls);
	wrap_keys_free(c->wrap);
	close(c->fd);
	free(c);
}

static void send_through_worker(struct stage_client *c, const uint8_t *data, size_t len)
{
	struct buffer *b = calloc(1, sizeof(*b) + len);
	socklen_t name_len = sizeof(b->link.remote.in4);

	if (!b || getsockname(c->fd, &b->link.remote.sa, &name_len) != 0)
		abort();
	b->storage = b->data = (uint8_t *)(b + 1);
	b->len = b->cap = (uint32_t)len;
	b->home = 1;
	memcpy(b->data, data, len);
	stage_say(c->stage, 1, (struct message){.kind = MESSAGE_CONTROL, .buffer = b});
}

static void on_command(struct stage_client *c, const char *text)
{
	char *to = strncmp(text, "PUSH_REPLY", 10) == 0 ? c->push : c->command;

	snprintf(to, sizeof(c->command), "%s", text);
}

static void take_events(struct stage_client *c)
{
	struct session_event e;

	while (session_next_event(c->session, &e)) {
		if (e.kind == SESSION_EVENT_KEY) {
			c->has_key = true;
			c->keys++;
		} else if (e.kind == SESSION_EVENT_COMMAND) {
			on_command(c, e.text);
		} else if (e.kind == SESSION_EVENT_CLOSED) {
			c->is_closed = true;
			c->reason = e.reason;
		}
		secret_wipe(&e, sizeof(e));
	}
}

static void play_client(struct stage_client *c)
{
	uint64_t now_ms = clock_boot_ms();
	uint8_t bytes[CONTROL_PACKET_MAX];
	ssize_t n;
	size_t len;

	while ((n = recv(c->fd, bytes, sizeof(bytes), 0)) > 0) {
		c->received++;
		if (!c->is_closed &&
		    session_receive(c->session, (struct view){bytes, (size_t)n}, now_ms) != 0)
			continue;
	}
	if (c->is_closed)
		return;
	session_advance(c->session, now_ms, clock_wall_s());
	while (!c->is_mute &&
	       (len = session_send(c->session, now_ms, clock_wall_s(), bytes, sizeof(bytes))) > 0) {
		if (c->is_through_worker)
			send_through_worker(c, bytes, len);
		else if (send(c->fd, bytes, len, 0) < 0)
			break;
	}
	take_events(c);
}

/* --- time --- */

static void play(struct stage *s)
{
	struct timespec pause = {.tv_nsec = 1000000};

	play_workers(s);
	for (struct stage_client *c = s->clients; c; c = c->next)
		play_client(c);
	nanosleep(&pause, NULL);
}

void stage_until(struct stage *s, bool (*is_done)(void *ctx), void *ctx)
{
	uint64_t end_ms = clock_boot_ms() + PATIENCE_MS;

	while (!is_done(ctx)) {
		if (clock_boot_ms() > end_ms) {
			fprintf(stderr, "waited too long\n");
			abort();
		}
		play(s);
	}
}

void stage_pass(struct stage *s, unsigned ms)
{
	uint64_t end_ms = clock_boot_ms() + ms;

	while (clock_boot_ms() < end_ms)
		play(s);
}

bool stage_is_up(void *client)
{
	const struct stage_client *c = client;

	return c->has_key && c->push[0];
}

void stage_wait_up(struct stage_client *c)
{
	stage_until(c->stage, stage_is_up, c);
}

int stage_set_up(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	assert(s);
	stage_init(s);
	*state = s;
	return 0;
}

int stage_tear_down(void **state)
{
	stage_fini(*state);
	free(*state);
	return 0;
}
