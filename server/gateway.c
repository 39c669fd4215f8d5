/* SPDX-License-Identifier: Apache-2.0 */
#include "server/gateway.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/log.h"
#include "crypto/packet.h"
#include "server/acceptor.h"
#include "server/admin/http.h"
#include "server/admin/observer.h"
#include "server/admin/status.h"
#include "server/device.h"
#include "server/device_steering.h"
#include "server/ip_pool.h"
#include "server/keys.h"
#include "server/launcher.h"
#include "server/occ.h"
#include "server/privilege.h"
#include "server/worker_set.h"
#include "workers/mailbox.h"
#include "workers/route_table.h"
#include "workers/tun_steering.h"
#include "workers/udp_path.h"

struct gateway {
	const struct config *config;
	uid_t uid;
	gid_t gid;
	struct launcher *launcher;
	struct device device;
	bool has_device;
	struct tun_steering *tun_steering; /* NULL: the kernel's own serves */
	struct udp_group group;
	bool has_group;
	struct slot_table slots;
	struct keys keys;
	struct ip_pool *pool;
	struct status_file *status_file;
	bool has_pid_file;
	struct mailboxes *mailboxes;
	struct route_table *routes;
	struct observer *observer;
	struct worker_set workers;
	struct worker_shared shared;
	uint8_t occ_reply[OCC_REPLY_MAX];
	struct acceptor *acceptor;
};

uint32_t gateway_peer_id_limit(uint32_t max_clients)
{
	uint64_t rounds = ((uint64_t)max_clients + STEERING_SLOTS - 1) / STEERING_SLOTS;
	uint64_t limit = STEERING_SLOTS * (2 * rounds + 4);
	uint64_t most = PEER_ID_NONE - PEER_ID_NONE % STEERING_SLOTS;
	return (uint32_t)(limit < most ? limit : most);
}

static int look_up_user(struct gateway *g, char *why, size_t why_len)
{
	return privilege_lookup(g->config, &g->uid, &g->gid, why, why_len);
}

static int check_limits(struct gateway *g, char *why, size_t why_len)
{
	return privilege_check_limits(g->config, why, why_len);
}

static int start_launcher(struct gateway *g, char *why, size_t why_len)
{
	int err = launcher_start(&g->launcher);
	if (err != 0)
		snprintf(why, why_len, "cannot start the script launcher: %s", strerror(-err));
	return err;
}

static int open_device(struct gateway *g, char *why, size_t why_len)
{
	int err = device_open(g->config, &g->device, why, why_len);
	g->has_device = err == 0;
	if (err == 0)
		device_steering_load(g->config, &g->device.tun, &g->tun_steering);
	return err;
}

/* Behind the device's lines in the log, where stock has it. */
static int log_socket(struct gateway *g, char *why, size_t why_len)
{
	(void)why;
	(void)why_len;
	const struct listen_spec *l = &g->config->listen;
	char text[ENDPOINT_TEXT_MAX];
	bool is_v6 = g->group.local.sa.sa_family == AF_INET6;
	if (l->host == NULL)
		snprintf(text, sizeof(text), "[%s][undef]:%u", is_v6 ? "AF_INET6" : "AF_INET",
			 l->port);
	else
		endpoint_print_af(&g->group.local, text);
	const char *proto = is_v6 ? "UDPv6" : "UDPv4";
	log_line(LOG_NOTE, "%s link local (bound): %s", proto, text);
	log_line(LOG_NOTE, "%s link remote: [AF_UNSPEC]", proto);
	return 0;
}

static int open_sockets(struct gateway *g, char *why, size_t why_len)
{
	const struct config *c = g->config;
	int err = udp_group_open(&c->listen, c->workers, c->sndbuf, c->rcvbuf, &g->group, why,
				 why_len);
	if (err != 0)
		return err;
	g->has_group = true;
	if ((c->offloads & OFFLOAD_UDP_GRO) && !(c->disabled_features & FEATURE_UDP_GRO))
		(void)udp_group_merge(&g->group);
	if (c->disabled_features & FEATURE_STEERING_CBPF)
		return 0;
	err = steering_attach(g->group.fds[0], &g->slots, c->workers);
	if (err != 0)
		log_line(LOG_WARN,
			 "WARNING: no steering of datagrams to workers (%s): they are handed over "
			 "between threads, which is slower",
			 strerror(-err));
	return 0;
}

static int set_mtu_discovery(struct gateway *g, char *why, size_t why_len)
{
	int err = udp_path_discover(&g->group, g->config->mtu_disc);
	if (err != 0)
		snprintf(why, why_len, "mtu-disc cannot be set: %s", strerror(-err));
	return err;
}

static int open_observer(struct gateway *g, char *why, size_t why_len)
{
	int err = mailboxes_new(g->config->workers + 1, &g->mailboxes);
	if (err != 0) {
		snprintf(why, why_len, "cannot make mailboxes: %s", strerror(-err));
		return err;
	}
	if (g->config->metrics_host == NULL)
		return 0;
	const struct observer_setup setup = {
		.config = g->config,
		.workers = g->workers.workers,
		.worker_count = g->config->workers,
		.mailboxes = g->mailboxes,
		.start_time_s = time(NULL),
		.ops = &http_ops,
	};
	return observer_new(&setup, &g->observer, why, why_len);
}

static int load_keys(struct gateway *g, char *why, size_t why_len)
{
	return keys_load(g->config, &g->keys, why, why_len);
}

/* The files that are written later, while we may still open them. */
static int open_files(struct gateway *g, char *why, size_t why_len)
{
	const struct config *c = g->config;
	const char *path = c->pool_persist_path;
	int err = ip_pool_new(c, &g->pool);
	if (err == 0 && c->status_path != NULL) {
		path = c->status_path;
		err = status_file_open(path, &g->status_file);
	}
	if (err == 0 && c->pid_path != NULL) {
		path = c->pid_path;
		err = privilege_pid_file(path);
		g->has_pid_file = err == 0;
	}
	if (err != 0)
		snprintf(why, why_len, "cannot open %s: %s", path != NULL ? path : "the pool",
			 strerror(-err));
	return err;
}

static int give_up_root(struct gateway *g, char *why, size_t why_len)
{
	const struct config *c = g->config;
	int err = launcher_drop(g->launcher, g->uid, g->gid);
	if (err != 0) {
		snprintf(why, why_len, "the script launcher cannot give up root: %s",
			 strerror(-err));
		return err;
	}
	err = privilege_drop(g->uid, g->gid, why, why_len);
	if (err == 0 && c->user != NULL)
		log_line(LOG_NOTE, "UID set to %s", c->user);
	if (err == 0 && c->group != NULL)
		log_line(LOG_NOTE, "GID set to %s", c->group);
	if (err == 0 && c->user != NULL && g->uid != 0)
		log_line(LOG_NOTE, "Capabilities retained: CAP_NET_ADMIN");
	if (err == 0)
		device_steering_settle(&g->tun_steering);
	return err;
}

/* A daemon lets the terminal go when it is ready, and its scripts with it. */
static int detach_scripts(struct gateway *g, char *why, size_t why_len)
{
	int err = g->config->is_daemon ? launcher_detach(g->launcher) : 0;
	if (err != 0)
		snprintf(why, why_len, "the script launcher cannot leave the terminal: %s",
			 strerror(-err));
	return err;
}

static int make_tables(struct gateway *g, char *why, size_t why_len)
{
	int err = route_table_new(&g->routes);
	if (err == 0) {
		g->shared = (struct worker_shared){
			.config = g->config,
			.mailboxes = g->mailboxes,
			.routes = g->routes,
			.slots = &g->slots,
			.groups = &g->group,
			.group_count = 1,
			.worker_count = g->config->workers,
			.peer_id_limit = gateway_peer_id_limit(g->config->max_clients),
			.tun_offloads = g->device.tun.offloads,
			.occ_reply = occ_reply(g->config, g->occ_reply),
		};
		err = worker_set_new(&g->shared, &g->device.tun, &g->workers);
	}
	if (err != 0)
		snprintf(why, why_len, "cannot make the workers: %s", strerror(-err));
	return err;
}

static int make_acceptor(struct gateway *g, char *why, size_t why_len)
{
	const struct acceptor_setup setup = {
		.config = g->config,
		.mailboxes = g->mailboxes,
		.routes = g->routes,
		.tun_steering = g->tun_steering,
		.slots = &g->slots,
		.groups = &g->group,
		.group_count = 1,
		.workers = g->workers.workers,
		.worker_count = g->workers.count,
		.peer_id_limit = g->shared.peer_id_limit,
		.tls = g->keys.tls,
		.wrap = g->keys.wrap,
		.wrap_key = g->keys.wrap_key,
		.pool = g->pool,
		.observer = g->observer,
		.netlink = g->device.netlink,
		.tun_ifindex = g->device.tun.ifindex,
		.status_file = g->status_file,
	};
	return acceptor_new(&setup, &g->acceptor, why, why_len);
}

static int start_threads(struct gateway *g, char *why, size_t why_len)
{
	int err = worker_set_start(&g->workers, why, why_len);
	if (err != 0 && g->config->io_engine == IO_ENGINE_URING)
		snprintf(why, why_len,
			 "io_uring cannot be used here (%s): say `io-engine auto`, or permit it "
			 "(kernel.io_uring_disabled, the container's system call filter)",
			 strerror(-err));
	if (err != 0 || g->observer == NULL)
		return err;
	err = observer_start(g->observer);
	if (err != 0)
		snprintf(why, why_len, "cannot start the observer thread: %s", strerror(-err));
	return err;
}

typedef int (*step_fn)(struct gateway *g, char *why, size_t why_len);

/* What fails most often comes before the device, so that a second start leaves the routes of the
 * first alone; the metrics may listen on the device's address. */
static const step_fn new_steps[] = {
	look_up_user, check_limits, start_launcher, load_keys,	open_sockets, set_mtu_discovery,
	open_device,  log_socket,   open_observer,  open_files, give_up_root, NULL,
};
static const step_fn run_steps[] = {make_tables, make_acceptor, start_threads, detach_scripts,
				    NULL};

static int run_all(const step_fn *steps, struct gateway *g, char *why, size_t why_len)
{
	int err = 0;
	for (; err == 0 && *steps != NULL; steps++)
		err = (*steps)(g, why, why_len);
	return err;
}

int gateway_new(const struct config *c, struct gateway **out, char *why, size_t why_len)
{
	snprintf(why, why_len, "out of memory");
	struct gateway *g = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->config = c;
	slot_table_init(&g->slots, c->workers);
	int err = run_all(new_steps, g, why, why_len);
	if (err != 0) {
		gateway_free(g);
		return err;
	}
	*out = g;
	return 0;
}

static void tell_ready(const struct gateway *g)
{
	char status[96];
	worker_set_log(&g->workers, g->config);
	snprintf(status, sizeof(status), "%u workers, port %u", g->workers.count,
		 endpoint_port(&g->group.local));
	privilege_ready(status);
}

int gateway_run(struct gateway *g, char *why, size_t why_len)
{
	int code = 1;
	why[0] = '\0';
	if (run_all(run_steps, g, why, why_len) == 0) {
		tell_ready(g);
		code = acceptor_run(g->acceptor);
		privilege_stopping();
	}
	worker_set_stop(&g->workers);
	if (g->observer != NULL)
		observer_stop(g->observer);
	return code;
}

void gateway_free(struct gateway *g)
{
	if (g->acceptor != NULL)
		acceptor_free(g->acceptor);
	worker_set_free(&g->workers);
	observer_free(g->observer);
	route_table_free(g->routes);
	mailboxes_free(g->mailboxes);
	status_file_close(g->status_file);
	ip_pool_free(g->pool);
	keys_free(&g->keys);
	if (g->has_group)
		udp_group_close(&g->group);
	tun_steering_free(g->tun_steering);
	if (g->has_device)
		device_close(&g->device);
	launcher_stop(g->launcher);
	if (g->has_pid_file)
		(void)unlink(g->config->pid_path);
	free(g);
}
