/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crypto/packet.h"
#include "tests/sim/stage.h"

static bool has_command(void *client)
{
	return ((struct stage_client *)client)->command[0];
}

static bool has_one_peer(void *ctx)
{
	return stage_peers(ctx) == 1;
}

static bool has_two_peers(void *ctx)
{
	return stage_peers(ctx) == 2;
}

static void acceptor_refuses_clients_beyond_the_pool_but_not_their_successors(void **state)
{
	struct stage *s = *state;
	struct stage_client *first, *second, *late;

	s->config.pool_end = s->config.pool_start;
	s->config.pool_end.bytes[3]++; /* two addresses */
	stage_start(s);
	first = stage_connect(s, "alice");
	second = stage_connect(s, "bob");
	stage_wait_up(first);
	stage_wait_up(second);
	late = stage_connect(s, "carol");
	stage_until(s, has_command, late);
	assert_memory_equal(late->command, "AUTH_FAILED", 11);
	assert_false(stage_is_up(late));
	stage_drop(late);
	/* A known name gets its own address again, full or not. */
	stage_reconnect(first);
	stage_wait_up(first);
	stage_until(s, has_two_peers, s);
}

static void acceptor_counts_half_open_clients_against_max_clients(void **state)
{
	struct stage *s = *state;
	struct stage_client *c;

	s->config.max_clients = 1;
	stage_start(s);
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	stage_until(s, has_one_peer, s);
	c = stage_connect(s, "bob");
	stage_pass(s, 300);
	assert_false(stage_is_up(c));
	assert_int_equal(stage_peers(s), 1);
}

static bool ask_for_cookie(int fd, uint32_t n, uint8_t reply[26])
{
	uint8_t reset[14] = {7 << 3, 1};

	memcpy(reset + 2, &n, sizeof(n));
	return send(fd, reset, sizeof(reset), 0) == 14 && recv(fd, reply, 26, 0) == 26;
}

static void send_third_packet(int fd, uint32_t n, const uint8_t reply[26])
{
	uint8_t ack[22] = {5 << 3, 1};

	memcpy(ack + 2, &n, sizeof(n));
	ack[9] = 1;
	memcpy(ack + 14, reply + 1, 8);
	assert_int_equal(send(fd, ack, sizeof(ack), 0), 22);
}

static void open_half(struct stage *s, int fd, uint32_t n)
{
	uint8_t reply[26];
	int tries = 0;

	while (!ask_for_cookie(fd, n, reply)) {
		stage_pass(s, 10);
		assert_true(++tries < 1000);
	}
	send_third_packet(fd, n, reply);
}

/* The cap is 64 here, and an honest client gets past three times as many that only hold places. */
static void acceptor_evicts_half_open_clients_that_do_not_go_on(void **state)
{
	enum { COUNT = 200 };
	struct stage *s = *state;
	struct stage_client *c;
	int fds[COUNT];

	stage_start(s);
	for (uint32_t i = 0; i < COUNT; i++) {
		fds[i] = stage_socket(s);
		open_half(s, fds[i], i);
	}
	c = stage_connect(s, "alice");
	stage_wait_up(c);
	for (int i = 0; i < COUNT; i++)
		close(fds[i]);
}

static bool are_all_held(void *ctx)
{
	struct stage *s = ctx;

	return s->workers[1].held_count + s->workers[2].held_count == 64;
}

/* Clients that are gone but not yet forgotten by their worker have the same cap as half-open ones,
 * or strangers could make the acceptor remember without end. */
static void acceptor_admits_nobody_while_too_many_are_being_removed(void **state)
{
	struct stage *s = *state;
	struct stage_client *late;

	s->config.is_duplicate_cn = true;
	s->config.pool_end.bytes[3] = 200;
	s->workers[1].is_holding = s->workers[2].is_holding = true;
	stage_start(s);
	for (int i = 0; i < 64; i++)
		stage_wait_up(stage_connect(s, "alice"));
	while (s->clients)
		stage_drop(s->clients);
	for (unsigned w = 1; w <= STAGE_WORKERS; w++)
		for (uint32_t id = 0;
		     id < sizeof(s->workers[w].peers) / sizeof(s->workers[w].peers[0]); id++)
			if (s->workers[w].peers[id])
				stage_say(
					s, w,
					(struct message){.kind = MESSAGE_PEER_EXIT, .peer_id = id});
	stage_until(s, are_all_held, s);
	late = stage_connect(s, "bob");
	stage_pass(s, 500);
	assert_false(late->has_key);
	stage_release(s, 1);
	stage_wait_up(late); /* its answer to the cookie is repeated after two seconds */
}

static void acceptor_limits_the_answers_to_resets(void **state)
{
	struct stage *s = *state;
	uint8_t reply[64];
	unsigned replies = 0;
	int fd;

	s->config.connect_freq_initial_n = 3;
	s->config.connect_freq_initial_s = 60;
	stage_start(s);
	fd = stage_socket(s);
	for (uint32_t i = 0; i < 20; i++) {
		uint8_t reset[14] = {7 << 3, 1, (uint8_t)i};

		assert_int_equal(send(fd, reset, sizeof(reset), 0), 14);
	}
	stage_pass(s, 50);
	while (recv(fd, reply, sizeof(reply), 0) > 0)
		replies++;
	assert_int_equal(replies, 3);
	close(fd);
}

static void acceptor_limits_new_sessions_to_connect_freq(void **state)
{
	struct stage *s = *state;
	struct stage_client *first, *second;

	s->config.connect_freq_n = 1;
	s->config.connect_freq_s = 3600;
	stage_start(s);
	first = stage_connect(s, "alice");
	stage_wait_up(first);
	second = stage_connect(s, "bob");
	stage_pass(s, 300);
	assert_false(stage_is_up(second));
}

static void acceptor_says_nothing_to_packets_that_prove_nothing(void **state)
{
	struct stage *s = *state;
	uint8_t packet[200], reply[64];
	int fd;

	stage_start(s);
	fd = stage_socket(s);
	for (unsigned opcode = 0; opcode < 32; opcode++) {
		if (opcode == OPCODE_HARD_RESET_CLIENT_V2)
			continue;
		for (size_t len = 0; len <= sizeof(packet); len += 7) {
			memset(packet, 0x5A, sizeof(packet));
			packet[0] = (uint8_t)(opcode << 3);
			assert_true(send(fd, packet, len, 0) == (ssize_t)len);
		}
		stage_pass(s, 2);
	}
	stage_pass(s, 50);
	assert_true(recv(fd, reply, sizeof(reply), 0) < 0);
	close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, stage_set_up, stage_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(acceptor_refuses_clients_beyond_the_pool_but_not_their_successors),
		TEST(acceptor_counts_half_open_clients_against_max_clients),
		TEST(acceptor_evicts_half_open_clients_that_do_not_go_on),
		TEST(acceptor_admits_nobody_while_too_many_are_being_removed),
		TEST(acceptor_limits_the_answers_to_resets),
		TEST(acceptor_limits_new_sessions_to_connect_freq),
		TEST(acceptor_says_nothing_to_packets_that_prove_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
