/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "config/directive.h"
#include "tests/support/parsed.h"

/* The least that makes a server; its lines come first, so a case's line has this number: */
#define BASE                                                                                       \
	"dev tun\ntopology subnet\nserver 10.8.0.0 255.255.255.0\nca ca.crt\ncert s.crt\n"         \
	"key s.key\nkeepalive 10 60\n"
#define CASE_LINE "8"

static int parse_behind_base(const char *lines)
{
	char text[4096];
	snprintf(text, sizeof(text), BASE "%s\n", lines);
	return parsed_from(text);
}

/* The configuration with `lines` behind the base, which must be accepted. */
static const struct config *accepted(const char *lines)
{
	int rc = parse_behind_base(lines);
	if (rc != 0)
		fail_msg("'%s' is refused: %s", lines, report.faults[0]);
	return config;
}

/* The only fault of `lines`, without "t:8: ". */
static const char *refused(const char *lines)
{
	if (parse_behind_base(lines) == 0)
		fail_msg("'%s' is accepted", lines);
	assert_null(config);
	if (report.fault_count != 1)
		fail_msg("'%s' has %zu faults: %s / %s", lines, report.fault_count,
			 report.faults[0], report.faults[1]);
	const char *prefix = "t:" CASE_LINE ": ";
	if (strncmp(report.faults[0], prefix, strlen(prefix)) != 0)
		fail_msg("'%s' is refused elsewhere: %s", lines, report.faults[0]);
	return report.faults[0] + strlen(prefix);
}

static void table_is_sorted_and_complete(void **state)
{
	(void)state;
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		assert_true(i == 0 ||
			    strcmp(directive_get((enum directive_id)(i - 1))->name, d->name) < 0);
		assert_int_equal(directive_find(d->name), i);
		assert_true(d->min_args <= d->max_args);
		assert_true(d->classes != 0);
		/* Who is refused or warned about learns why; the others have a stage, and what is
		 * built needs no note. */
		if (d->fate != FATE_IMPLEMENT)
			assert_true(d->note[0] != '\0');
		if (d->stage == STAGE_CORE)
			assert_true(d->note[0] == '\0');
		assert_int_equal(d->fate == FATE_IMPLEMENT, d->stage != STAGE_NONE);
		if (d->min_args > 0 && d->fate == FATE_IMPLEMENT)
			assert_true(d->usage[0] != '\0');
	}
	assert_int_equal(directive_find(""), DIRECTIVE_COUNT);
	assert_int_equal(directive_find("serve"), DIRECTIVE_COUNT);
	assert_int_equal(directive_find("Server"), DIRECTIVE_COUNT);
}

/* Each directive of a later stage, each refused one: named with its fate, whatever its arguments.
 */
static void every_other_directive_is_refused_by_name(void **state)
{
	char line[128], expected[512];
	unsigned count = 0;
	(void)state;
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		if (d->fate == FATE_WARN || (d->fate == FATE_IMPLEMENT && d->stage == STAGE_CORE))
			continue;
		snprintf(line, sizeof(line), "%s word", d->name);
		if (d->fate == FATE_REFUSE)
			snprintf(expected, sizeof(expected), "%s: refused: %s", d->name, d->note);
		else
			snprintf(expected, sizeof(expected), "%s: not supported yet%s%s", d->name,
				 d->note[0] ? "; " : "", d->note);
		assert_string_equal(refused(line), expected);
		count++;
	}
	assert_true(count > 150);
}

static void harmless_leftovers_are_warned_about_once(void **state)
{
	char line[256], expected[512];
	(void)state;
	for (unsigned i = 0; i < DIRECTIVE_COUNT; i++) {
		const struct directive *d = directive_get((enum directive_id)i);
		if (d->fate != FATE_WARN)
			continue;
		const char *arg = d->min_args == 0	      ? ""
				  : i == DIRECTIVE_KEY_METHOD ? " 2"
							      : " word";
		snprintf(line, sizeof(line), "%s%s\n%s%s", d->name, arg, d->name, arg);
		accepted(line);
		snprintf(expected, sizeof(expected), "t:" CASE_LINE ": %s: %s", d->name, d->note);
		assert_int_equal(report.warning_count, 1);
		assert_string_equal(report.warnings[0], expected);
	}
}

struct refusal {
	const char *line, *reason;
};

static void check_refusals(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_string_equal(refused(cases[i].line), cases[i].reason);
}

#define CHECK_REFUSALS(cases) check_refusals(cases, sizeof(cases) / sizeof((cases)[0]))

static void wrong_argument_count_shows_usage(void **state)
{
#define COUNT "Unrecognized option or missing or extra parameter(s); usage: "
	static const struct refusal cases[] = {
		{"verb", "verb: " COUNT "verb LEVEL"},
		{"verb 3 4", "verb: " COUNT "verb LEVEL"},
		{"persist-tun now", "persist-tun: " COUNT "persist-tun"},
		{"push route 10.9.0.0 255.255.0.0", "push: " COUNT "push TEXT"},
		{"connect-freq 1", "connect-freq: " COUNT "connect-freq COUNT SECONDS"},
		{"setenv", "setenv: " COUNT "setenv NAME [VALUE]"},
		{"setenv a b c", "setenv: " COUNT "setenv NAME [VALUE]"},
		{"route 1.2.3.4 255.255.255.255 default 1 2",
		 "route: " COUNT "route NETWORK [MASK [GATEWAY [METRIC]]]"},
		{"fast-io 1", "fast-io: " COUNT "fast-io"},
		{"metrics 127.0.0.1", "metrics: " COUNT "metrics ADDRESS PORT"},
	};
	(void)state;
	CHECK_REFUSALS(cases);
}

static void unknown_directive_names_the_nearest(void **state)
{
	static const struct refusal cases[] = {
		{"sever 10.8.0.0 255.255.255.0", "sever: unknown directive; did you mean server?"},
		{"persist_key", "persist_key: unknown directive; did you mean persist-key?"},
		{"data-cipher x", "data-cipher: unknown directive; did you mean data-ciphers?"},
		{"tls-cript x", "tls-cript: unknown directive; did you mean tls-crypt?"},
		{"worker 4", "worker: unknown directive; did you mean workers?"},
		{"xqzw", "xqzw: unknown directive"},
		{"x", "x: unknown directive"},
		{"an-unheard-of-directive-with-a-name-far-too-long-to-be-one y",
		 "an-unheard-of-directive-with-a-name-far-too-long-to-be-one: unknown directive"},
		{"</ca>", "</ca>: unknown directive"},
	};
	(void)state;
	CHECK_REFUSALS(cases);
}

static void wrong_values_are_refused(void **state)
{
	static const struct refusal cases[] = {
		{"verb x", "verb: 'x' is no number from 0 to 11"},
		{"verb 12", "verb: '12' is no number from 0 to 11"},
		{"verb -1", "verb: '-1' is no number from 0 to 11"},
		{"mute 1x", "mute: '1x' is no number from 0 to 2147483647"},
		{"status-version 4", "status-version: '4' is no number from 1 to 3"},
		{"max-clients 0", "max-clients: '0' is no number from 1 to 16777214"},
		{"explicit-exit-notify 3", "explicit-exit-notify: '3' is no number from 0 to 2"},
		{"connect-freq 0 10", "connect-freq: '0' is no number from 1 to 2147483647"},
		{"port 65536", "port: '65536' is neither a port (0 to 65535) nor a known service"},
		{"lport x", "lport: 'x' is neither a port (0 to 65535) nor a known service"},
		{"local a 1194", "local: port and protocol behind the address: not supported yet"},
		{"bind all", "bind: 'all' is none of: ipv6only"},
		{"proto tcp", "proto: tcp: not supported yet; use udp"},
		{"proto tcp6-server", "proto: tcp6-server: not supported yet; use udp"},
		{"multihome same-interface", "multihome: same-interface: not supported yet"},
		{"mode p2p", "mode: p2p: not supported yet"},
		{"mode x", "mode: 'x' is none of: server, p2p"},
		{"dev null", "dev: null: not supported yet"},
		{"dev tap0", "dev: refused: tap devices are out of scope"},
		{"dev vpn0", "dev: 'vpn0' does not begin with tun: dev-type tun is missing"},
		{"dev tun/../x",
		 "dev: 'tun/../x' is no name for a device (at most 15 bytes, no '/')"},
		{"dev tun4567890123456",
		 "dev: 'tun4567890123456' is no name for a device (at most 15 bytes, no '/')"},
		{"dev-type tap", "dev-type: refused: tap devices are out of scope"},
		{"topology ring", "topology: 'ring' is none of: net30, p2p, subnet"},
		{"tun-mtu 99", "tun-mtu: '99' is no number from 100 to 65536"},
		{"tun-mtu 1500 1400", "tun-mtu: a second size: not supported yet"},
		{"mtu-disc always", "mtu-disc: 'always' is none of: no, maybe, yes"},
		{"mssfix 1400 x", "mssfix: 'x' is none of: mtu, fixed"},
		{"max-packet-size 153", "max-packet-size: '153' is no number from 154 to 65535"},
		{"ifconfig-pool-persist f -1",
		 "ifconfig-pool-persist: '-1' is no number from 0 to 2147483647"},
		{"ifconfig 10.8.0.1 x", "ifconfig: 'x' is no IPv4 address"},
		{"ifconfig 10.8.0.1 10.8.0.2",
		 "ifconfig: '10.8.0.2' is no netmask, which topology subnet needs"},
		{"ifconfig-ipv6 fd00::1 fd00::2",
		 "ifconfig-ipv6: 'fd00::1' is no IPv6 prefix (ADDRESS/BITS)"},
		{"ifconfig-ipv6 fd00::1/64 10.0.0.1",
		 "ifconfig-ipv6: '10.0.0.1' is no IPv6 address"},
		{"server-ipv6 fd00::/63",
		 "server-ipv6: the network must be between /64 and /124, not /63"},
		{"server-ipv6 fd00::/125",
		 "server-ipv6: the network must be between /64 and /124, not /125"},
		{"server-ipv6 10.0.0.0/24",
		 "server-ipv6: '10.0.0.0/24' is no IPv6 prefix (ADDRESS/BITS)"},
		{"route vpn.example.com", "route: 'vpn.example.com' is no IPv4 address"},
		{"route 10.9.0.0 255.0.255.0", "route: '255.0.255.0' is no netmask"},
		{"route 10.9.0.0 255.255.0.0 fd00::1",
		 "route: 'fd00::1' is no gateway (address, vpn_gateway or net_gateway)"},
		{"route 10.9.0.0 255.255.0.0 default x",
		 "route: 'x' is no number from 0 to 2147483647"},
		{"route-ipv6 fd00::", "route-ipv6: 'fd00::' is no IPv6 prefix (ADDRESS/BITS)"},
		{"route-gateway dhcp",
		 "route-gateway: refused: dhcp needs a tap device, which is out of scope"},
		{"push \"a,b\"", "push: illegal comma (',') in 'a,b'"},
		{"push \"\"", "push: an empty word"},
		{"ca \"\"", "ca: an empty word"},
		{"user ''", "user: an empty word"},
		{"auth SHA3", "auth: 'SHA3' is no known digest (SHA1, SHA256, SHA512, none ...)"},
		{"data-ciphers FOO",
		 "data-ciphers: 'FOO' is no known cipher (a ? in front makes it optional)"},
		{"data-ciphers ?FOO", "data-ciphers: the list has no cipher that can be used"},
		{"data-ciphers \"\"", "data-ciphers: the list has no cipher that can be used"},
		{"data-ciphers AES-256-GCM:BF-CBC",
		 "data-ciphers: BF-CBC: not supported yet (only AES-GCM and CHACHA20-POLY1305)"},
		{"data-ciphers none",
		 "data-ciphers: none: not supported yet (only AES-GCM and CHACHA20-POLY1305)"},
		{"data-ciphers-fallback AES-256-CBC",
		 "data-ciphers-fallback: AES-256-CBC: not "
		 "supported yet (only AES-GCM and CHACHA20-POLY1305)"},
		{"data-ciphers-fallback ?AES-256-GCM",
		 "data-ciphers-fallback: '?AES-256-GCM' is no known cipher"},
		{"crl-verify f file", "crl-verify: 'file' is none of: dir"},
		{"remote-cert-tls peer", "remote-cert-tls: 'peer' is none of: client, server"},
		{"verify-client-cert maybe",
		 "verify-client-cert: 'maybe' is none of: require, optional, none"},
		{"tls-cert-profile best",
		 "tls-cert-profile: 'best' is none of: legacy, preferred, insecure, suiteb"},
		{"tls-version-min 1.4", "tls-version-min: '1.4' is no TLS version from 1.0 to 1.3"},
		{"tls-version-min 1.2 or", "tls-version-min: 'or' is none of: or-highest"},
		{"tls-version-max 2", "tls-version-max: '2' is no TLS version from 1.0 to 1.3"},
		{"tls-auth f 2", "tls-auth: '2' is none of: 0, 1"},
		{"key-direction x", "key-direction: 'x' is none of: 0, 1"},
		{"key-method 1",
		 "key-method: refused: method 1 is insecure and gone; 2 is the only one"},
		{"engine pkcs11", "engine: refused: engines are gone from OpenSSL 3; a key behind "
				  "'pkcs11' cannot be used"},
		{"replay-window", "replay-window: the size of the window is missing"},
		{"replay-window 4097", "replay-window: '4097' is no number from 0 to 4096"},
		{"replay-window 64 601", "replay-window: '601' is no number from 0 to 600"},
		{"reneg-sec 100 101", "reneg-sec: '101' is no number from 0 to 100"},
		{"hand-window 0", "hand-window: '0' is no number from 1 to 2147483647"},
		{"setenv GENERIC_CONFIG 1",
		 "setenv: this is a generic configuration and cannot directly be used"},
		{"setenv opt", "setenv: opt: the directive is missing"},
		{"setenv a=b c", "setenv: 'a=b' is no name for a variable"},
		{"config other", "config: 'other' is not read: no other file may be opened here"},
		{"<status>\nx\n</status>", "status: cannot be an inline block"},
		{"<ca>\nx", "the end tag of this inline block is missing"},
		{"push \"x", "no closing quotation (\")"},
	};
	(void)state;
	CHECK_REFUSALS(cases);
}

#define RATE  " is no rate of 8k to 400g (bits a second, or with k, m or g), nor 0 for no limit"
#define BURST " is no burst of 2k to 1024m (bytes, or with k or m)"

static void wrong_values_of_own_directives_are_refused(void **state)
{
	static const struct refusal cases[] = {
		{"workers 0", "workers: '0' is neither auto nor a number from 1 to 64"},
		{"workers 65", "workers: '65' is neither auto nor a number from 1 to 64"},
		{"handshake-threads x",
		 "handshake-threads: 'x' is neither auto nor a number from 1 to 64"},
		{"io-engine aio", "io-engine: 'aio' is none of: auto, uring, epoll"},
		{"aead-engine x", "aead-engine: 'x' is none of: auto, openssl, ipsec-mb"},
		{"worker-cpus 0,0",
		 "worker-cpus: '0,0' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-cpus 5-2",
		 "worker-cpus: '5-2' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-cpus 0-64",
		 "worker-cpus: '0-64' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-cpus 1024",
		 "worker-cpus: '1024' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-cpus ,",
		 "worker-cpus: ',' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-cpus 1-",
		 "worker-cpus: '1-' is no list of up to 64 different CPUs, such as 0,2-5"},
		{"worker-memory 1023K",
		 "worker-memory: '1023K' is no size of at least 1M (bytes, or with K, M or G)"},
		{"worker-memory M",
		 "worker-memory: 'M' is no size of at least 1M (bytes, or with K, M or G)"},
		{"worker-memory 8T",
		 "worker-memory: '8T' is no size of at least 1M (bytes, or with K, M or G)"},
		{"worker-memory 1025G",
		 "worker-memory: '1025G' is no size of at least 1M (bytes, or with K, M or G)"},
		{"metrics localhost 9176", "metrics: 'localhost' is no address"},
		{"metrics 127.0.0.1 0", "metrics: '0' is no number from 1 to 65535"},
		{"disable-feature uring,sqpoll",
		 "disable-feature: 'sqpoll' is none of: uring, uring-recv-multishot, "
		 "uring-read-multishot, recvmmsg, steering-cbpf, huge-pages, "
		 "tun-tso, tun-uso, udp-gro, udp-gso, steering-ebpf"},
		{"offload tso lro", "offload: 'lro' is none of: tso, uso, udp-gro, udp-gso; auto "
				    "and none stand alone"},
		{"offload tso none",
		 "offload: 'none' is none of: tso, uso, udp-gro, udp-gso; auto and none stand "
		 "alone"},
		{"offload \"\"",
		 "offload: '' is none of: tso, uso, udp-gro, udp-gso; auto and none stand alone"},
		{"busy-poll 1001", "busy-poll: '1001' is no number from 0 to 1000"},
		{"client-rate 1m 7999", "client-rate: '7999'" RATE},
		{"client-rate 7k 1m", "client-rate: '7k'" RATE},
		{"client-rate 1m 401g", "client-rate: '401g'" RATE},
		{"client-rate 400000000001 0", "client-rate: '400000000001'" RATE},
		{"client-rate 1M 0", "client-rate: '1M'" RATE},
		{"client-rate k 0", "client-rate: 'k'" RATE},
		{"client-rate 18446744073709551616 0", "client-rate: '18446744073709551616'" RATE},
		{"client-rate -1 0", "client-rate: '-1'" RATE},
		{"client-rate 1m 1m 2047", "client-rate: '2047'" BURST},
		{"client-rate 1m 1m 1025m", "client-rate: '1025m'" BURST},
		{"client-rate 1m 1m 1g", "client-rate: '1g'" BURST},
		{"client-rate 1m 1m 0", "client-rate: '0'" BURST},
	};
	(void)state;
	CHECK_REFUSALS(cases);
}

static void all_faults_are_collected(void **state)
{
	(void)state;
	assert_int_equal(parse_behind_base("verb x\nremote a\nnonsens\n\"\nport 70000"), -22);
	assert_int_equal(report.fault_count, 5);
	assert_string_equal(report.faults[1], "t:9: remote: not supported yet");
	assert_string_equal(report.faults[3], "t:11: no closing quotation (\")");
}

static void fault_cannot_forge_a_line(void **state)
{
	(void)state;
	assert_string_equal(
		refused("proto \"a\tb\x1b[2J\""),
		"proto: 'a_b_[2J' is none of: udp, udp4, udp6, tcp, tcp-server, tcp-client, "
		"tcp4, tcp4-server, tcp4-client, tcp6, tcp6-server, tcp6-client");
}

static void unknown_directive_may_be_announced(void **state)
{
	(void)state;
	accepted("ignore-unknown-option foo --bar\nfoo 1\nbar");
	assert_int_equal(report.warning_count, 2);
	assert_string_equal(report.warnings[1],
			    "t:10: bar: unknown directive, ignored as the configuration allows");
	/* Only behind the announcement, and not what is known but not built. */
	assert_string_equal(refused("foo\nignore-unknown-option foo"), "foo: unknown directive");
	assert_int_equal(parse_behind_base("ignore-unknown-option tls-crypt-v2\ntls-crypt-v2 k"),
			 -22);
	assert_string_equal(report.faults[0], "t:9: tls-crypt-v2: not supported yet");
}

/* Announced for the stock daemon; here a mistake in it is one. */
static void own_directive_is_never_ignored(void **state)
{
	static const char problem[] = "Unrecognized option or missing or extra parameter(s)";
	char expected[256];
	(void)state;
	assert_int_equal(parse_behind_base("ignore-unknown-option metrics\nmetrics 127.0.0.1:9176"),
			 -22);
	snprintf(expected, sizeof(expected), "t:9: metrics: %s; usage: metrics ADDRESS PORT",
		 problem);
	assert_string_equal(report.faults[0], expected);
	assert_int_equal(parse_behind_base("setenv FORWARD_COMPATIBLE 1\nworkers 2 3"), -22);
	snprintf(expected, sizeof(expected), "t:9: workers: %s; usage: workers COUNT|auto",
		 problem);
	assert_string_equal(report.faults[0], expected);
}

static void forward_compatible_takes_the_unknown_from_there_on(void **state)
{
	(void)state;
	accepted("setenv FORWARD_COMPATIBLE 1\nsome-option 1 \"two three\"\nverb");
	assert_int_equal(report.warning_count, 2);
	assert_string_equal(refused("some-option\nsetenv FORWARD_COMPATIBLE 1"),
			    "some-option: unknown directive");
	assert_string_equal(refused("some-option\nsetenv FORWARD_COMPATIBLE 0"),
			    "some-option: unknown directive");
}

static void setenv_opt_is_the_directive_if_known(void **state)
{
	(void)state;
	assert_int_equal(accepted("setenv opt tls-version-min 1.0 or-highest")->tls_version_min,
			 10);
	accepted("setenv opt some-option");
	assert_int_equal(report.warning_count, 1);
	assert_string_equal(refused("setenv opt verb x"), "verb: 'x' is no number from 0 to 11");
	assert_string_equal(refused("setenv opt tls-crypt-v2 k"),
			    "tls-crypt-v2: not supported yet");
	/* It opens no door for the lines behind it. */
	assert_int_equal(parse_behind_base("setenv opt some-option\nnonsens"), -22);
}

static void setenv_is_kept_for_scripts(void **state)
{
	const struct config *c = accepted(
		"setenv PROFILE_ID employees\nsetenv EMPTY\nsetenv DNS \"10.0.0.1 10.0.0.2\"");
	(void)state;
	assert_int_equal(c->env_count, 3);
	assert_string_equal(c->env[0].name, "PROFILE_ID");
	assert_string_equal(c->env[1].value, "");
	assert_string_equal(c->env[2].value, "10.0.0.1 10.0.0.2");
}

static void transport_is_read(void **state)
{
	static const struct {
		const char *lines, *host;
		unsigned port;
		enum listen_family family;
	} cases[] = {
		{"", NULL, 1194, LISTEN_IPV4},
		{"proto udp4\nport 443", NULL, 443, LISTEN_IPV4},
		{"proto udp6", NULL, 1194, LISTEN_IPV6_DUAL},
		{"proto udp6\nbind ipv6only", NULL, 1194, LISTEN_IPV6_ONLY},
		{"bind ipv6only\nproto udp6\nlport 0", NULL, 0, LISTEN_IPV6_ONLY},
		{"local 192.0.2.1", "192.0.2.1", 1194, LISTEN_IPV4},
		{"local ::", "::", 1194, LISTEN_IPV6_DUAL},
		{"local 2001:db8::1\nbind ipv6only", "2001:db8::1", 1194, LISTEN_IPV6_ONLY},
		{"local *\nport 1\nport 2", NULL, 2, LISTEN_IPV4},
		{"local vpn.example.com\nproto udp6", "vpn.example.com", 1194, LISTEN_IPV6_DUAL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct config *c = accepted(cases[i].lines);
		if (cases[i].host)
			assert_string_equal(c->listen.host, cases[i].host);
		else
			assert_null(c->listen.host);
		assert_int_equal(c->listen.port, cases[i].port);
		assert_int_equal(c->listen.family, cases[i].family);
	}
}

static void local_address_must_fit_the_protocol(void **state)
{
	(void)state;
	assert_string_equal(refused("local 192.0.2.1\nproto udp6"),
			    "local: '192.0.2.1' is no address of the protocol (proto udp6)");
	assert_string_equal(refused("local 2001:db8::1\nproto udp4"),
			    "local: '2001:db8::1' is no address of the protocol (proto udp4)");
	assert_int_equal(parse_behind_base("local 192.0.2.1\nlocal 192.0.2.2"), -22);
	assert_string_equal(report.faults[0],
			    "t:9: local: more than one local address: not supported yet");
}

static void mssfix_follows_the_device(void **state)
{
	static const struct {
		const char *lines;
		enum mssfix_mode mode;
		unsigned size, max_packet_size;
	} cases[] = {
		{"", MSSFIX_MTU, 1492, 1250},
		{"mssfix", MSSFIX_MTU, 1492, 1250},
		{"mssfix 0", MSSFIX_OFF, 0, 1250},
		{"mssfix 1450", MSSFIX_PLAIN, 1450, 1250},
		{"mssfix 1400 fixed", MSSFIX_FIXED, 1400, 1250},
		{"mssfix 1400 mtu", MSSFIX_MTU, 1400, 1250},
		{"mssfix\nmssfix 0", MSSFIX_OFF, 0, 1250},
		{"mssfix 0 mtu", MSSFIX_OFF, 0, 1250},
		{"tun-mtu 1400", MSSFIX_FIXED, 1400, 1250},
		{"mssfix\ntun-mtu 9000", MSSFIX_FIXED, 9000, 1250},
		{"tun-mtu 1400\ntun-mtu 1500", MSSFIX_MTU, 1492, 1250},
		{"max-packet-size 1300\ntun-mtu 1400", MSSFIX_MTU, 1300, 1300},
		{"max-packet-size 1300\nmssfix 1400", MSSFIX_PLAIN, 1400, 1300},
		{"tun-mtu 1400\nmssfix 1300", MSSFIX_PLAIN, 1300, 1250},
		{"mssfix 1300\nmssfix", MSSFIX_MTU, 1492, 1250},
		{"max-packet-size 1300", MSSFIX_MTU, 1300, 1300},
		{"max-packet-size 9000", MSSFIX_MTU, 9000, 2048},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct config *c = accepted(cases[i].lines);
		assert_int_equal(c->mssfix_mode, cases[i].mode);
		assert_int_equal(c->mssfix, cases[i].size);
		assert_int_equal(c->max_packet_size, cases[i].max_packet_size);
	}
}

static void cipher_list_is_normalised(void **state)
{
	static const struct {
		const char *line, *list;
	} cases[] = {
		{"", "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305"},
		{"data-ciphers aes-128-gcm", "AES-128-GCM"},
		{"ncp-ciphers AES-192-GCM:AES-128-GCM", "AES-192-GCM:AES-128-GCM"},
		{"data-ciphers chacha20-poly1305:?AES-256-CBC:?FOO:AES-256-GCM",
		 "CHACHA20-POLY1305:AES-256-GCM"},
		{"data-ciphers AES-256-GCM:aes-256-gcm::AES-128-GCM", "AES-256-GCM:AES-128-GCM"},
		{"data-ciphers AES-256-GCM\ndata-ciphers AES-128-GCM", "AES-128-GCM"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(accepted(cases[i].line)->data_ciphers, cases[i].list);
	char line[200] = "data-ciphers ";
	memset(line + 13, 'A', 128);
	assert_string_equal(refused(line), "data-ciphers: the list is longer than 127 bytes");
}

static void algorithms_are_normalised(void **state)
{
	(void)state;
	assert_string_equal(accepted("")->auth, "SHA1");
	assert_string_equal(accepted("auth sha256")->auth, "SHA256");
	assert_string_equal(accepted("auth RSA-SHA512")->auth, "SHA512");
	assert_string_equal(accepted("auth none")->auth, "none");
	assert_null(accepted("")->cipher);
	assert_string_equal(accepted("cipher aes-256-cbc")->cipher, "AES-256-CBC");
	assert_string_equal(accepted("data-ciphers-fallback aes-256-gcm")->data_ciphers_fallback,
			    "AES-256-GCM");
}

static void files_may_be_inline(void **state)
{
	const struct config *c =
		accepted("<ca>\nA\n</ca>\n<tls-auth>\nB\r\n</tls-auth>\nkey-direction 0\n"
			 "<crl-verify>\nC\n</crl-verify>\n<dh>\nD\n</dh>");
	(void)state;
	assert_string_equal(c->ca.text, "A\n");
	assert_null(c->ca.path);
	assert_string_equal(c->tls_auth.text, "B\r\n");
	assert_int_equal(c->tls_auth.text_len, 3);
	assert_int_equal(c->tls_auth_direction, 0);
	assert_false(c->is_crl_dir);
	assert_false(c->is_dh_none);
	/* The last one counts. */
	c = accepted("<ca>\nA\n</ca>\nca file");
	assert_string_equal(c->ca.path, "file");
	assert_null(c->ca.text);
}

static void direction_comes_from_either_line(void **state)
{
	static const struct {
		const char *lines;
		int direction;
	} cases[] = {
		{"tls-auth ta.key", -1},
		{"tls-auth ta.key 0", 0},
		{"tls-auth ta.key\nkey-direction 1", 1},
		{"key-direction 0\ntls-auth ta.key", 0},
		{"key-direction 0\ntls-auth ta.key 1", 1},
		{"tls-auth [inline] 1\n<tls-auth>\nx\n</tls-auth>", 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(accepted(cases[i].lines)->tls_auth_direction, cases[i].direction);
}

static void times_and_sizes_are_read(void **state)
{
	const struct config *c =
		accepted("reneg-sec 20\nreneg-bytes 10000000000\nreplay-window 128 30\n"
			 "tls-version-min 1.3\ntls-version-max 1.3\nsndbuf 0\n"
			 "rcvbuf 393216\nstatus s.log 20\nstatus-version 3");
	(void)state;
	assert_int_equal(c->reneg_sec_max, 20);
	assert_int_equal(c->reneg_sec_min, 18);
	assert_int_equal(c->reneg_bytes, 10000000000);
	assert_int_equal(c->replay_window, 128);
	assert_int_equal(c->replay_time_s, 30);
	assert_int_equal(c->tls_version_min, 13);
	assert_int_equal(c->tls_version_max, 13);
	assert_int_equal(c->rcvbuf, 393216);
	assert_string_equal(c->status_path, "s.log");
	assert_int_equal(c->status_interval_s, 20);
	assert_int_equal(c->status_version, 3);
	c = accepted("reneg-sec 100 50\nstatus s");
	assert_int_equal(c->reneg_sec_min, 50);
	assert_int_equal(c->status_interval_s, 60);
	assert_int_equal(accepted("reneg-sec 0")->reneg_sec_min, 0);
}

static void process_is_read(void **state)
{
	const struct config *c =
		accepted("daemon ovpn-server\nuser nobody\ngroup nogroup\nverb 4\nmute 20\n"
			 "log l\nlog-append a\nwritepid p\nsuppress-timestamps\ncd /tmp");
	(void)state;
	assert_true(c->is_daemon);
	assert_false(c->is_syslog);
	assert_string_equal(c->daemon_name, "ovpn-server");
	assert_string_equal(c->log_path, "a");
	assert_true(c->is_log_append);
	assert_string_equal(c->pid_path, "p");
	assert_string_equal(c->cd_dir, "/tmp");
	assert_true(c->is_timestamps_off);
	assert_int_equal(c->verb, 4);
	assert_int_equal(c->mute, 20);
	assert_true(accepted("daemon")->is_syslog);
	assert_false(accepted("log-append a\nlog l")->is_log_append);
	assert_false(accepted("syslog\nlog l")->is_syslog);
	c = accepted("syslog 'openvpn(sample_server)'");
	assert_true(c->is_syslog);
	assert_string_equal(c->daemon_name, "openvpn(sample_server)");
}

static void own_directives_are_read(void **state)
{
	const struct config *c =
		accepted("workers 5\nworker-cpus 0,2-5\nhandshake-threads 2\n"
			 "io-engine epoll\naead-engine openssl\nworker-memory 16M\n"
			 "metrics ::1 9176\ndisable-feature uring,huge-pages");
	(void)state;
	assert_int_equal(c->workers, 5);
	assert_int_equal(c->worker_cpu_count, 5);
	assert_int_equal(c->worker_cpus[1], 2);
	assert_int_equal(c->worker_cpus[4], 5);
	assert_int_equal(c->handshake_threads, 2);
	assert_int_equal(c->io_engine, IO_ENGINE_EPOLL);
	assert_int_equal(c->aead_engine, AEAD_OPENSSL);
	assert_int_equal(c->worker_memory, 16 << 20);
	assert_string_equal(c->metrics_host, "::1");
	assert_int_equal(c->metrics_port, 9176);
	assert_int_equal(c->disabled_features, FEATURE_URING | FEATURE_HUGE_PAGES);
	c = accepted("workers 5\nworkers auto\nworker-memory 1048576");
	assert_int_equal(c->workers, 0);
	assert_int_equal(c->worker_memory, 1 << 20);
	assert_null(c->metrics_host);
	c = accepted("disable-feature "
		     "uring-recv-multishot,uring-read-multishot,recvmmsg,steering-cbpf");
	assert_int_equal(c->disabled_features, FEATURE_URING_RECV_MULTISHOT |
						       FEATURE_URING_READ_MULTISHOT |
						       FEATURE_RECVMMSG | FEATURE_STEERING_CBPF);
	c = accepted("disable-feature tun-tso,tun-uso\ndisable-feature "
		     "udp-gro,udp-gso,steering-ebpf");
	assert_int_equal(c->disabled_features, FEATURE_TUN_TSO | FEATURE_TUN_USO | FEATURE_UDP_GRO |
						       FEATURE_UDP_GSO | FEATURE_STEERING_EBPF);
}

static void offloads_are_read(void **state)
{
	static const struct {
		const char *lines;
		uint32_t offloads;
	} cases[] = {
		{"", OFFLOAD_TSO | OFFLOAD_USO | OFFLOAD_UDP_GRO | OFFLOAD_UDP_GSO},
		{"offload none", 0},
		{"offload none\noffload auto", OFFLOAD_ALL},
		{"offload tso", OFFLOAD_TSO},
		{"offload uso\noffload tso", OFFLOAD_TSO},
		{"offload udp-gso udp-gro uso", OFFLOAD_USO | OFFLOAD_UDP_GRO | OFFLOAD_UDP_GSO},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(accepted(cases[i].lines)->offloads, cases[i].offloads);
}

static void client_rate_is_read_in_bits(void **state)
{
	static const struct {
		const char *lines;
		uint64_t up, down;
		uint32_t burst;
	} cases[] = {
		{"", 0, 0, 0},
		{"client-rate 0 0", 0, 0, 0},
		{"client-rate 8000 16k", 1000, 2000, 0},
		{"client-rate 20m 100m 256k", 2500000, 12500000, 256 << 10},
		{"client-rate 0 400g 1024m", 0, 50000000000, 1 << 30},
		{"client-rate 400000000000 0g 2048", 50000000000, 0, 2048},
		{"client-rate 1m 1m 64k\nclient-rate 2m 0", 250000, 0, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct client_rate *r = &accepted(cases[i].lines)->client_rate;
		assert_int_equal(r->up_bytes_s, cases[i].up);
		assert_int_equal(r->down_bytes_s, cases[i].down);
		assert_int_equal(r->burst_bytes, cases[i].burst);
	}
}

static void busy_poll_and_mtu_disc_are_read(void **state)
{
	(void)state;
	assert_int_equal(accepted("")->busy_poll_us, 0);
	assert_int_equal(accepted("busy-poll 1000")->busy_poll_us, 1000);
	assert_int_equal(accepted("")->mtu_disc, MTU_DISC_SYSTEM);
	assert_int_equal(accepted("mtu-disc no")->mtu_disc, MTU_DISC_NO);
	assert_int_equal(accepted("mtu-disc maybe")->mtu_disc, MTU_DISC_MAYBE);
	assert_int_equal(accepted("mtu-disc yes")->mtu_disc, MTU_DISC_YES);
}

static void routes_are_collected(void **state)
{
	const struct config *c = accepted("route 192.168.1.0 255.255.255.0\nroute 192.0.2.9\n"
					  "route 10.9.0.7 255.255.0.0 net_gateway 5\n"
					  "route 10.7.0.0 255.255.0.0 10.8.0.5\n"
					  "route-ipv6 2000::/3\nroute-ipv6 fd00:1::/48 fd00::2 7");
	(void)state;
	assert_int_equal(c->route_count, 6);
	assert_int_equal(c->routes[0].net.bits, 24);
	assert_int_equal(c->routes[0].kind, ROUTE_GATEWAY_VPN);
	assert_int_equal(c->routes[1].net.bits, 32);
	assert_int_equal(c->routes[2].kind, ROUTE_GATEWAY_NET);
	assert_int_equal(c->routes[2].metric, 5);
	assert_int_equal(c->routes[2].net.addr.bytes[3], 0);
	assert_int_equal(c->routes[3].kind, ROUTE_GATEWAY_ADDR);
	assert_int_equal(c->routes[3].gateway.bytes[3], 5);
	assert_int_equal(c->routes[4].net.bits, 3);
	assert_int_equal(c->routes[5].metric, 7);
	/* Host bits of the third were cleared, and that is said. */
	assert_int_equal(report.warning_count, 1);
	assert_string_equal(report.warnings[0], "t:10: route: host bits set, taken as 10.9.0.0/16");
}

static void a_server_that_floats_is_accepted(void **state)
{
	(void)state;
	accepted("float\npersist-key\nhash-size 1024 1024\nbcast-buffers "
		 "4096\ndisable-dco\nmultihome\n"
		 "ifconfig-pool-persist \"\"");
	assert_true(config->is_multihome);
	assert_null(config->pool_persist_path);
}

static void many_lines_are_kept_in_order(void **state)
{
	char lines[3000] = "", text[32];
	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "push \"echo %d\"\n", i);
		strcat(lines, text);
	}
	const struct config *c = accepted(lines);
	assert_int_equal(c->push_count, 104);
	assert_string_equal(c->push[0], "echo 0");
	assert_string_equal(c->push[99], "echo 99");
	assert_string_equal(c->push[103], "ping-restart 60");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sorted_and_complete),
		cmocka_unit_test(every_other_directive_is_refused_by_name),
		cmocka_unit_test(harmless_leftovers_are_warned_about_once),
		cmocka_unit_test(wrong_argument_count_shows_usage),
		cmocka_unit_test(unknown_directive_names_the_nearest),
		cmocka_unit_test(wrong_values_are_refused),
		cmocka_unit_test(wrong_values_of_own_directives_are_refused),
		cmocka_unit_test(all_faults_are_collected),
		cmocka_unit_test(fault_cannot_forge_a_line),
		cmocka_unit_test(unknown_directive_may_be_announced),
		cmocka_unit_test(own_directive_is_never_ignored),
		cmocka_unit_test(forward_compatible_takes_the_unknown_from_there_on),
		cmocka_unit_test(setenv_opt_is_the_directive_if_known),
		cmocka_unit_test(setenv_is_kept_for_scripts),
		cmocka_unit_test(transport_is_read),
		cmocka_unit_test(local_address_must_fit_the_protocol),
		cmocka_unit_test(mssfix_follows_the_device),
		cmocka_unit_test(cipher_list_is_normalised),
		cmocka_unit_test(algorithms_are_normalised),
		cmocka_unit_test(files_may_be_inline),
		cmocka_unit_test(direction_comes_from_either_line),
		cmocka_unit_test(times_and_sizes_are_read),
		cmocka_unit_test(process_is_read),
		cmocka_unit_test(own_directives_are_read),
		cmocka_unit_test(offloads_are_read),
		cmocka_unit_test(client_rate_is_read_in_bits),
		cmocka_unit_test(busy_poll_and_mtu_disc_are_read),
		cmocka_unit_test(routes_are_collected),
		cmocka_unit_test(a_server_that_floats_is_accepted),
		cmocka_unit_test(many_lines_are_kept_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, parsed_tear_down);
}
