/* SPDX-License-Identifier: Apache-2.0 */
/* First handshakes over good and bad links. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/verify.h"
#include "tests/support/link.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char without_ekm[] = "IV_VER=2.5.0\nIV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=6\n";

static struct link_end *server(struct link *l)
{
	return &l->ends[LINK_SERVER];
}

static struct link_end *client(struct link *l)
{
	return &l->ends[LINK_CLIENT];
}

static void every_wrapping_version_and_derivation(void **state)
{
	(void)state;
	for (int wrap = 0; wrap < 3; wrap++) {
		for (int version = 12; version <= 13; version++) {
			for (int has_ekm = 0; has_ekm < 2; has_ekm++) {
				struct link *l = link_new(&(struct link_setup){
					.wrap = (enum wrap_mode)wrap,
					.tls_version = version,
					.peer_info = has_ekm ? NULL : without_ekm,
				});
				assert_true(link_run(l, 5000, link_is_up));
				assert_true(link_keys_match(l, 0));
				unsigned flags = session_flags(server(l)->session);
				assert_int_equal(session_flags(client(l)->session), flags);
				assert_int_equal(!!(flags & SESSION_FLAG_TLS_EKM), has_ekm);
				assert_int_equal(session_peer_id(client(l)->session), 5);
				link_free(l);
			}
		}
	}
}

static void bad_links_only_take_longer(void **state)
{
	(void)state;
	static const struct {
		unsigned loss, repeat, reorder;
	} links[] = {{0, 0, 50}, {0, 50, 0}, {20, 0, 0}, {25, 10, 30}, {40, 20, 50}};
	for (size_t i = 0; i < COUNT(links); i++) {
		for (uint32_t seed = 1; seed <= 25; seed++) {
			struct link *l = link_new(&(struct link_setup){
				.wrap = (enum wrap_mode)(seed % 3),
				.tls_version = seed % 2 ? 13 : 12,
				.peer_info = seed % 5 ? NULL : without_ekm,
				.max_packet_size = seed % 4 ? 1250 : 300,
				.loss = links[i].loss,
				.repeat = links[i].repeat,
				.reorder = links[i].reorder,
				.hand_window_s = 1200,
				.seed = seed,
			});
			if (!link_run(l, 1200000, link_is_up) || !link_keys_match(l, 0))
				fail_msg("link %zu, seed %u: %s", i, seed, server(l)->log);
			assert_int_equal(server(l)->counts[SESSION_EVENT_KEY], 1);
			assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 1);
			link_free(l);
		}
	}
}

static void each_cipher_is_negotiated(void **state)
{
	(void)state;
	static const struct {
		const char *server, *client;
		enum cipher want;
	} cases[] = {
		{NULL, NULL, CIPHER_AES_256_GCM},
		{"AES-128-GCM:AES-256-GCM", NULL, CIPHER_AES_128_GCM},
		{"CHACHA20-POLY1305", NULL, CIPHER_CHACHA20_POLY1305},
		{"AES-256-GCM:AES-192-GCM", "AES-192-GCM", CIPHER_AES_192_GCM},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = link_new(&(struct link_setup){.data_ciphers = cases[i].server,
							       .client_ciphers = cases[i].client});
		assert_true(link_run(l, 5000, link_is_up));
		assert_int_equal(session_cipher(server(l)->session), cases[i].want);
		assert_int_equal(session_cipher(client(l)->session), cases[i].want);
		assert_true(link_keys_match(l, 0));
		link_free(l);
	}
}

static bool server_is_closed(const struct link *l)
{
	return l->ends[LINK_SERVER].is_closed;
}

static bool both_are_closed(const struct link *l)
{
	return l->ends[LINK_SERVER].is_closed && l->ends[LINK_CLIENT].is_closed;
}

static void no_shared_cipher_is_told_to_the_client(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.client_ciphers = "AES-192-GCM"});
	assert_true(link_run(l, 60000, both_are_closed));
	assert_string_equal(
		client(l)->command,
		"AUTH_FAILED,Data channel cipher negotiation failed (no shared cipher)");
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_NO_CIPHER);
	assert_int_equal(client(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
	assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 0);
	assert_int_equal(server(l)->counts[SESSION_EVENT_KEY], 0);
	assert_non_null(strstr(server(l)->log,
			       "PUSH: No common cipher between server and client. Server "
			       "data-ciphers: 'AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305', client "
			       "supported ciphers 'AES-192-GCM'"));
	link_free(l);
}

static void a_refusal_closes_both_ends(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct link *l = link_new(&(struct link_setup){
			.is_refused = true,
			.refusal = "go\naway",
			.username = "alice",
			.password = "wrong",
			.loss = seed == 1 ? 0 : 20,
			.hand_window_s = 600,
			.seed = seed,
		});
		uint64_t before_ms = l->now_ms;
		assert_true(link_run(l, 600000, server_is_closed));
		assert_int_equal(server(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
		assert_int_equal(server(l)->counts[SESSION_EVENT_KEY], 0);
		assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 0);
		if (seed == 1) {
			assert_in_range(l->now_ms - before_ms, 5000, 5500); /* the grace time */
			assert_string_equal(client(l)->command, "AUTH_FAILED,go_away");
			assert_int_equal(client(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
		}
		link_free(l);
	}
}

static void credentials_reach_the_owner_and_are_forgotten(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.is_held = true,
						       .username = "al\x1b"
								   "ice",
						       .password = "s3\tcret"});
	link_run(l, 1000, NULL);
	struct session *s = server(l)->session;
	assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 1);
	assert_string_equal(session_username(s), "al_ice");
	assert_string_equal(session_password(s), "s3_cret");
	assert_string_equal(session_common_name(s), "client");
	assert_true(session_identity(s)->has_certificate);
	assert_int_equal(session_client_info(s)->iv_mtu, 1600);
	assert_non_null(strstr(session_tls_summary(s), "TLSv1.3, cipher TLSv1.3"));
	session_authorize(s, 0, true, NULL, l->now_ms);
	assert_string_equal(session_password(s), "");
	assert_string_equal(session_username(s), "al_ice");
	link_free(l);
}

/* security.md, S-18: no key and no PUSH_REPLY before verdict and push plan, whatever is asked. */
static void nothing_is_given_before_the_verdict(void **state)
{
	(void)state;
	const struct push_plan plan = {.ifconfig = "10.8.0.2 255.255.255.0", .peer_id = 5};
	struct link *l = link_new(&(struct link_setup){.is_held = true});
	link_run(l, 20000, NULL); /* the client asks several times */
	struct link_end *s = server(l);
	assert_non_null(strstr(s->log, "PUSH: Received control message: 'PUSH_REQUEST'"));
	assert_int_equal(s->counts[SESSION_EVENT_KEY], 0);
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 0);
	assert_false(session_is_established(s->session));
	/* a verdict on another key changes nothing */
	session_authorize(s->session, 1, true, NULL, l->now_ms);
	assert_int_equal(session_set_push(s->session, &plan), 0);
	link_run(l, 6000, NULL);
	assert_int_equal(s->counts[SESSION_EVENT_KEY], 0);
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 0);
	session_authorize(s->session, 0, true, NULL, l->now_ms);
	assert_true(link_run(l, 1000, link_is_up));
	assert_true(link_keys_match(l, 0));
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 1);
	/* and a late refusal neither */
	session_authorize(s->session, 0, false, NULL, l->now_ms);
	link_run(l, 20000, NULL);
	assert_false(s->is_closed);
	link_free(l);
}

static void no_verdict_is_a_refusal(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.is_held = true, .hand_window_s = 30});
	assert_true(link_run(l, 60000, server_is_closed));
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_TIMEOUT);
	session_authorize(server(l)->session, 0, true, NULL, l->now_ms);
	struct session_event e;
	session_advance(server(l)->session, l->now_ms, link_wall_s(l));
	assert_false(session_next_event(server(l)->session, &e));
	link_free(l);
}

static bool nobody_is_left(const struct link *l)
{
	const struct link_end *s = &l->ends[LINK_SERVER];
	return l->ends[LINK_CLIENT].is_closed && (!s->session || s->is_closed);
}

static void a_dead_link_times_out(void **state)
{
	(void)state;
	/* cut after n milliseconds of a handshake that takes some 200 */
	static const uint64_t cuts_ms[] = {0, 30, 60, 90, 120, 150};
	for (size_t i = 0; i < COUNT(cuts_ms); i++) {
		struct link *l = link_new(&(struct link_setup){.tls_version = 12});
		link_run(l, cuts_ms[i], NULL);
		l->is_cut = true;
		assert_true(link_run(l, 120000, nobody_is_left));
		assert_int_equal(client(l)->closed_reason, SESSION_REASON_TIMEOUT);
		if (server(l)->session)
			assert_int_equal(server(l)->closed_reason, SESSION_REASON_TIMEOUT);
		link_free(l);
	}
}

/* Bounded output: a dead peer costs a handful of datagrams, however long one waits. */
static void repetition_is_bounded(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.tls_version = 12});
	link_run(l, 85, NULL);
	l->is_cut = true;
	unsigned before = server(l)->sent;
	link_run(l, 120000, both_are_closed);
	assert_true(server(l)->sent - before <= 6 * 6);
	link_free(l);
}

/* --- tampering --- */

static uint8_t flip_at;

static void flip(struct link *l, int to, struct view datagram)
{
	(void)to;
	struct link_end *e = &l->ends[LINK_SERVER];
	uint8_t copy[CONTROL_PACKET_MAX];
	if (datagram.len <= flip_at || to != LINK_SERVER || !e->session)
		return;
	memcpy(copy, datagram.data, datagram.len);
	copy[flip_at] ^= 0x10;
	assert_int_not_equal(
		session_receive(e->session, (struct view){copy, datagram.len}, l->now_ms),
		DROP_NONE);
}

/* With a wrapping key a stranger on the path can change nothing: a broken copy of each packet
 * comes in front of the right one. */
static void broken_copies_do_no_harm_behind_a_wrapping(void **state)
{
	(void)state;
	for (int wrap = WRAP_TLS_AUTH; wrap <= WRAP_TLS_CRYPT; wrap++) {
		for (flip_at = 0; flip_at < 60; flip_at += 7) {
			struct link *l =
				link_new(&(struct link_setup){.wrap = (enum wrap_mode)wrap});
			l->on_datagram = flip;
			assert_true(link_run(l, 5000, link_is_up));
			assert_true(link_keys_match(l, 0));
			link_free(l);
		}
	}
}

/* N4: a recorded datagram, again and again, changes nothing. */
static struct {
	uint8_t bytes[CONTROL_PACKET_MAX];
	size_t len;
} tape[64];
static size_t tape_len;

static void record(struct link *l, int to, struct view datagram)
{
	if (!l->ends[LINK_SERVER].session || to != LINK_SERVER || tape_len == COUNT(tape))
		return;
	memcpy(tape[tape_len].bytes, datagram.data, datagram.len);
	tape[tape_len++].len = datagram.len;
}

static void a_replayed_handshake_changes_nothing(void **state)
{
	(void)state;
	for (int wrap = 0; wrap < 3; wrap++) {
		struct link *l = link_new(&(struct link_setup){.wrap = (enum wrap_mode)wrap});
		tape_len = 0;
		l->on_datagram = record;
		assert_true(link_run(l, 5000, link_is_up));
		link_run(l, 1000, NULL);
		l->on_datagram = NULL;
		for (size_t i = 0; i < tape_len; i++) {
			enum drop d = session_receive(server(l)->session,
						      (struct view){tape[i].bytes, tape[i].len},
						      l->now_ms);
			if (wrap != WRAP_NONE)
				assert_int_equal(d, DROP_CONTROL_REPLAY);
		}
		link_run(l, 30000, NULL);
		assert_false(server(l)->is_closed);
		assert_int_equal(server(l)->counts[SESSION_EVENT_KEY], 1);
		assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 1);
		link_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wrapping_version_and_derivation),
		cmocka_unit_test(bad_links_only_take_longer),
		cmocka_unit_test(each_cipher_is_negotiated),
		cmocka_unit_test(no_shared_cipher_is_told_to_the_client),
		cmocka_unit_test(a_refusal_closes_both_ends),
		cmocka_unit_test(credentials_reach_the_owner_and_are_forgotten),
		cmocka_unit_test(nothing_is_given_before_the_verdict),
		cmocka_unit_test(no_verdict_is_a_refusal),
		cmocka_unit_test(a_dead_link_times_out),
		cmocka_unit_test(repetition_is_bounded),
		cmocka_unit_test(broken_copies_do_no_harm_behind_a_wrapping),
		cmocka_unit_test(a_replayed_handshake_changes_nothing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	link_pki_fini();
	return failed;
}
