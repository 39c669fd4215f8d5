/* SPDX-License-Identifier: Apache-2.0 */
#include "config/check.h"

#include <stdio.h>
#include <string.h>

#define IPV6_MTU_MIN 1280
#define NAMES_LISTED 8

static bool is_given(const struct config *c, enum directive_id id)
{
	return c->places[id].is_given;
}

static bool is_file_given(const struct config_file *f)
{
	return f->path || f->text;
}

/* "push, max-clients ...": directives of the configuration that only a server has. */
static void list_server_directives(const struct config *c, char *out, size_t cap)
{
	size_t len = 0;
	unsigned count = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < DIRECTIVE_COUNT && count < NAMES_LISTED; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		if (d->where != WHERE_SERVER || !is_given(c, (enum directive_id)i))
			continue;
		int n = snprintf(out + len, cap - len, "%s%s", count++ ? ", " : "", d->name);
		if (n > 0 && (size_t)n < cap - len)
			len += (size_t)n;
	}
}

/* Returns false if there is no server role; then only that is said. */
static bool check_role(const struct config *c, struct config_report *r)
{
	char needing[256], line[512];
	if (c->is_server && c->is_tls_server)
		return true;
	if (c->is_server) {
		config_fault(r, c, DIRECTIVE_MODE, "mode server requires tls-server");
		return false;
	}
	/* Of a file that could not be read enough is said. */
	if (r->fault_count > 0 && is_given(c, DIRECTIVE_CONFIG) && !c->config_path)
		return false;
	list_server_directives(c, needing, sizeof(needing));
	snprintf(line, sizeof(line),
		 "no server role: `server NETWORK MASK`, or `mode server` with `tls-server`, is "
		 "missing%s%s; clients and point-to-point are not supported yet",
		 needing[0] ? " and needed by: " : "", needing);
	config_report_fault(r, line);
	return false;
}

static void check_certificates(const struct config *c, struct config_report *r)
{
	/* Directives that stand in for a file are refused already; one fault is enough. */
	if (is_given(c, DIRECTIVE_PKCS12))
		return;
	if (!is_file_given(&c->ca) && !is_given(c, DIRECTIVE_CA) &&
	    !is_given(c, DIRECTIVE_CAPATH) && !is_given(c, DIRECTIVE_PEER_FINGERPRINT))
		config_fault(
			r, c, DIRECTIVE_CA,
			"missing: the certificate of the authority that clients are checked by");
	if (!is_file_given(&c->cert) && !is_given(c, DIRECTIVE_CERT))
		config_fault(r, c, DIRECTIVE_CERT, "missing: the server's certificate");
	if (!is_file_given(&c->key) && !is_given(c, DIRECTIVE_KEY))
		config_fault(r, c, DIRECTIVE_KEY, "missing: the server's private key");
}

static bool has_user_check(const struct config *c)
{
	return is_given(c, DIRECTIVE_AUTH_USER_PASS_VERIFY) || is_given(c, DIRECTIVE_PLUGIN) ||
	       is_given(c, DIRECTIVE_MANAGEMENT_CLIENT_AUTH);
}

static void check_security(const struct config *c, struct config_report *r)
{
	/* A server must never come up with no check of any kind. */
	if (c->client_cert != CLIENT_CERT_REQUIRE && !has_user_check(c))
		config_fault(r, c, DIRECTIVE_VERIFY_CLIENT_CERT,
			     "none and optional need a check of users (auth-user-pass-verify, "
			     "plugin or management-client-auth)");
	if (is_file_given(&c->tls_auth) && is_file_given(&c->tls_crypt))
		config_fault(r, c, DIRECTIVE_TLS_AUTH, "tls-auth and tls-crypt exclude each other");
	if (is_file_given(&c->tls_auth) && strcmp(c->auth, "none") == 0)
		config_fault(r, c, DIRECTIVE_AUTH, "tls-auth needs a digest, not none");
	if (c->tls_version_max != 0 && c->tls_version_min > c->tls_version_max)
		config_fault(r, c, DIRECTIVE_TLS_VERSION_MIN, "bigger than tls-version-max");
	if (is_given(c, DIRECTIVE_KEY_DIRECTION) && !is_given(c, DIRECTIVE_TLS_AUTH) &&
	    !is_given(c, DIRECTIVE_SECRET))
		config_warn(r, c, DIRECTIVE_KEY_DIRECTION, "no effect without tls-auth");
}

/* Is `name` an item of the colon-separated `list`? */
static bool list_has(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *p = list; p; p = strchr(p, ':')) {
		p += *p == ':';
		if (strncmp(p, name, len) == 0 && (p[len] == ':' || p[len] == '\0'))
			return true;
	}
	return false;
}

static void check_ciphers(const struct config *c, struct config_report *r)
{
	if (c->cipher && !list_has(c->data_ciphers, c->cipher))
		config_warn(r, c, DIRECTIVE_CIPHER,
			    "'%s' is not in data-ciphers (%s): as in OpenVPN 2.6 it is not "
			    "negotiated",
			    c->cipher, c->data_ciphers);
	if (!is_given(c, DIRECTIVE_KEEPALIVE) && c->ping_restart_s == 0)
		config_warn(r, c, DIRECTIVE_KEEPALIVE,
			    "missing: clients that vanish are noticed only at renegotiation");
}

static void check_pool(const struct config *c, struct config_report *r)
{
	if (c->pool_persist_path && !c->has_pool && !c->has_pool6)
		config_fault(r, c, DIRECTIVE_IFCONFIG_POOL_PERSIST,
			     "needs a pool (server, server-ipv6, ifconfig-pool)");
	if (c->has_pool6 && c->ifconfig_ipv6_local.family == 0)
		config_fault(r, c, DIRECTIVE_IFCONFIG_IPV6_POOL, "needs ifconfig-ipv6");
	if (c->has_pool && c->topology == TOPOLOGY_SUBNET && c->pool_bits == 0)
		config_fault(r, c, DIRECTIVE_IFCONFIG_POOL,
			     "needs a netmask with topology subnet (here or in ifconfig)");
	if (c->has_pool && c->ifconfig_local.family == 0)
		config_fault(r, c, DIRECTIVE_IFCONFIG_POOL,
			     "needs ifconfig, the server's own address");
	if (!c->has_pool && !c->has_pool6)
		config_warn(r, c, DIRECTIVE_IFCONFIG_POOL,
			    "missing: no pool, clients get no address");
	if (c->is_duplicate_cn && c->pool_persist_path)
		config_warn(r, c, DIRECTIVE_IFCONFIG_POOL_PERSIST,
			    "with duplicate-cn no address can be remembered for a name");
	bool has_ipv4 = c->ifconfig_local.family != 0 || c->has_pool;
	if (has_ipv4 && !is_given(c, DIRECTIVE_TOPOLOGY))
		config_warn(r, c, DIRECTIVE_TOPOLOGY,
			    "not given: net30, the default of OpenVPN 2.6 (2.7 has subnet); write "
			    "`topology subnet` unless clients depend on net30");
}

static void check_device(const struct config *c, struct config_report *r)
{
	if (!c->dev && !is_given(c, DIRECTIVE_DEV))
		config_fault(r, c, DIRECTIVE_DEV, "missing: write `dev tun`");
	bool has_ipv6 = c->ifconfig_ipv6_local.family != 0;
	if (has_ipv6 && c->tun_mtu < IPV6_MTU_MIN)
		config_fault(r, c, DIRECTIVE_TUN_MTU, "IPv6 in the tunnel needs at least %d",
			     IPV6_MTU_MIN);
	if (c->log_path && is_given(c, DIRECTIVE_SYSLOG))
		config_warn(r, c, DIRECTIVE_SYSLOG, "no effect: lines go to the file '%s'",
			    c->log_path);
}

static bool is_loopback(const char *host)
{
	static const struct ip_prefix loopback4 = {.addr = {.family = 4, .bytes = {127}},
						   .bits = 8};
	static const struct ip_addr loopback6 = {.family = 6, .bytes = {[15] = 1}};
	struct ip_addr a;
	return ip_addr_parse(host, &a) &&
	       (ip_prefix_contains(&loopback4, &a) || ip_addr_equal(&loopback6, &a));
}

static void check_own(const struct config *c, struct config_report *r)
{
	if (c->metrics_host && !is_loopback(c->metrics_host) && !c->is_metrics_remote_ok)
		config_fault(r, c, DIRECTIVE_METRICS,
			     "'%s' can be reached from outside and there is no password: use "
			     "127.0.0.1, or say metrics-allow-remote",
			     c->metrics_host);
	if (c->worker_cpus && c->workers > 0 && c->workers != c->worker_cpu_count)
		config_fault(r, c, DIRECTIVE_WORKER_CPUS, "%zu CPUs for %u workers: one for each",
			     c->worker_cpu_count, c->workers);
}

void config_check(const struct config *c, struct config_report *report)
{
	check_own(c, report);
	check_security(c, report);
	if (!check_role(c, report))
		return;
	check_device(c, report);
	check_certificates(c, report);
	check_ciphers(c, report);
	check_pool(c, report);
}
