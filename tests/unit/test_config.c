/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/parsed.h"

#define FILES "ca /dev/null\ncert /dev/null\nkey /dev/null\n"

static enum config_action action;
static char dir[] = "/tmp/test_config_XXXXXX";

/* A command line without the program's name; NULL behind the last word. */
static int load(const char *const *words)
{
	char *argv[64] = {NULL};
	int argc = 1;
	parsed_drop();
	argv[0] = strdup("shardvpn");
	for (; words[argc - 1]; argc++)
		argv[argc] = strdup(words[argc - 1]);
	int rc = config_load(argc, argv, &action, &report, &config);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return rc;
}

#define LOAD(...) load((const char *const[]){__VA_ARGS__, NULL})

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

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_addr(const struct ip_addr *a, const char *text)
{
	char buf[IP_ADDR_TEXT_MAX];
	assert_string_equal(ip_addr_print(a, buf), text);
}

static const char *pushes(void)
{
	static char all[4096];
	all[0] = '\0';
	for (size_t i = 0; i < config->push_count; i++)
		strcat(strcat(all, i ? "," : ""), config->push[i]);
	return all;
}

static void defaults_are_those_of_2_6(void **state)
{
	(void)state;
	parsed_accepted("dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\n" FILES);
	assert_int_equal(config->listen.port, 1194);
	assert_int_equal(config->tun_mtu, 1500);
	assert_int_equal(config->mssfix_mode, MSSFIX_MTU);
	assert_int_equal(config->mssfix, 1492);
	assert_int_equal(config->max_clients, 1024);
	assert_int_equal(config->status_interval_s, 60);
	assert_int_equal(config->status_version, 1);
	assert_int_equal(config->verb, 1);
	assert_int_equal(config->pool_persist_s, 600);
	assert_int_equal(config->tls_auth_direction, -1);
	assert_int_equal(config->client_cert, CLIENT_CERT_REQUIRE);
	assert_int_equal(config->tls_version_min, 12);
	assert_int_equal(config->tls_version_max, 0);
	assert_string_equal(config->auth, "SHA1");
	assert_int_equal(config->replay_window, 64);
	assert_int_equal(config->replay_time_s, 15);
	assert_int_equal(config->reneg_sec_max, 3600);
	assert_int_equal(config->reneg_sec_min, 3240);
	assert_int_equal(config->hand_window_s, 60);
	assert_int_equal(config->tran_window_s, 3600);
	assert_int_equal(config->tls_timeout_s, 2);
	assert_int_equal(config->max_packet_size, 1250);
	assert_int_equal(config->worker_memory, 8 << 20);
	assert_int_equal(config->ping_s, 0);
}

static void server_gives_addresses_by_topology(void **state)
{
	static const struct {
		const char *lines, *local, *remote, *start, *end, *push;
		unsigned bits;
	} cases[] = {
		{"topology subnet\nserver 10.8.0.0 255.255.255.0", "10.8.0.1", "", "10.8.0.2",
		 "10.8.0.254", "route-gateway 10.8.0.1,topology subnet", 24},
		{"server 10.8.0.0 255.255.0.0\ntopology subnet", "10.8.0.1", "", "10.8.0.2",
		 "10.8.255.254", "route-gateway 10.8.0.1,topology subnet", 16},
		{"topology subnet\nserver 10.8.0.8 255.255.255.248", "10.8.0.9", "", "10.8.0.10",
		 "10.8.0.14", "route-gateway 10.8.0.9,topology subnet", 29},
		{"server 10.8.0.0 255.255.255.0", "10.8.0.1", "10.8.0.2", "10.8.0.4", "10.8.0.251",
		 "route 10.8.0.1,topology net30", 0},
		{"topology net30\nserver 10.8.0.0 255.255.255.248", "10.8.0.1", "10.8.0.2",
		 "10.8.0.4", "10.8.0.7", "route 10.8.0.1,topology net30", 0},
		{"topology p2p\nserver 10.8.0.0 255.255.255.0", "10.8.0.1", "10.8.0.2", "10.8.0.4",
		 "10.8.0.251", "topology p2p", 0},
		{"server 10.8.0.0 255.255.255.0\nclient-to-client", "10.8.0.1", "10.8.0.2",
		 "10.8.0.4", "10.8.0.251", "route 10.8.0.0 255.255.255.0,topology net30", 0},
	};
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "dev tun\n%s\n" FILES, cases[i].lines);
		parsed_accepted(text);
		assert_addr(&config->ifconfig_local, cases[i].local);
		assert_addr(&config->ifconfig_remote, cases[i].remote);
		assert_int_equal(config->ifconfig_bits, cases[i].bits);
		assert_int_equal(config->pool_bits, cases[i].bits);
		assert_true(config->has_pool);
		assert_addr(&config->pool_start, cases[i].start);
		assert_addr(&config->pool_end, cases[i].end);
		assert_string_equal(pushes(), cases[i].push);
	}
}

static void server_routes_its_network_without_a_subnet(void **state)
{
	(void)state;
	parsed_accepted(
		"dev tun\nserver 10.8.0.0 255.255.255.0\nroute 192.168.1.0 255.255.255.0\n" FILES);
	assert_int_equal(config->route_count, 2);
	assert_addr(&config->routes[1].net.addr, "10.8.0.0");
	assert_int_equal(config->routes[1].net.bits, 24);
	assert_int_equal(config->routes[1].kind, ROUTE_GATEWAY_VPN);
	assert_int_equal(config->route_gateway.family, 0);
	parsed_accepted("dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\n" FILES);
	assert_int_equal(config->route_count, 0);
	assert_addr(&config->route_gateway, "10.8.0.2");
	parsed_accepted("dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\nroute-gateway "
			"10.8.0.9\n" FILES);
	assert_addr(&config->route_gateway, "10.8.0.9");
}

static void server_without_pool_has_addresses_only(void **state)
{
	(void)state;
	parsed_accepted("dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0 nopool\n" FILES);
	assert_false(config->has_pool);
	assert_addr(&config->ifconfig_local, "10.8.0.1");
}

static void server_ipv6_places_its_pool(void **state)
{
	static const struct {
		const char *net, *local, *remote, *base;
		unsigned bits;
	} cases[] = {
		{"fd00::/64", "fd00::1", "fd00::2", "fd00::1000", 64},
		{"fd00::/111", "fd00::1", "fd00::2", "fd00::1000", 111},
		{"fd42:42:42:42::/112", "fd42:42:42:42::1", "fd42:42:42:42::2", "fd42:42:42:42::2",
		 112},
		{"fd00::20/124", "fd00::21", "fd00::22", "fd00::22", 124},
	};
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "dev tun\nserver-ipv6 %s\n" FILES, cases[i].net);
		parsed_accepted(text);
		assert_true(config->is_server && config->is_tls_server);
		assert_false(config->has_pool);
		assert_true(config->has_pool6);
		assert_addr(&config->ifconfig_ipv6_local, cases[i].local);
		assert_addr(&config->ifconfig_ipv6_remote, cases[i].remote);
		assert_addr(&config->pool6_base, cases[i].base);
		assert_int_equal(config->ifconfig_ipv6_bits, cases[i].bits);
		assert_int_equal(config->pool6_bits, cases[i].bits);
		assert_string_equal(pushes(), "tun-ipv6");
	}
}

static void server_written_out_is_the_same(void **state)
{
	(void)state;
	parsed_accepted(
		"mode server\ntls-server\ndev tun1\ntopology subnet\nifconfig 10.20.0.1 "
		"255.255.252.0\n"
		"ifconfig-pool 10.20.0.50 10.20.3.250\npush \"topology subnet\"\n"
		"ifconfig-ipv6 fd00::1/64 fd00::2\nifconfig-ipv6-pool fd00::100/64\n" FILES);
	assert_addr(&config->ifconfig_local, "10.20.0.1");
	assert_int_equal(config->ifconfig_bits, 22);
	assert_addr(&config->pool_end, "10.20.3.250");
	/* The pool's netmask is the device's unless it has its own. */
	assert_int_equal(config->pool_bits, 22);
	assert_addr(&config->pool6_base, "fd00::100");
	assert_string_equal(pushes(), "topology subnet");
	parsed_accepted("mode server\ntls-server\ndev tun\nifconfig 10.3.0.1 10.3.0.2\n"
			"ifconfig-pool 10.3.0.4 10.3.0.251\n" FILES);
	assert_addr(&config->ifconfig_remote, "10.3.0.2");
	assert_int_equal(config->ifconfig_bits, 0);
}

static void keepalive_doubles_for_the_server(void **state)
{
	(void)state;
	parsed_accepted("keepalive 10 120\ndev tun\nserver-ipv6 fd00::/64\ntopology subnet\n"
			"server 10.8.0.0 255.255.255.0\npush \"ping 1\"\n" FILES);
	assert_int_equal(config->ping_s, 10);
	assert_int_equal(config->ping_restart_s, 240);
	assert_string_equal(pushes(), "ping 1,tun-ipv6,route-gateway 10.8.0.1,topology subnet,"
				      "ping 10,ping-restart 120");
	parsed_accepted("ping 20\nping-restart 120\ndev tun\nserver-ipv6 fd00::/64\n" FILES);
	assert_int_equal(config->ping_s, 20);
	assert_int_equal(config->ping_restart_s, 120);
	assert_string_equal(pushes(), "tun-ipv6");
}

/* Loading. */

#define SERVER "--dev", "tun", "--topology", "subnet", "--server", "10.8.0.0", "255.255.255.0"
#define KEYS   "--ca", "/dev/null", "--cert", "/dev/null", "--key", "/dev/null"

static void command_line_alone_is_enough(void **state)
{
	(void)state;
	assert_int_equal(LOAD(SERVER, KEYS, "--keepalive", "10", "60"), 0);
	assert_int_equal(action, CONFIG_RUN);
	assert_null(config->config_path);
	assert_true(config->workers >= 1 && config->handshake_threads >= 1);
}

static void options_apply_from_left_to_right(void **state)
{
	(void)state;
	write_file("c", "dev tun\nserver-ipv6 fd00::/64\nverb 3\nstatus-version 1\n" FILES);
	assert_int_equal(LOAD("--status-version", "2", "--verb", "5", "--config", "c"), 0);
	assert_int_equal(config->verb, 3);
	assert_int_equal(config->status_version, 1);
	assert_int_equal(LOAD("--config", "c", "--verb", "5"), 0);
	assert_int_equal(config->verb, 5);
	assert_string_equal(config->config_path, "c");
	assert_int_equal(LOAD("c"), 0);
	assert_int_equal(config->verb, 3);
	assert_int_equal(LOAD("c", "--verb", "0", "--test-config"), 0);
	assert_int_equal(config->verb, 0);
	assert_int_equal(action, CONFIG_TEST);
	assert_int_equal(LOAD("--test-config", "c"), 0);
	assert_int_equal(action, CONFIG_TEST);
	assert_string_equal(config->config_path, "c");
	unlink("c");
}

static void change_of_directory_comes_before_the_file(void **state)
{
	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	write_file("sub/c", "dev tun\nserver-ipv6 fd00::/64\nca ca.crt\ncert ca.crt\nkey ca.crt\n");
	write_file("sub/ca.crt", "x");
	assert_int_equal(LOAD("--config", "c"), -EINVAL);
	assert_string_equal(report.faults[0],
			    "command line: config: cannot read 'c': No such file or directory");
	assert_int_equal(LOAD("--cd", "sub", "--config", "c"), 0);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(LOAD("--cd", "nowhere"), -EINVAL);
	assert_string_equal(
		report.faults[0],
		"command line: cd: cannot change to 'nowhere': No such file or directory");
	unlink("sub/c");
	unlink("sub/ca.crt");
	rmdir("sub");
}

/* One sentence for one mistake. */
static void mistakes_of_a_first_start_are_explained(void **state)
{
	(void)state;
	assert_int_equal(LOAD(NULL), -EINVAL);
	assert_string_equal(report.faults[0],
			    "no configuration: name its file, as in `shardvpn server.conf`");
	assert_int_equal(report.fault_count, 1);
	assert_int_equal(LOAD("--test-config", "nowhere"), -EINVAL);
	assert_string_equal(
		report.faults[0],
		"command line: config: cannot read 'nowhere': No such file or directory");
	assert_int_equal(report.fault_count, 1);
	assert_int_equal(LOAD("-h"), -EINVAL);
	assert_string_equal(report.faults[0],
			    "command line: -h: not an option: `--` is missing in front");
}

/* A number is a port or nothing; getaddrinfo would cut it to 16 bits. */
static void port_beyond_the_range_is_no_service(void **state)
{
	(void)state;
	static const char *const ports[] = {"70000", "65536", "-1", "+70000"};
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		assert_int_equal(LOAD(SERVER, KEYS, "--port", ports[i]), -EINVAL);
		assert_non_null(strstr(report.faults[0], "neither a port (0 to 65535)"));
	}
	assert_int_equal(LOAD(SERVER, KEYS, "--port", "openvpn"), 0);
	assert_int_equal(config->listen.port, 1194);
}

static void files_may_include_files(void **state)
{
	char name[16], text[64];
	(void)state;
	write_file("main", "dev tun\nconfig keys\nserver-ipv6 fd00::/64\n");
	write_file("keys", FILES "verb x\n");
	assert_int_equal(LOAD("main"), -EINVAL);
	assert_int_equal(report.fault_count, 1);
	assert_string_equal(report.faults[0], "keys:4: verb: 'x' is no number from 0 to 11");
	write_file("keys", FILES "verb 7\n");
	assert_int_equal(LOAD("main"), 0);
	assert_int_equal(config->verb, 7);
	assert_string_equal(config->config_path, "main");
	/* Ten files deep and no deeper. */
	for (int i = 1; i <= 11; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(text, sizeof(text), i < 11 ? "config f%d\n" : "verb %d\n", i + 1);
		write_file(name, text);
	}
	assert_int_equal(LOAD(SERVER, KEYS, "--config", "f2"), -EINVAL);
	assert_string_equal(report.faults[0], "f11:1: verb: '12' is no number from 0 to 11");
	assert_int_equal(LOAD(SERVER, KEYS, "--config", "f1"), -EINVAL);
	assert_string_equal(report.faults[0],
			    "f10:1: config: 'f11' is not read: files inside files "
			    "stand deeper than 10");
	/* A file that includes itself comes to an end. */
	write_file("f1", "config f1\n");
	assert_int_equal(LOAD("f1"), -EINVAL);
	assert_string_equal(
		report.faults[0],
		"f1:1: config: 'f1' is not read: files inside files stand deeper than 10");
	write_file("f1", "config f1\nconfig f1\nconfig f1\n");
	assert_int_equal(LOAD("f1"), -EINVAL);
	assert_true(report.fault_count > 256 && report.fault_count < 1024);
	assert_non_null(strstr(report.faults[report.fault_count - 2], "more than 256 files"));
	for (int i = 1; i <= 11; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		unlink(name);
	}
	unlink("main");
	unlink("keys");
}

static void mistakes_of_the_command_line_are_named(void **state)
{
	static const char *const crowd[] = {"--push", "1",  "2",  "3",	"4",  "5",
					    "6",      "7",  "8",  "9",	"10", "11",
					    "12",     "13", "14", "15", "16", NULL};
	(void)state;
	assert_int_equal(LOAD(SERVER, KEYS, "--verb", "x", "--nonsens"), -EINVAL);
	assert_int_equal(report.fault_count, 2);
	assert_string_equal(report.faults[0], "command line: verb: 'x' is no number from 0 to 11");
	assert_string_equal(report.faults[1], "command line: nonsens: unknown directive");
	assert_int_equal(load(crowd), -EINVAL);
	assert_string_equal(report.faults[0], "command line: push: more than 16 words");
	assert_int_equal(LOAD("/nonexistent/c"), -EINVAL);
	assert_string_equal(report.faults[0],
			    "command line: config: cannot read '/nonexistent/c': No "
			    "such file or directory");
	assert_int_equal(LOAD("/"), -EINVAL);
	assert_string_equal(report.faults[0],
			    "command line: config: cannot read '/': Is a directory");
	assert_int_equal(LOAD(SERVER, KEYS, "--", "x"), -EINVAL);
}

/* Unlike a line of a file, a word of the command line has any length. */
static void long_words_of_the_command_line_are_read_to_their_end(void **state)
{
	char list[512] = "";
	(void)state;
	for (int i = 0; i < 38; i++)
		strcat(list, "uring,");
	for (int i = 0; i < 3; i++)
		strcat(list, "recvmmsg,");
	assert_int_equal(strlen(list), 255);
	strcat(list, "nonsense");
	assert_int_equal(LOAD(SERVER, KEYS, "--disable-feature", list), -EINVAL);
	assert_non_null(strstr(report.faults[0], "'nonsense' is none of"));
}

static void text_and_machine_are_judged_in_one_run(void **state)
{
	(void)state;
	assert_int_equal(LOAD(SERVER, "--ca", "no", "--cert", "no", "--key", "no", "--verb", "x"),
			 -EINVAL);
	assert_int_equal(report.fault_count, 4);
	assert_null(config);
}

static void service_names_are_ports(void **state)
{
	(void)state;
	assert_int_equal(LOAD(SERVER, KEYS, "--port", "domain"), 0);
	assert_int_equal(config->listen.port, 53);
	assert_int_equal(LOAD(SERVER, KEYS, "--port", "no-such-service"), -EINVAL);
}

static void version_and_help_need_no_server(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--version"), 0);
	assert_int_equal(action, CONFIG_VERSION);
	assert_int_equal(LOAD("--help"), 0);
	assert_int_equal(action, CONFIG_HELP);
	assert_int_equal(LOAD("--version", "--config", "/nonexistent"), -EINVAL);
	assert_int_equal(action, CONFIG_VERSION);
}

static void version_line_is_what_tools_take_apart(void **state)
{
	const char *line = config_version_line();
	int major, minor, patch;
	(void)state;
	/* netdata's pattern, openvpn-monitor's second word, exporters that split at separators. */
	assert_int_equal(sscanf(line, "OpenVPN %d.%d.%d ", &major, &minor, &patch), 3);
	assert_true(strncmp(line, "OpenVPN 2.6.14 ", 15) == 0);
	assert_non_null(strstr(line, "-linux-gnu [shardvpn " SHARDVPN_VERSION "] [SSL (OpenSSL)]"));
	assert_null(strpbrk(line, ",\t\n"));
}

static void help_has_every_directive(void **state)
{
	char entry[64];
	char *help = config_help_text();
	(void)state;
	assert_non_null(help);
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		snprintf(entry, sizeof(entry), "\n--%s%s", d->name, d->usage[0] ? " " : "");
		assert_non_null(strstr(help, entry));
	}
	assert_non_null(strstr(help, "\n--keepalive PING RESTART\n"));
	free(help);
}

static void file_text_is_inline_or_read(void **state)
{
	struct config_file f = {.text = "a\0b", .text_len = 3};
	char *text;
	size_t len;
	(void)state;
	assert_int_equal(config_file_read(&f, &text, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(text, "a\0b", 4);
	free(text);
	write_file("f", "content");
	f = (struct config_file){.path = "f"};
	assert_int_equal(config_file_read(&f, &text, &len), 0);
	assert_int_equal(len, 7);
	assert_string_equal(text, "content");
	free(text);
	f.path = "nowhere";
	assert_int_equal(config_file_read(&f, &text, &len), -ENOENT);
	f.path = NULL;
	assert_int_equal(config_file_read(&f, &text, &len), -ENOENT);
	unlink("f");
}

static void file_may_have_a_mebibyte(void **state)
{
	struct config_file f = {.path = "f"};
	char *text;
	size_t len;
	int fd = open("f", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(config_file_read(&f, &text, &len), 0);
	assert_int_equal(len, 1 << 20);
	free(text);
	assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
	assert_int_equal(config_file_read(&f, &text, &len), -EFBIG);
	close(fd);
	unlink("f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_2_6),
		cmocka_unit_test(server_gives_addresses_by_topology),
		cmocka_unit_test(server_routes_its_network_without_a_subnet),
		cmocka_unit_test(server_without_pool_has_addresses_only),
		cmocka_unit_test(server_ipv6_places_its_pool),
		cmocka_unit_test(server_written_out_is_the_same),
		cmocka_unit_test(keepalive_doubles_for_the_server),
		cmocka_unit_test(command_line_alone_is_enough),
		cmocka_unit_test(options_apply_from_left_to_right),
		cmocka_unit_test(change_of_directory_comes_before_the_file),
		cmocka_unit_test(mistakes_of_a_first_start_are_explained),
		cmocka_unit_test(port_beyond_the_range_is_no_service),
		cmocka_unit_test(files_may_include_files),
		cmocka_unit_test(mistakes_of_the_command_line_are_named),
		cmocka_unit_test(long_words_of_the_command_line_are_read_to_their_end),
		cmocka_unit_test(text_and_machine_are_judged_in_one_run),
		cmocka_unit_test(service_names_are_ports),
		cmocka_unit_test(version_and_help_need_no_server),
		cmocka_unit_test(version_line_is_what_tools_take_apart),
		cmocka_unit_test(help_has_every_directive),
		cmocka_unit_test(file_text_is_inline_or_read),
		cmocka_unit_test(file_may_have_a_mebibyte),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
