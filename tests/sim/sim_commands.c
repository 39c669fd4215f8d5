/* SPDX-License-Identifier: Apache-2.0 */
/* Control commands between two engines: push, exit, what the owner sends. */
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

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct link_end *server(struct link *l)
{
	return &l->ends[LINK_SERVER];
}

static struct link_end *client(struct link *l)
{
	return &l->ends[LINK_CLIENT];
}

static bool server_is_closed(const struct link *l)
{
	return l->ends[LINK_SERVER].is_closed;
}

static bool both_are_closed(const struct link *l)
{
	return l->ends[LINK_SERVER].is_closed && l->ends[LINK_CLIENT].is_closed;
}

static struct link *up(const struct link_setup *setup)
{
	struct link *l = link_new(setup);
	assert_true(link_run(l, 1200000, link_is_up));
	link_run(l, 500, NULL);
	return l;
}

static unsigned count_in(const char *text, const char *what)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static void small_push_is_one_message(void **state)
{
	(void)state;
	static const char *const push[] = {"route 10.9.0.0 255.255.0.0", "topology subnet"};
	struct link *l = up(&(struct link_setup){.push = push, .push_count = COUNT(push)});
	assert_string_equal(client(l)->command,
			    "PUSH_REPLY,route 10.9.0.0 255.255.0.0,topology subnet,ifconfig "
			    "10.8.0.2 255.255.255.0,peer-id 5,cipher AES-256-GCM,protocol-flags "
			    "cc-exit tls-ekm dyn-tls-crypt,tun-mtu 1500");
	assert_int_equal(client(l)->counts[SESSION_EVENT_COMMAND], 1);
	assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 1);
	assert_non_null(strstr(server(l)->log, "SENT CONTROL [client]: 'PUSH_REPLY,route "));
	link_free(l);
}

static const char *push_of(size_t count, const char **list)
{
	static char texts[500][64];
	for (size_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "route 10.%zu.%zu.0 255.255.255.0", i / 250,
			 i % 250);
		list[i] = texts[i];
	}
	return texts[0];
}

static void large_push_arrives_in_parts_over_a_bad_link(void **state)
{
	(void)state;
	static const char *list[500];
	push_of(COUNT(list), list);
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct link *l = link_new(&(struct link_setup){
			.wrap = (enum wrap_mode)(seed % 3),
			.push = list,
			.push_count = COUNT(list),
			.loss = seed == 1 ? 0 : 20,
			.repeat = 10,
			.reorder = 20,
			.hand_window_s = 1200,
			.seed = seed,
		});
		if (!link_run(l, 1200000, link_is_up))
			fail_msg("seed %u", seed);
		assert_true(client(l)->counts[SESSION_EVENT_COMMAND] > 10);
		assert_non_null(strstr(client(l)->command, "push-continuation 1"));
		assert_true(link_keys_match(l, 0));
		assert_int_equal(session_peer_id(client(l)->session), 5);
		assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 1);
		link_free(l);
	}
}

/* A client without bit 2 asks; it is answered when it does, and not twice in half a minute. */
static void push_request_is_answered_once_in_thirty_seconds(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){
		.peer_info = "IV_NCP=2\nIV_CIPHERS=AES-256-GCM\nIV_PROTO=2\n"});
	struct link_end *s = server(l);
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 1);
	assert_int_equal(count_in(s->log, "PUSH: Received control message: 'PUSH_REQUEST'"), 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(session_command(client(l)->session, "PUSH_REQUEST"), 0);
		link_run(l, 5000, NULL);
	}
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 1);
	link_run(l, 6000, NULL);
	assert_int_equal(session_command(client(l)->session, "PUSH_REQUEST"), 0);
	link_run(l, 1000, NULL);
	assert_int_equal(s->counts[SESSION_EVENT_PUSHED], 2);
	assert_int_equal(s->counts[SESSION_EVENT_KEY], 1);
	link_free(l);
}

static void a_client_that_announces_it_is_pushed_to_unasked(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	assert_int_equal(count_in(server(l)->log, "PUSH_REQUEST"), 0);
	assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 1);
	/* one that asks all the same does not get it twice */
	assert_int_equal(session_command(client(l)->session, "PUSH_REQUEST"), 0);
	link_run(l, 5000, NULL);
	assert_int_equal(server(l)->counts[SESSION_EVENT_PUSHED], 1);
	link_free(l);
}

/* The oldest clients: no peer-info at all. */
static void a_client_without_peer_info(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.peer_info = ""});
	client(l)->settings.cipher = "AES-256-GCM"; /* in its options string */
	assert_true(link_run(l, 20000, link_is_up));
	assert_true(link_keys_match(l, 0));
	assert_string_equal(client(l)->command, "PUSH_REPLY,ifconfig 10.8.0.2 255.255.255.0");
	assert_false(session_uses_peer_id(server(l)->session));
	assert_int_equal(session_peer_id(server(l)->session), PEER_ID_NONE);
	assert_int_equal(session_peer_id(client(l)->session), PEER_ID_NONE);
	assert_int_equal(session_flags(server(l)->session), 0);
	link_free(l);
}

static void a_client_that_leaves_says_exit(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	uint64_t before_ms = l->now_ms;
	session_close(client(l)->session, SESSION_REASON_LOCAL, l->now_ms, 5000);
	assert_true(link_run(l, 20000, server_is_closed));
	assert_int_equal(server(l)->counts[SESSION_EVENT_EXIT], 1);
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_EXIT);
	assert_in_range(l->now_ms - before_ms, 5000, 5200); /* the grace time for our acks */
	assert_true(client(l)->is_closed);		    /* at once, when it was acked */
	assert_int_equal(client(l)->closed_reason, SESSION_REASON_LOCAL);
	link_free(l);
}

static void exit_gets_through_a_bad_link(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct link *l = up(&(struct link_setup){
			.loss = 25, .reorder = 30, .hand_window_s = 1200, .seed = seed});
		session_close(client(l)->session, SESSION_REASON_LOCAL, l->now_ms, 60000);
		assert_true(link_run(l, 120000, both_are_closed));
		assert_int_equal(server(l)->closed_reason, SESSION_REASON_EXIT);
		link_free(l);
	}
}

/* security.md, S-26 */
static void the_first_deadline_wins(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	struct session *s = server(l)->session;
	l->is_cut = true;
	uint64_t start_ms = l->now_ms;
	assert_int_equal(session_command(s, "RESTART,[N]"), 0);
	session_close(s, SESSION_REASON_LOCAL, start_ms, 2000);
	link_run(l, 1000, NULL);
	session_close(s, SESSION_REASON_EXIT, l->now_ms, 60000);
	assert_true(link_run(l, 60000, server_is_closed));
	assert_int_equal(l->now_ms, start_ms + 2000);
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_LOCAL);
	link_free(l);
}

/* Whoever was refused cannot fill the log in its grace time by saying that it goes (N16). */
static void a_refused_client_is_not_listened_to(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	l->setup.is_refused = true;
	session_renegotiate(client(l)->session);
	for (int i = 0; i < 50; i++)
		assert_int_equal(session_command(client(l)->session, "EXIT"), 0);
	assert_true(link_run(l, 20000, server_is_closed));
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_AUTH_FAILED);
	assert_int_equal(server(l)->counts[SESSION_EVENT_EXIT], 0);
	assert_null(strstr(server(l)->log, "exit message received"));
	link_free(l);
}

static void nothing_new_begins_after_the_end_is_set(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){.client_reneg_s = 1, .server_reneg_s = 0});
	struct session *s = server(l)->session;
	session_leave(s, SESSION_REASON_LOCAL, l->now_ms + 10000);
	/* the client renegotiates in vain, and a renegotiation of ours does not begin */
	session_renegotiate(s);
	link_run(l, 9000, NULL);
	assert_int_equal(server(l)->counts[SESSION_EVENT_RENEGOTIATION], 0);
	assert_int_equal(server(l)->counts[SESSION_EVENT_KEY], 1);
	assert_true(link_run(l, 2000, server_is_closed));
	link_free(l);
}

static void a_server_that_leaves_waits_for_its_last_words(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	uint64_t before_ms = l->now_ms;
	assert_int_equal(session_command(server(l)->session, "RESTART,[N]"), 0);
	session_close(server(l)->session, SESSION_REASON_LOCAL, l->now_ms, 2000);
	assert_true(link_run(l, 5000, server_is_closed));
	assert_string_equal(client(l)->command, "RESTART,[N]");
	assert_true(l->now_ms - before_ms < 200);
	assert_int_equal(server(l)->closed_reason, SESSION_REASON_LOCAL);
	link_free(l);
}

static void commands_wait_for_a_renegotiation(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct link *l = up(&(struct link_setup){
			.loss = seed == 1 ? 0 : 20, .hand_window_s = 1200, .seed = seed});
		session_renegotiate(client(l)->session);
		link_run(l, 45, NULL); /* in the midst of it */
		assert_int_equal(session_command(server(l)->session, "INFO,still here"), 0);
		for (int i = 0; i < 600 && strcmp(client(l)->command, "INFO,still here") != 0; i++)
			link_run(l, 1000, NULL);
		if (strcmp(client(l)->command, "INFO,still here") != 0)
			fail_msg("seed %u: %s", seed, client(l)->command);
		link_free(l);
	}
}

static void what_a_server_makes_of_commands(void **state)
{
	(void)state;
	static const struct {
		const char *command;
		unsigned events; /* SESSION_EVENT_COMMAND */
		const char *line;
	} cases[] = {
		{"CR_RESPONSE,YWJj", 1, NULL},
		{"INFO,hello", 0, NULL},
		{"ACC,x", 0, NULL},
		{"NONSENSE", 0, "WARNING: Received unknown control message: NONSENSE"},
		{"esc\033[31m", 0, NULL}, /* unprintable: dropped whole */
		{"AUTH_FAILED", 0, "unknown control message: AUTH_FAILED"},
		{"PUSH_REPLY,peer-id 9", 0, "unknown control message: PUSH_REPLY"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = up(&(struct link_setup){0});
		server(l)->log[0] = '\0';
		assert_int_equal(session_command(client(l)->session, cases[i].command), 0);
		link_run(l, 1000, NULL);
		assert_int_equal(server(l)->counts[SESSION_EVENT_COMMAND], cases[i].events);
		if (cases[i].line)
			assert_non_null(strstr(server(l)->log, cases[i].line));
		else
			assert_string_equal(server(l)->log, "");
		assert_false(server(l)->is_closed);
		link_free(l);
	}
}

static void give_plaintext(struct link *l, const char *bytes, size_t len)
{
	struct key_state *k = client(l)->session->primary;
	assert_int_equal(tls_write(k->tls, (struct view){(const uint8_t *)bytes, len}), TLS_OK);
	assert_int_equal(key_state_drain(k, 1000), 0);
	link_run(l, 1000, NULL);
}

/* security.md, S-25 and N15 */
static void records_with_several_commands_and_tails(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		unsigned events;
	} cases[] = {
		{"CR_RESPONSE,a\0CR_RESPONSE,b", 28, 2},
		{"CR_RESPONSE,a\r\n", 16, 1},
		{"CR_RESPONSE,a", 13, 0}, /* a tail without NUL */
		{"CR_RESPONSE,a\0CR_RESPONSE,b", 27, 1},
		{"\0\0\0CR_RESPONSE,a", 17, 1},
		{"CR_RESPONSE,a\x01\0CR_RESPONSE,b", 29, 1},
		{"CR_RESPONSE,a\nb", 16, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = up(&(struct link_setup){0});
		give_plaintext(l, cases[i].bytes, cases[i].len);
		assert_int_equal(server(l)->counts[SESSION_EVENT_COMMAND], cases[i].events);
		assert_false(server(l)->is_closed);
		link_free(l);
	}
}

static void a_long_record_without_an_end_is_dropped(void **state)
{
	(void)state;
	static char bytes[2047];
	memset(bytes, 'x', sizeof(bytes));
	struct link *l = up(&(struct link_setup){0});
	server(l)->log[0] = '\0';
	give_plaintext(l, bytes, sizeof(bytes));
	assert_false(server(l)->is_closed);
	assert_string_equal(server(l)->log, "");
	link_free(l);
}

static void chatter_does_not_flood_the_log(void **state)
{
	(void)state;
	struct link *l = up(&(struct link_setup){0});
	server(l)->log[0] = '\0';
	for (int i = 0; i < 100; i++)
		assert_int_equal(session_command(client(l)->session, "NONSENSE"), 0);
	link_run(l, 900, NULL);
	assert_in_range(count_in(server(l)->log, "NONSENSE"), 1, 10);
	link_free(l);
}

/* --- what a client makes of a server --- */

static void send_push_by_hand(struct link *l, const char *reply)
{
	l->setup.is_held = true;
	link_run(l, 1000, NULL);
	assert_int_equal(session_command(server(l)->session, reply), 0);
	link_run(l, 1000, NULL);
}

static void a_client_refuses_what_it_did_not_offer(void **state)
{
	(void)state;
	static const struct {
		const char *reply;
		enum session_reason reason; /* NONE: it goes on */
	} cases[] = {
		{"PUSH_REPLY,cipher AES-256-GCM,peer-id 3", SESSION_REASON_NONE},
		{"PUSH_REPLY,cipher AES-192-GCM", SESSION_REASON_NO_CIPHER},
		{"PUSH_REPLY,cipher BF-CBC", SESSION_REASON_NO_CIPHER},
		{"PUSH_REPLY,peer-id 3", SESSION_REASON_NO_CIPHER},
		{"PUSH_REPLY,peer-id 99999999,cipher AES-256-GCM", SESSION_REASON_TLS_ERROR},
		{"AUTH_FAILED,no", SESSION_REASON_AUTH_FAILED},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link *l = link_new(&(struct link_setup){.is_held = true});
		send_push_by_hand(l, cases[i].reply);
		assert_string_equal(client(l)->command, cases[i].reply);
		assert_int_equal(client(l)->is_closed, cases[i].reason != SESSION_REASON_NONE);
		assert_int_equal(client(l)->closed_reason, cases[i].reason);
		assert_int_equal(client(l)->has_key[0], cases[i].reason == SESSION_REASON_NONE);
		link_free(l);
	}
}

static void a_client_waits_for_the_last_part(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){.is_held = true});
	send_push_by_hand(l, "PUSH_REPLY,peer-id 7,push-continuation 2");
	assert_false(client(l)->has_key[0]);
	send_push_by_hand(l, "PUSH_REPLY,cipher AES-256-GCM,push-continuation 1");
	assert_true(client(l)->has_key[0]);
	assert_int_equal(session_peer_id(client(l)->session), 7);
	link_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_push_is_one_message),
		cmocka_unit_test(large_push_arrives_in_parts_over_a_bad_link),
		cmocka_unit_test(push_request_is_answered_once_in_thirty_seconds),
		cmocka_unit_test(a_client_that_announces_it_is_pushed_to_unasked),
		cmocka_unit_test(a_client_without_peer_info),
		cmocka_unit_test(a_client_that_leaves_says_exit),
		cmocka_unit_test(exit_gets_through_a_bad_link),
		cmocka_unit_test(the_first_deadline_wins),
		cmocka_unit_test(a_refused_client_is_not_listened_to),
		cmocka_unit_test(nothing_new_begins_after_the_end_is_set),
		cmocka_unit_test(a_server_that_leaves_waits_for_its_last_words),
		cmocka_unit_test(commands_wait_for_a_renegotiation),
		cmocka_unit_test(what_a_server_makes_of_commands),
		cmocka_unit_test(records_with_several_commands_and_tails),
		cmocka_unit_test(a_long_record_without_an_end_is_dropped),
		cmocka_unit_test(chatter_does_not_flood_the_log),
		cmocka_unit_test(a_client_refuses_what_it_did_not_offer),
		cmocka_unit_test(a_client_waits_for_the_last_part),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	link_pki_fini();
	return failed;
}
