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

#include "server/control/tls.h"
#include "server/control/verify.h"
#include "tests/support/pki.h"

static struct pki_name *ca, *server, *client;

static int setup(void **state)
{
	(void)state;
	ca = pki_make(&(struct pki_request){.cn = "ca", .usage = PKI_CA}, NULL);
	server = pki_make(&(struct pki_request){.cn = "server", .usage = PKI_SERVER, .serial = 2},
			  ca);
	client = pki_make(&(struct pki_request){.cn = "client", .usage = PKI_CLIENT, .serial = 3},
			  ca);
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

static struct config config_of(const char *cert, const char *key, enum remote_cert_tls usage)
{
	struct config c = {.ca = text(pki_cert(ca)), .remote_cert_tls = usage};
	if (cert) {
		c.cert = text(cert);
		c.key = text(key);
	}
	return c;
}

static struct tls_context *context(const struct config *c, bool is_server)
{
	struct tls_context *t;
	char why[512];
	if (tls_context_new(c, is_server, &t, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return t;
}

/* What came of a handshake, as the server sees it. */
struct outcome {
	bool is_up, is_refused;
	struct identity identity;
	char log[8192], error[256];
};

static void move(struct tls *from, struct tls *to)
{
	uint8_t buf[4096];
	size_t len;
	while ((len = tls_output(from, buf, sizeof(buf))))
		assert_true(tls_input(to, (struct view){buf, len}));
}

static void note(struct tls *t, struct outcome *o)
{
	for (size_t i = 0; i < tls_log_count(t); i++) {
		int level;
		const char *line = tls_log_line(t, i, &level);
		snprintf(o->log + strlen(o->log), sizeof(o->log) - strlen(o->log), "%s\n", line);
	}
	snprintf(o->error, sizeof(o->error), "%s", tls_error_text(t));
	o->is_refused = tls_is_refused(t);
	o->is_up = tls_is_established(t);
	if (tls_identity(t))
		o->identity = *tls_identity(t);
}

static struct outcome handshake(const struct config *server_config,
				const struct config *client_config, uint32_t wall_s)
{
	struct tls_context *sc = context(server_config, true), *cc = context(client_config, false);
	struct tls *s, *c;
	struct outcome o = {0};
	assert_int_equal(tls_new(sc, &s), 0);
	assert_int_equal(tls_new(cc, &c), 0);
	tls_set_time(s, wall_s);
	tls_set_time(c, PKI_NOW);
	enum tls_result rs = TLS_WANT, rc = TLS_WANT;
	for (int i = 0; i < 10 && rs != TLS_ERROR && rc != TLS_ERROR; i++) {
		rc = tls_handshake(c);
		move(c, s);
		rs = tls_handshake(s);
		move(s, c);
	}
	note(s, &o);
	tls_free(s);
	tls_free(c);
	tls_context_unref(sc);
	tls_context_unref(cc);
	return o;
}

/* A client with that certificate knocks at an ordinary server. */
static struct outcome knock_with(const struct pki_name *name, const char *chain)
{
	char certs[65536];
	snprintf(certs, sizeof(certs), "%s%s", pki_cert(name), chain ? chain : "");
	struct config sc = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	struct config cc = config_of(certs, pki_key(name), REMOTE_CERT_SERVER);
	return handshake(&sc, &cc, PKI_NOW);
}

static struct outcome knock(const struct pki_request *r)
{
	struct pki_name *n = pki_make(r, ca);
	struct outcome o = knock_with(n, NULL);
	pki_free(n);
	return o;
}

static void good_client_is_known_by_name_and_chain(void **state)
{
	(void)state;
	struct outcome o = knock_with(client, NULL);
	assert_true(o.is_up);
	assert_true(o.identity.has_certificate);
	assert_string_equal(o.identity.common_name, "client");
	/* lines as stock prints them */
	assert_string_equal(o.log,
			    "VERIFY OK: depth=1, O=Test, CN=ca\n"
			    "VERIFY KU OK\n"
			    "Validating certificate extended key usage\n"
			    "++ Certificate has EKU (str) TLS Web Client Authentication, expects "
			    "TLS Web Client Authentication\n"
			    "VERIFY EKU OK\n"
			    "VERIFY OK: depth=0, O=Test, CN=client\n");
	struct outcome again = knock_with(client, NULL);
	assert_true(identity_equal(&o.identity, &again.identity));
}

static void identities_differ_by_name_or_chain(void **state)
{
	(void)state;
	struct outcome a = knock(&(struct pki_request){.cn = "same", .usage = PKI_CLIENT});
	struct outcome b = knock(&(struct pki_request){.cn = "same", .usage = PKI_CLIENT});
	struct outcome c = knock(&(struct pki_request){.cn = "other", .usage = PKI_CLIENT});
	assert_true(a.is_up && b.is_up && c.is_up);
	assert_false(identity_equal(&a.identity, &b.identity)); /* another key */
	assert_false(identity_equal(&a.identity, &c.identity));
	struct identity none = {0}, nameless = a.identity;
	assert_false(identity_equal(&a.identity, &none));
	assert_true(identity_equal(&none, &none));
	nameless.common_name[0] = '\0';
	assert_false(identity_equal(&a.identity, &nameless));
}

static void certificates_that_are_refused(void **state)
{
	(void)state;
	static const char cn64[] =
		"1234567890123456789012345678901234567890123456789012345678901234";
	static const char cn63[] =
		"123456789012345678901234567890123456789012345678901234567890123";
	static const struct {
		const char *what;
		struct pki_request request;
		const char *line; /* NULL: accepted */
	} cases[] = {
		{"63 bytes", {.cn = cn63, .usage = PKI_CLIENT}, NULL},
		{"64 bytes",
		 {.cn = cn64, .usage = PKI_CLIENT},
		 "VERIFY ERROR: could not extract CN from X509 subject string"},
		{"no CN",
		 {.cn = NULL, .usage = PKI_CLIENT},
		 "VERIFY ERROR: could not extract CN from X509 subject string"},
		{"NUL in CN",
		 {.cn = "admin\0.evil", .cn_len = 11, .usage = PKI_CLIENT},
		 "VERIFY ERROR: depth=0, NUL byte in a name"},
		{"NUL in SAN",
		 {.cn = "x", .dns = "a\0b", .dns_len = 3, .usage = PKI_CLIENT},
		 "VERIFY ERROR: depth=0, NUL byte in a name"},
		{"SAN", {.cn = "x", .dns = "host.example", .usage = PKI_CLIENT}, NULL},
		{"server's certificate",
		 {.cn = "x", .usage = PKI_SERVER},
		 "VERIFY ERROR: depth=0, error=unsuitable certificate purpose: O=Test, CN=x, "
		 "serial=1"},
		{"no usage",
		 {.cn = "x", .usage = PKI_NO_USAGE},
		 "Certificate does not have key usage extension\nVERIFY KU ERROR"},
		{"expired",
		 {.cn = "x", .usage = PKI_CLIENT, .not_after = PKI_NOW - 1},
		 "VERIFY ERROR: depth=0, error=certificate has expired: O=Test, CN=x, serial=1"},
		{"not yet",
		 {.cn = "x", .usage = PKI_CLIENT, .not_before = PKI_NOW + 100},
		 "VERIFY ERROR: depth=0, error=certificate is not yet valid: O=Test, CN=x, "
		 "serial=1"},
		{"path", {.cn = "..", .usage = PKI_CLIENT}, NULL},
		{"slash", {.cn = "a/b", .usage = PKI_CLIENT}, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = knock(&cases[i].request);
		if (o.is_up != !cases[i].line || o.is_refused != !!cases[i].line)
			fail_msg("%s: %s", cases[i].what, o.log);
		if (cases[i].line && !strstr(o.log, cases[i].line))
			fail_msg("%s: %s", cases[i].what, o.log);
	}
}

static void control_characters_of_a_name_are_replaced(void **state)
{
	(void)state;
	struct outcome o =
		knock(&(struct pki_request){.cn = "a\033[2Jb\r\nc\xc3\xbc", .usage = PKI_CLIENT});
	assert_true(o.is_up);
	assert_string_equal(o.identity.common_name, "a_[2Jb__c\xc3\xbc");
	for (const char *p = o.log; *p; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7F));
}

static void strangers_are_refused(void **state)
{
	(void)state;
	struct pki_name *other_ca =
		pki_make(&(struct pki_request){.cn = "ca", .usage = PKI_CA}, NULL);
	struct pki_name *n =
		pki_make(&(struct pki_request){.cn = "x", .usage = PKI_CLIENT}, other_ca);
	struct outcome o = knock_with(n, NULL);
	assert_false(o.is_up);
	assert_true(o.is_refused);
	assert_non_null(strstr(o.log, "VERIFY ERROR: depth=0, error="));
	pki_free(n);
	pki_free(other_ca);
}

static struct outcome knock_through(int intermediates)
{
	struct pki_name *chain[20];
	static char text_of_chain[60000];
	text_of_chain[0] = '\0';
	const struct pki_name *issuer = ca;
	for (int i = 0; i < intermediates; i++) {
		char cn[32];
		snprintf(cn, sizeof(cn), "int%d", i);
		chain[i] = pki_make(&(struct pki_request){.cn = cn, .usage = PKI_CA}, issuer);
		issuer = chain[i];
		strcat(text_of_chain, pki_cert(chain[i]));
	}
	struct pki_name *n =
		pki_make(&(struct pki_request){.cn = "deep", .usage = PKI_CLIENT}, issuer);
	struct outcome o = knock_with(n, text_of_chain);
	pki_free(n);
	for (int i = 0; i < intermediates; i++)
		pki_free(chain[i]);
	return o;
}

static void a_chain_has_at_most_sixteen_certificates(void **state)
{
	(void)state;
	struct outcome o = knock_through(14);
	assert_true(o.is_up);
	o = knock_through(15);
	assert_false(o.is_up);
	assert_true(o.is_refused);
}

static void no_certificate(void **state)
{
	(void)state;
	struct config cc = config_of(NULL, NULL, REMOTE_CERT_SERVER);
	struct config sc = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	struct outcome o = handshake(&sc, &cc, PKI_NOW);
	assert_false(o.is_up);
	sc.client_cert = CLIENT_CERT_OPTIONAL;
	o = handshake(&sc, &cc, PKI_NOW);
	assert_true(o.is_up);
	assert_false(o.identity.has_certificate);
	assert_string_equal(o.identity.common_name, "");
	sc.client_cert = CLIENT_CERT_NONE;
	o = handshake(&sc, &cc, PKI_NOW);
	assert_true(o.is_up);
	/* a bad certificate is refused even where none is needed */
	struct pki_name *bad = pki_make(&(struct pki_request){.cn = "x", .usage = PKI_SERVER}, ca);
	cc = config_of(pki_cert(bad), pki_key(bad), REMOTE_CERT_SERVER);
	sc.client_cert = CLIENT_CERT_OPTIONAL;
	o = handshake(&sc, &cc, PKI_NOW);
	assert_false(o.is_up);
	pki_free(bad);
}

/* --- revocation --- */

static struct outcome knock_with_crl(const char *crl, uint32_t wall_s)
{
	struct config sc = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	struct config cc = config_of(pki_cert(client), pki_key(client), REMOTE_CERT_SERVER);
	sc.crl = text(crl);
	return handshake(&sc, &cc, wall_s);
}

static void crl_revokes_expires_and_lets_pass(void **state)
{
	(void)state;
	static const struct {
		long serial;
		int64_t next_update;
		const char *line; /* NULL: accepted */
	} cases[] = {
		{0, PKI_NOW + 1000, NULL},
		{4, PKI_NOW + 1000, NULL},
		{3, PKI_NOW + 1000,
		 "VERIFY ERROR: depth=0, error=certificate revoked: O=Test, CN=client, serial=3\n"},
		{0, PKI_NOW - 1000,
		 "VERIFY ERROR: depth=0, error=CRL has expired: O=Test, CN=client, serial=3\n"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *crl = pki_crl(ca, cases[i].serial, cases[i].next_update);
		struct outcome o = knock_with_crl(crl, PKI_NOW);
		assert_int_equal(o.is_up, !cases[i].line);
		if (cases[i].line)
			assert_non_null(strstr(o.log, cases[i].line));
		free(crl);
	}
}

static void time_comes_from_the_caller(void **state)
{
	(void)state;
	char *crl = pki_crl(ca, 0, PKI_NOW + 1000);
	assert_true(knock_with_crl(crl, PKI_NOW + 999).is_up);
	assert_false(knock_with_crl(crl, PKI_NOW + 1001).is_up);
	free(crl);
}

static void crl_of_another_ca_is_let_through_as_stock_does(void **state)
{
	(void)state;
	struct pki_name *other =
		pki_make(&(struct pki_request){.cn = "other", .usage = PKI_CA}, NULL);
	char *crl = pki_crl(other, 3, PKI_NOW + 1000);
	struct outcome o = knock_with_crl(crl, PKI_NOW);
	assert_true(o.is_up);
	assert_non_null(strstr(o.log, "VERIFY WARNING: depth=0, unable to get certificate CRL"));
	free(crl);
	pki_free(other);
}

static void write_file(const char *path, const char *content)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void a_changed_crl_file_is_noticed(void **state)
{
	(void)state;
	char path[] = "crl-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	char *crl = pki_crl(ca, 0, PKI_NOW + 1000);
	write_file(path, crl);
	struct config c = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	c.crl = (struct config_file){.path = path};
	struct tls_context *t = context(&c, true);
	assert_int_equal(tls_context_crl_next_update(t), PKI_NOW + 1000);
	assert_false(tls_context_crl_changed(t));
	write_file(path, "x");
	assert_true(tls_context_crl_changed(t));
	unlink(path);
	assert_false(tls_context_crl_changed(t)); /* gone: the loaded one stays */
	tls_context_unref(t);
	free(crl);
}

static void a_file_named_by_the_serial_revokes(void **state)
{
	(void)state;
	char dir[] = "crldir-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	struct config sc = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	struct config cc = config_of(pki_cert(client), pki_key(client), REMOTE_CERT_SERVER);
	sc.crl = (struct config_file){.path = dir};
	sc.is_crl_dir = true;
	assert_true(handshake(&sc, &cc, PKI_NOW).is_up);
	snprintf(path, sizeof(path), "%s/3", dir);
	write_file(path, "");
	struct outcome o = handshake(&sc, &cc, PKI_NOW);
	assert_false(o.is_up);
	assert_true(o.is_refused);
	assert_non_null(strstr(o.log, "VERIFY CRL: certificate serial number 3 is revoked"));
	unlink(path);
	rmdir(dir);
}

static void crl_that_cannot_be_used_stops_the_start(void **state)
{
	(void)state;
	struct config c = config_of(pki_cert(server), pki_key(server), REMOTE_CERT_CLIENT);
	struct tls_context *t;
	char why[512];
	c.crl = (struct config_file){.path = "/nonexistent/crl.pem"};
	assert_int_equal(tls_context_new(&c, true, &t, why, sizeof(why)), -ENOENT);
	assert_string_equal(why,
			    "cannot read the CRL /nonexistent/crl.pem: No such file or directory");
	c.is_crl_dir = true;
	assert_int_equal(tls_context_new(&c, true, &t, why, sizeof(why)), -ENOENT);
	c.is_crl_dir = false;
	c.crl = text("not a CRL");
	assert_int_equal(tls_context_new(&c, true, &t, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "no CRL could be read from [inline]: give it in PEM");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_client_is_known_by_name_and_chain),
		cmocka_unit_test(identities_differ_by_name_or_chain),
		cmocka_unit_test(certificates_that_are_refused),
		cmocka_unit_test(control_characters_of_a_name_are_replaced),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(a_chain_has_at_most_sixteen_certificates),
		cmocka_unit_test(no_certificate),
		cmocka_unit_test(crl_revokes_expires_and_lets_pass),
		cmocka_unit_test(time_comes_from_the_caller),
		cmocka_unit_test(crl_of_another_ca_is_let_through_as_stock_does),
		cmocka_unit_test(a_changed_crl_file_is_noticed),
		cmocka_unit_test(a_file_named_by_the_serial_revokes),
		cmocka_unit_test(crl_that_cannot_be_used_stops_the_start),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
