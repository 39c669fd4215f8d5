/* SPDX-License-Identifier: Apache-2.0 */

/* After its start a worker allocates nothing, whatever comes: jemalloc counts what the thread that
 * takes the turns has allocated. Each step is done with every engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "crypto/packet.h"
#include "tests/support/own_worker.h"
#include "tests/support/skip.h"
#include "workers/payload.h"
#include "workers/peer.h"

#define NEIGHBOUR_ID (OWN_ID + 1) /* the worker's, too */

/* A worker with two peers, A (OWN_ID) and B (NEIGHBOUR_ID), one of another worker, and a client's
 * key for A of each generation. */
struct scene {
	struct own_worker *o;
	struct peer *a, *b, *other;
	struct client_key *installed[3]; /* until the worker has answered */
	struct client_key *a_key[2];
	int elsewhere; /* a socket at another address than A's */
	uint8_t room[SEAL_ROOM];
	unsigned said[MESSAGE_BUFFER_HOME + 1]; /* messages of the worker, by kind */
};

/* Bytes that this thread has allocated so far; never falls. Always 0 under sanitizers, where the
 * steps are taken all the same. */
static uint64_t allocated(void)
{
	uint64_t n = 0;
#ifdef HAVE_JEMALLOC
	size_t len = sizeof(n);
	assert_int_equal(mallctl("thread.allocated", &n, &len, NULL, 0), 0);
#endif
	return n;
}

static void tell(struct scene *s, struct message m)
{
	own_worker_tell(s->o, 0, m);
}

static void tell_key(struct scene *s, uint32_t id, struct client_key *k)
{
	tell(s, (struct message){.kind = MESSAGE_KEY_INSTALL, .peer_id = id, .key = &k->key});
}

static void send_from(struct scene *s, int fd, const void *data, size_t len)
{
	struct link_addr to = address_of(s->o->group.fds[1]);
	assert_int_equal(sendto(fd, data, len, 0, &to.remote.sa, endpoint_len(&to.remote)), len);
}

/* `text` as a datagram of A, in s->room. */
static size_t seal_a(struct scene *s, unsigned generation, const void *text, size_t len)
{
	return seal_text(s->o->aead, s->a_key[generation], text, len, s->room);
}

static void send_inner(struct scene *s, int fd, unsigned generation, uint32_t to)
{
	uint8_t packet[INNER_LEN];
	inner_packet(packet, OWN_ID, to, 1);
	send_from(s, fd, s->room, seal_a(s, generation, packet, sizeof(packet)));
}

static void read_inner(struct scene *s, uint32_t to)
{
	uint8_t packet[INNER_LEN];
	inner_packet(packet, 77, to, 1);
	send_frame(s->o->tun, packet, sizeof(packet));
}

/* The steps: each gives the worker something to do. */

static void add_peers_and_keys(struct scene *s)
{
	tell(s, (struct message){.kind = MESSAGE_PEER_ADD, .peer_id = OWN_ID, .peer = s->a});
	tell(s, (struct message){.kind = MESSAGE_PEER_ADD, .peer_id = NEIGHBOUR_ID, .peer = s->b});
	tell_key(s, OWN_ID, s->installed[0]);
	tell_key(s, OWN_ID, s->installed[1]);
	tell_key(s, NEIGHBOUR_ID, s->installed[2]);
}

static void bring_datagrams(struct scene *s)
{
	send_inner(s, s->o->client, 0, 77);
	send_inner(s, s->o->client, 1, 77);
}

static void bring_a_burst(struct scene *s)
{
	for (unsigned i = 0; i < 200; i++)
		send_inner(s, s->o->client, i % 2, 77);
}

static void bring_forged_and_repeated_datagrams(struct scene *s)
{
	uint8_t packet[INNER_LEN];
	inner_packet(packet, OWN_ID, 77, 1);
	size_t n = seal_a(s, 0, packet, sizeof(packet));
	s->room[n - 1] ^= 1;
	for (unsigned i = 0; i < 3; i++)
		send_from(s, s->o->client, s->room, n);
	s->room[n - 1] ^= 1;
	for (unsigned i = 0; i < 2; i++)
		send_from(s, s->o->client, s->room, n);
}

static void bring_what_is_wrong(struct scene *s)
{
	uint8_t packet[INNER_LEN];
	inner_packet(packet, NEIGHBOUR_ID, 77, 1); /* somebody else's source */
	size_t n = seal_a(s, 0, packet, sizeof(packet));
	send_from(s, s->o->client, s->room, n);
	s->room[0] = packet_first_byte(OPCODE_DATA_V2, 5); /* no such key */
	send_from(s, s->o->client, s->room, n);
	s->room[2] = 3; /* nobody's peer-id */
	send_from(s, s->o->client, s->room, n);
	send_from(s, s->o->client, s->room, 3);
	s->room[0] = 0xff;
	send_from(s, s->o->client, s->room, n);
}

static void bring_what_others_own(struct scene *s)
{
	uint8_t other[64] = {packet_first_byte(OPCODE_DATA_V2, 0), 0, 0, OTHER_ID};
	uint8_t stray[64] = {packet_first_byte(OPCODE_DATA_V1, 0)};
	uint8_t control[64] = {packet_first_byte(OPCODE_CONTROL_V1, 0)};
	send_from(s, s->o->client, other, sizeof(other));
	send_from(s, s->elsewhere, stray, sizeof(stray));
	send_from(s, s->o->client, control, sizeof(control));
}

static void bring_packets_for_clients(struct scene *s)
{
	uint8_t packet[INNER_LEN];
	static const uint8_t group[4] = {224, 0, 0, 251};
	send_inner(s, s->o->client, 0, NEIGHBOUR_ID);
	send_inner(s, s->o->client, 0, OTHER_ID);
	inner_packet(packet, OWN_ID, 77, 1);
	memcpy(packet + 16, group, sizeof(group));
	send_from(s, s->o->client, s->room, seal_a(s, 0, packet, sizeof(packet)));
}

static void bring_messages_of_the_peer(struct scene *s)
{
	uint8_t occ[PAYLOAD_MAGIC_LEN + 1];
	memcpy(occ, payload_occ, PAYLOAD_MAGIC_LEN);
	send_from(s, s->o->client, s->room, seal_a(s, 0, payload_ping, PAYLOAD_MAGIC_LEN));
	occ[PAYLOAD_MAGIC_LEN] = OCC_REQUEST;
	send_from(s, s->o->client, s->room, seal_a(s, 0, occ, sizeof(occ)));
	occ[PAYLOAD_MAGIC_LEN] = OCC_EXIT;
	send_from(s, s->o->client, s->room, seal_a(s, 0, occ, sizeof(occ)));
}

static void bring_datagrams_from_elsewhere(struct scene *s)
{
	send_inner(s, s->elsewhere, 0, 77);
}

static void move_the_peer(struct scene *s)
{
	struct buffer *b = buffer_take(s->o->pools[0]);
	assert_non_null(b);
	b->link = address_of(s->elsewhere);
	tell(s, (struct message){.kind = MESSAGE_PEER_MOVE, .peer_id = OWN_ID, .buffer = b});
}

static void read_packets(struct scene *s)
{
	static const uint8_t nonsense[24] = {0x55};
	static const uint8_t multicast[INNER_LEN] = {0x45, [16] = 224, 0, 0, 251};
	read_inner(s, OWN_ID);
	read_inner(s, NEIGHBOUR_ID);
	read_inner(s, OTHER_ID);
	read_inner(s, 500); /* no route */
	send_frame(s->o->tun, nonsense, sizeof(nonsense));
	send_frame(s->o->tun, multicast, sizeof(multicast));
}

static void hand_packets_over(struct scene *s)
{
	struct buffer *b = own_worker_inner(s->o, 2, 77, OWN_ID, 1);
	b->generation = 1;
	own_worker_tell(s->o, 2,
			(struct message){.kind = MESSAGE_INNER, .peer_id = OWN_ID, .buffer = b});
	b = own_worker_inner(s->o, 2, OWN_ID, 77, 1);
	b->len = (uint32_t)seal_a(s, 0, b->data, INNER_LEN);
	memcpy(b->data, s->room, b->len);
	b->link = address_of(s->o->client);
	own_worker_tell(s->o, 2, (struct message){.kind = MESSAGE_DATAGRAM, .buffer = b});
}

/* Long enough for a ping, and for silence. */
static void let_time_pass(struct scene *s)
{
	(void)s;
	usleep(1100 * 1000);
}

static void retire_and_remove(struct scene *s)
{
	tell(s, (struct message){.kind = MESSAGE_KEY_RETIRE, .peer_id = OWN_ID, .arg = 0});
	tell(s, (struct message){.kind = MESSAGE_PEER_REMOVE, .peer_id = OWN_ID});
	tell(s, (struct message){.kind = MESSAGE_PEER_REMOVE, .peer_id = NEIGHBOUR_ID});
}

static const struct step {
	const char *name;
	void (*act)(struct scene *s);
	unsigned turns;
} steps[] = {
	{"peers and keys are added", add_peers_and_keys, 3},
	{"datagrams", bring_datagrams, 5},
	{"a burst of datagrams", bring_a_burst, 20},
	{"forged and repeated datagrams", bring_forged_and_repeated_datagrams, 5},
	{"datagrams that are dropped", bring_what_is_wrong, 5},
	{"datagrams that others own", bring_what_others_own, 5},
	{"packets between clients", bring_packets_for_clients, 5},
	{"ping and OCC", bring_messages_of_the_peer, 5},
	{"packets from the tun queue", read_packets, 10},
	{"packets of another worker", hand_packets_over, 5},
	{"datagrams from elsewhere", bring_datagrams_from_elsewhere, 5},
	{"a peer that moves", move_the_peer, 5},
	{"a peer's timer", let_time_pass, 10},
	{"keys and peers are removed", retire_and_remove, 3},
};

static void discard_all(int fd)
{
	uint8_t rest[2048];
	while (receive(fd, rest, sizeof(rest), 0) > 0)
		;
}

/* What came out of the worker is forgotten; buffers go home. */
static void take_output(struct scene *s)
{
	struct message m;
	for (unsigned to = 0; to <= 2; to += 2)
		while (mailbox_receive(s->o->shared.mailboxes, to, &m, 1) == 1) {
			s->said[m.kind]++;
			bool is_buffer = m.kind == MESSAGE_CONTROL || m.kind == MESSAGE_DATAGRAM ||
					 m.kind == MESSAGE_INNER || m.kind == MESSAGE_FLOAT_REQUEST;
			if (is_buffer && m.buffer->home == 1)
				own_worker_tell(s->o, to,
						(struct message){.kind = MESSAGE_BUFFER_HOME,
								 .buffer = m.buffer});
		}
	discard_all(s->o->client);
	discard_all(s->o->tun);
	discard_all(s->elsewhere);
}

static void set_scene(struct scene *s, enum io_engine_choice io, enum aead_choice aead)
{
	static const uint8_t occ_reply[] = "the options string of a server";
	const struct config c = {.is_client_to_client = true};
	const struct message first = {.kind = MESSAGE_NONE};
	struct data_key_material m[2] = {own_worker_material(0, 1), own_worker_material(1, 2)};
	struct own_worker *o = s->o = own_worker_new(io, aead, &c);
	o->dp->occ_reply = (struct view){occ_reply, sizeof(occ_reply)};
	s->a = own_worker_peer(o, OWN_ID, 1);
	s->a->setup.ping_s = s->a->setup.ping_restart_s = 1;
	s->b = own_worker_peer(o, NEIGHBOUR_ID, 1);
	s->other = own_worker_peer(o, OTHER_ID, 1);
	s->elsewhere = udp_socket();
	for (unsigned i = 0; i < 2; i++) {
		s->a_key[i] = client_key(o->aead, OWN_ID, &m[i]);
		s->installed[i] = own_worker_key(o, OWN_ID, &m[i]);
	}
	s->installed[2] = own_worker_key(o, NEIGHBOUR_ID, &m[0]);
	/* The ring of a pair that talks for the first time is the one exception. */
	assert_true(mailbox_send(o->shared.mailboxes, 1, 0, &first));
	assert_true(mailbox_send(o->shared.mailboxes, 1, 2, &first));
}

static void strike_scene(struct scene *s)
{
	for (unsigned i = 0; i < 3; i++)
		free(s->installed[i]);
	free_key(s->o->aead, s->a_key[0]);
	free_key(s->o->aead, s->a_key[1]);
	close(s->elsewhere);
	own_worker_free(s->o);
	peer_free(s->a);
	peer_free(s->b);
	peer_free(s->other);
}

/* Bytes that the worker allocated in a step. */
static uint64_t measure(struct scene *s, const struct step *step)
{
	uint64_t sum = 0;
	step->act(s);
	for (unsigned i = 0; i < step->turns; i++) {
		uint64_t before = allocated();
		own_worker_turn(s->o);
		sum += allocated() - before;
		take_output(s);
	}
	return sum;
}

/* Every step has to have done what it is there for. */
static void check_counters(const struct counters *c)
{
	static const enum drop ingress[] = {
		DROP_DECRYPT, DROP_REPLAY_DUPLICATE, DROP_NO_KEY,	 DROP_UNKNOWN_PEER,
		DROP_SHORT,   DROP_BAD_OPCODE,	     DROP_SOURCE_SPOOFED};
	for (unsigned i = 0; i < sizeof(ingress) / sizeof(ingress[0]); i++)
		if (c->drops[DIRECTION_INGRESS][ingress[i]] == 0)
			fail_msg("no drop for %s", drop_name(ingress[i]));
	assert_true(c->drops[DIRECTION_EGRESS][DROP_NO_ROUTE] > 0);
	assert_true(c->drops[DIRECTION_EGRESS][DROP_BAD_IP] > 0);
	assert_int_equal(c->drops[DIRECTION_EGRESS][DROP_NO_KEY], 0);
	assert_int_equal(c->drops[DIRECTION_EGRESS][DROP_BUFFERS], 0);
	assert_int_equal(c->tun_read_packets, 6);
	assert_int_equal(c->handoff_in_packets, 2);
	assert_true(c->tun_written_packets > 200);
	assert_true(c->handoff_out_packets >= 5);
	assert_true(c->link_sent_packets >= 7);
}

static void check_messages(const struct scene *s)
{
	static const enum message_kind kinds[] = {
		MESSAGE_CONTROL,       MESSAGE_DATAGRAM,      MESSAGE_INNER,
		MESSAGE_BUFFER_HOME,   MESSAGE_KEY_INSTALLED, MESSAGE_PEER_REMOVED,
		MESSAGE_FLOAT_REQUEST, MESSAGE_PEER_SILENT,   MESSAGE_PEER_EXIT};
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (s->said[kinds[i]] == 0)
			fail_msg("no message of kind %d", (int)kinds[i]);
}

static void run(enum io_engine_choice io, enum aead_choice aead)
{
	struct scene s = {0};
	set_scene(&s, io, aead);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t bytes = measure(&s, &steps[i]);
		if (bytes > 0)
			fail_msg("%s: %llu bytes allocated", steps[i].name,
				 (unsigned long long)bytes);
	}
	check_counters(&s.o->dp->count);
	check_messages(&s);
	strike_scene(&s);
}

static void datapath_test_sees_allocations(void **state)
{
	(void)state;
#ifdef HAVE_JEMALLOC
	uint64_t before = allocated();
	void *volatile p = malloc(100);
	free(p);
	assert_true(allocated() - before >= 100);
#else
	SKIP_TEST("no jemalloc: the steps are taken, and nothing counts");
#endif
}

static void datapath_allocates_nothing_with_epoll_and_openssl(void **state)
{
	(void)state;
	run(IO_ENGINE_EPOLL, AEAD_OPENSSL);
}

static void datapath_allocates_nothing_with_the_engines_chosen_by_itself(void **state)
{
	(void)state;
	run(IO_ENGINE_AUTO, AEAD_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datapath_test_sees_allocations),
		cmocka_unit_test(datapath_allocates_nothing_with_epoll_and_openssl),
		cmocka_unit_test(datapath_allocates_nothing_with_the_engines_chosen_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
