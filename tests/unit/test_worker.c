/* SPDX-License-Identifier: Apache-2.0 */
/* Real workers on real sockets, the test in the acceptor's place:
 *
 *	test (thread 0, client) --UDP on loopback--> worker 1, 2 --socket pair for the tun queue-->
 *test
 *
 * Every case runs on both I/O engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crypto/packet.h"
#include "tests/support/far_end.h"
#include "workers/buffer.h"
#include "workers/messages.h"
#include "workers/payload.h"
#include "workers/peer.h"
#include "workers/worker.h"

#define WORKERS	    2
#define PEER_A	    1u	 /* slot 1: see slots below */
#define PEER_B	    129u /* slot 129 */
#define DEADLINE_MS 5000

struct bench {
	struct config config;
	struct worker_shared shared;
	struct slot_table slots;
	struct udp_group group;
	struct worker *workers[WORKERS];
	int tun[WORKERS]; /* our ends */
	int tun_theirs[WORKERS];
	int client; /* a client's UDP socket, not connected */
	struct aead *aead;
	struct buffer_pool *pool;	      /* thread 0's */
	struct data_key_material material[2]; /* of A and B; directions as the server sees them */
};

static void start_worker(struct bench *b, unsigned i)
{
	int pair[2];
	char why[256] = "";
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b->tun[i] = pair[0];
	b->tun_theirs[i] = pair[1];
	assert_int_equal(worker_new(&b->shared, i + 1, pair[1], -1, &b->workers[i]), 0);
	if (worker_start(b->workers[i], why, sizeof(why)) != 0)
		fail_msg("%s", why);
}

static int set_up(void **state, enum io_engine_choice engine)
{
	struct bench *b = calloc(1, sizeof(*b));
	assert_non_null(b);
	b->config = (struct config){.tun_mtu = 1500,
				    .max_clients = 16,
				    .worker_memory = 1 << 20,
				    .io_engine = engine,
				    .is_client_to_client = true};
	b->group.count = WORKERS + 1;
	for (unsigned i = 0; i < b->group.count; i++)
		b->group.fds[i] = udp_socket();
	slot_table_init(&b->slots, WORKERS);
	b->slots.owner[PEER_A & 255] = 1;
	b->slots.owner[PEER_B & 255] = 2;
	b->shared = (struct worker_shared){.config = &b->config,
					   .slots = &b->slots,
					   .groups = &b->group,
					   .group_count = 1,
					   .worker_count = WORKERS,
					   .peer_id_limit = 1024};
	assert_int_equal(mailboxes_new(WORKERS + 1, &b->shared.mailboxes), 0);
	assert_int_equal(route_table_new(&b->shared.routes), 0);
	assert_int_equal(aead_new(AEAD_AUTO, &b->aead), 0);
	assert_int_equal(buffer_pool_new(0, 64, BUFFER_SMALL, &b->pool), 0);
	b->client = udp_socket();
	for (unsigned i = 0; i < WORKERS; i++)
		start_worker(b, i);
	for (unsigned i = 0; i < 2; i++) {
		b->material[i].cipher = CIPHER_AES_256_GCM;
		memset(b->material[i].seal_key, (int)(0x10 + i), AEAD_KEY_MAX);
		memset(b->material[i].open_key, (int)(0x20 + i), AEAD_KEY_MAX);
	}
	*state = b;
	return 0;
}

static int set_up_epoll(void **state)
{
	return set_up(state, IO_ENGINE_EPOLL);
}

static int set_up_auto(void **state)
{
	return set_up(state, IO_ENGINE_AUTO);
}

static void send_message(struct bench *b, unsigned to, struct message m)
{
	while (!mailbox_send(b->shared.mailboxes, 0, to, &m))
		usleep(1000);
	mailbox_flush(b->shared.mailboxes, 0);
}

/* The next message for the acceptor; buffers that come home on the way are taken. */
static struct message next_message(struct bench *b)
{
	struct message m;
	for (int left = DEADLINE_MS; left > 0; left--) {
		if (mailbox_receive(b->shared.mailboxes, 0, &m, 1) == 0) {
			usleep(1000);
			continue;
		}
		if (m.kind != MESSAGE_BUFFER_HOME)
			return m;
		for (struct buffer *c = m.buffer, *next; c; c = next) {
			next = c->next;
			buffer_give(b->pool, c);
		}
	}
	fail_msg("no message came");
	return m;
}

static int tear_down(void **state)
{
	struct bench *b = *state;
	for (unsigned i = 0; i < WORKERS; i++)
		send_message(b, i + 1, (struct message){.kind = MESSAGE_STOP});
	for (unsigned i = 0; i < WORKERS; i++)
		worker_join(b->workers[i]);
	for (unsigned i = 0; i < WORKERS; i++) {
		worker_free(b->workers[i]);
		close(b->tun[i]);
		close(b->tun_theirs[i]);
	}
	for (unsigned i = 0; i < b->group.count; i++)
		close(b->group.fds[i]);
	close(b->client);
	mailboxes_free(b->shared.mailboxes);
	route_table_free(b->shared.routes);
	aead_free(b->aead);
	buffer_pool_free(b->pool);
	free(b);
	return 0;
}

static void add_route(struct bench *b, uint32_t id, uint32_t generation)
{
	struct ip_addr a = virtual_of(id);
	struct destination d = {.id = id, .generation = generation};
	assert_int_equal(route_table_add(b->shared.routes, &a, d), 0);
}

static struct peer *add_peer(struct bench *b, uint32_t id, struct peer_setup extra)
{
	extra.id = id;
	extra.generation = 1;
	extra.is_v2 = true;
	extra.tun_mtu = 1500;
	extra.link = address_of(b->client);
	struct peer *p = peer_new(&extra);
	assert_non_null(p);
	send_message(b, slot_table_owner(&b->slots, id),
		     (struct message){.kind = MESSAGE_PEER_ADD, .peer_id = id, .peer = p});
	add_route(b, id, 1);
	return p;
}

static void install_key(struct bench *b, uint32_t id, const struct data_key_material *m)
{
	struct data_key_options o = {.peer_id = id, .replay_window = 64, .replay_time_s = 15};
	struct client_key *k = aligned_alloc(64, (sizeof(*k) + 63) & ~(size_t)63);
	assert_int_equal(data_key_init(&k->key, b->aead, m, &o, &k->seal, &k->open), 0);
	send_message(b, slot_table_owner(&b->slots, id),
		     (struct message){.kind = MESSAGE_KEY_INSTALL, .peer_id = id, .key = &k->key});
	struct message answer = next_message(b);
	assert_int_equal(answer.kind, MESSAGE_KEY_INSTALLED);
	assert_ptr_equal(answer.key, &k->key);
	free(k);
}

static void remove_peer(struct bench *b, struct peer *p)
{
	struct ip_addr a = virtual_of(p->setup.id);
	route_table_remove(b->shared.routes, &a,
			   (struct destination){p->setup.id, p->setup.generation});
	send_message(b, slot_table_owner(&b->slots, p->setup.id),
		     (struct message){.kind = MESSAGE_PEER_REMOVE, .peer_id = p->setup.id});
	struct message m;
	do
		m = next_message(b);
	while (m.kind != MESSAGE_PEER_REMOVED);
	assert_ptr_equal(m.peer, p);
	peer_free(p);
}

static void send_to(struct bench *b, int fd, unsigned socket, const void *data, size_t len)
{
	struct link_addr l = address_of(b->group.fds[socket]);
	assert_int_equal(sendto(fd, data, len, 0, &l.remote.sa, endpoint_len(&l.remote)), len);
}

static void send_sealed(struct bench *b, int fd, unsigned socket, struct client_key *k,
			const void *text, size_t len)
{
	uint8_t room[2048];
	size_t n = seal_text(b->aead, k, text, len, room);
	send_to(b, fd, socket, room, n);
}

static uint64_t drops(struct bench *b, unsigned worker, enum counter_direction d, enum drop why)
{
	struct counters c;
	counters_read(worker_counters(b->workers[worker]), &c);
	return c.drops[d][why];
}

/* Counters are published a little later. */
static void expect_drop(struct bench *b, unsigned worker, enum drop why, uint64_t n)
{
	for (int left = DEADLINE_MS; left > 0; left--) {
		if (drops(b, worker, DIRECTION_INGRESS, why) == n)
			return;
		usleep(1000);
	}
	assert_int_equal(drops(b, worker, DIRECTION_INGRESS, why), n);
}

static void worker_counts_no_more_time_than_has_passed(void **state)
{
	static const uint64_t minute_ns = 60000000000u;
	struct bench *b = *state;
	struct counters c;
	counters_read(worker_counters(b->workers[0]), &c); /* as published before the first turn */
	assert_true(c.busy_ns < minute_ns);
	assert_true(c.idle_ns < minute_ns);
}

static void worker_opens_for_the_tun_and_seals_for_the_peer(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);

	inner_packet(packet, PEER_A, 77, 1);
	send_sealed(b, b->client, 1, k, packet, sizeof(packet));
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));
	assert_memory_equal(got, packet, sizeof(packet));

	inner_packet(packet, 77, PEER_A, 2);
	send_frame(b->tun[0], packet, sizeof(packet));
	size_t n = receive(b->client, got, sizeof(got), DEADLINE_MS);
	struct data_segment s = {.data = got, .len = (uint32_t)n};
	data_key_open(&k->key, b->aead, &s, 1, 1);
	assert_int_equal(s.drop, DROP_NONE);
	assert_int_equal(s.len, sizeof(packet));
	assert_memory_equal(s.data, packet, sizeof(packet));
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_hands_over_what_another_owns(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);

	inner_packet(packet, PEER_A, 77, 1);
	send_sealed(b, b->client, 2, k, packet, sizeof(packet)); /* lands at the wrong worker */
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));

	inner_packet(packet, 77, PEER_A, 2);
	send_frame(b->tun[1], packet, sizeof(packet));
	assert_true(receive(b->client, got, sizeof(got), DEADLINE_MS) > sizeof(packet));
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_routes_between_clients_of_two_workers(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	struct peer *pa = add_peer(b, PEER_A, (struct peer_setup){0});
	struct peer *pb = add_peer(b, PEER_B, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	install_key(b, PEER_B, &b->material[1]);
	struct client_key *ka = client_key(b->aead, PEER_A, &b->material[0]);
	struct client_key *kb = client_key(b->aead, PEER_B, &b->material[1]);

	inner_packet(packet, PEER_A, PEER_B, 9);
	send_sealed(b, b->client, 1, ka, packet, sizeof(packet));
	size_t n = receive(b->client, got, sizeof(got), DEADLINE_MS);
	struct data_segment s = {.data = got, .len = (uint32_t)n};
	data_key_open(&kb->key, b->aead, &s, 1, 1);
	assert_int_equal(s.drop, DROP_NONE);
	assert_memory_equal(s.data, packet, sizeof(packet));
	free_key(b->aead, ka);
	free_key(b->aead, kb);
	remove_peer(b, pa);
	remove_peer(b, pb);
}

static void worker_copies_multicast_to_every_other_client(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	static const uint8_t group[4] = {224, 0, 0, 251};
	struct peer *pa = add_peer(b, PEER_A, (struct peer_setup){0});
	struct peer *pb = add_peer(b, PEER_B, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	install_key(b, PEER_B, &b->material[1]);
	struct client_key *ka = client_key(b->aead, PEER_A, &b->material[0]);
	struct client_key *kb = client_key(b->aead, PEER_B, &b->material[1]);

	inner_packet(packet, PEER_A, 77, 9);
	memcpy(packet + 16, group, 4);
	send_sealed(b, b->client, 1, ka, packet, sizeof(packet));
	size_t n = receive(b->client, got, sizeof(got), DEADLINE_MS);
	struct data_segment s = {.data = got, .len = (uint32_t)n};
	data_key_open(&kb->key, b->aead, &s, 1, 1);
	assert_int_equal(s.drop, DROP_NONE);
	assert_memory_equal(s.data, packet, sizeof(packet));
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));
	assert_int_equal(receive(b->client, got, sizeof(got), 100), 0); /* nothing to its sender */

	send_frame(b->tun[1], packet, sizeof(packet));
	assert_true(receive(b->client, got, sizeof(got), DEADLINE_MS) >
		    0); /* from inside: to both */
	assert_true(receive(b->client, got, sizeof(got), DEADLINE_MS) > 0);
	free_key(b->aead, ka);
	free_key(b->aead, kb);
	remove_peer(b, pa);
	remove_peer(b, pb);
}

static void worker_counts_and_drops_what_is_wrong(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], room[2048], got[64];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);

	inner_packet(packet, PEER_B, 77, 1); /* somebody else's address */
	send_sealed(b, b->client, 1, k, packet, sizeof(packet));
	expect_drop(b, 0, DROP_SOURCE_SPOOFED, 1);

	inner_packet(packet, PEER_A, 77, 1);
	size_t n = seal_text(b->aead, k, packet, sizeof(packet), room);
	room[n - 1] ^= 1;
	send_to(b, b->client, 1, room, n);
	expect_drop(b, 0, DROP_DECRYPT, 1);
	room[n - 1] ^= 1;
	send_to(b, b->client, 1, room, n);
	send_to(b, b->client, 1, room, n); /* a second copy */
	expect_drop(b, 0, DROP_REPLAY_DUPLICATE, 1);
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));

	room[0] = packet_first_byte(OPCODE_DATA_V2, 3);
	send_to(b, b->client, 1, room, n);
	expect_drop(b, 0, DROP_NO_KEY, 1);
	room[2] = 0xee; /* peer-id 0x00ee01, slot 1, nobody's */
	send_to(b, b->client, 1, room, n);
	expect_drop(b, 0, DROP_UNKNOWN_PEER, 1);
	send_to(b, b->client, 1, room, 3);
	expect_drop(b, 0, DROP_SHORT, 1);
	room[0] = 0xff;
	send_to(b, b->client, 1, room, n);
	expect_drop(b, 0, DROP_BAD_OPCODE, 1);
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), 0), 0);
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_passes_control_and_odd_data_packets_to_the_acceptor(void **state)
{
	struct bench *b = *state;
	uint8_t control[20] = {packet_first_byte(OPCODE_CONTROL_V1, 0), 1, 2, 3};
	uint8_t data[40] = {packet_first_byte(OPCODE_DATA_V1, 0)};
	send_to(b, b->client, 1, control, sizeof(control));
	struct message m = next_message(b);
	assert_int_equal(m.kind, MESSAGE_CONTROL);
	assert_int_equal(m.buffer->len, sizeof(control));
	struct link_addr from = address_of(b->client);
	assert_true(endpoint_equal(&m.buffer->link.remote, &from.remote));
	m.buffer->next = NULL;
	send_message(b, m.from, (struct message){.kind = MESSAGE_BUFFER_HOME, .buffer = m.buffer});

	send_to(b, b->client, 1, data, sizeof(data));
	m = next_message(b);
	assert_int_equal(m.kind, MESSAGE_DATAGRAM);
	send_message(b, m.from, (struct message){.kind = MESSAGE_DATAGRAM, .buffer = m.buffer});
	expect_drop(b, 0, DROP_UNKNOWN_PEER, 1); /* the second time it ends there */
}

static void worker_finds_a_peer_without_peer_id_by_address(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[64];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_ID_NONE, &b->material[0]);
	assert_int_equal(k->key.head_len, 1);
	inner_packet(packet, PEER_A, 77, 1);
	send_sealed(b, b->client, 1, k, packet, sizeof(packet));
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_asks_before_a_peer_moves(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	int elsewhere = udp_socket();
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);

	inner_packet(packet, PEER_A, 77, 1);
	send_sealed(b, elsewhere, 1, k, packet, sizeof(packet));
	struct message m = next_message(b);
	assert_int_equal(m.kind, MESSAGE_FLOAT_REQUEST);
	assert_int_equal(m.peer_id, PEER_A);
	struct link_addr from = address_of(elsewhere);
	assert_true(endpoint_equal(&m.buffer->link.remote, &from.remote));
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));

	inner_packet(packet, 77, PEER_A, 2);
	send_frame(b->tun[0], packet, sizeof(packet));
	assert_true(receive(b->client, got, sizeof(got), DEADLINE_MS) > 0); /* not moved yet */
	send_message(
		b, 1,
		(struct message){.kind = MESSAGE_PEER_MOVE, .peer_id = PEER_A, .buffer = m.buffer});
	bool has_moved = false;
	for (int i = 0; i < 100 && !has_moved; i++) {
		send_frame(b->tun[0], packet, sizeof(packet));
		has_moved = receive(elsewhere, got, sizeof(got), 50) > 0;
	}
	assert_true(has_moved);
	free_key(b->aead, k);
	remove_peer(b, p);
	close(elsewhere);
}

static void worker_pings_and_tells_of_silence(void **state)
{
	struct bench *b = *state;
	uint8_t got[2048];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){.ping_s = 1, .ping_restart_s = 2});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);
	size_t n = receive(b->client, got, sizeof(got), DEADLINE_MS);
	struct data_segment s = {.data = got, .len = (uint32_t)n};
	data_key_open(&k->key, b->aead, &s, 1, 1);
	assert_int_equal(s.drop, DROP_NONE);
	assert_int_equal(payload_kind(s.data, s.len), PAYLOAD_PING);
	struct message m = next_message(b);
	assert_int_equal(m.kind, MESSAGE_PEER_SILENT);
	assert_int_equal(m.peer_id, PEER_A);
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_tells_of_exit(void **state)
{
	struct bench *b = *state;
	uint8_t text[PAYLOAD_MAGIC_LEN + 1];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	struct client_key *k = client_key(b->aead, PEER_A, &b->material[0]);
	memcpy(text, payload_occ, PAYLOAD_MAGIC_LEN);
	text[PAYLOAD_MAGIC_LEN] = OCC_EXIT;
	send_sealed(b, b->client, 1, k, text, sizeof(text));
	struct message m = next_message(b);
	assert_int_equal(m.kind, MESSAGE_PEER_EXIT);
	assert_int_equal(m.peer_id, PEER_A);
	free_key(b->aead, k);
	remove_peer(b, p);
}

static void worker_takes_both_keys_while_they_overlap(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[64];
	struct data_key_material second = b->material[1];
	second.key_id = 1;
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	install_key(b, PEER_A, &second);
	struct client_key *k[2] = {client_key(b->aead, PEER_A, &b->material[0]),
				   client_key(b->aead, PEER_A, &second)};
	inner_packet(packet, PEER_A, 77, 1);
	for (unsigned i = 0; i < 4; i++) {
		send_sealed(b, b->client, 1, k[i & 1], packet, sizeof(packet));
		assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS),
				 sizeof(packet));
	}
	send_message(b, 1,
		     (struct message){.kind = MESSAGE_KEY_RETIRE, .peer_id = PEER_A, .arg = 0});
	send_message(b, 1, (struct message){.kind = MESSAGE_PING});
	assert_int_equal(next_message(b).kind, MESSAGE_PONG);
	send_sealed(b, b->client, 1, k[0], packet, sizeof(packet));
	expect_drop(b, 0, DROP_NO_KEY, 1);
	send_sealed(b, b->client, 1, k[1], packet, sizeof(packet));
	assert_int_equal(receive_frame(b->tun[0], got, sizeof(got), DEADLINE_MS), sizeof(packet));
	free_key(b->aead, k[0]);
	free_key(b->aead, k[1]);
	remove_peer(b, p);
}

static void worker_keeps_traffic_from_a_later_holder_of_the_address(void **state)
{
	struct bench *b = *state;
	uint8_t packet[28], got[2048];
	struct peer *p = add_peer(b, PEER_A, (struct peer_setup){0});
	install_key(b, PEER_A, &b->material[0]);
	add_route(b, PEER_A, 2); /* the address now belongs to the next holder of that peer-id */
	inner_packet(packet, 77, PEER_A, 2);
	send_frame(b->tun[0], packet, sizeof(packet));
	assert_int_equal(receive(b->client, got, sizeof(got), 200), 0);
	add_route(b, PEER_A, 1);
	remove_peer(b, p);
}

/* More answers than its ring and its backlog hold, and nobody who takes them. */
static void worker_ends_though_it_cannot_answer(void **state)
{
	struct bench *b = *state;
	const struct message ping = {.kind = MESSAGE_PING};
	for (unsigned i = 0; i < 1023 + 2 * 128; i++)
		send_message(b, 1, ping);
	while (mailbox_depth(b->shared.mailboxes, 0) < 1023)
		usleep(1000);
	/* tear_down joins it */
}

#define ON_BOTH(test)                                                                              \
	{#test " (epoll)", test, set_up_epoll, tear_down, NULL},                                   \
	{                                                                                          \
#test " (auto)", test, set_up_auto, tear_down, NULL                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(worker_counts_no_more_time_than_has_passed),
		ON_BOTH(worker_opens_for_the_tun_and_seals_for_the_peer),
		ON_BOTH(worker_hands_over_what_another_owns),
		ON_BOTH(worker_routes_between_clients_of_two_workers),
		ON_BOTH(worker_copies_multicast_to_every_other_client),
		ON_BOTH(worker_counts_and_drops_what_is_wrong),
		ON_BOTH(worker_passes_control_and_odd_data_packets_to_the_acceptor),
		ON_BOTH(worker_finds_a_peer_without_peer_id_by_address),
		ON_BOTH(worker_asks_before_a_peer_moves),
		ON_BOTH(worker_pings_and_tells_of_silence),
		ON_BOTH(worker_tells_of_exit),
		ON_BOTH(worker_takes_both_keys_while_they_overlap),
		ON_BOTH(worker_ends_though_it_cannot_answer),
		ON_BOTH(worker_keeps_traffic_from_a_later_holder_of_the_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
