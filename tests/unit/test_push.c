/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "server/control/push.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct push_facts modern = {
	.has_peer_id = true,
	.peer_id = 0,
	.is_cipher_pushed = true,
	.cipher = CIPHER_AES_256_GCM,
	.has_tls_ekm = true,
	.has_cc_exit = true,
	.has_dyn_tls_crypt = true,
	.tun_mtu = 1500,
};

/* wire.md, section 10 */
static void golden_reply_of_a_modern_client(void **state)
{
	(void)state;
	static const char *const options[] = {"dhcp-option DNS 10.8.0.1", "route-gateway 10.8.0.1",
					      "topology subnet", "ping 10", "ping-restart 60"};
	const struct push_plan plan = {options, COUNT(options), NULL, "10.8.0.2 255.255.255.0", 0};
	struct push_reply r;
	assert_int_equal(push_build(&plan, &modern, &r), 0);
	assert_int_equal(r.count, 1);
	assert_string_equal(
		r.messages[0],
		"PUSH_REPLY,dhcp-option DNS 10.8.0.1,route-gateway 10.8.0.1,topology subnet,ping "
		"10,ping-restart 60,ifconfig 10.8.0.2 255.255.255.0,peer-id 0,cipher AES-256-GCM,"
		"protocol-flags cc-exit tls-ekm dyn-tls-crypt,tun-mtu 1500");
	push_reply_fini(&r);
}

static void what_is_added_depends_on_the_client(void **state)
{
	(void)state;
	static const struct {
		struct push_facts facts;
		const char *want;
	} cases[] = {
		{{0}, "PUSH_REPLY"},
		{{.has_peer_id = true, .peer_id = 7}, "PUSH_REPLY,peer-id 7"},
		{{.has_tls_ekm = true}, "PUSH_REPLY,key-derivation tls-ekm"},
		{{.has_tls_ekm = true, .has_cc_exit = true},
		 "PUSH_REPLY,protocol-flags cc-exit tls-ekm"},
		{{.has_cc_exit = true}, "PUSH_REPLY,protocol-flags cc-exit"},
		{{.has_dyn_tls_crypt = true}, "PUSH_REPLY,protocol-flags dyn-tls-crypt"},
		{{.has_dyn_tls_crypt = true, .has_tls_ekm = true},
		 "PUSH_REPLY,key-derivation tls-ekm,protocol-flags dyn-tls-crypt"},
		{{.is_cipher_pushed = true, .cipher = CIPHER_CHACHA20_POLY1305},
		 "PUSH_REPLY,cipher CHACHA20-POLY1305"},
		{{.tun_mtu = 1400}, "PUSH_REPLY,tun-mtu 1400"},
	};
	const struct push_plan plan = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct push_reply r;
		assert_int_equal(push_build(&plan, &cases[i].facts, &r), 0);
		assert_int_equal(r.count, 1);
		assert_string_equal(r.messages[0], cases[i].want);
		push_reply_fini(&r);
	}
}

static void ipv6_comes_before_ipv4(void **state)
{
	(void)state;
	const struct push_plan plan = {.ifconfig_ipv6 = "fd00::1000/64 fd00::1",
				       .ifconfig = "10.8.0.6 10.8.0.5"};
	struct push_reply r;
	assert_int_equal(push_build(&plan, &(struct push_facts){0}, &r), 0);
	assert_string_equal(r.messages[0],
			    "PUSH_REPLY,ifconfig-ipv6 fd00::1000/64 fd00::1,ifconfig "
			    "10.8.0.6 10.8.0.5");
	push_reply_fini(&r);
}

static const char *const *make_options(size_t count, size_t len, char (*space)[1024],
				       const char **list)
{
	for (size_t i = 0; i < count; i++) {
		snprintf(space[i], sizeof(space[i]), "%zu", i);
		memset(space[i] + strlen(space[i]), 'x', len - strlen(space[i]));
		space[i][len] = '\0';
		list[i] = space[i];
	}
	return list;
}

static void a_message_is_cut_at_940_bytes(void **state)
{
	(void)state;
	/* "PUSH_REPLY" and two options of 464 and n bytes with their commas */
	static const struct {
		size_t second;
		size_t messages;
	} cases[] = {{464, 1}, {465, 2}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char a[1024], b[1024];
		const char *list[] = {a, b};
		memset(a, 'a', 464);
		memset(b, 'b', cases[i].second);
		a[464] = b[cases[i].second] = '\0';
		const struct push_plan plan = {.options = list, .option_count = 2};
		struct push_reply r;
		assert_int_equal(push_build(&plan, &(struct push_facts){0}, &r), 0);
		assert_int_equal(r.count, cases[i].messages);
		push_reply_fini(&r);
	}
}

static void many_options_are_continued(void **state)
{
	(void)state;
	static char space[60][1024];
	static const char *list[60];
	const struct push_plan plan = {.options = make_options(60, 100, space, list),
				       .option_count = 60,
				       .ifconfig = "10.8.0.2 255.255.255.0",
				       .peer_id = 3};
	struct push_facts facts = modern;
	facts.peer_id = 3;
	struct push_reply r;
	assert_int_equal(push_build(&plan, &facts, &r), 0);
	assert_true(r.count > 6);
	size_t options = 0;
	for (size_t i = 0; i < r.count; i++) {
		const char *m = r.messages[i];
		bool is_last = i + 1 == r.count;
		assert_true(strlen(m) < PUSH_MESSAGE_MAX);
		assert_true(strncmp(m, "PUSH_REPLY,", 11) == 0);
		const char *end = is_last ? ",push-continuation 1" : ",push-continuation 2";
		assert_string_equal(m + strlen(m) - strlen(end), end);
		for (const char *p = m; (p = strstr(p, "xxx,")); p++)
			options++;
	}
	assert_int_equal(options, 60);
	assert_non_null(strstr(r.messages[r.count - 1], "peer-id 3,cipher AES-256-GCM"));

	/* and the other side puts it together again */
	struct push_received got;
	push_received_init(&got);
	for (size_t i = 0; i < r.count; i++) {
		assert_true(push_received_add(&got, r.messages[i]));
		assert_int_equal(got.is_continued, i + 1 < r.count);
	}
	assert_int_equal(got.peer_id, 3);
	assert_string_equal(got.cipher, "AES-256-GCM");
	assert_true(got.has_cc_exit && got.has_tls_ekm && got.has_dyn_tls_crypt);
	push_reply_fini(&r);
}

static void options_that_cannot_be_pushed(void **state)
{
	(void)state;
	static char longest[1024], too_long[1024];
	memset(longest, 'x', 929);
	memset(too_long, 'x', 930);
	static const struct {
		const char *option;
		int err;
	} cases[] = {
		{"route 10.0.0.0 255.0.0.0", 0},
		{"a,b", -EINVAL},
		{"", -EINVAL},
		{"a\nb", -EINVAL},
		{"a\x7f", -EINVAL},
		{longest, 0},
		{too_long, -EMSGSIZE},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct push_plan plan = {.options = &cases[i].option, .option_count = 1};
		struct push_reply r = {0};
		assert_int_equal(push_build(&plan, &(struct push_facts){0}, &r), cases[i].err);
		push_reply_fini(&r);
	}
	const struct push_plan plan = {.ifconfig = "10.0.0.1,redirect-gateway 1.2.3.4"};
	struct push_reply r;
	assert_int_equal(push_build(&plan, &(struct push_facts){0}, &r), -EINVAL);
}

static void all_together_are_bounded(void **state)
{
	(void)state;
	static char option[901];
	static const char *list[80];
	memset(option, 'x', 900);
	for (size_t i = 0; i < COUNT(list); i++)
		list[i] = option;
	const struct push_plan plan = {.options = list, .option_count = COUNT(list)};
	struct push_reply r;
	assert_int_equal(push_build(&plan, &(struct push_facts){0}, &r), -EMSGSIZE);
}

static void what_a_client_takes(void **state)
{
	(void)state;
	static const struct {
		const char *message;
		bool is_ok;
		uint32_t peer_id;
		const char *cipher;
		bool ekm, exit, dyn;
	} cases[] = {
		{"PUSH_REPLY", true, PEER_ID_NONE, "", false, false, false},
		{"PUSH_REPLY,peer-id 5,cipher X", true, 5, "X", false, false, false},
		{"PUSH_REPLY,peer-id 16777215", true, PEER_ID_NONE, "", false, false, false},
		{"PUSH_REPLY,peer-id -1", true, PEER_ID_NONE, "", false, false, false},
		{"PUSH_REPLY,peer-id 16777216", false, 0, "", false, false, false},
		{"PUSH_REPLY,peer-id x", false, 0, "", false, false, false},
		{"PUSH_REPLY,key-derivation tls-ekm", true, PEER_ID_NONE, "", true, false, false},
		{"PUSH_REPLY,key-derivation other", false, 0, "", false, false, false},
		{"PUSH_REPLY,protocol-flags cc-exit aead-epoch tls-ekm", true, PEER_ID_NONE, "",
		 true, true, false},
		{"PUSH_REPLY,protocol-flags dyn-tls-crypt", true, PEER_ID_NONE, "", false, false,
		 true},
		{"PUSH_REPLY,peer-idx 5,,xcipher Y", true, PEER_ID_NONE, "", false, false, false},
		{"PUSH_REPLYX,peer-id 5", false, 0, "", false, false, false},
		{"PUSH", false, 0, "", false, false, false},
		{"", false, 0, "", false, false, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct push_received p;
		push_received_init(&p);
		assert_int_equal(push_received_add(&p, cases[i].message), cases[i].is_ok);
		if (!cases[i].is_ok)
			continue;
		assert_int_equal(p.peer_id, cases[i].peer_id);
		assert_string_equal(p.cipher, cases[i].cipher);
		assert_int_equal(p.has_tls_ekm, cases[i].ekm);
		assert_int_equal(p.has_cc_exit, cases[i].exit);
		assert_int_equal(p.has_dyn_tls_crypt, cases[i].dyn);
		assert_false(p.is_continued);
	}
}

static void a_cipher_name_that_is_too_long_is_refused(void **state)
{
	(void)state;
	char message[256] = "PUSH_REPLY,cipher ";
	struct push_received p;
	push_received_init(&p);
	memset(message + 18, 'X', 63);
	assert_true(push_received_add(&p, message));
	memset(message + 18, 'X', 64);
	assert_false(push_received_add(&p, message));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_reply_of_a_modern_client),
		cmocka_unit_test(what_is_added_depends_on_the_client),
		cmocka_unit_test(ipv6_comes_before_ipv4),
		cmocka_unit_test(a_message_is_cut_at_940_bytes),
		cmocka_unit_test(many_options_are_continued),
		cmocka_unit_test(options_that_cannot_be_pushed),
		cmocka_unit_test(all_together_are_bounded),
		cmocka_unit_test(what_a_client_takes),
		cmocka_unit_test(a_cipher_name_that_is_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
