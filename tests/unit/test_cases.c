/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files as people run them (tests/corpora/configs): each is accepted, or exactly the
 * lines are refused that must be; and what is pushed is what stock pushes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/directive.h"

#define USER_CHECK                                                                                 \
	"none and optional need a check of users (auth-user-pass-verify, plugin or "               \
	"management-client-auth)"
#define NO_CBC(name) name ": not supported yet (only AES-GCM and CHACHA20-POLY1305)"

/* A fault at a line; reason NULL: "not supported yet". */
struct refusal {
	unsigned line;
	const char *directive, *reason;
};

struct case_file {
	const char *name;
	struct refusal refused[24]; /* in the order of the report */
	/* What is refused when those lines are blank, and so on: as stock's list of lines that had
	 * to go. */
	struct refusal then;
	unsigned warnings; /* once it is accepted */
	/* Pushed by the configuration once all refused lines are blank: the head of stock's golden
	 * PUSH_REPLY where there is one. NULL: never accepted. */
	const char *push;
};

static const struct case_file cases[] = {
	{.name = "01-angristan-style.conf",
	 .refused = {{20, "compress", NULL}, {34, "client-config-dir", NULL}},
	 .warnings = 3,
	 .push = "dhcp-option DNS 192.0.2.53,dhcp-option DNS 198.51.100.53,"
		 "redirect-gateway def1 bypass-dhcp,tun-ipv6,route-ipv6 2000::/3,"
		 "redirect-gateway ipv6,tun-ipv6,route-gateway 10.8.0.1,topology subnet,ping 10,"
		 "ping-restart 120"},
	{.name = "03-nyr-style.conf",
	 .push = "redirect-gateway def1 ipv6 bypass-dhcp,dhcp-option DNS 198.51.100.1,"
		 "dhcp-option DNS 198.51.100.2,block-outside-dns,tun-ipv6,route-gateway 10.8.0.1,"
		 "topology subnet,ping 10,ping-restart 120"},
	{.name = "05-docker-kylemanna.conf",
	 .refused = {{21, "comp-lzo", NULL}, {34, "client-config-dir", NULL}},
	 .push = "block-outside-dns,dhcp-option DNS 198.51.100.8,dhcp-option DNS 198.51.100.9,"
		 "comp-lzo no,route 192.168.255.1,topology net30,ping 10,ping-restart 60"},
	{.name = "07-mikrotik-server.conf",
	 .refused = {{5, "proto", "tcp-server: not supported yet; use udp"},
		     {23, "client-config-dir", NULL},
		     {24, "ccd-exclusive", NULL},
		     {26, "username-as-common-name", NULL},
		     {27, "script-security", NULL},
		     {28, "auth-user-pass-verify", NULL},
		     {29, "tmp-dir", NULL},
		     {33, "data-ciphers", NO_CBC("AES-256-CBC")},
		     {33, "data-ciphers", NO_CBC("AES-128-CBC")},
		     {34, "data-ciphers-fallback", NO_CBC("AES-256-CBC")},
		     {35, "allow-compression", NULL},
		     {36, "tcp-nodelay", NULL},
		     {37, "tcp-queue-limit", NULL}},
	 .then = {25, "verify-client-cert", USER_CHECK},
	 .warnings = 1,
	 .push = "topology subnet,route-gateway 10.20.0.1,ping 10,ping-restart 60"},
	{.name = "09-archwiki-style.conf",
	 .refused = {{18, "remote-cert-eku", NULL}},
	 .push = "redirect-gateway def1 bypass-dhcp ipv6,dhcp-option DNS 10.8.0.1,"
		 "route-ipv6 2001:db8:0:abc::/64,route-ipv6 2000::/3,tun-ipv6,"
		 "route-gateway 10.8.0.1,topology subnet,ping 10,ping-restart 120"},
	{.name = "11-ubuntu-sample-server.conf",
	 .warnings = 2,
	 .push = "route 10.8.0.1,topology net30,ping 10,ping-restart 120"},
	{.name = "13-synology-vpncenter.conf",
	 .refused = {{5, "management", NULL},
		     {17, "comp-lzo", NULL},
		     {29, "plugin", NULL},
		     {31, "username-as-common-name", NULL}},
	 .then = {30, "verify-client-cert", USER_CHECK},
	 .warnings = 2,
	 .push = "route 192.168.1.0 255.255.255.0,route 10.8.0.0 255.255.255.0,route 10.8.0.1,"
		 "topology net30,ping 10,ping-restart 60"},
	{.name = "15-access-server-profile.ovpn",
	 .refused = {{20, "client", NULL},
		     {21, "server-poll-timeout", NULL},
		     {22, "nobind", NULL},
		     {23, "remote", NULL},
		     {24, "remote", NULL},
		     {25, "remote", NULL},
		     {26, "remote", NULL},
		     {27, "remote", NULL},
		     {28, "remote", NULL},
		     {29, "remote", NULL},
		     {30, "remote", NULL},
		     {33, "ns-cert-type", NULL},
		     {38, "auth-user-pass", NULL},
		     {39, "auth-retry", NULL},
		     {42, "comp-lzo", NULL},
		     {0, "no server role", NULL}}},
	{.name = "17-openwrt-uci-generated.conf",
	 .warnings = 1,
	 .push = "route 192.168.1.0 255.255.255.0,dhcp-option DNS 192.168.1.1,"
		 "dhcp-option DOMAIN lan home,persist-tun,persist-key,comp-lzo no,"
		 "route-gateway 10.8.0.1,topology subnet,ping 10,ping-restart 120"},
	{.name = "19-nethserver-roadwarrior.conf",
	 .refused = {{13, "passtos", NULL},
		     {14, "script-security", NULL},
		     {30, "client-config-dir", NULL},
		     {39, "plugin", NULL},
		     {42, "nice", NULL},
		     {51, "ping-timer-rem", NULL},
		     {52, "client-connect", NULL},
		     {53, "client-disconnect", NULL},
		     {54, "management", NULL},
		     {55, "compress", NULL}},
	 .warnings = 1,
	 .push = "topology subnet,route-gateway 10.13.0.1,route 10.13.0.0 255.255.255.0,"
		 "route 192.168.5.0 255.255.255.0,dhcp-option DOMAIN nethserver.example,"
		 "dhcp-option DNS 192.168.5.1,dhcp-option WINS 192.168.5.1,"
		 "dhcp-option NBDD 192.168.5.1,dhcp-option NBT 2,ping 20,ping-restart 60,compress"},
	{.name = "21-eduvpn-node.conf",
	 .refused = {{19, "client-connect", NULL},
		     {20, "client-disconnect", NULL},
		     {21, "script-security", NULL},
		     {34, "management", NULL}},
	 .push = "explicit-exit-notify 1,redirect-gateway def1 ipv6,route 0.0.0.0 0.0.0.0,"
		 "dhcp-option DOMAIN-SEARCH intra.example.edu,dhcp-option DNS 10.0.0.1,"
		 "block-outside-dns,tun-mtu 1392,tun-ipv6,route-gateway 10.129.198.1,"
		 "topology subnet,ping 10,ping-restart 60"},
	{.name = "23-oauth2-sso-server.conf",
	 .refused = {{15, "username-as-common-name", NULL},
		     {16, "auth-user-pass-optional", NULL},
		     {17, "management", NULL},
		     {18, "management-client-auth", NULL},
		     {19, "management-log-cache", NULL},
		     {21, "auth-gen-token", NULL},
		     {22, "auth-gen-token-secret", NULL},
		     {26, "auth-nocache", NULL},
		     {31, "tls-crypt-v2", NULL}},
	 .then = {14, "verify-client-cert", USER_CHECK},
	 .push = "inactive 7200 100000,auth-nocache,route-gateway 100.64.8.1,topology subnet,"
		 "ping 10,ping-restart 60"},
	{.name = "25-stealth-tcp443-portshare.conf",
	 .refused = {{7, "proto", "tcp-server: not supported yet; use udp"},
		     {10, "port-share", NULL},
		     {11, "tcp-nodelay", NULL},
		     {12, "socket-flags", NULL},
		     {19, "tls-crypt-v2", NULL},
		     {20, "tls-crypt-v2-verify", NULL},
		     {21, "client-connect", NULL},
		     {22, "script-security", NULL}},
	 .warnings = 1,
	 .push = "socket-flags TCP_NODELAY,tun-ipv6,route-gateway 10.81.0.1,topology subnet,"
		 "ping 10,ping-restart 60"},
	{.name = "27-puppet-module-style.conf",
	 .refused = {{3, "client-config-dir", NULL},
		     {27, "up", NULL},
		     {28, "down", NULL},
		     {29, "client-connect", NULL},
		     {30, "client-disconnect", NULL},
		     {31, "script-security", NULL},
		     {36, "fragment", NULL},
		     {37, "management", NULL}},
	 .warnings = 1,
	 .push = "redirect-gateway def1 bypass-dhcp,dhcp-option DNS 172.31.0.30,"
		 "route 172.31.0.0 255.255.0.0,route-gateway 10.200.200.1,topology subnet,"
		 "ping 10,ping-restart 120"},
	{.name = "29-ipv6-only-pool.conf",
	 .refused = {{18, "block-ipv6", NULL}, {19, "client-config-dir", NULL}},
	 .push = "route-ipv6 2000::/3,dns server 0 address 2001:db8::53 [2001:db8::54]:5353,"
		 "dns server 0 resolve-domains corp.example,"
		 "dns search-domains corp.example lab.example,block-ipv4,tun-ipv6,ping 15,"
		 "ping-restart 60"},
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

static const char *folder(void)
{
	static char path[4096];
	const char *root = getenv("SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/tests/corpora/configs", root ? root : ".");
	return path;
}

static char *read_case(const char *name, size_t *len)
{
	char path[8192], *text;
	snprintf(path, sizeof(path), "%s/%s", folder(), name);
	struct config_file f = {.path = path};
	if (config_file_read(&f, &text, len) != 0)
		fail_msg("%s cannot be read", path);
	return text;
}

static void expect_fault(const char *file, const struct refusal *r, const char *fault)
{
	char expected[512];
	const char *reason = r->reason ? r->reason : "not supported yet", *note = "";
	enum directive_id id = directive_find(r->directive);
	if (r->reason == NULL && id != DIRECTIVE_COUNT)
		note = directive_get(id)->note;
	if (r->line == 0) {
		assert_int_equal(strncmp(fault, r->directive, strlen(r->directive)), 0);
		return;
	}
	snprintf(expected, sizeof(expected), "%s:%u: %s: %s%s%s", file, r->line, r->directive,
		 reason, note[0] ? "; " : "", note);
	assert_string_equal(fault, expected);
}

/* Overwrite a line with blanks. */
static void blank(char *text, unsigned line)
{
	char *p = text;
	for (unsigned n = 1; n < line; n++)
		p = strchr(p, '\n') + 1;
	for (; *p && *p != '\n'; p++)
		*p = ' ';
}

static void expect_refusals(const struct case_file *c, char *text, size_t len)
{
	struct config_report report = {0};
	struct config *config = NULL;
	size_t count = 0;
	assert_int_equal(config_parse(c->name, text, len, &report, &config), -22);
	assert_null(config);
	for (; c->refused[count].directive; count++) {
		if (count >= report.fault_count)
			fail_msg("%s:%u is not refused", c->name, c->refused[count].line);
		expect_fault(c->name, &c->refused[count], report.faults[count]);
	}
	if (report.fault_count > count)
		fail_msg("refused too: %s", report.faults[count]);
	config_report_fini(&report);
	for (size_t i = 0; i < count; i++)
		if (c->refused[i].line > 0)
			blank(text, c->refused[i].line);
}

static void expect_then(const struct case_file *c, char *text, size_t len)
{
	struct config_report report = {0};
	struct config *config = NULL;
	assert_int_equal(config_parse(c->name, text, len, &report, &config), -22);
	assert_int_equal(report.fault_count, 1);
	expect_fault(c->name, &c->then, report.faults[0]);
	config_report_fini(&report);
	blank(text, c->then.line);
}

static void expect_accepted(const struct case_file *c, const char *text, size_t len)
{
	struct config_report report = {0};
	struct config *config = NULL;
	char push[4096] = "";
	if (config_parse(c->name, text, len, &report, &config) != 0)
		fail_msg("still refused: %s", report.faults[0]);
	for (size_t i = 0; i < config->push_count; i++)
		strcat(strcat(push, i ? "," : ""), config->push[i]);
	assert_string_equal(push, c->push);
	if (report.warning_count != c->warnings)
		fail_msg("%s: %zu warnings, first: %s", c->name, report.warning_count,
			 report.warning_count ? report.warnings[0] : "");
	config_report_fini(&report);
	config_free(config);
}

static void case_file_is_accepted_or_refused_for_its_reasons(void **state)
{
	const struct case_file *c = *state;
	size_t len;
	char *text = read_case(c->name, &len);
	if (c->refused[0].directive)
		expect_refusals(c, text, len);
	if (c->then.directive)
		expect_then(c, text, len);
	if (c->push)
		expect_accepted(c, text, len);
	free(text);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);
	return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

static void every_file_has_its_case(void **state)
{
	DIR *d = opendir(folder());
	size_t count = 0;
	(void)state;
	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));) {
		if (!has_suffix(e->d_name, ".conf") && !has_suffix(e->d_name, ".ovpn"))
			continue;
		size_t i = 0;
		while (i < CASE_COUNT && strcmp(cases[i].name, e->d_name) != 0)
			i++;
		if (i == CASE_COUNT)
			fail_msg("no case for %s", e->d_name);
		count++;
	}
	closedir(d);
	assert_int_equal(count, CASE_COUNT);
}

/* Line ends of the other kind, and a byte order mark, change nothing. */
static void case_file_may_come_from_windows(void **state)
{
	const struct case_file *c = &cases[1];
	size_t len, n = 0;
	char *text = read_case(c->name, &len);
	char *windows = malloc(2 * len + 3);
	(void)state;
	assert_non_null(windows);
	n += (size_t)sprintf(windows, "\xEF\xBB\xBF");
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			windows[n++] = '\r';
		windows[n++] = text[i];
	}
	expect_accepted(c, windows, n);
	free(windows);
	free(text);
}

int main(void)
{
	struct CMUnitTest tests[CASE_COUNT + 2];
	for (size_t i = 0; i < CASE_COUNT; i++)
		tests[i] = (struct CMUnitTest){
			.name = cases[i].name,
			.test_func = case_file_is_accepted_or_refused_for_its_reasons,
			.initial_state = (void *)(uintptr_t)&cases[i]};
	tests[CASE_COUNT] = (struct CMUnitTest)cmocka_unit_test(every_file_has_its_case);
	tests[CASE_COUNT + 1] =
		(struct CMUnitTest)cmocka_unit_test(case_file_may_come_from_windows);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
