/* SPDX-License-Identifier: Apache-2.0 */
/* Many silent clients in one process: real control channels through the control engine, then only
 * keepalive pings. For measuring what a connected client costs a server in memory and CPU.
 *
 *	idle_clients --server ADDR --port N --ca F --cert F --key F [--tls-crypt F]
 *	             [--clients N] [--seconds S] [--ping S] [--renegotiate]
 *
 * All clients show the same certificate, so the server wants duplicate-cn. Prints progress, then
 * "ready" when all are connected, idles for S seconds, and says how many are still alive. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config/addr.h"
#include "config/config.h"
#include "crypto/data_key.h"
#include "crypto/secret.h"
#include "crypto/static_key.h"
#include "crypto/wrap.h"
#include "server/control/session.h"
#include "server/control/tls.h"
#include "workers/payload.h"

#define STARTS_AT_ONCE 64 /* handshakes under way at the same time */
#define TICK_MS	       20

struct client {
	int fd;
	struct session *session;
	struct data_key key;
	struct aead_schedule *schedules; /* seal, open */
	bool is_connected, is_closed, is_renegotiated;
	uint64_t ping_at_ms;
};

struct options {
	const char *server, *ca, *cert, *key, *tls_crypt;
	uint16_t port;
	unsigned clients, seconds, ping_s;
	bool is_renegotiating;
};

struct swarm {
	struct options o;
	struct session_settings settings;
	struct tls_context *tls;
	struct static_key wrap_key;
	struct wrap_keys *wrap;
	struct aead *aead;
	struct client *clients;
	unsigned started, connected, closed, renegotiated;
	int epoll;
	union sockaddr_any server;
};

static void die(const char *what, int rc)
{
	fprintf(stderr, "idle_clients: %s: %s\n", what, strerror(rc < 0 ? -rc : rc));
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void send_out(struct client *c)
{
	uint8_t out[CONTROL_PACKET_MAX];
	size_t len;
	while ((len = session_send(c->session, now_ms(), (uint32_t)time(NULL), out, sizeof(out))) >
	       0)
		(void)!send(c->fd, out, len, MSG_DONTWAIT);
}

static void install(struct swarm *s, struct client *c, struct session_event *e)
{
	struct data_key_options o = {
		.peer_id = session_peer_id(c->session),
		.replay_window = REPLAY_WINDOW_DEFAULT,
	};
	if (c->is_connected)
		data_key_fini(&c->key, s->aead);
	else
		c->schedules = secret_alloc(2 * sizeof(struct aead_schedule));
	if (!c->schedules ||
	    data_key_init(&c->key, s->aead, &e->key, &o, &c->schedules[0], &c->schedules[1]) != 0)
		die("data key", ENOMEM);
	secret_wipe(&e->key, sizeof(e->key));
	if (c->is_connected) {
		s->renegotiated += !c->is_renegotiated;
		c->is_renegotiated = true;
		return;
	}
	c->is_connected = true;
	c->ping_at_ms = now_ms() + s->o.ping_s * 1000ull;
	s->connected++;
}

static void take_events(struct swarm *s, struct client *c)
{
	struct session_event e;
	while (session_next_event(c->session, &e)) {
		if (e.kind == SESSION_EVENT_AUTHORIZE)
			session_authorize(c->session, e.key_id, true, NULL, now_ms());
		else if (e.kind == SESSION_EVENT_KEY)
			install(s, c, &e);
		else if (e.kind == SESSION_EVENT_CLOSED && !c->is_closed) {
			c->is_closed = true;
			s->closed++;
		}
	}
}

static void advance(struct swarm *s, struct client *c)
{
	if (c->is_closed)
		return;
	session_advance(c->session, now_ms(), (uint32_t)time(NULL));
	take_events(s, c);
	if (!c->is_closed)
		send_out(c);
}

static void receive(struct swarm *s, struct client *c)
{
	uint8_t in[CONTROL_PACKET_MAX];
	ssize_t len;
	while ((len = recv(c->fd, in, sizeof(in), MSG_DONTWAIT)) > 0) {
		if (packet_is_control(packet_opcode(in[0])) && !c->is_closed)
			(void)!session_receive(c->session, (struct view){in, (size_t)len},
					       now_ms());
	}
	advance(s, c);
}

static void start(struct swarm *s, struct client *c)
{
	struct session_start start = {.now_ms = now_ms(), .wall_s = (uint32_t)time(NULL)};
	c->fd = socket(s->server.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, &s->server.sa, endpoint_len(&s->server)) != 0)
		die("socket (raise the limit of open files?)", errno);
	int rc = session_new(&s->settings, s->tls, &start, &c->session);
	if (rc != 0)
		die("session", rc);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0)
		die("epoll", errno);
	s->started++;
	advance(s, c);
}

static void ping(struct swarm *s, struct client *c)
{
	uint8_t room[DATA_KEY_HEADROOM + PAYLOAD_MAGIC_LEN + DATA_KEY_TAILROOM];
	struct data_segment seg = {.data = room + DATA_KEY_HEADROOM, .len = PAYLOAD_MAGIC_LEN};
	memcpy(seg.data, payload_ping, PAYLOAD_MAGIC_LEN);
	data_key_seal(&c->key, s->aead, &seg, 1);
	if (seg.drop != DROP_NONE)
		die("the data key is used up", EKEYEXPIRED);
	(void)!send(c->fd, seg.data, seg.len, MSG_DONTWAIT);
	c->ping_at_ms = now_ms() + s->o.ping_s * 1000ull;
}

static void turn(struct swarm *s)
{
	struct epoll_event events[64];
	int n = epoll_wait(s->epoll, events, 64, TICK_MS);
	for (int i = 0; i < n; i++)
		receive(s, events[i].data.ptr);
	uint64_t now = now_ms();
	for (unsigned i = 0; i < s->started; i++) {
		struct client *c = &s->clients[i];
		if (!c->is_closed && session_deadline(c->session) <= now)
			advance(s, c);
		if (c->is_connected && !c->is_closed && s->o.ping_s && c->ping_at_ms <= now)
			ping(s, c);
	}
}

static void connect_all(struct swarm *s)
{
	unsigned said = 0;
	while (s->connected + s->closed < s->o.clients) {
		while (s->started < s->o.clients &&
		       s->started - s->connected - s->closed < STARTS_AT_ONCE)
			start(s, &s->clients[s->started]);
		turn(s);
		if (s->connected >= said + 100) {
			said = s->connected;
			fprintf(stderr, "connected %u of %u\n", s->connected, s->o.clients);
		}
	}
}

static void idle(struct swarm *s, unsigned seconds)
{
	uint64_t end = now_ms() + seconds * 1000ull;
	while (now_ms() < end)
		turn(s);
}

static void renegotiate_all(struct swarm *s)
{
	for (unsigned i = 0; i < s->o.clients; i++) {
		struct client *c = &s->clients[i];
		if (c->is_connected && !c->is_closed) {
			session_renegotiate(c->session);
			advance(s, c);
		}
		while (i >= STARTS_AT_ONCE && s->renegotiated + s->closed + STARTS_AT_ONCE < i)
			turn(s);
	}
	while (s->renegotiated + s->closed < s->o.clients)
		turn(s);
}

static void set_up_tls(struct swarm *s)
{
	char why[512] = "";
	struct config c = {
		.ca.path = s->o.ca,
		.cert.path = s->o.cert,
		.key.path = s->o.key,
		.remote_cert_tls = REMOTE_CERT_ANY,
		.tls_version_min = 12,
	};
	int rc = tls_context_new(&c, false, &s->tls, why, sizeof(why));
	if (rc != 0)
		die(why, rc);
}

static void set_up_wrap(struct swarm *s)
{
	int rc = 0;
	if (s->o.tls_crypt) {
		struct config_file f = {.path = s->o.tls_crypt};
		char *text;
		size_t len;
		rc = config_file_read(&f, &text, &len);
		if (rc != 0)
			die(s->o.tls_crypt, rc);
		rc = static_key_parse((struct view){(uint8_t *)text, len}, &s->wrap_key);
		secret_wipe(text, len);
		free(text);
		if (rc != 0)
			die(s->o.tls_crypt, rc);
		s->settings.wrap_key = &s->wrap_key;
	}
	rc = wrap_keys_new(s->o.tls_crypt ? WRAP_TLS_CRYPT : WRAP_NONE, s->settings.wrap_key,
			   KEY_DIRECTION_1, NULL, &s->wrap);
	if (rc != 0)
		die("wrapping", rc);
}

static void set_up(struct swarm *s)
{
	struct rlimit files = {s->o.clients + 64, s->o.clients + 64};
	struct ip_addr a;
	if (!ip_addr_parse(s->o.server, &a))
		die("--server wants an address", EINVAL);
	if (a.family == 4) {
		s->server.in4.sin_family = AF_INET;
		s->server.in4.sin_port = htons(s->o.port);
		memcpy(&s->server.in4.sin_addr, a.bytes, 4);
	} else {
		s->server.in6.sin6_family = AF_INET6;
		s->server.in6.sin6_port = htons(s->o.port);
		memcpy(&s->server.in6.sin6_addr, a.bytes, 16);
	}
	(void)setrlimit(RLIMIT_NOFILE, &files);
	set_up_tls(s);
	set_up_wrap(s);
	s->settings.role = SESSION_CLIENT;
	s->settings.wrap = s->wrap;
	s->settings.max_packet_size = 1250;
	s->settings.hand_window_s = 60;
	s->settings.tran_window_s = 3600;
	s->settings.tls_timeout_s = 2;
	s->settings.replay_window = REPLAY_WINDOW_DEFAULT;
	s->settings.replay_time_s = 15;
	s->settings.data_ciphers = "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305";
	s->settings.auth = "SHA1";
	s->settings.key_direction = -1;
	s->settings.tun_mtu = 1500;
	s->settings.is_client_cert_required = true;
	s->settings.random = secret_random;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->clients = calloc(s->o.clients, sizeof(struct client));
	if (s->epoll < 0 || !s->clients || aead_new(AEAD_AUTO, &s->aead) != 0)
		die("start", ENOMEM);
}

static struct options parse(int argc, char **argv)
{
	static const struct option names[] = {
		{"server", 1, NULL, 's'},  {"port", 1, NULL, 'p'},
		{"ca", 1, NULL, 'a'},	   {"cert", 1, NULL, 'c'},
		{"key", 1, NULL, 'k'},	   {"tls-crypt", 1, NULL, 't'},
		{"clients", 1, NULL, 'n'}, {"seconds", 1, NULL, 'S'},
		{"ping", 1, NULL, 'P'},	   {"renegotiate", 0, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.port = 1194, .clients = 1000, .seconds = 30, .ping_s = 10};
	int ch;
	while ((ch = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t n = 0;
		if (strchr("pnSP", ch) && !number_parse(optarg, 65535, &n))
			die(optarg, EINVAL);
		switch (ch) {
		case 's':
			o.server = optarg;
			break;
		case 'p':
			o.port = (uint16_t)n;
			break;
		case 'a':
			o.ca = optarg;
			break;
		case 'c':
			o.cert = optarg;
			break;
		case 'k':
			o.key = optarg;
			break;
		case 't':
			o.tls_crypt = optarg;
			break;
		case 'n':
			o.clients = (unsigned)n;
			break;
		case 'S':
			o.seconds = (unsigned)n;
			break;
		case 'P':
			o.ping_s = (unsigned)n;
			break;
		case 'r':
			o.is_renegotiating = true;
			break;
		default:
			exit(64);
		}
	}
	if (!o.server || !o.ca || !o.cert || !o.key || !o.clients)
		die("--server, --ca, --cert and --key are needed", EINVAL);
	return o;
}

int main(int argc, char **argv)
{
	struct swarm s = {.o = parse(argc, argv)};
	set_up(&s);
	connect_all(&s);
	printf("ready: %u connected, %u failed\n", s.connected, s.closed);
	(void)fflush(stdout);
	if (s.o.is_renegotiating) {
		idle(&s, 2); /* the engine spaces renegotiations */
		renegotiate_all(&s);
		printf("renegotiated: %u\n", s.renegotiated);
		(void)fflush(stdout);
	}
	idle(&s, s.o.seconds);
	printf("alive: %u\n", s.connected - s.closed);
	return s.closed == 0 && s.connected == s.o.clients ? 0 : 1;
}
