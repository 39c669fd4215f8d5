/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/link.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pki.h"

#define CIPHERS	   "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305"
#define DELAY_MS   20
#define REORDER_MS 400

static struct pki_name *ca, *server_name, *client_name;
/* Contexts are immutable: one a side and version is made, and shared by all links. */
static struct tls_context *contexts[2][14];
static const struct session_id server_sid = {{0x5A, 1, 2, 3, 4, 5, 6, 7}};

void link_pki_init(void)
{
	if (ca)
		return;
	ca = pki_make(&(struct pki_request){.cn = "ca", .usage = PKI_CA}, NULL);
	server_name = pki_make(
		&(struct pki_request){.cn = "server", .usage = PKI_SERVER, .serial = 2}, ca);
	client_name = pki_make(
		&(struct pki_request){.cn = "client", .usage = PKI_CLIENT, .serial = 3}, ca);
}

void link_pki_fini(void)
{
	pki_free(ca);
	pki_free(server_name);
	pki_free(client_name);
	ca = server_name = client_name = NULL;
	for (int i = 0; i < 2; i++) {
		for (size_t v = 0; v < sizeof(contexts[0]) / sizeof(contexts[0][0]); v++) {
			tls_context_unref(contexts[i][v]);
			contexts[i][v] = NULL;
		}
	}
}

const char *link_ca_pem(void)
{
	return pki_cert(ca);
}

struct pki_name *link_make_client(const char *cn)
{
	return pki_make(&(struct pki_request){.cn = cn, .usage = PKI_CLIENT, .serial = 4}, ca);
}

static struct config_file inline_file(const char *text)
{
	return (struct config_file){.text = text, .text_len = strlen(text)};
}

static struct tls_context *make_context(const struct link_setup *setup, bool is_server)
{
	const struct pki_name *own = is_server ? server_name : client_name;
	const struct config c = {
		.ca = inline_file(pki_cert(ca)),
		.cert = inline_file(pki_cert(own)),
		.key = inline_file(pki_key(own)),
		.remote_cert_tls = is_server ? REMOTE_CERT_CLIENT : REMOTE_CERT_SERVER,
		.tls_version_min = setup->tls_version ? setup->tls_version : 12,
		.tls_version_max = setup->tls_version,
	};
	struct tls_context *t;
	char why[512];
	if (tls_context_new(&c, is_server, &t, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return t;
}

uint32_t link_random(struct link *l)
{
	l->rng ^= l->rng << 13;
	l->rng ^= l->rng >> 17;
	l->rng ^= l->rng << 5;
	return l->rng;
}

static struct tls_context *context_of(const struct link_setup *setup, int which)
{
	struct tls_context **t = &contexts[which][setup->tls_version];
	if (!*t)
		*t = make_context(setup, which == LINK_SERVER);
	return tls_context_ref(*t);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void make_end(struct link *l, int which)
{
	const struct link_setup *setup = &l->setup;
	struct link_end *e = &l->ends[which];
	bool is_server = which == LINK_SERVER;
	e->tls = context_of(setup, which);
	uint32_t reneg_s = is_server ? setup->server_reneg_s : setup->client_reneg_s;
	e->settings = (struct session_settings){
		.role = is_server ? SESSION_SERVER : SESSION_CLIENT,
		.wrap = l->wraps[which],
		.wrap_key = setup->wrap == WRAP_NONE ? NULL : &l->wrap_key,
		.max_packet_size = or_default(setup->max_packet_size, 1250),
		.hand_window_s = or_default(setup->hand_window_s, 60),
		.tran_window_s = or_default(setup->tran_window_s, 3600),
		.tls_timeout_s = 2,
		.reneg_sec_max = reneg_s,
		.reneg_sec_min = reneg_s,
		.replay_window = 64,
		.replay_time_s = 15,
		.data_ciphers = is_server
					? (setup->data_ciphers ? setup->data_ciphers : CIPHERS)
					: (setup->client_ciphers ? setup->client_ciphers : CIPHERS),
		.key_direction = -1,
		.tun_mtu = 1500,
		.is_client_cert_required = true,
		.peer_info = setup->peer_info,
		.username = setup->username,
		.password = setup->password,
		.random = secret_random,
	};
}

static void start(struct link *l, int which)
{
	struct link_end *e = &l->ends[which];
	struct session_start s = {.now_ms = l->now_ms, .wall_s = link_wall_s(l)};
	if (which == LINK_SERVER) {
		s.own_sid = server_sid;
		s.peer_sid = *session_own_sid(l->ends[LINK_CLIENT].session);
	}
	int err = session_new(&e->settings, e->tls, &s, &e->session);
	assert(err == 0);
}

struct link *link_new(const struct link_setup *setup)
{
	struct link *l = calloc(1, sizeof(*l));
	assert(l);
	link_pki_init();
	l->setup = *setup;
	l->rng = or_default(setup->seed, 1) * 2654435761u;
	l->now_ms = 1000000;
	l->flying = calloc(LINK_FLYING_MAX, sizeof(*l->flying));
	assert(l->flying);
	for (size_t i = 0; i < sizeof(l->wrap_key.bytes); i++)
		l->wrap_key.bytes[i] = (uint8_t)(i * 7 + 1);
	for (int i = 0; i < 2; i++) {
		enum key_direction d = i == LINK_SERVER ? KEY_DIRECTION_0 : KEY_DIRECTION_1;
		int err = wrap_keys_new(setup->wrap, &l->wrap_key, d, "SHA1", &l->wraps[i]);
		assert(err == 0);
		make_end(l, i);
	}
	start(l, LINK_CLIENT);
	return l;
}

void link_free(struct link *l)
{
	for (int i = 0; i < 2; i++) {
		session_free(l->ends[i].session);
		tls_context_unref(l->ends[i].tls);
		wrap_keys_free(l->wraps[i]);
	}
	free(l->flying);
	free(l);
}

uint32_t link_wall_s(const struct link *l)
{
	return (uint32_t)(PKI_NOW + l->now_ms / 1000);
}

void link_accept(struct link *l)
{
	start(l, LINK_SERVER);
}

/* --- events --- */

static void judge(struct link *l, uint8_t key_id)
{
	struct session *s = l->ends[LINK_SERVER].session;
	const struct push_plan plan = {
		.options = l->setup.push,
		.option_count = l->setup.push_count,
		.ifconfig = "10.8.0.2 255.255.255.0",
		.peer_id = 5,
	};
	if (l->setup.is_held)
		return;
	if (key_id == 0 && !l->setup.is_refused) {
		int err = session_set_push(s, &plan);
		assert(err == 0);
	}
	session_authorize(s, key_id, !l->setup.is_refused, l->setup.refusal, l->now_ms);
}

static void note_line(struct link_end *e, const char *text)
{
	size_t len = strlen(e->log);
	snprintf(e->log + len, sizeof(e->log) - len, "%s\n", text);
}

static void take_event(struct link *l, int which, const struct session_event *ev)
{
	struct link_end *e = &l->ends[which];
	e->counts[ev->kind]++;
	switch (ev->kind) {
	case SESSION_EVENT_AUTHORIZE:
		judge(l, ev->key_id);
		break;
	case SESSION_EVENT_KEY:
		e->keys[ev->key_id] = ev->key;
		e->has_key[ev->key_id] = true;
		e->seal_from_ms[ev->key_id] = ev->seal_from_ms;
		e->last_key_id = ev->key_id;
		break;
	case SESSION_EVENT_KEY_SEAL_FROM:
		e->seal_from_ms[ev->key_id] = ev->seal_from_ms;
		break;
	case SESSION_EVENT_KEY_RETIRED:
		e->has_key[ev->key_id] = false;
		e->last_retired = ev->key_id;
		break;
	case SESSION_EVENT_COMMAND:
		snprintf(e->command, sizeof(e->command), "%s", ev->text);
		break;
	case SESSION_EVENT_RENEGOTIATION:
		e->renegotiation_reason = ev->reason;
		e->was_initiator = ev->is_initiator;
		break;
	case SESSION_EVENT_LOG:
		note_line(e, ev->text);
		break;
	case SESSION_EVENT_CLOSED:
		e->is_closed = true;
		e->closed_reason = ev->reason;
		break;
	case SESSION_EVENT_PUSHED:
	case SESSION_EVENT_EXIT:
	case SESSION_EVENT_NONE:
		break;
	}
}

/* --- the wire --- */

static void put(struct link *l, int to, const uint8_t *bytes, size_t len)
{
	const struct link_setup *setup = &l->setup;
	if (l->is_cut || link_random(l) % 100 < setup->loss)
		return;
	unsigned copies = link_random(l) % 100 < setup->repeat ? 2 : 1;
	for (unsigned i = 0; i < copies && l->flying_count < LINK_FLYING_MAX; i++) {
		struct link_datagram *d = &l->flying[l->flying_count++];
		d->at_ms = l->now_ms + DELAY_MS;
		if (link_random(l) % 100 < setup->reorder)
			d->at_ms += link_random(l) % REORDER_MS;
		d->to = to;
		d->len = len;
		memcpy(d->bytes, bytes, len);
	}
}

/* The server's reset is stateless and not part of a session: it is made up here. */
static void answer_reset(struct link *l)
{
	const struct session_id *client = session_own_sid(l->ends[LINK_CLIENT].session);
	uint8_t plain[64], out[CONTROL_PACKET_MAX];
	struct writer p = writer_init(plain, sizeof(plain)), w = writer_init(out, sizeof(out));
	control_body_write(&p, OPCODE_HARD_RESET_SERVER_V2,
			   &(struct control_body){.ack_count = 1, .peer_sid = *client});
	wrap_seal(l->wraps[LINK_SERVER], OPCODE_HARD_RESET_SERVER_V2, 0, &server_sid, 1,
		  link_wall_s(l), writer_done(&p), &w);
	put(l, LINK_CLIENT, out, writer_len(&w));
}

static void deliver(struct link *l, const struct link_datagram *d)
{
	struct view v = {d->bytes, d->len};
	struct link_end *e = &l->ends[d->to];
	if (l->on_datagram)
		l->on_datagram(l, d->to, v);
	if (!e->session && d->bytes[0] == 0x38) {
		answer_reset(l);
		return;
	}
	/* What the client sends next echoes our session-id; the cookie is tested elsewhere. */
	if (!e->session)
		start(l, d->to);
	if (!e->is_closed)
		l->last_drop = session_receive(e->session, v, l->now_ms);
}

static bool is_running(const struct link_end *e)
{
	return e->session && !e->is_closed;
}

static void take_events(struct link *l, int which)
{
	struct session_event ev;
	while (session_next_event(l->ends[which].session, &ev))
		take_event(l, which, &ev);
}

static void pump(struct link *l, int which)
{
	struct link_end *e = &l->ends[which];
	uint8_t out[CONTROL_PACKET_MAX];
	for (unsigned i = 0; i < 100 && is_running(e) && session_deadline(e->session) <= l->now_ms;
	     i++) {
		session_advance(e->session, l->now_ms, link_wall_s(l));
		take_events(l, which);
		size_t len;
		while ((len = session_send(e->session, l->now_ms, link_wall_s(l), out,
					   sizeof(out)))) {
			e->sent++;
			if (len > l->largest)
				l->largest = len;
			put(l, 1 - which, out, len);
		}
		take_events(l, which);
		assert(i < 99 && "an end that never comes to rest");
	}
}

static void deliver_due(struct link *l)
{
	for (size_t i = 0; i < l->flying_count;) {
		if (l->flying[i].at_ms > l->now_ms) {
			i++;
			continue;
		}
		struct link_datagram d = l->flying[i];
		l->flying_count--;
		memmove(&l->flying[i], &l->flying[i + 1],
			(l->flying_count - i) * sizeof(l->flying[0]));
		deliver(l, &d);
	}
}

static uint64_t next_time(const struct link *l)
{
	uint64_t at = UINT64_MAX;
	for (int i = 0; i < 2; i++)
		if (is_running(&l->ends[i]) && session_deadline(l->ends[i].session) < at)
			at = session_deadline(l->ends[i].session);
	for (size_t i = 0; i < l->flying_count; i++)
		if (l->flying[i].at_ms < at)
			at = l->flying[i].at_ms;
	return at;
}

bool link_run(struct link *l, uint64_t ms, bool (*done)(const struct link *l))
{
	uint64_t end_ms = l->now_ms + ms;
	for (;;) {
		deliver_due(l);
		pump(l, LINK_CLIENT);
		pump(l, LINK_SERVER);
		if (done && done(l))
			return true;
		uint64_t at = next_time(l);
		if (at <= l->now_ms)
			continue;
		if (at > end_ms) {
			l->now_ms = end_ms;
			return false;
		}
		l->now_ms = at;
	}
}

/* --- judgements --- */

bool link_keys_match(const struct link *l, uint8_t key_id)
{
	const struct link_end *a = &l->ends[0], *b = &l->ends[1];
	const struct data_key_material *x = &a->keys[key_id], *y = &b->keys[key_id];
	return a->has_key[key_id] && b->has_key[key_id] && x->cipher == y->cipher &&
	       memcmp(x->seal_key, y->open_key, sizeof(x->seal_key)) == 0 &&
	       memcmp(x->open_key, y->seal_key, sizeof(x->open_key)) == 0 &&
	       memcmp(x->seal_iv, y->open_iv, sizeof(x->seal_iv)) == 0 &&
	       memcmp(x->open_iv, y->seal_iv, sizeof(x->open_iv)) == 0 &&
	       memcmp(x->seal_key, x->open_key, sizeof(x->seal_key)) != 0;
}

bool link_is_up(const struct link *l)
{
	return l->ends[LINK_SERVER].has_key[0] && l->ends[LINK_CLIENT].has_key[0];
}
