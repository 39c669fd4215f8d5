/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crypto/packet.h"
#include "server/clock.h"
#include "tests/sim/stage.h"

static const char *ifconfig_of(const struct stage_client *c)
{
	const char *at = strstr(c->push, ",ifconfig ");

	return at ? at + strlen(",ifconfig ") : "";
}

static bool has_address(const struct stage_client *c, const char *addr)
{
	return strncmp(ifconfig_of(c), addr, strlen(addr)) == 0 &&
	       ifconfig_of(c)[strlen(addr)] == ' ';
}

static bool has_command(void *client)
{
	return ((struct stage_client *)client)->command[0];
}

static bool are_all_up(void *ctx)
{
	for (struct stage_client *c = ((struct stage *)ctx)->clients; c; c = c->next)
		if (!stage_is_up(c))
			return false;
	return true;
}

static bool has_one_peer(void *ctx)
{
	return stage_peers(ctx) == 1;
}

static bool has_two_peers(void *ctx)
{
	return stage_peers(ctx) == 2;
}

static bool has_eight_peers(void *ctx)
{
	return stage_peers(ctx) == 8;
}

static bool has_three_peers(void *ctx)
{
	return stage_peers(ctx) == 3;
}

static bool has_no_peer(void *ctx)
{
	return stage_peers(ctx) == 0;
}

/* --- connecting --- */

static void acceptor_takes_a_client_through_to_its_address(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;
	const struct stage_worker *w = &s->workers[1];

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	assert_true(has_address(c, "10.8.0.2"));
	assert_non_null(strstr(c->push, ",peer-id 0,"));
	assert_int_equal(w->adds, 1);
	assert_int_equal(w->installs, 1);
	assert_int_equal(w->last_cipher, CIPHER_AES_256_GCM);
	assert_int_equal(route_table_count(s->routes), 1);
	assert_int_equal(stage_stop(s), 0);
	assert_int_equal(s->workers[1].stops, 1);
	assert_int_equal(s->workers[2].stops, 1);
}

static void acceptor_spreads_clients_over_the_workers(void **state)
{
	enum { COUNT = 8 };
	struct stage *s = *state;
	char name[16];

	stage_start(s);
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "client%d", i);
		stage_connect(s, name);
	}
	stage_until(s, are_all_up, s);
	stage_until(s, has_eight_peers, s);
	assert_int_equal(s->workers[1].adds, COUNT / 2);
	assert_int_equal(s->workers[2].adds, COUNT / 2);
}

static void acceptor_takes_control_packets_that_landed_at_a_worker(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	c->is_through_worker = true;
	stage_wait_up(c);
	stage_pass(s, 20);
	/* Each buffer came home, in chains. */
	assert_true(s->workers[1].homes > 0);
}

static void acceptor_passes_leaked_data_packets_to_their_owners(void **state)
{
	static const uint8_t to_first[] = {9 << 3, 0, 0, 5, 1, 2, 3};	   /* peer-id 5: slot 5 */
	static const uint8_t to_second[] = {9 << 3, 0, 0, 200, 1, 2, 3};   /* slot 200 */
	static const uint8_t without_id[] = {6 << 3, 1, 2, 3, 4, 5, 6, 7}; /* by its address */
	static const uint8_t too_short[] = {9 << 3, 0};
	struct stage *s = *state;
	int fd;

	stage_start(s);
	fd = stage_socket(s);
	assert_true(send(fd, to_first, sizeof(to_first), 0) > 0);
	assert_true(send(fd, to_second, sizeof(to_second), 0) > 0);
	assert_true(send(fd, to_second, sizeof(to_second), 0) > 0);
	assert_true(send(fd, too_short, sizeof(too_short), 0) > 0);
	stage_pass(s, 50);
	assert_int_equal(s->workers[1].datagrams, 1);
	assert_int_equal(s->workers[2].datagrams, 2);
	assert_true(send(fd, without_id, sizeof(without_id), 0) > 0);
	stage_pass(s, 50);
	assert_int_equal(s->workers[1].datagrams + s->workers[2].datagrams, 4);
	close(fd);
}

/* More than it has buffers: all come home and are used again. */
static void acceptor_reuses_the_buffers_of_leaked_packets(void **state)
{
	static const uint8_t packet[] = {9 << 3, 0, 0, 5, 1, 2, 3};
	struct stage *s = *state;
	int fd;

	stage_start(s);
	fd = stage_socket(s);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 10; k++)
			assert_true(send(fd, packet, sizeof(packet), 0) > 0);
		stage_pass(s, 5);
	}
	stage_pass(s, 50);
	assert_int_equal(s->workers[1].datagrams, 400);
	close(fd);
}

/* --- replacing --- */

static void acceptor_lets_a_name_move_on_only_when_the_old_peer_is_gone(void **state)
{
	struct stage *s = *state;
	struct stage_client *old, *next;

	stage_start(s);
	old = stage_connect(s, "alice");
	stage_wait_up(old);
	stage_until(s, has_one_peer, s);
	s->workers[1].is_holding = true;
	next = stage_connect(s, "alice");
	stage_pass(s, 300);
	assert_int_equal(s->workers[1].removes, 1);
	assert_false(stage_is_up(next));
	stage_release(s, 1);
	stage_wait_up(next);
	assert_true(has_address(next, "10.8.0.2"));
	stage_until(s, has_one_peer, s);
	assert_int_equal(route_table_count(s->routes), 1);
}

static void acceptor_lets_several_of_one_name_in_with_duplicate_cn(void **state)
{
	struct stage *s = *state;

	s->config.is_duplicate_cn = true;
	stage_start(s);
	stage_connect(s, "alice");
	stage_connect(s, "alice");
	stage_connect(s, "alice");
	stage_until(s, are_all_up, s);
	stage_until(s, has_three_peers, s);
	assert_int_equal(s->workers[1].removes + s->workers[2].removes, 0);
}

/* security.md, S-19: a new session from a live client's address changes nothing for that until the
 * new one is authenticated. */
static void acceptor_keeps_the_old_session_until_its_successor_is_authenticated(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;
	const char reset[] = "\x38"
			     "newsid01"
			     "\0\0\0\0\0";

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	assert_true(send(c->fd, reset, 14, 0) == 14);
	stage_pass(s, 50);
	assert_int_equal(s->workers[1].removes, 0);
	stage_reconnect(c);
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	assert_true(has_address(c, "10.8.0.2"));
	assert_int_equal(s->workers[1].removes, 1);
}

static void acceptor_replaces_whoever_is_not_authenticated_at_an_address(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	for (int i = 0; i < 5; i++) {
		stage_pass(s, 3);
		stage_reconnect(c);
	}
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	assert_int_equal(route_table_count(s->routes), 1);
}

/* --- revocation --- */

static bool is_rejected(struct stage *s)
{
	struct stage_client *c = stage_connect(s, "bob");

	stage_pass(s, 300);
	return !stage_is_up(c);
}

static void rewrite(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define CRL_TEMPLATE "/tmp/sim_acceptor_crl_XXXXXX"

/* A CRL that revokes nothing yet, in a file of its own; `path` is the template. */
static void use_crl(struct stage *s, char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	stage_write_crl(path, false);
	s->config.crl.path = path;
}

/* security.md, S-38: whoever is connected stays; what cannot be read changes nothing. */
static void acceptor_reads_a_changed_crl_before_the_next_session(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;
	char path[] = CRL_TEMPLATE;

	use_crl(s, path);
	s->config.is_duplicate_cn = true;
	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_write_crl(path, true);
	stage_pass(s, 1100); /* looked at once a second */
	assert_true(is_rejected(s));
	rewrite(path, "not a CRL");
	stage_pass(s, 1100);
	assert_true(is_rejected(s));
	assert_int_equal(stage_peers(s), 1);
	stage_write_crl(path, false);
	stage_pass(s, 1100);
	stage_wait_up(stage_connect(s, "carol"));
	unlink(path);
}

/* `user`, and files that only root may read: a revocation counts none the less. */
static void acceptor_reads_a_changed_crl_without_the_key(void **state)
{
	struct stage *s = *state;
	char path[] = CRL_TEMPLATE;

	use_crl(s, path);
	s->config.is_duplicate_cn = true;
	stage_start(s);
	stage_wait_up(stage_connect(s, "alice"));
	s->config.ca = s->config.cert = s->config.key =
		(struct config_file){.path = "/nonexistent/file"};
	stage_write_crl(path, true);
	stage_pass(s, 1100); /* looked at once a second */
	assert_true(is_rejected(s));
	stage_write_crl(path, false);
	stage_pass(s, 1100);
	stage_wait_up(stage_connect(s, "carol"));
	unlink(path);
}

/* Whoever is revoked gets no new key: its old one is the last. */
static void acceptor_refuses_the_renegotiation_of_a_revoked_client(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;
	char path[] = CRL_TEMPLATE;

	use_crl(s, path);
	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	session_renegotiate(c->session);
	stage_pass(s, 500);
	assert_int_equal(c->keys, 2);
	stage_write_crl(path, true);
	stage_pass(s, 1100); /* looked at once a second, and so often may one renegotiate */
	session_renegotiate(c->session);
	stage_pass(s, 500);
	assert_int_equal(c->keys, 2);
	unlink(path);
}

static void acceptor_reads_certificates_again_on_a_signal(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	stage_pass(s, 50);
	stage_wait_up(stage_connect(s, "bob"));
	stage_until(s, has_two_peers, s);
}

/* --- later life --- */

static bool has_two_keys(void *client)
{
	return ((struct stage_client *)client)->keys == 2;
}

static bool has_two_installs(void *ctx)
{
	return ((struct stage *)ctx)->workers[1].installs == 2;
}

static void acceptor_renegotiates_when_a_worker_says_that_a_key_is_used_up(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;
	struct message m = {.kind = MESSAGE_KEY_EXHAUSTED, .peer_id = 0, .arg = 0};

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	stage_say(s, 1, m);
	stage_say(s, 1, m); /* said again until taken */
	stage_until(s, has_two_keys, c);
	stage_until(s, has_two_installs, s);
	assert_int_equal(s->workers[1].last_key_id, 1);
	stage_say(s, 1, m); /* the old key's trouble is over */
	stage_pass(s, 100);
	assert_int_equal(c->keys, 2);
}

static bool has_retired(void *ctx)
{
	return ((struct stage *)ctx)->workers[1].retires == 1;
}

/* security.md, A-9: its keys go when it fails, the client itself after its last words. */
static void acceptor_takes_the_keys_of_a_client_that_turns_into_another(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	c->settings.username = "alice";
	c->settings.password = "x";
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	c->settings.username = "mallory";
	session_renegotiate(c->session);
	stage_until(s, has_retired, s);
	stage_until(s, has_command, c);
	assert_string_equal(c->command, "AUTH_FAILED");
	assert_int_equal(s->workers[1].last_key_id, 0);
	assert_int_equal(s->workers[1].removes, 0);
}

static void acceptor_lets_a_client_go_that_says_so(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	stage_say(s, 1, (struct message){.kind = MESSAGE_PEER_EXIT, .peer_id = 0});
	stage_until(s, has_no_peer, s);
	assert_int_equal(route_table_count(s->routes), 0);
}

static void acceptor_ends_with_a_failed_worker(void **state)
{
	struct stage *s = *state;

	stage_start(s);
	stage_say(s, 2, (struct message){.kind = MESSAGE_FAILED, .arg = 5});
	assert_int_equal(stage_wait_end(s), 1);
	assert_int_equal(s->workers[1].stops, 1);
}

static void acceptor_tells_clients_to_connect_again_at_its_end(void **state)
{
	struct stage *s = *state;
	struct stage_client *a, *b;

	s->config.explicit_exit_notify = 2;
	stage_start(s);
	a = stage_connect(s, "alice");
	b = stage_connect(s, "bob");
	stage_wait_up(a);
	stage_wait_up(b);
	assert_int_equal(stage_stop(s), 0);
	assert_string_equal(a->command, "RESTART,[N]");
	assert_string_equal(b->command, "RESTART,[N]");
}

static void acceptor_ends_in_the_middle_of_handshakes(void **state)
{
	struct stage *s = *state;
	char name[16];

	s->config.explicit_exit_notify = 1;
	stage_start(s);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "client%d", i);
		stage_connect(s, name);
	}
	stage_pass(s, 8);
	assert_int_equal(stage_stop(s), 0);
}

/* A worker that does not read while many come and go: its ring fills up, and everything arrives in
 * order in the end. */
static void acceptor_loses_nothing_to_a_deaf_worker(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	s->workers[1].is_deaf = true;
	for (int i = 0; i < 5; i++) {
		stage_reconnect(c);
		stage_pass(s, 60);
	}
	assert_false(stage_is_up(c));
	s->workers[1].is_deaf = false;
	stage_reconnect(c);
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	assert_int_equal(route_table_count(s->routes), 1);
	assert_true(has_address(c, "10.8.0.2"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, stage_set_up, stage_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(acceptor_takes_a_client_through_to_its_address),
		TEST(acceptor_spreads_clients_over_the_workers),
		TEST(acceptor_takes_control_packets_that_landed_at_a_worker),
		TEST(acceptor_passes_leaked_data_packets_to_their_owners),
		TEST(acceptor_reuses_the_buffers_of_leaked_packets),
		TEST(acceptor_lets_a_name_move_on_only_when_the_old_peer_is_gone),
		TEST(acceptor_lets_several_of_one_name_in_with_duplicate_cn),
		TEST(acceptor_keeps_the_old_session_until_its_successor_is_authenticated),
		TEST(acceptor_replaces_whoever_is_not_authenticated_at_an_address),
		TEST(acceptor_reads_a_changed_crl_before_the_next_session),
		TEST(acceptor_reads_a_changed_crl_without_the_key),
		TEST(acceptor_refuses_the_renegotiation_of_a_revoked_client),
		TEST(acceptor_reads_certificates_again_on_a_signal),
		TEST(acceptor_renegotiates_when_a_worker_says_that_a_key_is_used_up),
		TEST(acceptor_takes_the_keys_of_a_client_that_turns_into_another),
		TEST(acceptor_lets_a_client_go_that_says_so),
		TEST(acceptor_ends_with_a_failed_worker),
		TEST(acceptor_tells_clients_to_connect_again_at_its_end),
		TEST(acceptor_ends_in_the_middle_of_handshakes),
		TEST(acceptor_loses_nothing_to_a_deaf_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
