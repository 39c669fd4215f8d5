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

#include "server/control/tls.h"
#include "tests/support/pki.h"

static struct pki_name *ca, *server, *client;

static int setup(void **state)
{
	(void)state;
	ca = pki_make(&(struct pki_request){.cn = "ca", .usage = PKI_CA}, NULL);
	server = pki_make(&(struct pki_request){.cn = "server", .usage = PKI_SERVER}, ca);
	client = pki_make(&(struct pki_request){.cn = "client", .usage = PKI_CLIENT}, ca);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pki_free(ca);
	pki_free(server);
	pki_free(client);
	return 0;
}

static struct config_file text(const char *s)
{
	return (struct config_file){.text = s, .text_len = strlen(s)};
}

static struct config config_of(const struct pki_name *n)
{
	return (struct config){
		.ca = text(pki_cert(ca)), .cert = text(pki_cert(n)), .key = text(pki_key(n))};
}

struct pair {
	struct tls_context *contexts[2];
	struct tls *server, *client;
};

static struct tls *end_of(const struct config *c, bool is_server, struct tls_context **context)
{
	char why[512];
	struct tls *t;
	if (tls_context_new(c, is_server, context, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_int_equal(tls_new(*context, &t), 0);
	tls_set_time(t, PKI_NOW);
	return t;
}

static struct pair pair_of(const struct config *server_config, const struct config *client_config)
{
	struct pair p;
	p.server = end_of(server_config, true, &p.contexts[0]);
	p.client = end_of(client_config, false, &p.contexts[1]);
	return p;
}

static void pair_free(struct pair *p)
{
	tls_free(p->server);
	tls_free(p->client);
	tls_context_unref(p->contexts[0]);
	tls_context_unref(p->contexts[1]);
}

static size_t move(struct tls *from, struct tls *to, size_t piece)
{
	uint8_t buf[4096];
	size_t len, moved = 0;
	while ((len = tls_output(from, buf, piece))) {
		assert_true(tls_input(to, (struct view){buf, len}));
		moved += len;
	}
	return moved;
}

static bool handshake(struct pair *p, size_t piece)
{
	for (int i = 0; i < 10; i++) {
		if (tls_handshake(p->client) == TLS_ERROR)
			return false;
		move(p->client, p->server, piece);
		if (tls_handshake(p->server) == TLS_ERROR)
			return false;
		move(p->server, p->client, piece);
	}
	return tls_is_established(p->client) && tls_is_established(p->server);
}

static struct pair up(int version)
{
	struct config sc = config_of(server), cc = config_of(client);
	sc.tls_version_min = cc.tls_version_min = version;
	sc.tls_version_max = cc.tls_version_max = version;
	struct pair p = pair_of(&sc, &cc);
	assert_true(handshake(&p, 1000));
	return p;
}

static void both_versions_carry_messages_and_export_the_same(void **state)
{
	(void)state;
	for (int version = 12; version <= 13; version++) {
		struct pair p = up(version);
		uint8_t a[256], b[256], buf[64];
		size_t len;
		assert_int_equal(tls_export(p.server, "EXPORTER-test", a, sizeof(a)), 0);
		assert_int_equal(tls_export(p.client, "EXPORTER-test", b, sizeof(b)), 0);
		assert_memory_equal(a, b, sizeof(a));
		assert_int_equal(tls_export(p.client, "EXPORTER-other", b, sizeof(b)), 0);
		assert_memory_not_equal(a, b, sizeof(a));
		assert_int_equal(tls_write(p.client, (struct view){(const uint8_t *)"hello", 6}),
				 TLS_OK);
		move(p.client, p.server, 1000);
		tls_settle(p.server);
		assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len), TLS_OK);
		assert_int_equal(len, 6);
		assert_string_equal((const char *)buf, "hello");
		assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len), TLS_WANT);
		pair_free(&p);
	}
}

static void one_read_is_one_record(void **state)
{
	(void)state;
	struct pair p = up(13);
	uint8_t buf[64];
	size_t len;
	assert_int_equal(tls_write(p.client, (struct view){(const uint8_t *)"one", 3}), TLS_OK);
	assert_int_equal(tls_write(p.client, (struct view){(const uint8_t *)"two", 3}), TLS_OK);
	move(p.client, p.server, 7);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len), TLS_OK);
	assert_int_equal(len, 3);
	assert_memory_equal(buf, "one", 3);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len), TLS_OK);
	assert_memory_equal(buf, "two", 3);
	pair_free(&p);
}

static void a_record_larger_than_asked_for_is_an_error(void **state)
{
	(void)state;
	static uint8_t big[2049], buf[2048];
	for (size_t n = 2048; n <= 2049; n++) {
		struct pair p = up(13);
		size_t len;
		assert_int_equal(tls_write(p.client, (struct view){big, n}), TLS_OK);
		move(p.client, p.server, 1000);
		assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len),
				 n == 2048 ? TLS_OK : TLS_ERROR);
		pair_free(&p);
	}
}

static void handshakes_survive_any_cut(void **state)
{
	(void)state;
	struct config sc = config_of(server), cc = config_of(client);
	static const size_t pieces[] = {1, 16, 100, 1200};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct pair p = pair_of(&sc, &cc);
		assert_true(handshake(&p, pieces[i]));
		pair_free(&p);
	}
}

/* No session tickets: after the handshake the server has nothing more to say. */
static void there_are_no_tickets(void **state)
{
	(void)state;
	for (int version = 12; version <= 13; version++) {
		struct pair p = up(version);
		assert_int_equal(tls_output_left(p.server), 0);
		pair_free(&p);
	}
}

static void summary_is_that_of_stock(void **state)
{
	(void)state;
	char buf[256];
	struct pair p = up(13);
	assert_string_equal(tls_summary(p.server, buf, sizeof(buf)),
			    "TLSv1.3, cipher TLSv1.3 TLS_AES_256_GCM_SHA384, peer certificate: 256 "
			    "bits ECprime256v1, signature: ecdsa-with-SHA256, peer temporary key: "
			    "253 bits X25519");
	pair_free(&p);
	p = up(12);
	assert_string_equal(tls_summary(p.server, buf, sizeof(buf)),
			    "TLSv1.2, cipher TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384, peer "
			    "certificate: 256 bits ECprime256v1, signature: ecdsa-with-SHA256");
	pair_free(&p);
}

static void versions_that_do_not_meet_fail_with_an_alert(void **state)
{
	(void)state;
	struct config sc = config_of(server), cc = config_of(client);
	sc.tls_version_min = 13;
	cc.tls_version_max = 12;
	struct pair p = pair_of(&sc, &cc);
	assert_int_equal(tls_handshake(p.client), TLS_WANT);
	move(p.client, p.server, 1000);
	assert_int_equal(tls_handshake(p.server), TLS_ERROR);
	assert_true(tls_output_left(p.server) > 0);
	assert_non_null(strstr(tls_error_text(p.server), "unsupported protocol"));
	assert_false(tls_is_refused(p.server));
	pair_free(&p);
}

static void input_of_a_handshake_is_bounded(void **state)
{
	(void)state;
	static uint8_t bytes[1024];
	struct config sc = config_of(server), cc = config_of(client);
	struct pair p = pair_of(&sc, &cc);
	for (int i = 0; i < 128; i++)
		assert_true(tls_input(p.server, (struct view){bytes, sizeof(bytes)}));
	assert_false(tls_input(p.server, (struct view){bytes, 1}));
	pair_free(&p);
	/* afterwards commands may flow for ever */
	p = up(13);
	for (int i = 0; i < 200; i++)
		assert_true(tls_input(p.server, (struct view){bytes, sizeof(bytes)}));
	pair_free(&p);
}

static void rubbish_is_an_error_and_leaves_none_for_others(void **state)
{
	(void)state;
	struct config sc = config_of(server), cc = config_of(client);
	struct pair bad = pair_of(&sc, &cc), good = pair_of(&sc, &cc);
	static const uint8_t rubbish[] = "GET / HTTP/1.1\r\n\r\n";
	assert_true(tls_input(bad.server, (struct view){rubbish, sizeof(rubbish)}));
	assert_int_equal(tls_handshake(bad.server), TLS_ERROR);
	assert_true(handshake(&good, 1000));
	assert_string_equal(tls_error_text(good.server), "");
	pair_free(&bad);
	pair_free(&good);
}

static void a_broken_record_is_an_error(void **state)
{
	(void)state;
	struct pair p = up(13);
	uint8_t buf[512];
	size_t len;
	assert_int_equal(tls_write(p.client, (struct view){(const uint8_t *)"x", 1}), TLS_OK);
	size_t n = tls_output(p.client, buf, sizeof(buf));
	buf[n - 1] ^= 1;
	assert_true(tls_input(p.server, (struct view){buf, n}));
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &len), TLS_ERROR);
	pair_free(&p);
}

static void ciphers_by_either_name(void **state)
{
	(void)state;
	static const struct {
		const char *tls_cipher, *suites;
		const char *in_summary;
		int version;
	} cases[] = {
		{"TLS-ECDHE-ECDSA-WITH-AES-128-GCM-SHA256", NULL, "ECDHE-ECDSA-AES128-GCM-SHA256",
		 12},
		{"ECDHE-ECDSA-CHACHA20-POLY1305", NULL, "ECDHE-ECDSA-CHACHA20-POLY1305", 12},
		{"TLS-NO-SUCH:TLS-ECDHE-ECDSA-WITH-AES-256-GCM-SHA384", NULL,
		 "ECDHE-ECDSA-AES256-GCM-SHA384", 12},
		{NULL, "TLS-AES-128-GCM-SHA256", "TLS_AES_128_GCM_SHA256", 13},
		{NULL, "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", 13},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config sc = config_of(server), cc = config_of(client);
		char buf[256];
		sc.tls_cipher = cases[i].tls_cipher;
		sc.tls_ciphersuites = cases[i].suites;
		sc.tls_version_max = cases[i].version;
		struct pair p = pair_of(&sc, &cc);
		assert_true(handshake(&p, 1000));
		assert_non_null(
			strstr(tls_summary(p.server, buf, sizeof(buf)), cases[i].in_summary));
		pair_free(&p);
	}
}

static void groups_are_chosen(void **state)
{
	(void)state;
	struct config sc = config_of(server), cc = config_of(client);
	char buf[256];
	sc.tls_groups = "secp384r1";
	struct pair p = pair_of(&sc, &cc);
	assert_true(handshake(&p, 1000));
	assert_non_null(strstr(tls_summary(p.client, buf, sizeof(buf)), "384 bits ECsecp384r1"));
	pair_free(&p);
}

static void settings_that_stop_the_start(void **state)
{
	(void)state;
	const struct config good = config_of(server);
	struct config cases[12];
	static const char *const why[] = {
		"no certificate could be read from the CA file [inline]",
		"cannot read the CA certificate /nonexistent/ca.pem: No such file or directory",
		"no certificate could be read from [inline]",
		"cannot read the certificate /nonexistent/cert.pem",
		"no private key could be read from [inline]",
		"the private key [inline] does not belong to the certificate",
		"tls-cipher: OpenSSL knows no cipher of the list NO-SUCH",
		"tls-ciphersuites: OpenSSL knows no such list",
		"tls-groups: OpenSSL does not know all groups of nosuch",
		"tls-cert-profile strict is unknown",
		"no TLS version lies between",
		"no usable DH parameters in [inline]",
	};
	for (size_t i = 0; i < 12; i++)
		cases[i] = good;
	cases[0].ca = text("rubbish");
	cases[1].ca = (struct config_file){.path = "/nonexistent/ca.pem"};
	cases[2].cert = text("rubbish");
	cases[3].cert = (struct config_file){.path = "/nonexistent/cert.pem"};
	cases[4].key = text("rubbish");
	cases[5].key = text(pki_key(client));
	cases[6].tls_cipher = "NO-SUCH";
	cases[7].tls_ciphersuites = "NO-SUCH";
	cases[8].tls_groups = "nosuch";
	cases[9].tls_cert_profile = "strict";
	cases[10].tls_version_min = 13;
	cases[10].tls_version_max = 12;
	cases[11].dh = text("rubbish");
	for (size_t i = 0; i < 12; i++) {
		struct tls_context *t = NULL;
		char got[512];
		assert_true(tls_context_new(&cases[i], true, &t, got, sizeof(got)) < 0);
		assert_null(t);
		if (!strstr(got, why[i]))
			fail_msg("%zu: %s", i, got);
	}
}

static void an_encrypted_key_is_explained(void **state)
{
	(void)state;
	char *encrypted = pki_encrypted_key(server, "password");
	struct config c = config_of(server);
	struct tls_context *t;
	char why[512];
	c.key = text(encrypted);
	assert_int_equal(tls_context_new(&c, true, &t, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "the private key [inline] is encrypted: remove its password");
	free(encrypted);
}

static void contexts_are_counted(void **state)
{
	(void)state;
	const struct config c = config_of(server);
	struct tls_context *t;
	char why[512];
	assert_int_equal(tls_context_new(&c, true, &t, why, sizeof(why)), 0);
	assert_ptr_equal(tls_context_ref(t), t);
	tls_context_unref(t);
	struct tls *tls;
	assert_int_equal(tls_new(t, &tls), 0);
	assert_null(tls_identity(tls));
	tls_free(tls);
	assert_int_equal(tls_context_cert_not_after(t), PKI_NOW + 400000000);
	assert_int_equal(tls_context_crl_next_update(t), 0);
	assert_false(tls_context_crl_changed(t));
	tls_context_unref(t);
	tls_context_unref(NULL);
	tls_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_versions_carry_messages_and_export_the_same),
		cmocka_unit_test(one_read_is_one_record),
		cmocka_unit_test(a_record_larger_than_asked_for_is_an_error),
		cmocka_unit_test(handshakes_survive_any_cut),
		cmocka_unit_test(there_are_no_tickets),
		cmocka_unit_test(summary_is_that_of_stock),
		cmocka_unit_test(versions_that_do_not_meet_fail_with_an_alert),
		cmocka_unit_test(input_of_a_handshake_is_bounded),
		cmocka_unit_test(rubbish_is_an_error_and_leaves_none_for_others),
		cmocka_unit_test(a_broken_record_is_an_error),
		cmocka_unit_test(ciphers_by_either_name),
		cmocka_unit_test(groups_are_chosen),
		cmocka_unit_test(settings_that_stop_the_start),
		cmocka_unit_test(an_encrypted_key_is_explained),
		cmocka_unit_test(contexts_are_counted),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
