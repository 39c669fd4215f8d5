/* SPDX-License-Identifier: Apache-2.0 */

/* Removal, hand-over and full rings as one worker sees them, in chosen orders. */
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
#include "tests/support/own_worker.h"
#include "workers/peer.h"

static int set_up(void **state)
{
	*state = own_worker_new(IO_ENGINE_EPOLL, AEAD_AUTO, NULL);
	return 0;
}

static int set_up_reneg(void **state)
{
	const struct config c = {.reneg_pkts = 1};
	*state = own_worker_new(IO_ENGINE_EPOLL, AEAD_AUTO, &c);
	return 0;
}

static int tear_down(void **state)
{
	own_worker_free(*state);
	return 0;
}

static void tell_peer(struct own_worker *o, enum message_kind kind, struct peer *p)
{
	own_worker_tell(o, 0,
			(struct message){.kind = (uint8_t)kind,
					 .peer_id = p->setup.id,
					 .peer = kind == MESSAGE_PEER_ADD ? p : NULL});
}

static void tell_key(struct own_worker *o, uint32_t id, struct client_key *k)
{
	own_worker_tell(
		o, 0, (struct message){.kind = MESSAGE_KEY_INSTALL, .peer_id = id, .key = &k->key});
}

/* A peer with a key, known to the worker. */
static struct peer *add_peer(struct own_worker *o, uint32_t id, uint32_t generation,
			     const struct data_key_material *m)
{
	struct peer *p = own_worker_peer(o, id, generation);
	struct client_key *k = own_worker_key(o, id, m);
	tell_peer(o, MESSAGE_PEER_ADD, p);
	tell_key(o, id, k);
	own_worker_turn(o);
	struct message answer = own_worker_answer(o, 0);
	assert_int_equal(answer.kind, MESSAGE_KEY_INSTALLED);
	assert_ptr_equal(answer.key, &k->key);
	free(k);
	return p;
}

static void remove_peer(struct own_worker *o, struct peer *p)
{
	tell_peer(o, MESSAGE_PEER_REMOVE, p);
	own_worker_turn(o);
	struct message answer = own_worker_answer(o, 0);
	assert_int_equal(answer.kind, MESSAGE_PEER_REMOVED);
	assert_ptr_equal(answer.peer, p);
	peer_free(p);
}

static void tell_inner(struct own_worker *o, uint32_t id, uint32_t generation, uint8_t mark)
{
	struct buffer *b = own_worker_inner(o, 2, 77, id, mark);
	b->generation = generation;
	own_worker_tell(o, 2, (struct message){.kind = MESSAGE_INNER, .peer_id = id, .buffer = b});
}

/* The mark of the inner packet in the next datagram for the client; -1: there is none. */
static int received_mark(struct own_worker *o, struct client_key *k)
{
	uint8_t got[2048];
	size_t n = receive(o->client, got, sizeof(got), 0);
	if (n == 0)
		return -1;
	struct data_segment s = {.data = got, .len = (uint32_t)n};
	data_key_open(&k->key, o->aead, &s, 1, 1);
	assert_int_equal(s.drop, DROP_NONE);
	assert_int_equal(s.len, INNER_LEN);
	return s.data[INNER_LEN - 1];
}

static void expect_all_home(struct own_worker *o)
{
	assert_int_equal(own_worker_take_all(o, 2, MESSAGE_INNER), 0);
	assert_int_equal(buffer_pool_free_count(o->pools[2]), buffer_pool_size(o->pools[2]));
}

static void orders_keeps_answers_in_order_behind_a_full_ring(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = own_worker_peer(o, OWN_ID, 1);
	struct client_key *k = own_worker_key(o, OWN_ID, &m);
	own_worker_fill_ring(o, 0);
	tell_peer(o, MESSAGE_PEER_ADD, p);
	tell_key(o, OWN_ID, k);
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_PING});
	tell_peer(o, MESSAGE_PEER_REMOVE, p);
	own_worker_turn(o);
	assert_int_equal(o->orders->backlog_count, 3);
	assert_null(peer_find_by_id(o->dp->peers, OWN_ID)); /* done, though not answered */
	/* Room for one: what waited longest comes first, whatever is new. */
	struct message out;
	assert_int_equal(mailbox_receive(o->shared.mailboxes, 0, &out, 1), 1);
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_PING});
	own_worker_turn(o);
	assert_int_equal(o->orders->backlog_count, 3);
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_KEY_INSTALLED), 1);
	own_worker_turn(o);
	assert_int_equal(o->orders->backlog_count, 0);
	assert_int_equal(own_worker_answer(o, 0).kind, MESSAGE_PONG);
	struct message removed = own_worker_answer(o, 0);
	assert_int_equal(removed.kind, MESSAGE_PEER_REMOVED);
	assert_ptr_equal(removed.peer, p);
	assert_int_equal(own_worker_answer(o, 0).kind, MESSAGE_PONG);
	free(k);
	peer_free(p);
}

static void orders_takes_no_more_than_it_can_answer(void **state)
{
	struct own_worker *o = *state;
	unsigned answered = 0;
	own_worker_fill_ring(o, 0);
	for (unsigned i = 0; i < 3 * ORDERS_BACKLOG; i++)
		own_worker_tell(o, 0, (struct message){.kind = MESSAGE_PING});
	for (unsigned i = 0; i < 8; i++)
		own_worker_turn(o);
	assert_int_equal(o->orders->backlog_count, ORDERS_BACKLOG);
	assert_int_equal(mailbox_depth(o->shared.mailboxes, 1), 2 * ORDERS_BACKLOG);
	for (unsigned i = 0; i < 8; i++) {
		answered += own_worker_take_all(o, 0, MESSAGE_PONG);
		own_worker_turn(o);
	}
	answered += own_worker_take_all(o, 0, MESSAGE_PONG);
	assert_int_equal(answered, 3 * ORDERS_BACKLOG);
}

static void orders_seals_what_came_before_a_removal_and_drops_what_came_after(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = add_peer(o, OWN_ID, 1, &m);
	struct client_key *k = client_key(o->aead, OWN_ID, &m);
	/* The two rings have no order between them: one turn for each. */
	tell_inner(o, OWN_ID, 1, 5);
	own_worker_turn(o);
	tell_peer(o, MESSAGE_PEER_REMOVE, p);
	own_worker_turn(o);
	tell_inner(o, OWN_ID, 1, 6);
	own_worker_turn(o);
	own_worker_turn(o);
	assert_int_equal(received_mark(o, k), 5);
	assert_int_equal(received_mark(o, k), -1);
	assert_int_equal(own_worker_drops(o, DROP_UNKNOWN_PEER), 1);
	expect_all_home(o);
	assert_ptr_equal(own_worker_answer(o, 0).peer, p);
	peer_free(p);
	free_key(o->aead, k);
}

static void orders_settles_the_packets_of_a_turn_before_a_peer_goes(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = add_peer(o, OWN_ID, 1, &m);
	struct client_key *k = client_key(o->aead, OWN_ID, &m);
	uint8_t text[INNER_LEN], room[SEAL_ROOM], got[64];
	/* All in one ring, so in this order, in one turn: a datagram, then the removal. */
	inner_packet(text, OWN_ID, 77, 9);
	struct buffer *b = buffer_take(o->pools[0]);
	b->len = (uint32_t)seal_text(o->aead, k, text, sizeof(text), room);
	memcpy(b->data, room, b->len);
	b->link = address_of(o->client);
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_DATAGRAM, .buffer = b});
	tell_peer(o, MESSAGE_PEER_REMOVE, p);
	own_worker_turn(o);
	own_worker_turn_until(o, o->tun);
	assert_int_equal(receive_frame(o->tun, got, sizeof(got), 0), INNER_LEN);
	assert_int_equal(got[INNER_LEN - 1], 9);
	assert_ptr_equal(own_worker_answer(o, 0).peer, p);
	peer_free(p);
	free_key(o->aead, k);
}

static void orders_keeps_packets_from_the_next_holder_of_a_peer_id(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material before = own_worker_material(0, 1);
	struct data_key_material after = own_worker_material(0, 2);
	struct client_key *old_key = client_key(o->aead, OWN_ID, &before);
	struct client_key *new_key = client_key(o->aead, OWN_ID, &after);
	uint8_t text[INNER_LEN], room[SEAL_ROOM];
	remove_peer(o, add_peer(o, OWN_ID, 1, &before));
	struct peer *p = add_peer(o, OWN_ID, 2, &after);

	tell_inner(o, OWN_ID, 1, 5); /* was meant for the first holder */
	tell_inner(o, OWN_ID, 2, 6);
	own_worker_turn(o);
	own_worker_turn_until(o, o->client);
	assert_int_equal(received_mark(o, new_key), 6);
	assert_int_equal(received_mark(o, new_key), -1);
	assert_int_equal(own_worker_drops(o, DROP_UNKNOWN_PEER), 1);

	/* The first holder's last datagram, handed over late: no trace. */
	inner_packet(text, OWN_ID, 77, 9);
	struct buffer *b = buffer_take(o->pools[2]);
	b->len = (uint32_t)seal_text(o->aead, old_key, text, sizeof(text), room);
	memcpy(b->data, room, b->len);
	b->link = address_of(o->group.fds[0]);
	own_worker_tell(o, 2, (struct message){.kind = MESSAGE_DATAGRAM, .buffer = b});
	own_worker_turn(o);
	own_worker_turn(o);
	assert_int_equal(own_worker_drops(o, DROP_DECRYPT), 1);
	assert_int_equal(p->received_packets, 0);
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_FLOAT_REQUEST), 0);
	expect_all_home(o);
	remove_peer(o, p);
	free_key(o->aead, old_key);
	free_key(o->aead, new_key);
}

static void orders_finds_the_second_peer_at_a_shared_address(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *first = add_peer(o, OWN_ID, 1, &m);
	struct peer *second = add_peer(o, OWN_ID + 1, 1, &m);
	struct link_addr at = address_of(o->client);
	assert_non_null(peer_find_by_addr(o->dp->peers, &at));
	remove_peer(o, first);
	assert_ptr_equal(peer_find_by_addr(o->dp->peers, &at), second);
	remove_peer(o, second);
	assert_null(peer_find_by_addr(o->dp->peers, &at));
}

static void orders_refuses_a_peer_whose_id_is_taken(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = add_peer(o, OWN_ID, 1, &m);
	struct peer *intruder = own_worker_peer(o, OWN_ID, 2);
	tell_peer(o, MESSAGE_PEER_ADD, intruder);
	own_worker_turn(o);
	struct message answer = own_worker_answer(o, 0);
	assert_int_equal(answer.kind, MESSAGE_PEER_REMOVED);
	assert_ptr_equal(answer.peer, intruder);
	assert_ptr_equal(peer_find_by_id(o->dp->peers, OWN_ID), p);
	peer_free(intruder);
	remove_peer(o, p);
}

static void orders_for_a_peer_that_has_gone_leave_nothing(void **state)
{
	static const struct client_key wiped;
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct client_key *k = own_worker_key(o, OWN_ID, &m);
	struct buffer *b = buffer_take(o->pools[0]);
	uint32_t free_count = buffer_pool_free_count(o->pools[0]);
	b->link = address_of(o->client);
	tell_key(o, OWN_ID, k);
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_KEY_RETIRE, .peer_id = OWN_ID});
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_PEER_REMOVE, .peer_id = OWN_ID});
	own_worker_tell(
		o, 0, (struct message){.kind = MESSAGE_PEER_MOVE, .peer_id = OWN_ID, .buffer = b});
	own_worker_turn(o);
	assert_ptr_equal(own_worker_answer(o, 0).key, &k->key);
	assert_memory_equal(&k->seal, &wiped.seal, sizeof(k->seal));
	assert_memory_equal(&k->open, &wiped.open, sizeof(k->open));
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_PEER_REMOVED), 0);
	assert_int_equal(buffer_pool_free_count(o->pools[0]), free_count + 1);
	free(k);
}

static void orders_takes_what_the_path_of_a_peer_takes(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = add_peer(o, OWN_ID, 1, &m);
	assert_int_equal(p->path.mtu, 0);
	own_worker_tell(o, 0,
			(struct message){
				.kind = MESSAGE_PATH_MTU, .peer_id = OWN_ID + 1, .path_mtu = 1300});
	own_worker_tell(
		o, 0,
		(struct message){.kind = MESSAGE_PATH_MTU, .peer_id = OWN_ID, .path_mtu = 1400});
	own_worker_turn(o);
	assert_int_equal(p->path.mtu, 1400);
	assert_int_equal(p->path.expiry_ms, o->dp->now_ms + PATH_MTU_EXPIRY_MS);
	own_worker_tell(o, 0, (struct message){.kind = MESSAGE_PATH_MTU, .peer_id = OWN_ID});
	own_worker_turn(o);
	assert_int_equal(p->path.mtu, 0);
	remove_peer(o, p);
}

static void orders_asks_for_the_path_once_in_a_while(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m = own_worker_material(0, 1);
	struct peer *p = add_peer(o, OWN_ID, 1, &m);
	own_worker_fill_ring(o, 0);
	datapath_ask_path(o->dp, p); /* no room: it is not forgotten */
	datapath_ask_path(o->dp, p);
	assert_int_equal(p->facts, PEER_FACT_PATH_MTU);
	own_worker_take_all(o, 0, MESSAGE_NONE);
	datapath_announce_pending(o->dp, p);
	datapath_ask_path(o->dp, p);
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_PATH_MTU_ASK), 1);
	o->dp->now_ms += PATH_MTU_ASK_MS;
	datapath_ask_path(o->dp, p);
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_PATH_MTU_ASK), 1);
	remove_peer(o, p);
}

static void orders_keeps_buffers_whose_way_home_is_full(void **state)
{
	struct own_worker *o = *state;
	own_worker_fill_ring(o, 2);
	for (uint8_t i = 0; i < 10; i++)
		tell_inner(o, OWN_ID, 1, i); /* nobody's */
	own_worker_turn(o);
	own_worker_turn(o);
	assert_int_equal(own_worker_drops(o, DROP_UNKNOWN_PEER), 10);
	assert_int_equal(own_worker_take_all(o, 2, MESSAGE_BUFFER_HOME), 0);
	own_worker_turn(o);
	assert_int_equal(own_worker_take_all(o, 2, MESSAGE_BUFFER_HOME), 1);
	expect_all_home(o);
}

static void orders_drops_what_the_owner_has_no_room_for(void **state)
{
	struct own_worker *o = *state;
	struct peer *p = own_worker_peer(o, OTHER_ID, 1);
	uint32_t held = buffer_pool_free_count(o->dp->large);
	uint8_t packet[INNER_LEN];
	own_worker_fill_ring(o, 2);
	inner_packet(packet, 77, OTHER_ID, 1);
	assert_int_equal(slot_table_owner(&o->slots, OTHER_ID), 2);
	send_frame(o->tun, packet, sizeof(packet));
	for (unsigned i = 0; i < 10 && own_worker_drops(o, DROP_HANDOFF_FULL) == 0; i++)
		own_worker_turn(o);
	assert_int_equal(own_worker_drops(o, DROP_HANDOFF_FULL), 1);
	assert_int_equal(o->dp->count.handoff_full, 1);
	assert_true(buffer_pool_free_count(o->dp->large) + IO_BATCH >= held);
	peer_free(p);
}

static void tell_seal_from(struct own_worker *o, uint8_t key_id, uint64_t at_ms)
{
	own_worker_tell(o, 0,
			(struct message){.kind = MESSAGE_KEY_SEAL_FROM,
					 .arg = key_id,
					 .peer_id = OWN_ID,
					 .at_ms = at_ms});
	own_worker_turn(o);
}

static void orders_seals_with_a_key_only_after_it_was_told_to(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m[2] = {own_worker_material(0, 1), own_worker_material(1, 2)};
	struct peer *p = add_peer(o, OWN_ID, 1, &m[0]);
	struct client_key *second = own_worker_key(o, OWN_ID, &m[1]);
	second->key.seal_from_ms = UINT64_MAX;
	tell_key(o, OWN_ID, second);
	own_worker_turn(o);
	assert_int_equal(own_worker_answer(o, 0).kind, MESSAGE_KEY_INSTALLED);
	assert_ptr_equal(peer_seal_key(p, UINT64_MAX - 1), p->keys[0]);
	tell_seal_from(o, 1, 1000);
	assert_ptr_equal(peer_seal_key(p, 1000), p->keys[1]);
	tell_seal_from(o, 0, UINT64_MAX);
	assert_ptr_equal(peer_seal_key(p, 999), p->keys[1]);
	/* A key that is not there, a key-id that cannot be. */
	tell_seal_from(o, 7, 1);
	tell_seal_from(o, PEER_KEYS, 1);
	assert_ptr_equal(peer_seal_key(p, 1000), p->keys[1]);
	free(second);
	remove_peer(o, p);
	tell_seal_from(o, 1, 1); /* nobody's */
}

static void orders_tells_of_each_exhausted_key_once(void **state)
{
	struct own_worker *o = *state;
	struct data_key_material m[2] = {own_worker_material(0, 1), own_worker_material(1, 2)};
	struct peer *p = add_peer(o, OWN_ID, 1, &m[0]);
	struct client_key *second = own_worker_key(o, OWN_ID, &m[1]);
	struct client_key *k[2] = {client_key(o->aead, OWN_ID, &m[0]),
				   client_key(o->aead, OWN_ID, &m[1])};
	uint8_t text[INNER_LEN], room[SEAL_ROOM], got[64];
	tell_key(o, OWN_ID, second);
	own_worker_turn(o);
	assert_int_equal(own_worker_answer(o, 0).kind, MESSAGE_KEY_INSTALLED);
	struct link_addr to = address_of(o->group.fds[1]);
	for (unsigned i = 0; i < 8; i++) { /* the keys take turns, as while they overlap */
		inner_packet(text, OWN_ID, 77, 1);
		size_t n = seal_text(o->aead, k[i % 2], text, sizeof(text), room);
		assert_int_equal(
			sendto(o->client, room, n, 0, &to.remote.sa, endpoint_len(&to.remote)), n);
		own_worker_turn_until(o, o->tun);
		assert_int_equal(receive_frame(o->tun, got, sizeof(got), 0), INNER_LEN);
	}
	assert_int_equal(own_worker_take_all(o, 0, MESSAGE_KEY_EXHAUSTED), 2);
	free(second);
	free_key(o->aead, k[0]);
	free_key(o->aead, k[1]);
	remove_peer(o, p);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(orders_keeps_answers_in_order_behind_a_full_ring),
		TEST(orders_takes_no_more_than_it_can_answer),
		TEST(orders_seals_what_came_before_a_removal_and_drops_what_came_after),
		TEST(orders_settles_the_packets_of_a_turn_before_a_peer_goes),
		TEST(orders_keeps_packets_from_the_next_holder_of_a_peer_id),
		TEST(orders_finds_the_second_peer_at_a_shared_address),
		TEST(orders_refuses_a_peer_whose_id_is_taken),
		TEST(orders_for_a_peer_that_has_gone_leave_nothing),
		TEST(orders_takes_what_the_path_of_a_peer_takes),
		TEST(orders_asks_for_the_path_once_in_a_while),
		TEST(orders_keeps_buffers_whose_way_home_is_full),
		TEST(orders_drops_what_the_owner_has_no_room_for),
		TEST(orders_seals_with_a_key_only_after_it_was_told_to),
		cmocka_unit_test_setup_teardown(orders_tells_of_each_exhausted_key_once,
						set_up_reneg, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
