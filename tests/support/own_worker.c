/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/own_worker.h"
/* The module is included, not linked: its turns are its own business. */
#include "workers/worker.c"

#define TURNS_MAX 5000

static void make_worker(struct own_worker *o)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	o->tun = pair[0];
	o->tun_theirs = pair[1];
	assert_int_equal(worker_new(&o->shared, 1, o->tun_theirs, -1, &o->worker), 0);
	assert_int_equal(set_up(o->worker), 0);
	o->dp = &o->worker->dp;
	o->orders = &o->worker->orders;
}

struct own_worker *own_worker_new(enum io_engine_choice io, enum aead_choice aead,
				  const struct config *config)
{
	struct own_worker *o = calloc(1, sizeof(*o));
	assert_non_null(o);
	if (config)
		o->config = *config;
	o->config.tun_mtu = 1500;
	o->config.max_clients = 16;
	o->config.worker_memory = 1 << 20;
	o->config.io_engine = io;
	o->config.aead_engine = aead;
	o->group.count = 3;
	for (unsigned i = 0; i < o->group.count; i++)
		o->group.fds[i] = udp_socket();
	slot_table_init(&o->slots, 2);
	o->shared = (struct worker_shared){.config = &o->config,
					   .slots = &o->slots,
					   .groups = &o->group,
					   .group_count = 1,
					   .worker_count = 2,
					   .peer_id_limit = 1024};
	assert_int_equal(mailboxes_new(3, &o->shared.mailboxes), 0);
	assert_int_equal(route_table_new(&o->shared.routes), 0);
	assert_int_equal(aead_new(aead, &o->aead), 0);
	assert_int_equal(buffer_pool_new(0, 64, BUFFER_SMALL, &o->pools[0]), 0);
	assert_int_equal(buffer_pool_new(2, 64, BUFFER_SMALL, &o->pools[2]), 0);
	o->client = udp_socket();
	make_worker(o);
	return o;
}

void own_worker_free(struct own_worker *o)
{
	tear_down(o->worker);
	worker_free(o->worker);
	close(o->tun);
	close(o->tun_theirs);
	for (unsigned i = 0; i < o->group.count; i++)
		close(o->group.fds[i]);
	close(o->client);
	mailboxes_free(o->shared.mailboxes);
	route_table_free(o->shared.routes);
	aead_free(o->aead);
	buffer_pool_free(o->pools[0]);
	buffer_pool_free(o->pools[2]);
	free(o);
}

void own_worker_turn(struct own_worker *o)
{
	o->worker->is_owing = true; /* which makes the wait a short one */
	assert_int_equal(turn(o->worker), 0);
}

void own_worker_turn_until(struct own_worker *o, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	for (unsigned i = 0; i < TURNS_MAX; i++) {
		if (poll(&p, 1, 0) == 1)
			return;
		own_worker_turn(o);
	}
	fail_msg("nothing came out of the worker");
}

uint64_t own_worker_drops(const struct own_worker *o, enum drop why)
{
	return o->dp->count.drops[DIRECTION_INGRESS][why] +
	       o->dp->count.drops[DIRECTION_EGRESS][why];
}

void own_worker_tell(struct own_worker *o, unsigned from, struct message m)
{
	assert_true(mailbox_send(o->shared.mailboxes, from, 1, &m));
}

static void take_home(struct own_worker *o, unsigned home, struct buffer *chain)
{
	for (struct buffer *next; chain; chain = next) {
		next = chain->next;
		buffer_give(o->pools[home], chain);
	}
}

struct message own_worker_answer(struct own_worker *o, unsigned to)
{
	struct message m = {.kind = MESSAGE_NONE};
	while (mailbox_receive(o->shared.mailboxes, to, &m, 1) == 1) {
		if (m.kind != MESSAGE_BUFFER_HOME)
			return m;
		take_home(o, to, m.buffer);
	}
	fail_msg("no message for thread %u", to);
	return m;
}

unsigned own_worker_take_all(struct own_worker *o, unsigned to, enum message_kind kind)
{
	unsigned count = 0;
	struct message m;
	while (mailbox_receive(o->shared.mailboxes, to, &m, 1) == 1) {
		count += m.kind == kind;
		if (m.kind == MESSAGE_BUFFER_HOME)
			take_home(o, to, m.buffer);
	}
	return count;
}

void own_worker_fill_ring(struct own_worker *o, unsigned to)
{
	const struct message filler = {.kind = MESSAGE_NONE};
	while (mailbox_send(o->shared.mailboxes, 1, to, &filler))
		;
}

struct peer *own_worker_peer(struct own_worker *o, uint32_t id, uint32_t generation)
{
	struct ip_addr a = virtual_of(id);
	struct peer_setup setup = {.id = id,
				   .generation = generation,
				   .is_v2 = true,
				   .tun_mtu = 1500,
				   .link = address_of(o->client)};
	struct peer *p = peer_new(&setup);
	assert_non_null(p);
	assert_int_equal(
		route_table_add(o->shared.routes, &a, (struct destination){id, generation}), 0);
	return p;
}

struct client_key *own_worker_key(struct own_worker *o, uint32_t id,
				  const struct data_key_material *m)
{
	struct data_key_options options = {.peer_id = id, .replay_window = 64, .replay_time_s = 15};
	struct client_key *k = aligned_alloc(64, (sizeof(*k) + 63) & ~(size_t)63);
	assert_non_null(k);
	assert_int_equal(data_key_init(&k->key, o->aead, m, &options, &k->seal, &k->open), 0);
	return k;
}

struct data_key_material own_worker_material(uint8_t key_id, uint8_t seed)
{
	struct data_key_material m = {.cipher = CIPHER_AES_256_GCM, .key_id = key_id};
	memset(m.seal_key, seed, sizeof(m.seal_key));
	memset(m.open_key, seed ^ 0xff, sizeof(m.open_key));
	return m;
}

struct buffer *own_worker_inner(struct own_worker *o, unsigned home, uint32_t from, uint32_t to,
				uint8_t mark)
{
	struct buffer *b = buffer_take(o->pools[home]);
	assert_non_null(b);
	inner_packet(b->data, from, to, mark);
	b->len = INNER_LEN;
	return b;
}
