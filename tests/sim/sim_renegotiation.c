/* SPDX-License-Identifier: Apache-2.0 */
/* Key generations of a session: who begins, which wrapping, which keys live when. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/session_state.h"
#include "tests/support/link.h"
#include "tests/support/pki.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct link_end *server(struct link *l)
{
	return &l->ends[LINK_SERVER];
}

static struct link_end *client(struct link *l)
{
	return &l->ends[LINK_CLIENT];
}

static uint8_t awaited; /* key-id */

/* It is there, and will be sent with. */
static bool has_ready(const struct link_end *e, uint8_t key_id)
{
	return e->last_key_id == key_id && e->has_key[key_id] &&
	       e->seal_from_ms[key_id] != UINT64_MAX;
}

static bool has_awaited(const struct link *l)
{
	return has_ready(&l->ends[0], awaited) && has_ready(&l->ends[1], awaited);
}

static bool server_is_closed(const struct link *l)
{
	return l->ends[LINK_SERVER].is_closed;
}

/* security.md, A-9: who fails has no data key from that moment on, not only at its end. */
static bool server_has_no_key(const struct link *l)
{
	for (int i = 0; i < 8; i++)
		if (l->ends[LINK_SERVER].has_key[i])
			return false;
	return true;
}

static struct link *up(const struct link_setup *setup)
{
	struct link *l = link_new(setup);
	assert_true(link_run(l, 1200000, link_is_up));
	link_run(l, 2000, NULL);
	return l;
}

static bool wait_for_key(struct link *l, uint8_t key_id, uint64_t ms)
{
	awaited = key_id;
	return link_run(l, ms, has_awaited) && link_keys_match(l, key_id);
}

static void either_side_begins_by_its_clock(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct link *l = up(&(struct link_setup){
			.server_reneg_s = who == LINK_SERVER ? 100 : 0,
			.client_reneg_s = who == LINK_CLIENT ? 100 : 0,
		});
		uint64_t before_ms = l->now_ms;
		assert_true(wait_for_key(l, 1, 200000));
		assert_in_range(l->now_ms - before_ms, 97000, 101000);
		assert_int_equal(l->ends[who].was_initiator, true);
		assert_int_equal(l->ends[1 - who].was_initiator, false);
		assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 2);
		assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 1);
		link_free(l);
	}
}

static void every_wrapping_renegotiates_with_and_without_dynamic_keys(void **state)
{
	(void)state;
	static const char *const peer_infos[] = {
		NULL, /* 990: with dynamic tls-crypt */
		"IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=142\n", /* EKM, cc-exit, no dynamic */
		"IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=6\n",   /* PRF */
		"IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=518\n", /* PRF and dynamic */
	};
	for (int wrap = 0; wrap < 3; wrap++) {
		for (size_t i = 0; i < COUNT(peer_infos); i++) {
			struct link *l = up(&(struct link_setup){
				.wrap = (enum wrap_mode)wrap,
				.peer_info = peer_infos[i],
				.tls_version = i % 2 ? 12 : 13,
			});
			for (uint8_t key_id = 1; key_id <= 3; key_id++) {
				int who = key_id % 2;
				session_renegotiate(l->ends[who].session);
				assert_true(wait_for_key(l, key_id, 10000));
				link_run(l, 2000, NULL);
			}
			link_free(l);
		}
	}
}

static unsigned opened_by_configured, seen_later;

static void try_configured_keys(struct link *l, int to, struct view datagram)
{
	uint8_t scratch[CONTROL_PACKET_MAX];
	struct wrapped w;
	if (packet_key_id(datagram.data[0]) == 0)
		return;
	seen_later++;
	if (wrap_open(l->wraps[to], datagram, scratch, &w) == DROP_NONE)
		opened_by_configured++;
}

/* wire.md, 12.4: once pushed, every packet of a later key-id has the new wrapping. */
static void dynamic_keys_wrap_all_later_generations(void **state)
{
	(void)state;
	static const struct {
		const char *peer_info;
		bool is_dynamic;
	} cases[] = {{NULL, true}, {"IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=142\n", false}};
	for (int wrap = WRAP_TLS_AUTH; wrap <= WRAP_TLS_CRYPT; wrap++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			struct link *l = up(&(struct link_setup){.wrap = (enum wrap_mode)wrap,
								 .peer_info = cases[i].peer_info});
			l->on_datagram = try_configured_keys;
			opened_by_configured = seen_later = 0;
			session_renegotiate(server(l)->session);
			assert_true(wait_for_key(l, 1, 10000));
			assert_true(seen_later > 4);
			assert_int_equal(opened_by_configured,
					 cases[i].is_dynamic ? 0 : seen_later);
			link_free(l);
		}
	}
}

/* Without a wrapping key the exported key alone wraps: what was plain becomes tls-crypt. */
static void dynamic_keys_need_no_configured_one(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){.wrap = WRAP_NONE});
	struct session *s = server(l)->session;
	assert_non_null(s->dynamic_keys);
	assert_int_equal(wrap_keys_mode(s->dynamic_keys), WRAP_TLS_CRYPT);
	session_renegotiate(client(l)->session);
	assert_true(wait_for_key(l, 1, 10000));
	link_free(l);
}

static void key_ids_go_from_seven_to_one(void **state)
{
	(void)state;
	static const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 1, 2};
	struct link *l = up(&(struct link_setup){0});
	for (size_t i = 0; i < COUNT(want); i++) {
		session_renegotiate(l->ends[i % 2].session);
		assert_true(wait_for_key(l, want[i], 10000));
		link_run(l, 6000, NULL);
		/* exactly two generations live: this one and the one before */
		unsigned live = 0;
		for (int k = 0; k < 8; k++)
			live += server(l)->has_key[k];
		assert_int_equal(live, 2);
	}
	link_free(l);
}

static void simultaneous_resets_merge(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct link *l = up(&(struct link_setup){
			.wrap = (enum wrap_mode)(seed % 3),
			.loss = seed % 2 ? 15 : 0,
			.reorder = 30,
			.hand_window_s = 600,
			.seed = seed,
		});
		session_renegotiate(server(l)->session);
		session_renegotiate(client(l)->session);
		assert_true(wait_for_key(l, 1, 600000));
		assert_int_equal(server(l)->counts[SESSION_EVENT_RENEGOTIATION], 1);
		assert_int_equal(client(l)->counts[SESSION_EVENT_RENEGOTIATION], 1);
		link_free(l);
	}
}

/* As above with either side beginning in the middle of the other's, and with data keys of both
 * generations at hand all the time: a renegotiation never leaves a gap. */
static void renegotiations_never_leave_a_side_without_a_key(void **state)
{
	(void)state;
	for (uint32_t seed = 100; seed < 140; seed++) {
		struct link *l = up(&(struct link_setup){
			.wrap = (enum wrap_mode)(seed % 3),
			.loss = 10,
			.repeat = 10,
			.reorder = 30,
			.hand_window_s = 3000,
			.seed = seed,
		});
		for (uint8_t key_id = 1; key_id <= 3; key_id++) {
			session_renegotiate(l->ends[link_random(l) % 2].session);
			link_run(l, link_random(l) % 300, NULL);
			session_renegotiate(l->ends[link_random(l) % 2].session);
			uint8_t old = (uint8_t)(key_id - 1);
			assert_true(server(l)->has_key[old] && client(l)->has_key[old]);
			if (!wait_for_key(l, key_id, 9000000))
				fail_msg("seed %u, key %u: %s", seed, key_id, server(l)->log);
			assert_true(server(l)->has_key[old] && client(l)->has_key[old]);
			assert_false(server(l)->is_closed || client(l)->is_closed);
			link_run(l, 2000, NULL);
			if (server(l)->last_key_id > key_id)
				key_id = server(l)->last_key_id;
		}
		link_free(l);
	}
}

/* Copies of what was sent count, what goes for the first time does not. */
static void repeated_messages_are_counted(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	assert_int_equal(session_take_retransmits(server(l)->session), 0);
	session_renegotiate(server(l)->session);
	l->is_cut = true;
	link_run(l, 15000, NULL); /* the reset at 0, 2, 6 and 14 s */
	assert_int_equal(session_take_retransmits(server(l)->session), 3);
	assert_int_equal(session_take_retransmits(server(l)->session), 0);
	link_free(l);
}

static void bad_links_only_take_longer(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct link *l = up(&(struct link_setup){
			.wrap = (enum wrap_mode)(seed % 3),
			.tls_version = seed % 2 ? 13 : 12,
			.loss = 15,
			.repeat = 10,
			.reorder = 30,
			.hand_window_s = 3000,
			.server_reneg_s = seed % 4 == 0 ? 0 : 5000,
			.client_reneg_s = seed % 4 == 1 ? 0 : 5000,
			.seed = seed,
		});
		for (uint8_t key_id = 1; key_id <= 3; key_id++)
			if (!wait_for_key(l, key_id, 9000000))
				fail_msg("seed %u, key %u: %s", seed, key_id, server(l)->log);
		link_free(l);
	}
}

/* wire.md, 12.3 */
static void a_new_key_rests_before_it_is_sent_with(void **state)
{
	(void)state;
	static const struct {
		uint32_t reneg_s, rest_ms;
	} cases[] = {{0, 60000}, {3600, 60000}, {100, 50000}, {20, 10000}, {5, 2500}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = up(&(struct link_setup){.server_reneg_s = cases[i].reneg_s});
		assert_true(server(l)->seal_from_ms[0] <= l->now_ms); /* the first: at once */
		session_renegotiate(server(l)->session);
		uint64_t start_ms = l->now_ms;
		assert_true(wait_for_key(l, 1, 10000));
		assert_int_equal(server(l)->seal_from_ms[1], start_ms + cases[i].rest_ms);
		link_free(l);
	}
}

static void the_old_key_retires_after_the_transition_window(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){.tran_window_s = 100});
	uint64_t start_ms = l->now_ms;
	session_renegotiate(server(l)->session);
	assert_true(wait_for_key(l, 1, 10000));
	link_run(l, start_ms + 99999 - l->now_ms, NULL);
	assert_true(server(l)->has_key[0] && client(l)->has_key[0]);
	link_run(l, 1000, NULL);
	assert_false(server(l)->has_key[0]);
	assert_false(client(l)->has_key[0]);
	assert_int_equal(server(l)->last_retired, 0);
	assert_int_equal(server(l)->counts[SESSION_EVENT_KEY_RETIRED], 1);
	assert_false(server(l)->is_closed);
	link_free(l);
}

static void the_next_renegotiation_retires_the_lame_duck(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	session_renegotiate(server(l)->session);
	assert_true(wait_for_key(l, 1, 10000));
	assert_true(server(l)->has_key[0]);
	link_run(l, 2000, NULL);
	session_renegotiate(server(l)->session);
	link_run(l, 1, NULL);
	/* Nothing is sealed with it, but what is on the way can still be opened. */
	assert_true(server(l)->has_key[0]);
	assert_true(server(l)->seal_from_ms[0] == UINT64_MAX);
	assert_true(server(l)->has_key[1] && server(l)->seal_from_ms[1] != UINT64_MAX);
	link_run(l, 5000, NULL);
	assert_false(server(l)->has_key[0]);
	assert_true(server(l)->has_key[1]);
	link_free(l);
}

static bool client_is_ahead(const struct link *l)
{
	uint8_t newest = l->ends[LINK_CLIENT].last_key_id;
	return l->ends[LINK_CLIENT].has_key[newest] && !l->ends[LINK_SERVER].has_key[newest];
}

/* A client seals with its newest key at once: it must be there to open, on any link. */
static void the_server_can_open_whatever_the_client_seals(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 30; seed++) {
		struct link *l = up(&(struct link_setup){
			.loss = seed % 3 * 10, .reorder = seed % 2 * 30, .seed = seed});
		for (int i = 0; i < 5; i++) {
			session_renegotiate(l->ends[(seed + (unsigned)i) % 2].session);
			assert_false(link_run(l, 30000, client_is_ahead));
		}
		link_free(l);
	}
}

static bool server_has_key_1(const struct link *l)
{
	return l->ends[LINK_SERVER].has_key[1];
}

static void a_key_that_is_never_confirmed_goes(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	session_renegotiate(server(l)->session);
	assert_true(link_run(l, 10000, server_has_key_1));
	assert_true(server(l)->seal_from_ms[1] == UINT64_MAX);
	l->is_cut = true;
	link_run(l, 61000, NULL);
	assert_int_equal(server(l)->renegotiation_reason, SESSION_REASON_TIMEOUT);
	assert_true(server(l)->has_key[0]);
	assert_false(server(l)->has_key[1]);
	link_free(l);
}

static void a_failed_renegotiation_leaves_the_old_key_until_it_retires(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){.tran_window_s = 300});
	uint64_t start_ms = l->now_ms;
	session_renegotiate(server(l)->session);
	l->is_cut = true;
	link_run(l, 61000, NULL);
	assert_int_equal(server(l)->renegotiation_reason, SESSION_REASON_TIMEOUT);
	assert_false(server(l)->is_closed);
	assert_true(server(l)->has_key[0]);
	/* it is quiet until then, and tries nothing more */
	assert_true(session_deadline(server(l)->session) == start_ms + 300000);
	session_renegotiate(server(l)->session);
	assert_true(session_deadline(server(l)->session) == start_ms + 300000);
	link_run(l, start_ms + 299999 - l->now_ms, NULL);
	assert_false(server(l)->is_closed);
	assert_true(link_run(l, 1, server_is_closed));
	assert_false(server(l)->has_key[0]);
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_TIMEOUT);
	link_free(l);
}

static void one_renegotiation_at_a_time_and_one_a_second(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	for (int i = 0; i < 5; i++)
		session_renegotiate(server(l)->session);
	uint64_t first_ms = l->now_ms;
	assert_true(wait_for_key(l, 1, 10000));
	assert_int_equal(server(l)->counts[SESSION_EVENT_RENEGOTIATION], 1);
	session_renegotiate(server(l)->session);
	assert_true(wait_for_key(l, 2, 10000));
	assert_true(l->now_ms >= first_ms + 1000);
	link_free(l);
}

/* A peer that hurries is made to wait; it repeats its reset. */
static void a_hasty_peer_is_delayed_not_refused(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	uint64_t first_ms = l->now_ms;
	session_renegotiate(client(l)->session);
	assert_true(wait_for_key(l, 1, 10000));
	client(l)->session->renegotiated_ms = 0; /* it has no manners */
	session_renegotiate(client(l)->session);
	link_run(l, 200, NULL);
	assert_int_equal(server(l)->counts[SESSION_EVENT_RENEGOTIATION], 1);
	assert_true(wait_for_key(l, 2, 10000));
	assert_true(l->now_ms >= first_ms + 1000);
	link_free(l);
}

static void random_moment_lies_between_min_and_max(void **state)
{
	(void)state;
	uint64_t earliest = UINT64_MAX, latest = 0;
	for (uint32_t seed = 1; seed <= 30; seed++) {
		struct link *l =
			link_new(&(struct link_setup){.server_reneg_s = 1000, .seed = seed});
		server(l)->settings.reneg_sec_min = 900;
		assert_true(link_run(l, 5000, link_is_up));
		uint64_t in_ms = server(l)->session->primary->renegotiate_ms - l->now_ms;
		assert_in_range(in_ms, 899000, 1000000);
		earliest = in_ms < earliest ? in_ms : earliest;
		latest = in_ms > latest ? in_ms : latest;
		link_free(l);
	}
	assert_true(latest - earliest > 20000);
}

/* --- identity --- */

static void a_changed_username_ends_the_session(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){.username = "alice", .password = "x"});
	client(l)->settings.username = "mallory";
	session_renegotiate(client(l)->session);
	assert_true(link_run(l, 20000, server_is_closed));
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
	assert_false(server(l)->has_key[1]);
	assert_int_equal(server(l)->counts[SESSION_EVENT_AUTHORIZE], 1);
	assert_false(server(l)->has_key[0]);
	assert_string_equal(client(l)->command, "AUTH_FAILED");
	assert_non_null(strstr(server(l)->log, "TLS Auth Error: username attempted to change from "
					       "'alice' to 'mallory' -- tunnel disabled"));
	link_free(l);
}

static struct tls_context *context_of_another_client(const char *cn)
{
	char why[512];
	struct tls_context *t;
	struct pki_name *n = link_make_client(cn);
	const struct config c = {
		.ca = {.text = link_ca_pem(), .text_len = strlen(link_ca_pem())},
		.cert = {.text = pki_cert(n), .text_len = strlen(pki_cert(n))},
		.key = {.text = pki_key(n), .text_len = strlen(pki_key(n))},
	};
	assert_int_equal(tls_context_new(&c, false, &t, why, sizeof(why)), 0);
	pki_free(n);
	return t;
}

static void a_changed_certificate_ends_the_session(void **state)
{
	(void)state;
	static const struct {
		const char *cn, *line;
	} cases[] = {
		{"mallory", "TLS Auth Error: TLS object CN attempted to change from 'client' to "
			    "'mallory' -- tunnel disabled"},
		{"client", "client-provided SSL certs unexpectedly changed during mid-session "
			   "reauth"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = up(&(struct link_setup){0});
		struct session *c = client(l)->session;
		tls_context_unref(c->tls);
		c->tls = context_of_another_client(cases[i].cn);
		session_renegotiate(c);
		assert_true(link_run(l, 4000, server_has_no_key));
		assert_false(server(l)->is_closed);
		assert_true(link_run(l, 20000, server_is_closed));
		assert_int_equal(server(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
		assert_false(server(l)->has_key[1]);
		assert_non_null(strstr(server(l)->log, cases[i].line));
		link_free(l);
	}
}

static void a_refused_renegotiation_ends_the_session(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	l->setup.is_refused = true;
	l->setup.refusal = "expired";
	session_renegotiate(client(l)->session);
	assert_true(link_run(l, 4000, server_has_no_key));
	assert_int_equal(server(l)->last_retired, 0);
	assert_false(server(l)->is_closed);
	assert_true(link_run(l, 20000, server_is_closed));
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
	assert_string_equal(client(l)->command, "AUTH_FAILED,expired");
	assert_false(server(l)->has_key[1]);
	link_free(l);
}

/* --- an attacker on the path, without a wrapping key --- */

/* A forged record kills the TLS session of the primary key; the data keys and the session live, and
 * a renegotiation brings the control channel back. */
static void an_injected_record_costs_only_a_renegotiation(void **state)
{
	(void)state;
	const char *peer_info = "IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=142\n";
	struct link *l = up(&(struct link_setup){.wrap = WRAP_NONE, .peer_info = peer_info});
	struct link_end *s = server(l);
	static const uint8_t forged[] = "\x17\x03\x03\x00\x20"
					"0123456789012345678901234567890123";
	const struct control_body body = {
		.message_id = s->session->primary->reliable.next_recv,
		.payload = {forged, sizeof(forged)},
	};
	uint8_t plain[256], out[256];
	struct writer p = writer_init(plain, sizeof(plain)), w = writer_init(out, sizeof(out));
	control_body_write(&p, OPCODE_CONTROL_V1, &body);
	wrap_seal(l->wraps[LINK_CLIENT], OPCODE_CONTROL_V1, 0, session_own_sid(client(l)->session),
		  1, link_wall_s(l), writer_done(&p), &w);
	assert_int_equal(session_receive(s->session, writer_done(&w), l->now_ms), DROP_NONE);
	assert_true(wait_for_key(l, 1, 10000));
	assert_false(s->is_closed);
	assert_true(s->has_key[0]);
	link_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_side_begins_by_its_clock),
		cmocka_unit_test(every_wrapping_renegotiates_with_and_without_dynamic_keys),
		cmocka_unit_test(dynamic_keys_wrap_all_later_generations),
		cmocka_unit_test(dynamic_keys_need_no_configured_one),
		cmocka_unit_test(key_ids_go_from_seven_to_one),
		cmocka_unit_test(simultaneous_resets_merge),
		cmocka_unit_test(bad_links_only_take_longer),
		cmocka_unit_test(renegotiations_never_leave_a_side_without_a_key),
		cmocka_unit_test(repeated_messages_are_counted),
		cmocka_unit_test(a_new_key_rests_before_it_is_sent_with),
		cmocka_unit_test(the_old_key_retires_after_the_transition_window),
		cmocka_unit_test(the_next_renegotiation_retires_the_lame_duck),
		cmocka_unit_test(the_server_can_open_whatever_the_client_seals),
		cmocka_unit_test(a_key_that_is_never_confirmed_goes),
		cmocka_unit_test(a_failed_renegotiation_leaves_the_old_key_until_it_retires),
		cmocka_unit_test(one_renegotiation_at_a_time_and_one_a_second),
		cmocka_unit_test(a_hasty_peer_is_delayed_not_refused),
		cmocka_unit_test(random_moment_lies_between_min_and_max),
		cmocka_unit_test(a_changed_username_ends_the_session),
		cmocka_unit_test(a_changed_certificate_ends_the_session),
		cmocka_unit_test(a_refused_renegotiation_ends_the_session),
		cmocka_unit_test(an_injected_record_costs_only_a_renegotiation),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	link_pki_fini();
	return failed;
}
