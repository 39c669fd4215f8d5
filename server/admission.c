/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admission.h"

#include <errno.h>
#include <stdlib.h>

#include "config/log.h"
#include "crypto/hmac.h"
#include "server/clients.h"
#include "server/control/initial.h"
#include "server/control/session.h"
#include "server/control/tls.h"
#include "server/removal.h"
#include "server/shared.h"
#include "workers/udp.h"

#define LOGS_PER_S	10  /* of what strangers can cause (security.md, section 4.2) */
#define TALKERS_PER_S	100 /* handshakes that may log: each proved its address */
#define CRL_CHECK_MS	1000
#define CRL_COMPLAIN_MS 60000 /* between the lines about one that cannot be read */
#define PREFIX_BURST	500   /* security.md, P-3 */
#define PREFIX_PER_S	100
#define TOTAL_PER_S	20000
#define HALF_OPEN_MIN	64
#define REPLY_MAX	256

/* At most `n` in `period_ms`. */
struct frequency {
	uint32_t n;
	uint64_t period_ms, since_ms;
	uint32_t count;
};

struct admission {
	struct acceptor_shared *shared;
	struct tls_context *tls;
	struct hmac *cookie_key;
	struct initial_settings initial;
	struct session_settings session;
	struct initial_limit *limit;
	struct frequency new_sessions; /* connect-freq */
	uint32_t half_open_max;
	uint64_t crl_next_ms;	  /* when the CRL file is looked at again */
	uint64_t crl_complain_ms; /* not before then again */
};

static void session_settings_init(const struct config *c, const struct admission_setup *setup,
				  struct session_settings *out)
{
	*out = (struct session_settings){
		.role = SESSION_SERVER,
		.wrap = setup->wrap,
		.wrap_key = setup->wrap_key,
		.max_packet_size = c->max_packet_size,
		.hand_window_s = c->hand_window_s,
		.tran_window_s = c->tran_window_s,
		.tls_timeout_s = c->tls_timeout_s,
		.reneg_sec_max = c->reneg_sec_max,
		.reneg_sec_min = c->reneg_sec_min,
		.replay_window = c->replay_window,
		.replay_time_s = c->replay_time_s,
		.data_ciphers = c->data_ciphers,
		.data_ciphers_fallback = c->data_ciphers_fallback,
		.cipher = c->cipher,
		.auth = c->auth,
		.key_direction = c->tls_auth_direction,
		.tun_mtu = c->tun_mtu,
		.is_client_cert_required = c->client_cert == CLIENT_CERT_REQUIRE,
		.random = secret_random,
	};
}

static int limit_new(const struct config *c, struct initial_limit **out)
{
	struct initial_limit_setup setup = {
		.prefix_burst = PREFIX_BURST,
		.prefix_per_s = PREFIX_PER_S,
		.total_per_s = TOTAL_PER_S,
	};

	if (c->connect_freq_initial_n > 0) {
		uint32_t seconds = c->connect_freq_initial_s ? c->connect_freq_initial_s : 1;

		setup.prefix_burst = c->connect_freq_initial_n;
		setup.prefix_per_s = (c->connect_freq_initial_n + seconds - 1) / seconds;
	}
	return initial_limit_new(&setup, out);
}

static int cookie_key_new(struct hmac **out)
{
	uint8_t key[COOKIE_KEY_LEN];
	WIPE_ON_EXIT(key);
	int err = secret_random(key, sizeof(key));

	return err ? err : hmac_new(key, sizeof(key), out);
}

static void use_tls(struct admission *a, struct tls_context *tls)
{
	a->tls = tls;
	a->shared->tls = tls;
}

int admission_new(struct acceptor_shared *shared, const struct admission_setup *setup,
		  struct admission **out)
{
	const struct config *c = shared->config;
	struct admission *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->shared = shared;
	use_tls(a, tls_context_ref(setup->tls));
	shared->reloaded_s = shared->wall_s;
	a->initial.wrap = setup->wrap;
	a->initial.hand_window_s = c->hand_window_s;
	a->new_sessions.n = c->connect_freq_n;
	a->new_sessions.period_ms = (uint64_t)c->connect_freq_s * 1000;
	a->half_open_max = c->max_clients / 4 > HALF_OPEN_MIN ? c->max_clients / 4 : HALF_OPEN_MIN;
	session_settings_init(c, setup, &a->session);
	err = cookie_key_new(&a->cookie_key);
	a->initial.cookie_key = a->cookie_key;
	if (!err)
		err = limit_new(c, &a->limit);
	if (err) {
		admission_free(a);
		return err;
	}
	shared->initial_limit = a->limit;
	*out = a;
	return 0;
}

void admission_free(struct admission *a)
{
	if (!a)
		return;
	initial_limit_free(a->limit);
	tls_context_unref(a->tls);
	hmac_free(a->cookie_key);
	free(a);
}

void admission_reload(struct admission *a)
{
	struct tls_context *fresh;
	char why[512];

	int err = tls_context_new(a->shared->config, true, &fresh, why, sizeof(why));
	a->shared->is_reload_failed = err != 0;
	if (err) {
		log_line(LOG_ERROR, "%s: the certificates and CRL loaded before stay in use%s", why,
			 err == -EACCES ? "; let the account of `user` read it, or restart" : "");
		return;
	}
	tls_context_unref(a->tls);
	use_tls(a, fresh);
	a->shared->reloaded_s = a->shared->wall_s;
	log_line(LOG_NOTE, "certificates, key and CRL were read again");
}

const struct tls_context *admission_tls(const struct admission *a)
{
	return a->tls;
}

static void renew_crl(struct admission *a)
{
	struct tls_context *fresh;
	char why[512];

	if (tls_context_renew_crl(a->tls, a->shared->config, &fresh, why, sizeof(why))) {
		if (a->shared->now_ms >= a->crl_complain_ms) {
			log_line(LOG_ERROR, "%s: the CRL loaded before stays in use", why);
			a->crl_complain_ms = a->shared->now_ms + CRL_COMPLAIN_MS;
		}
		return;
	}
	a->crl_complain_ms = 0;
	tls_context_unref(a->tls);
	use_tls(a, fresh);
	log_line(LOG_NOTE, "the CRL was read again");
}

void admission_check_crl(struct admission *a)
{
	if (a->shared->now_ms < a->crl_next_ms)
		return;
	a->crl_next_ms = a->shared->now_ms + CRL_CHECK_MS;
	if (tls_context_crl_changed(a->tls))
		renew_crl(a);
}

static bool frequency_pass(struct frequency *f, uint64_t now_ms)
{
	if (f->n == 0)
		return true;
	if (now_ms - f->since_ms >= f->period_ms) {
		f->since_ms = now_ms;
		f->count = 0;
	}
	if (f->count == f->n)
		return false;
	f->count++;
	return true;
}

/* --- answers without state --- */

static bool is_live(void *ctx, const struct session_id *server_sid)
{
	struct acceptor_shared *s = ctx;

	return clients_is_live_sid(s->clients, server_sid);
}

static void reply(struct admission *a, const struct link_addr *from, const struct initial_result *r)
{
	struct acceptor_shared *s = a->shared;
	const struct udp_group *g = &s->groups[from->listener];
	uint8_t out[REPLY_MAX];
	size_t len;

	if (s->is_stopping || !initial_limit_take(a->limit, &from->remote, s->now_ms)) {
		s->count.drops[DROP_RATE_LIMITED]++;
		return;
	}
	len = initial_reply(&a->initial, r, &from->remote, from->listener, s->now_ms / 1000,
			    s->wall_s, out, sizeof(out));
	if (len == 0)
		return;
	s->count.cookies_issued++;
	s->count.control_sent[OPCODE_HARD_RESET_SERVER_V2]++;
	(void)udp_send(g->fds[0], from, g->has_pktinfo, out, len);
}

static void log_dropped(struct admission *a, const struct link_addr *from, enum drop drop)
{
	static struct log_limit limit;
	char addr[ENDPOINT_TEXT_MAX];

	if (!log_is_on(LOG_DEBUG) || !log_limit_pass(&limit, a->shared->now_ms, LOGS_PER_S))
		return;
	endpoint_print_af(&from->remote, addr);
	if (drop == DROP_CONTROL_HMAC)
		log_line(LOG_DEBUG, "TLS Error: cannot locate HMAC in incoming packet from %s",
			 addr);
	else
		log_line(LOG_DEBUG, "packet from %s dropped: %s", addr, drop_name(drop));
}

/* --- admission --- */

/* Count a refusal; `limit` is of its call site. Returns whether it is to be logged. */
static bool refused(struct admission *a, struct log_limit *limit)
{
	a->shared->count.handshakes_rejected_limit++;
	return log_limit_pass(limit, a->shared->now_ms, LOGS_PER_S);
}

/* An address has at most one client that is not authenticated: the newest with a valid cookie. One
 * that is about to leave is not replaced (security.md, section 3.1). */
static bool make_way(struct admission *a, const struct link_addr *from)
{
	struct acceptor_shared *s = a->shared;
	struct client *c = clients_at(s->clients, from);

	while (c) {
		struct client *next = clients_next_at(c, from);

		if (c->stage == CLIENT_CLOSING)
			return false;
		if (!c->is_authenticated)
			removal_start(s, c, CLIENT_END_REPLACED);
		c = next;
	}
	return true;
}

/* Make room among the half-open ones: the oldest that has not begun TLS goes, else the oldest. An
 * honest handshake takes a fraction of a second, so under a flood age is what tells them apart. */
static void evict_half_open(struct admission *a)
{
	struct clients *t = a->shared->clients;
	struct client *c = clients_oldest_half_open(t);

	while (c && c->has_progress)
		c = clients_next_half_open(t, c);
	if (!c)
		c = clients_oldest_half_open(t);
	if (c)
		removal_start(a->shared, c, CLIENT_END_REPLACED);
}

/* Removed clients count neither against max-clients nor as half open, yet those that a handshake
 * thread or a worker still has take memory, and time to look through. */
static bool is_clearing_up(struct admission *a)
{
	struct clients *t = a->shared->clients;

	if (clients_removed_count(t) >= a->half_open_max)
		removal_reap(a->shared);
	return clients_removed_count(t) >= a->half_open_max;
}

static bool is_within_limits(struct admission *a)
{
	static struct log_limit freq_limit, busy_limit, full_limit, clearing_limit;
	struct acceptor_shared *s = a->shared;
	const struct config *c = s->config;
	uint64_t wait_ms = handshake_backlog_ms(s->handshake);

	if (!frequency_pass(&a->new_sessions, s->now_ms)) {
		if (refused(a, &freq_limit))
			log_line(LOG_WARN, "MULTI: new incoming connection would exceed "
					   "--connect-freq");
		return false;
	}
	if (wait_ms > (uint64_t)c->hand_window_s * 1000) {
		if (refused(a, &busy_limit))
			log_line(LOG_WARN,
				 "MULTI: new incoming connection refused: handshakes wait %u s",
				 (unsigned)(wait_ms / 1000));
		return false;
	}
	if (clients_count(s->clients) >= c->max_clients) {
		if (refused(a, &full_limit))
			log_line(LOG_WARN,
				 "MULTI: new incoming connection would exceed maximum number of "
				 "clients (%u)",
				 c->max_clients);
		return false;
	}
	if (is_clearing_up(a)) {
		if (refused(a, &clearing_limit))
			log_line(LOG_WARN,
				 "MULTI: new incoming connection refused: %u earlier clients are "
				 "still being removed",
				 clients_removed_count(s->clients));
		return false;
	}
	if (clients_half_open_count(s->clients) >= a->half_open_max)
		evict_half_open(a);
	return true;
}

static struct client *admit(struct admission *a, const struct link_addr *from,
			    const struct initial_result *r)
{
	static struct log_limit limit;
	struct acceptor_shared *s = a->shared;
	struct session_start start = {
		.own_sid = r->server_sid,
		.peer_sid = r->client_sid,
		.now_ms = s->now_ms,
		.wall_s = s->wall_s,
	};
	struct client *c;

	if (s->is_stopping || !make_way(a, from) || !is_within_limits(a))
		return NULL;
	admission_check_crl(a);
	c = clients_add(s->clients, from, &r->server_sid, &r->client_sid, s->now_ms);
	if (!c)
		return NULL;
	c->is_quiet = !log_limit_pass(&limit, s->now_ms, TALKERS_PER_S);
	start.is_ipv6 = client_is_ipv6(c);
	if (session_new(&a->session, a->tls, &start, &c->session)) {
		removal_start(s, c, CLIENT_END_NONE);
		return NULL;
	}
	s->count.handshakes_started++;
	return c;
}

struct client *admission_judge(struct admission *a, const struct link_addr *from,
			       struct view datagram)
{
	struct acceptor_shared *s = a->shared;
	struct initial_result r = initial_judge(&a->initial, datagram, &from->remote,
						from->listener, s->now_ms / 1000, is_live, s);

	switch (r.verdict) {
	case INITIAL_RESET:
		reply(a, from, &r);
		return NULL;
	case INITIAL_ACCEPT:
		s->count.cookies_accepted++;
		return admit(a, from, &r);
	case INITIAL_DROP:
		break;
	}
	s->count.drops[r.drop]++;
	if (r.drop == DROP_COOKIE)
		s->count.cookies_rejected++;
	log_dropped(a, from, r.drop);
	return NULL;
}
