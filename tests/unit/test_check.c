/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/check.h"
#include "tests/support/parsed.h"

#define SERVER "dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\nkeepalive 10 60\n"
#define FILES  "ca ca.crt\ncert s.crt\nkey s.key\n"

static char dir[] = "/tmp/test_check_XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? chdir(dir) : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	parsed_drop();
	return chdir("/") == 0 ? rmdir(dir) : -1;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static bool is_reported(char *const *lines, size_t count, const char *line)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(lines[i], line) == 0)
			return true;
	return false;
}

static void assert_fault(const char *line)
{
	if (!is_reported(report.faults, report.fault_count, line))
		fail_msg("not reported: %s (%zu others, first: %s)", line, report.fault_count,
			 report.fault_count ? report.faults[0] : "");
}

static void assert_warning(const char *line)
{
	if (!is_reported(report.warnings, report.warning_count, line))
		fail_msg("not warned of: %s (%zu others, first: %s)", line, report.warning_count,
			 report.warning_count ? report.warnings[0] : "");
}

static void the_least_server_is_accepted_silently(void **state)
{
	(void)state;
	assert_int_equal(parsed_from(SERVER FILES), 0);
	assert_int_equal(report.warning_count, 0);
	assert_true(config->is_server && config->is_tls_server);
}

static void without_server_role_one_sentence_says_so(void **state)
{
#define ROLE  "no server role: `server NETWORK MASK`, or `mode server` with `tls-server`, is missing"
#define LATER "; clients and point-to-point are not supported yet"
	static const char *const cases[][2] = {
		{"", ROLE LATER},
		{"dev tun\n", ROLE LATER},
		{"dev tun\ntls-server\n" FILES, ROLE LATER},
		{"dev tun\npush a\nmax-clients 3\n" FILES,
		 ROLE " and needed by: max-clients, push" LATER},
		{"mode server\n" FILES, "t:1: mode: mode server requires tls-server"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parsed_from(cases[i][0]), -22);
		assert_int_equal(report.fault_count, 1);
		assert_string_equal(report.faults[0], cases[i][1]);
	}
}

static void rules_across_directives_are_kept(void **state)
{
	static const char *const cases[][2] = {
		{"server 10.8.0.0 255.255.255.0\n" FILES, "dev: missing: write `dev tun`"},
		{SERVER "cert c\nkey k\n",
		 "ca: missing: the certificate of the authority that clients are checked by"},
		{SERVER "ca c\nkey k\n", "cert: missing: the server's certificate"},
		{SERVER "ca c\ncert k\n", "key: missing: the server's private key"},
		{SERVER FILES "tls-auth a 0\ntls-crypt b\n",
		 "t:8: tls-auth: tls-auth and tls-crypt exclude each other"},
		{SERVER FILES "tls-auth a 0\nauth none\n",
		 "t:9: auth: tls-auth needs a digest, not none"},
		{SERVER FILES "tls-version-min 1.3\ntls-version-max 1.2\n",
		 "t:8: tls-version-min: bigger than tls-version-max"},
		{SERVER FILES "verify-client-cert none\n",
		 "t:8: verify-client-cert: none and optional need a check of users "
		 "(auth-user-pass-verify, plugin or management-client-auth)"},
		{SERVER FILES "verify-client-cert optional\n",
		 "t:8: verify-client-cert: none and optional need a check of users "
		 "(auth-user-pass-verify, plugin or management-client-auth)"},
		{SERVER FILES "ping 5\n",
		 "t:4: keepalive: conflicts with ping and ping-restart, which it replaces"},
		{SERVER FILES "ping-restart 5\n",
		 "t:4: keepalive: conflicts with ping and ping-restart, which it replaces"},
		{SERVER FILES "ifconfig-pool 10.8.0.9 10.8.0.20\n",
		 "t:8: ifconfig-pool: server already defines a pool; remove this, or write nopool "
		 "behind it"},
		{SERVER FILES "server-ipv6 fd00::/64\nifconfig-ipv6-pool fd00::/64\n",
		 "t:9: ifconfig-ipv6-pool: server-ipv6 already defines a pool"},
		{"dev tun\nserver 10.8.0.0 255.255.255.0 nopool\nserver-ipv6 fd00::/64\n" FILES,
		 "t:3: server-ipv6: cannot stand beside nopool of server"},
		{SERVER FILES "server-ipv6 fd00::/64\ntun-mtu 1279\n",
		 "t:9: tun-mtu: IPv6 in the tunnel needs at least 1280"},
		{"dev tun\nmode server\ntls-server\nifconfig-pool-persist f\n" FILES,
		 "t:4: ifconfig-pool-persist: needs a pool (server, server-ipv6, ifconfig-pool)"},
		{"dev tun\nmode server\ntls-server\nifconfig-ipv6-pool fd00::/64\n" FILES,
		 "t:4: ifconfig-ipv6-pool: needs ifconfig-ipv6"},
		{"dev tun\nmode server\ntls-server\nifconfig-pool 10.8.0.4 10.8.0.250\n" FILES,
		 "t:4: ifconfig-pool: needs ifconfig, the server's own address"},
		{SERVER FILES "metrics 0.0.0.0 9176\n",
		 "t:8: metrics: '0.0.0.0' can be reached from outside and there is no password: "
		 "use "
		 "127.0.0.1, or say metrics-allow-remote"},
		{SERVER FILES "metrics ::ffff:127.0.0.1 9176\n",
		 "t:8: metrics: '::ffff:127.0.0.1' can be reached from outside and there is no "
		 "password: use 127.0.0.1, or say metrics-allow-remote"},
		{SERVER FILES "workers 3\nworker-cpus 0,1\n",
		 "t:9: worker-cpus: 2 CPUs for 3 workers: one for each"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parsed_from(cases[i][0]), -22);
		assert_int_equal(report.fault_count, 1);
		assert_string_equal(report.faults[0], cases[i][1]);
	}
}

static void what_fits_together_is_accepted(void **state)
{
	static const char *const cases[] = {
		SERVER FILES "metrics 127.0.0.9 9176\n",
		SERVER FILES "metrics ::1 9176\n",
		SERVER FILES "metrics 0.0.0.0 9176\nmetrics-allow-remote\n",
		SERVER FILES "auth none\ntls-crypt k\n",
		SERVER FILES "tls-version-min 1.2\ntls-version-max 1.2\n",
		SERVER FILES "workers 2\nworker-cpus 0,1\n",
		SERVER FILES "verify-client-cert\n",
		"dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0 nopool\nkeepalive 10 60\n"
		"ifconfig-pool 10.8.0.9 10.8.0.20\n" FILES,
		"dev vpn0\ndev-type tun\nmode server\ntls-server\nserver-ipv6 fd00::/112\n"
		"keepalive 0 0\n" FILES,
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parsed_from(cases[i]) != 0)
			fail_msg("%zu: %s", i, report.faults[0]);
}

static void doubtful_combinations_are_warned_about(void **state)
{
	static const char *const cases[][2] = {
		{"dev tun\nserver 10.8.0.0 255.255.255.0\nkeepalive 10 60\n" FILES,
		 "topology: not given: net30, the default of OpenVPN 2.6 (2.7 has subnet); write "
		 "`topology subnet` unless clients depend on net30"},
		{SERVER FILES "cipher AES-256-CBC\n",
		 "t:8: cipher: 'AES-256-CBC' is not in data-ciphers "
		 "(AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305): as in OpenVPN 2.6 it is not "
		 "negotiated"},
		{SERVER FILES "cipher AES-256-GC\n",
		 "t:8: cipher: 'AES-256-GC' is not in data-ciphers "
		 "(AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305): as in OpenVPN 2.6 it is not "
		 "negotiated"},
		{SERVER FILES "duplicate-cn\nifconfig-pool-persist ipp\n",
		 "t:9: ifconfig-pool-persist: with duplicate-cn no address can be remembered for a "
		 "name"},
		{SERVER FILES "key-direction 1\n",
		 "t:8: key-direction: no effect without tls-auth"},
		{"dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\n" FILES,
		 "keepalive: missing: clients that vanish are noticed only at renegotiation"},
		{"dev tun\nmode server\ntls-server\nkeepalive 1 2\n" FILES,
		 "ifconfig-pool: missing: no pool, clients get no address"},
		{SERVER FILES "bind ipv6only\n",
		 "t:8: bind: ipv6only has no effect without proto udp6"},
		{SERVER FILES "log l\nsyslog\n",
		 "t:9: syslog: no effect: lines go to the file 'l'"},
		{SERVER FILES "server-ipv6 fd00::1/64\n",
		 "t:8: server-ipv6: host bits set, taken as fd00::/64"},
		{SERVER FILES "tls-crypt k 1\n",
		 "t:8: tls-crypt: '1': tls-crypt has no direction, the word has no effect"},
		{SERVER FILES "ecdh-curve prime256v1\n",
		 "t:8: ecdh-curve: OpenSSL 3 chooses the curve itself, no effect; use tls-groups"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parsed_from(cases[i][0]), 0);
		assert_int_equal(report.warning_count, 1);
		assert_string_equal(report.warnings[0], cases[i][1]);
	}
}

static void user_check_of_a_later_stage_is_refused_once(void **state)
{
	(void)state;
	assert_int_equal(parsed_from(SERVER FILES "verify-client-cert none\nplugin p.so\n"), -22);
	assert_int_equal(report.fault_count, 1);
	assert_string_equal(report.faults[0], "t:9: plugin: not supported yet");
}

/* The machine. */

static void all_missing_files_are_reported(void **state)
{
	(void)state;
	assert_int_equal(parsed_from(SERVER FILES
				     "dh dh.pem\nextra-certs x\ntls-auth ta.key 0\ncrl-verify crl\n"
				     "status no/s\nwritepid no/p\nlog no/l\n"
				     "ifconfig-pool-persist no/i\nuser no-such-user\n"
				     "group no-such-group\n"),
			 0);
	config_check_files(config, &report);
#define MISSING                                                                                    \
	": No such file or directory; create it, or correct the name (relative names count "       \
	"from where it is started, or from `cd`)"
	assert_int_equal(report.fault_count, 12);
	assert_fault("t:5: ca: cannot read 'ca.crt'" MISSING);
	assert_fault("t:6: cert: cannot read 's.crt'" MISSING);
	assert_fault("t:7: key: cannot read 's.key'" MISSING);
	assert_fault("t:8: dh: cannot read 'dh.pem'" MISSING);
	assert_fault("t:9: extra-certs: cannot read 'x'" MISSING);
	assert_fault("t:10: tls-auth: cannot read 'ta.key'" MISSING);
	assert_fault("t:11: crl-verify: cannot read 'crl'" MISSING);
	assert_fault("t:12: status: cannot write 'no/s'" MISSING);
	assert_fault("t:13: writepid: cannot write 'no/p'" MISSING);
	assert_fault("t:14: log: cannot write 'no/l'" MISSING);
	assert_fault("t:16: user: failed to find UID for user no-such-user: no such user");
	assert_fault("t:17: group: failed to find GID for group no-such-group: no such group "
		     "(Debian's is nogroup)");
	/* Stock starts without this one. */
	assert_int_equal(report.warning_count, 1);
	assert_warning(
		"t:15: ifconfig-pool-persist: cannot write 'no/i': No such file or directory; "
		"addresses are not remembered");
}

static void files_that_are_there_are_fine(void **state)
{
	(void)state;
	write_file("ca.crt", "x", 0644);
	write_file("s.crt", "x", 0644);
	write_file("s.key", "x", 0600);
	assert_int_equal(mkdir("crl", 0700), 0);
	assert_int_equal(parsed_from(SERVER FILES
				     "crl-verify crl dir\nstatus new\nlog /dev/null\nwritepid p\n"
				     "<tls-crypt>\nx\n</tls-crypt>\nuser root\ngroup root\n"
				     "ifconfig-pool-persist no/such 0\n"),
			 0);
	config_check_files(config, &report);
	assert_int_equal(report.fault_count, 0);
	assert_int_equal(report.warning_count, 0);
	unlink("ca.crt");
	unlink("s.crt");
	unlink("s.key");
	rmdir("crl");
}

static void directory_is_no_file_and_open_key_is_no_secret(void **state)
{
	(void)state;
	write_file("s.crt", "x", 0644);
	write_file("s.key", "x", 0640);
	assert_int_equal(mkdir("ca.crt", 0700), 0);
	assert_int_equal(parsed_from(SERVER FILES "crl-verify s.crt dir\nstatus ca.crt\n"), 0);
	config_check_files(config, &report);
	assert_int_equal(report.fault_count, 3);
	assert_fault("t:5: ca: cannot read 'ca.crt': Is a directory; correct the name");
	assert_fault("t:8: crl-verify: cannot read 's.crt': Not a directory; create it, or correct "
		     "the name (relative names count from where it is started, or from `cd`)");
	assert_fault("t:9: status: cannot write 'ca.crt': Is a directory; correct the name");
	assert_warning("t:7: key: file 's.key' is group or others accessible; chmod 600 it");
	unlink("s.crt");
	unlink("s.key");
	rmdir("ca.crt");
}

static void quota_of_any_cgroup_above_bounds_the_cpus(void **state)
{
	static const struct {
		const char *self, *root_max, *group_max;
		unsigned cpus; /* of 1000 */
	} cases[] = {
		{"0::/a\n", "max 100000\n", "max 100000\n", 1000},
		{"0::/a\n", "", "200000 100000\n", 2},
		{"0::/a\n", "100000 100000\n", "200000 100000\n", 1},
		{"0::/a\n", "300000 100000\n", "max 100000\n", 3},
		{"0::/\n", "50000 100000\n", "", 1},
		{"4:cpu:/b\n0::/a\n", "", "150000 100000", 2},
		{"4:cpu:/b\n", "200000 100000\n", "1 1\n", 2},
		{"", "rubbish", "1 1", 1000},
		{"0::/a", "1 0", "x y", 1000},
		{"0::/a", "0 100000", "99999999999999999999 1", 1},
	};
	cpu_set_t set;
	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	unsigned usable = (unsigned)CPU_COUNT(&set);
	assert_int_equal(mkdir("cg", 0700), 0);
	assert_int_equal(mkdir("cg/a", 0700), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file("self", cases[i].self, 0600);
		write_file("cg/cpu.max", cases[i].root_max, 0600);
		write_file("cg/a/cpu.max", cases[i].group_max, 0600);
		unsigned expected = cases[i].cpus < usable ? cases[i].cpus : usable;
		assert_int_equal(config_usable_cpus("cg", "self"), expected);
	}
	unlink("cg/a/cpu.max");
	unlink("cg/cpu.max");
	unlink("self");
	rmdir("cg/a");
	rmdir("cg");
	assert_int_equal(config_usable_cpus("nowhere", "nothing"), usable);
}

static void auto_becomes_numbers(void **state)
{
	unsigned cpus = config_usable_cpus("/sys/fs/cgroup", "/proc/self/cgroup");
	(void)state;
	assert_int_equal(parsed_from(SERVER FILES), 0);
	config_check_cpus(config, &report);
	assert_int_equal(config->workers, cpus < WORKERS_MAX ? cpus : WORKERS_MAX);
	assert_int_equal(config->handshake_threads, cpus / 4 ? cpus / 4 : 1);
	assert_int_equal(parsed_from(SERVER FILES "workers 64\nhandshake-threads 3\n"), 0);
	config_check_cpus(config, &report);
	assert_int_equal(config->workers, 64);
	assert_int_equal(config->handshake_threads, 3);
	assert_int_equal(report.warning_count, cpus < 64);
}

static void worker_cpus_must_be_usable_and_count_the_workers(void **state)
{
	cpu_set_t set;
	char text[512];
	int cpu = 0;
	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET((size_t)cpu, &set))
		cpu++;
	snprintf(text, sizeof(text), SERVER FILES "worker-cpus %d\n", cpu);
	assert_int_equal(parsed_from(text), 0);
	config_check_cpus(config, &report);
	assert_int_equal(report.fault_count, 0);
	assert_int_equal(config->workers, 1);
	if (CPU_ISSET(1023, &set))
		return;
	assert_int_equal(parsed_from(SERVER FILES "worker-cpus 1023\n"), 0);
	config_check_cpus(config, &report);
	assert_int_equal(report.fault_count, 1);
	assert_fault("t:8: worker-cpus: this process may not use CPU 1023 (see taskset -p)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_server_is_accepted_silently),
		cmocka_unit_test(without_server_role_one_sentence_says_so),
		cmocka_unit_test(rules_across_directives_are_kept),
		cmocka_unit_test(what_fits_together_is_accepted),
		cmocka_unit_test(doubtful_combinations_are_warned_about),
		cmocka_unit_test(user_check_of_a_later_stage_is_refused_once),
		cmocka_unit_test(all_missing_files_are_reported),
		cmocka_unit_test(files_that_are_there_are_fine),
		cmocka_unit_test(directory_is_no_file_and_open_key_is_no_secret),
		cmocka_unit_test(quota_of_any_cgroup_above_bounds_the_cpus),
		cmocka_unit_test(auto_becomes_numbers),
		cmocka_unit_test(worker_cpus_must_be_usable_and_count_the_workers),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
