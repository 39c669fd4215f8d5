/* SPDX-License-Identifier: Apache-2.0 */
#include "server/snapshots.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "server/admin/observer.h"
#include "server/admin/snapshot.h"
#include "server/admin/status.h"
#include "server/admission.h"
#include "server/clients.h"
#include "server/control/tls.h"
#include "server/ip_pool.h"
#include "server/queue_drops.h"
#include "server/shared.h"
#include "workers/peer.h"

#define CLIENTS_A_TURN 256
#define NEWCOMERS      64 /* room for clients that come while the picture is drawn */

struct snapshots {
	struct snapshots_setup setup;
	struct snapshot *drawing; /* NULL: none */
	size_t capacity;
	bool is_for_status;
	struct queue_drops queue_drops;
};

int snapshots_new(const struct snapshots_setup *setup, struct snapshots **out)
{
	struct snapshots *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->setup = *setup;
	*out = p;
	return 0;
}

void snapshots_free(struct snapshots *p)
{
	if (!p)
		return;
	free(p->drawing);
	free(p);
}

/* --- drawing --- */

static enum peer_state state_of(const struct client *c)
{
	switch (c->stage) {
	case CLIENT_CONNECTING:
		return PEER_STATE_AUTHENTICATING;
	case CLIENT_CONNECTED:
		return PEER_STATE_ESTABLISHED;
	case CLIENT_CLOSING:
	case CLIENT_REMOVED:
		return PEER_STATE_CLOSING;
	case CLIENT_HANDSHAKING:
		break;
	}
	return PEER_STATE_HANDSHAKING;
}

static void draw_traffic(const struct acceptor_shared *s, const struct client *c,
			 struct snapshot_client *out)
{
	uint64_t seen_ms = c->control_seen_ms;

	out->received_bytes = c->control_received_bytes;
	out->sent_bytes = c->control_sent_bytes;
	if (c->peer) {
		uint64_t data_ms = atomic_load_explicit(&c->peer->seen_ms, memory_order_relaxed);

		out->received_bytes +=
			atomic_load_explicit(&c->peer->received_bytes, memory_order_relaxed);
		out->sent_bytes += atomic_load_explicit(&c->peer->sent_bytes, memory_order_relaxed);
		if (data_ms > seen_ms)
			seen_ms = data_ms;
	}
	out->last_ref_s = (int64_t)s->wall_s;
	if (s->now_ms > seen_ms)
		out->last_ref_s -= (int64_t)((s->now_ms - seen_ms) / 1000);
}

static void draw_client(const struct acceptor_shared *s, const struct client *c,
			struct snapshot_client *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->common_name, sizeof(out->common_name), "%s",
		 c->common_name[0] ? c->common_name : "UNDEF");
	snprintf(out->username, sizeof(out->username), "%.63s",
		 c->username ? c->username : "UNDEF");
	client_real_addr(c, out->real_addr);
	if (c->has_lease) {
		ip_addr_print(&c->lease.addr4, out->virtual4);
		ip_addr_print(&c->lease.addr6, out->virtual6);
	}
	draw_traffic(s, c, out);
	/* Stock counts from the making of the instance; before that there is nothing to count. */
	out->connected_s = c->connected_s
				   ? c->connected_s
				   : s->wall_s - (int64_t)((s->now_ms - c->started_ms) / 1000);
	out->client_id = c->id;
	out->peer_id = c->has_place ? c->place.peer_id : 0;
	out->worker = c->has_place ? c->place.worker : 0;
	out->cipher = c->cipher ? c->cipher : "";
	out->state = state_of(c);
}

static void draw_queue_drops(struct snapshots *p, struct snapshot *out)
{
	const struct acceptor_shared *s = p->setup.shared;
	struct queue_drops *q = &p->queue_drops;

	for (unsigned i = 0; i < s->group_count; i++)
		queue_drops_read_group(q, i, &s->groups[i]);
	queue_drops_read_tun(q, p->setup.netlink, p->setup.ifindex);
	memcpy(out->socket_drops, q->sockets, sizeof(out->socket_drops));
	out->tun_queue_drops = q->tun;
}

static void draw_totals(struct snapshots *p, struct snapshot *out)
{
	const struct acceptor_shared *s = p->setup.shared;
	const struct tls_context *tls = admission_tls(p->setup.admission);

	out->made_s = s->wall_s;
	out->control = s->count;
	out->max_clients = s->config->max_clients;
	if (s->pool) {
		out->pool4_size = ip_pool_size4(s->pool);
		out->pool6_size = ip_pool_size6(s->pool);
		out->pool4_used = out->pool4_size ? ip_pool_used(s->pool) : 0;
		out->pool6_used = out->pool6_size ? ip_pool_used(s->pool) : 0;
	}
	out->routes4 = s->routes4;
	out->routes6 = s->routes6;
	draw_queue_drops(p, out);
	out->is_tun_steered = s->tun_steering != NULL;
	out->cert_not_after_s = tls_context_cert_not_after(tls);
	out->reloaded_s = s->reloaded_s;
	out->is_reload_failed = s->is_reload_failed;
	out->crl_next_update_s = tls_context_crl_next_update(tls);
}

static void hand_out(struct snapshots *p)
{
	struct snapshot *done = p->drawing;
	int err;

	p->drawing = NULL;
	draw_totals(p, done);
	if (p->is_for_status && p->setup.status_file) {
		err = status_file_write(p->setup.status_file, done,
					p->setup.shared->config->status_version);
		if (err)
			log_line(LOG_WARN, "cannot write the status file: %s", strerror(-err));
	}
	if (p->setup.observer)
		observer_publish(p->setup.observer, done);
	else
		free(done);
}

static void begin(struct snapshots *p, bool is_for_status)
{
	size_t capacity = clients_count(p->setup.shared->clients) + NEWCOMERS;

	free(p->drawing);
	p->drawing = calloc(1, sizeof(*p->drawing) + capacity * sizeof(p->drawing->clients[0]));
	p->capacity = capacity;
	p->is_for_status = is_for_status;
	clients_walk_begin(p->setup.shared->clients);
}

void snapshots_begin(struct snapshots *p, bool is_status_due)
{
	bool is_watched = p->setup.observer && observer_wants_snapshot(p->setup.observer);

	if (p->drawing) {
		p->is_for_status = p->is_for_status || is_status_due;
		return;
	}
	if (is_watched || (is_status_due && p->setup.status_file))
		begin(p, is_status_due);
}

/* Returns whether the walk is not at its end. */
static bool draw(struct snapshots *p, unsigned max)
{
	struct snapshot *out = p->drawing;

	for (unsigned i = 0; i < max && out->client_count < p->capacity; i++) {
		const struct client *c = clients_walk_next(p->setup.shared->clients);
		struct snapshot_client *drawn = &out->clients[out->client_count];

		if (!c)
			return false;
		draw_client(p->setup.shared, c, drawn);
		out->states[drawn->state]++;
		out->client_count++;
	}
	return out->client_count < p->capacity;
}

bool snapshots_continue(struct snapshots *p)
{
	if (!p->drawing)
		return false;
	if (draw(p, CLIENTS_A_TURN))
		return true;
	hand_out(p);
	return false;
}

static void log_lines(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_line(LOG_NOTE, "%s", line);
}

void snapshots_write_now(struct snapshots *p, bool is_log)
{
	char *text = NULL;
	size_t len;

	begin(p, true);
	if (!p->drawing)
		return;
	while (draw(p, CLIENTS_A_TURN))
		;
	draw_totals(p, p->drawing);
	if (is_log)
		text = status_text(p->drawing, p->setup.shared->config->status_version, &len);
	if (text)
		log_lines(text);
	free(text);
	hand_out(p);
}
