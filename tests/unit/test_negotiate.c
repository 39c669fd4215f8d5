/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/negotiate.h"

#define DEFAULTS "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305"

static struct client_info parse(const char *peer_info, const char *options)
{
	struct client_info c;
	assert_int_equal(
		client_info_parse(peer_info, strlen(peer_info), options, strlen(options), &c), 0);
	return c;
}

static void facts_of_a_stock_client(void **state)
{
	(void)state;
	struct client_info c =
		parse("IV_VER=2.6.14\nIV_PLAT=linux\nIV_TCPNL=1\nIV_MTU=1600\nIV_NCP=2\n"
		      "IV_CIPHERS=AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305\nIV_PROTO=990\n",
		      "V4,dev-type tun,link-mtu 1549,tun-mtu 1500,proto UDPv4,cipher AES-256-GCM,"
		      "auth [null-digest],keysize 256,key-method 2,tls-client");
	assert_int_equal(c.line_count, 7);
	assert_string_equal(c.lines[0], "IV_VER=2.6.14");
	assert_int_equal(c.iv_proto, 990);
	assert_true(c.has_iv_ciphers);
	assert_string_equal(c.iv_ciphers, DEFAULTS);
	assert_int_equal(c.iv_ncp, 2);
	assert_int_equal(c.iv_mtu, 1600);
	assert_true(c.has_iv_tcpnl);
	assert_string_equal(c.occ_cipher, "AES-256-GCM");
	assert_false(c.has_occ_comp_lzo);
	client_info_fini(&c);
}

static void a_client_that_says_nothing(void **state)
{
	(void)state;
	struct client_info c = parse("", "");
	assert_int_equal(c.line_count, 0);
	assert_int_equal(c.iv_proto, 0);
	assert_false(c.has_iv_ciphers);
	client_info_fini(&c);
	assert_int_equal(client_info_parse(NULL, 0, NULL, 0, &c), 0);
	client_info_fini(&c);
}

static void lines_that_are_left_out_or_changed(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out; /* NULL: left out */
	} cases[] = {
		{"IV_VER=1", "IV_VER=1"},
		{"UV_ID=x", "UV_ID=x"},
		{"IV_=x", "IV_=x"},
		{"ID=deadbeef", NULL},
		{"LD_PRELOAD=/tmp/x", NULL},
		{"PATH=/tmp", NULL},
		{"iv_ver=1", NULL},
		{"IV_VER", NULL},
		{"IV_A-B=1", NULL},
		{"IV_A B=1", NULL},
		{"=IV_VER", NULL},
		{"", NULL},
		{"IV_PLAT_VER=Linux 6.1 x", "IV_PLAT_VER=Linux_6.1_x"},
		{"UV_X=$(rm -rf /)", "UV_X=__rm_-rf_/)"},
		{"UV_X=`id`", "UV_X=_id_"},
		{"UV_X=a\033[0m", "UV_X=a_[0m"},
		{"UV_X=\xff\x7f", "UV_X=__"},
		{"UV_X=a=b", "UV_X=a=b"},
		{"UV_X=", "UV_X="},
		{"UV_X=1\r", "UV_X=1"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_info c = parse(cases[i].in, "");
		assert_int_equal(c.line_count, cases[i].out ? 1 : 0);
		if (cases[i].out)
			assert_string_equal(c.lines[0], cases[i].out);
		client_info_fini(&c);
	}
}

/* Stock looks for "IV_PROTO=" anywhere in the text. */
static void variables_are_found_by_line(void **state)
{
	(void)state;
	struct client_info c = parse("UV_X=IV_PROTO=8\nIV_PROTO=2\nIV_PROTO=4\n", "");
	assert_int_equal(c.iv_proto, 2);
	client_info_fini(&c);
}

static void broken_numbers_are_zero(void **state)
{
	(void)state;
	static const char *const cases[] = {"IV_PROTO=", "IV_PROTO=-1", "IV_PROTO= 2",
					    "IV_PROTO=2x", "IV_PROTO=4294967296"};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_info c = parse(cases[i], "");
		assert_int_equal(c.iv_proto, 0);
		client_info_fini(&c);
	}
	struct client_info c = parse("IV_PROTO=4294967295\nIV_NCP=4294967295", "");
	assert_true(c.iv_proto == UINT32_MAX);
	assert_int_equal(c.iv_ncp, 0);
	client_info_fini(&c);
}

static void count_and_length_are_bounded(void **state)
{
	(void)state;
	char text[8192] = "";
	for (int i = 0; i < PEER_INFO_LINES_MAX + 5; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "UV_%d=x\n", i);
	struct client_info c = parse(text, "");
	assert_int_equal(c.line_count, PEER_INFO_LINES_MAX);
	client_info_fini(&c);

	char ciphers[1024] = "IV_CIPHERS=";
	memset(ciphers + 11, 'A', 600);
	c = parse(ciphers, "");
	assert_int_equal(strlen(c.lines[0]), 255);
	assert_int_equal(strlen(c.iv_ciphers), 255 - 11);
	client_info_fini(&c);
}

static void options_string_of_old_clients(void **state)
{
	(void)state;
	static const struct {
		const char *options, *cipher;
		bool has_comp_lzo;
	} cases[] = {
		{"V4,dev-type tun,comp-lzo,cipher BF-CBC,auth SHA1", "BF-CBC", true},
		{"V4,cipher [null-cipher]", "[null-cipher]", false},
		{"V0 UNDEF", "", false},
		{"V4,cipher ", "", false},
		{"V4,xcipher AES-256-GCM,comp-lzo2", "", false},
		{"cipher 123456789012345678901234567890123456789012345678901234567890123",
		 "123456789012345678901234567890123456789012345678901234567890123", false},
		{"cipher 1234567890123456789012345678901234567890123456789012345678901234", "",
		 false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_info c = parse("", cases[i].options);
		assert_string_equal(c.occ_cipher, cases[i].cipher);
		assert_int_equal(c.has_occ_comp_lzo, cases[i].has_comp_lzo);
		client_info_fini(&c);
	}
}

/* wire.md, section 8 */
static void choice_of_the_cipher(void **state)
{
	(void)state;
	static const struct {
		const char *peer_info, *options, *ours, *fallback;
		enum cipher want;
	} cases[] = {
		/* the first of the server's list that the client has */
		{"IV_CIPHERS=" DEFAULTS, "", DEFAULTS, NULL, CIPHER_AES_256_GCM},
		{"IV_CIPHERS=CHACHA20-POLY1305:AES-128-GCM", "", DEFAULTS, NULL,
		 CIPHER_AES_128_GCM},
		{"IV_CIPHERS=CHACHA20-POLY1305", "", DEFAULTS, NULL, CIPHER_CHACHA20_POLY1305},
		{"IV_CIPHERS=AES-192-GCM", "", "AES-192-GCM", NULL, CIPHER_AES_192_GCM},
		{"IV_CIPHERS=" DEFAULTS, "", "CHACHA20-POLY1305:AES-256-GCM", NULL,
		 CIPHER_CHACHA20_POLY1305},
		/* none in common, and no way around the list */
		{"IV_CIPHERS=AES-128-CBC", "cipher AES-256-GCM", DEFAULTS, "AES-256-GCM",
		 CIPHER_NONE},
		{"IV_CIPHERS=aes-256-gcm", "", DEFAULTS, NULL, CIPHER_NONE},
		{"IV_CIPHERS=AES-256-GCMX:XAES-256-GCM", "", DEFAULTS, NULL, CIPHER_NONE},
		{"IV_CIPHERS=", "", DEFAULTS, "AES-256-GCM", CIPHER_NONE},
		/* 2.4: IV_NCP=2 means the two GCM ciphers, or the one of the options string */
		{"IV_NCP=2", "", DEFAULTS, NULL, CIPHER_AES_256_GCM},
		{"IV_NCP=2", "cipher AES-256-CBC", "AES-128-GCM", NULL, CIPHER_AES_128_GCM},
		{"IV_NCP=2", "", "CHACHA20-POLY1305", "AES-256-GCM", CIPHER_NONE},
		{"IV_NCP=2", "cipher CHACHA20-POLY1305", "CHACHA20-POLY1305", NULL,
		 CIPHER_CHACHA20_POLY1305},
		{"IV_NCP=1", "", DEFAULTS, NULL, CIPHER_NONE},
		/* old clients: the options string alone */
		{"", "V4,cipher AES-128-GCM", DEFAULTS, NULL, CIPHER_AES_128_GCM},
		{"", "V4,cipher BF-CBC", DEFAULTS, "AES-256-GCM", CIPHER_NONE},
		{"", "V4,cipher [null-cipher]", DEFAULTS, "AES-256-GCM", CIPHER_NONE},
		/* nothing said at all: the fallback, if there is one */
		{"", "", DEFAULTS, NULL, CIPHER_NONE},
		{"", "", DEFAULTS, "AES-256-GCM", CIPHER_AES_256_GCM},
		{"", "V0 UNDEF", DEFAULTS, "AES-128-GCM", CIPHER_AES_128_GCM},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_info c = parse(cases[i].peer_info, cases[i].options);
		assert_int_equal(negotiate_cipher(&c, cases[i].ours, cases[i].fallback),
				 cases[i].want);
		client_info_fini(&c);
	}
}

static void list_membership_is_exact(void **state)
{
	(void)state;
	assert_true(cipher_list_has("A:B:C", "A"));
	assert_true(cipher_list_has("A:B:C", "C"));
	assert_false(cipher_list_has("A:B:C", "A:B"));
	assert_false(cipher_list_has("AB", "A"));
	assert_false(cipher_list_has("", "A"));
	assert_false(cipher_list_has("A:B", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_of_a_stock_client),
		cmocka_unit_test(a_client_that_says_nothing),
		cmocka_unit_test(lines_that_are_left_out_or_changed),
		cmocka_unit_test(variables_are_found_by_line),
		cmocka_unit_test(broken_numbers_are_zero),
		cmocka_unit_test(count_and_length_are_bounded),
		cmocka_unit_test(options_string_of_old_clients),
		cmocka_unit_test(choice_of_the_cipher),
		cmocka_unit_test(list_membership_is_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
