/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/data_key.h"
#include "crypto/packet.h"
#include "tests/support/hex.h"

#define PING "2a187bf3641eb4cb07ed2d0a981fc748"
#define ROOM (DATA_KEY_HEADROOM + 1600 + DATA_KEY_TAILROOM)

static struct aead *aead;

static int setup(void **state)
{
	(void)state;
	return aead_new(AEAD_AUTO, &aead);
}

static int teardown(void **state)
{
	(void)state;
	aead_free(aead);
	return 0;
}

/* Keys of the key2 of wire.md, section 15, as the client has them; `swapped` for the server. */
static struct data_key_material material(enum cipher c, bool swapped)
{
	struct data_key_material m = {.cipher = c};
	from_hex("18414679e9d0572749ada1e247ece39053ba634a173fb83109f9fa331ca6cff0",
		 swapped ? m.open_key : m.seal_key, AEAD_KEY_MAX);
	from_hex("7c81c26ef9416375d01d4ad1ddbfb0be313b6f7d83501a507f3fbe2354758771",
		 swapped ? m.seal_key : m.open_key, AEAD_KEY_MAX);
	from_hex("f9689d2e7c2bddee", swapped ? m.open_iv : m.seal_iv, DATA_KEY_IV_LEN);
	from_hex("6f4ae14078261b16", swapped ? m.seal_iv : m.open_iv, DATA_KEY_IV_LEN);
	return m;
}

struct side {
	struct data_key key;
	struct aead_schedule seal, open;
};

static void side_init_as(struct side *s, enum cipher c, bool is_server, uint32_t peer_id)
{
	struct data_key_material m = material(c, is_server);
	const struct data_key_options o = {
		.peer_id = peer_id, .replay_window = 64, .replay_time_s = 15};
	assert_int_equal(data_key_init(&s->key, aead, &m, &o, &s->seal, &s->open), 0);
}

static void client_and_server(struct side *client, struct side *server, uint32_t peer_id)
{
	side_init_as(client, CIPHER_AES_256_GCM, false, peer_id);
	side_init_as(server, CIPHER_AES_256_GCM, true, peer_id);
}

static void both_fini(struct side *a, struct side *b)
{
	data_key_fini(&a->key, aead);
	data_key_fini(&b->key, aead);
}

/* A plaintext in a buffer of its own. */
struct packet {
	uint8_t room[ROOM];
	struct data_segment seg;
};

static void packet_init(struct packet *p, const char *hex)
{
	p->seg.data = p->room + DATA_KEY_HEADROOM;
	p->seg.len = (uint32_t)from_hex(hex, p->seg.data, 1600);
	p->seg.drop = DROP_COUNT;
}

static void seal_one(struct side *s, struct packet *p)
{
	data_key_seal(&s->key, aead, &p->seg, 1);
	assert_int_equal(p->seg.drop, DROP_NONE);
}

static enum drop open_copy(struct side *s, const struct packet *sealed, uint64_t now_ms)
{
	struct packet p = *sealed;
	p.seg.data = p.room + (sealed->seg.data - sealed->room);
	data_key_open(&s->key, aead, &p.seg, 1, now_ms);
	return p.seg.drop;
}

static void check_wire(uint32_t peer_id, const char *expected_hex)
{
	struct side client, server;
	struct packet p;
	uint8_t expected[64], ping[16];
	client_and_server(&client, &server, peer_id);
	packet_init(&p, PING);
	seal_one(&client, &p);
	assert_int_equal(p.seg.len, from_hex(expected_hex, expected, sizeof(expected)));
	assert_memory_equal(p.seg.data, expected, p.seg.len);
	assert_int_equal(p.seg.len, sizeof(ping) + data_key_overhead(&client.key));
	data_key_open(&server.key, aead, &p.seg, 1, 0);
	assert_int_equal(p.seg.drop, DROP_NONE);
	assert_int_equal(p.seg.len, from_hex(PING, ping, sizeof(ping)));
	assert_memory_equal(p.seg.data, ping, sizeof(ping));
	both_fini(&client, &server);
}

static void data_key_gives_the_known_v2_packet(void **state)
{
	(void)state;
	check_wire(5, "48000005 00000001 00c7389a5b0b1e025feb0cbc6259f4df"
		      "acde640a1422f5e1b78d33acd0223d0f");
}

static void data_key_gives_the_known_v1_packet(void **state)
{
	(void)state;
	check_wire(PEER_ID_NONE, "30 00000001 a20f103911705ea8f3fb31fd35019e26"
				 "acde640a1422f5e1b78d33acd0223d0f");
}

static void data_key_puts_key_id_and_peer_id_into_the_head(void **state)
{
	(void)state;
	struct data_key_material m = material(CIPHER_AES_128_GCM, false);
	const struct data_key_options o = {.peer_id = 0xABCDEF, .replay_window = 64};
	struct side s;
	struct packet p;
	m.key_id = 7;
	assert_int_equal(data_key_init(&s.key, aead, &m, &o, &s.seal, &s.open), 0);
	packet_init(&p, PING);
	seal_one(&s, &p);
	static const uint8_t head[] = {0x4f, 0xab, 0xcd, 0xef, 0, 0, 0, 1};
	assert_memory_equal(p.seg.data, head, sizeof(head));
	data_key_fini(&s.key, aead);
}

static void data_key_carries_batches_of_every_cipher(void **state)
{
	(void)state;
	static struct packet p[DATA_KEY_BATCH];
	struct data_segment seg[DATA_KEY_BATCH];
	for (unsigned c = CIPHER_NONE + 1; c < CIPHER_COUNT; c++) {
		struct side client, server;
		side_init_as(&client, (enum cipher)c, false, 1);
		side_init_as(&server, (enum cipher)c, true, 1);
		for (unsigned i = 0; i < DATA_KEY_BATCH; i++) {
			seg[i] =
				(struct data_segment){p[i].room + DATA_KEY_HEADROOM, 1 + 23 * i, 0};
			memset(seg[i].data, (int)i, seg[i].len);
		}
		data_key_seal(&server.key, aead, seg, DATA_KEY_BATCH);
		data_key_open(&client.key, aead, seg, DATA_KEY_BATCH, 0);
		for (unsigned i = 0; i < DATA_KEY_BATCH; i++) {
			assert_int_equal(seg[i].drop, DROP_NONE);
			assert_int_equal(seg[i].len, 1 + 23 * i);
			assert_int_equal(seg[i].data[0], i);
			assert_int_equal(seg[i].data[seg[i].len - 1], i);
		}
		assert_int_equal(server.key.sealed_packets, DATA_KEY_BATCH);
		assert_int_equal(client.key.opened_packets, DATA_KEY_BATCH);
		assert_int_equal(client.key.opened_bytes, server.key.sealed_bytes);
		both_fini(&client, &server);
	}
}

static void data_key_opens_both_heads_with_one_key(void **state)
{
	(void)state;
	struct side v1, v2, server;
	struct packet a, b;
	side_init_as(&v1, CIPHER_AES_256_GCM, false, PEER_ID_NONE);
	side_init_as(&v2, CIPHER_AES_256_GCM, false, 9);
	side_init_as(&server, CIPHER_AES_256_GCM, true, 9);
	v2.key.counter.last = 1;
	packet_init(&a, PING);
	packet_init(&b, PING);
	seal_one(&v1, &a);
	seal_one(&v2, &b);
	struct data_segment seg[] = {b.seg, a.seg};
	data_key_open(&server.key, aead, seg, 2, 0);
	assert_int_equal(seg[0].drop, DROP_NONE);
	assert_int_equal(seg[1].drop, DROP_NONE);
	data_key_fini(&v1.key, aead);
	both_fini(&v2, &server);
}

static void data_key_drops_second_copy_in_batch(void **state)
{
	(void)state;
	struct side client, server;
	struct packet a, b;
	client_and_server(&client, &server, 5);
	packet_init(&a, PING);
	seal_one(&client, &a);
	b = a;
	b.seg.data = b.room + (a.seg.data - a.room);
	struct data_segment seg[] = {a.seg, b.seg};
	data_key_open(&server.key, aead, seg, 2, 0);
	assert_int_equal(seg[0].drop, DROP_NONE);
	assert_int_equal(seg[1].drop, DROP_REPLAY_DUPLICATE);
	assert_int_equal(server.key.opened_packets, 1);
	both_fini(&client, &server);
}

static void data_key_refuses_replays_and_old_ids(void **state)
{
	(void)state;
	struct side client, server;
	struct packet first, late;
	client_and_server(&client, &server, 5);
	packet_init(&first, PING);
	seal_one(&client, &first);
	assert_int_equal(open_copy(&server, &first, 0), DROP_NONE);
	assert_int_equal(open_copy(&server, &first, 0), DROP_REPLAY_DUPLICATE);
	client.key.counter.last = 64;
	packet_init(&late, PING);
	seal_one(&client, &late);
	assert_int_equal(open_copy(&server, &late, 0), DROP_NONE);
	assert_int_equal(open_copy(&server, &first, 0), DROP_REPLAY_OLD);
	both_fini(&client, &server);
}

/* Every byte is authenticated (in P_DATA_V1 all but the first), and a forgery leaves no trace. */
static void check_flips(uint32_t peer_id, uint32_t first)
{
	struct side client, server;
	struct packet p;
	client_and_server(&client, &server, peer_id);
	packet_init(&p, PING);
	seal_one(&client, &p);
	for (uint32_t i = first; i < p.seg.len; i++) {
		p.seg.data[i] ^= i == 0 ? 1 : 0x40;
		enum drop drop = open_copy(&server, &p, 0);
		assert_int_equal(drop, DROP_DECRYPT);
		p.seg.data[i] ^= i == 0 ? 1 : 0x40;
	}
	assert_int_equal(server.key.failed_tags, p.seg.len - first);
	assert_int_equal(server.key.replay.highest, 0);
	assert_int_equal(server.key.opened_packets, 0);
	assert_int_equal(open_copy(&server, &p, 0), DROP_NONE);
	both_fini(&client, &server);
}

static void data_key_refuses_every_changed_byte(void **state)
{
	(void)state;
	check_flips(5, 0);
	check_flips(PEER_ID_NONE, 1);
}

static void data_key_refuses_short_packets_and_other_opcodes(void **state)
{
	(void)state;
	static const struct {
		uint8_t first;
		uint32_t len;
		enum drop drop;
	} rows[] = {
		{0x48, 0, DROP_SHORT},	      {0x48, 1, DROP_SHORT},
		{0x48, 24, DROP_SHORT},	      {0x48, 25, DROP_DECRYPT},
		{0x30, 1, DROP_SHORT},	      {0x30, 21, DROP_SHORT},
		{0x30, 22, DROP_DECRYPT},     {0x20, 100, DROP_BAD_OPCODE},
		{0x00, 100, DROP_BAD_OPCODE}, {0xff, 100, DROP_BAD_OPCODE},
	};
	struct side client, server;
	client_and_server(&client, &server, 5);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* As long as the packet, so that a sanitizer sees a read behind it. */
		uint8_t room[100] = {0};
		uint8_t *data = room + sizeof(room) - rows[i].len;
		if (rows[i].len > 0)
			memset(data, rows[i].first, rows[i].len);
		struct data_segment seg = {data, rows[i].len, DROP_NONE};
		data_key_open(&server.key, aead, &seg, 1, 0);
		assert_int_equal(seg.drop, rows[i].drop);
		assert_int_equal(seg.len, rows[i].len);
	}
	both_fini(&client, &server);
}

static void data_key_refuses_id_zero_before_it_decrypts(void **state)
{
	(void)state;
	struct side client, server;
	struct packet p;
	client_and_server(&client, &server, 5);
	client.key.counter.last = UINT32_MAX; /* so that a wrapped counter would give 0 */
	packet_init(&p, PING);
	data_key_seal(&client.key, aead, &p.seg, 1);
	assert_int_equal(p.seg.drop, DROP_KEY_EXPIRED);
	uint8_t zero_id[40] = {0x48};
	struct data_segment seg = {zero_id, sizeof(zero_id), DROP_NONE};
	data_key_open(&server.key, aead, &seg, 1, 0);
	assert_int_equal(seg.drop, DROP_REPLAY_OLD);
	assert_int_equal(server.key.failed_tags, 0);
	both_fini(&client, &server);
}

static void data_key_seals_the_last_id_and_no_more(void **state)
{
	(void)state;
	struct side client, server;
	struct packet p[3];
	struct data_segment seg[3];
	client_and_server(&client, &server, 5);
	client.key.counter.last = UINT32_MAX - 1;
	for (unsigned i = 0; i < 3; i++) {
		packet_init(&p[i], PING);
		seg[i] = p[i].seg;
	}
	data_key_seal(&client.key, aead, seg, 3);
	assert_int_equal(seg[0].drop, DROP_NONE);
	assert_int_equal(seg[1].drop, DROP_KEY_EXPIRED);
	assert_int_equal(seg[2].drop, DROP_KEY_EXPIRED);
	assert_int_equal(seg[1].len, 16); /* untouched */
	assert_ptr_equal(seg[1].data, p[1].seg.data);
	both_fini(&client, &server);
}

static void data_key_refuses_an_empty_plaintext(void **state)
{
	(void)state;
	struct side client, server;
	struct packet p;
	client_and_server(&client, &server, 5);
	packet_init(&p, "");
	data_key_seal(&client.key, aead, &p.seg, 1);
	assert_int_equal(p.seg.drop, DROP_SHORT);
	assert_int_equal(client.key.counter.last, 0);
	both_fini(&client, &server);
}

/* wire.md, section 12.5: packets + blocks <= 2^36 - 1, GCM only; counted as 2 a packet and one for
 * each 16 bytes, which is never less. */
static void data_key_ends_at_the_aead_limit(void **state)
{
	(void)state;
	static const struct {
		enum cipher cipher;
		uint64_t used;
		enum drop drop;
	} rows[] = {
		/* A ping counts 3. */
		{CIPHER_AES_256_GCM, (1ull << 36) - 4, DROP_NONE},
		{CIPHER_AES_256_GCM, (1ull << 36) - 3, DROP_KEY_EXPIRED},
		{CIPHER_CHACHA20_POLY1305, 1ull << 40, DROP_NONE},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct side s;
		struct packet p;
		side_init_as(&s, rows[i].cipher, false, 5);
		s.key.sealed_bytes = rows[i].used * 16;
		packet_init(&p, PING);
		data_key_seal(&s.key, aead, &p.seg, 1);
		assert_int_equal(p.seg.drop, rows[i].drop);
		data_key_fini(&s.key, aead);
	}
}

static void data_key_opens_nothing_after_too_many_failed_tags(void **state)
{
	(void)state;
	struct side client, server;
	struct packet p;
	client_and_server(&client, &server, 5);
	packet_init(&p, PING);
	seal_one(&client, &p);
	server.key.failed_tags = 1ull << 36;
	assert_int_equal(open_copy(&server, &p, 0), DROP_NONE);
	/* One more is too many, and the next one, a good one, finds no key. */
	packet_init(&p, PING);
	seal_one(&client, &p);
	p.room[DATA_KEY_HEADROOM]++;
	assert_int_equal(open_copy(&server, &p, 0), DROP_DECRYPT);
	p.room[DATA_KEY_HEADROOM]--;
	assert_int_equal(open_copy(&server, &p, 0), DROP_KEY_EXPIRED);
	both_fini(&client, &server);
}

static void data_key_wants_renegotiation_near_each_limit(void **state)
{
	(void)state;
	const uint64_t limit = ((1ull << 36) - 1) / 8 * 7;
	struct side s;
	side_init_as(&s, CIPHER_AES_128_GCM, false, 5);
	assert_false(data_key_wants_renegotiation(&s.key));
	s.key.counter.last = 0xFEFFFFFF;
	assert_false(data_key_wants_renegotiation(&s.key));
	s.key.counter.last = 0xFF000000;
	assert_true(data_key_wants_renegotiation(&s.key));
	s.key.counter.last = 1;
	s.key.sealed_packets = 1;
	s.key.sealed_bytes = (limit - 3) * 16;
	assert_false(data_key_wants_renegotiation(&s.key));
	s.key.sealed_bytes = (limit - 2) * 16;
	assert_true(data_key_wants_renegotiation(&s.key));
	s.key.cipher = CIPHER_CHACHA20_POLY1305;
	assert_false(data_key_wants_renegotiation(&s.key));
	s.key.cipher = CIPHER_AES_128_GCM;
	s.key.sealed_bytes = 0;
	s.key.opened_bytes = limit * 16;
	assert_true(data_key_wants_renegotiation(&s.key));
	s.key.opened_bytes = 0;
	s.key.failed_tags = 1ull << 35;
	assert_false(data_key_wants_renegotiation(&s.key));
	s.key.failed_tags++;
	assert_true(data_key_wants_renegotiation(&s.key));
	data_key_fini(&s.key, aead);
}

static void data_key_fini_leaves_zeros(void **state)
{
	(void)state;
	static const uint8_t zeros[sizeof(struct side)];
	struct side s;
	memset(&s, 0, sizeof(s));
	side_init_as(&s, CIPHER_AES_256_GCM, false, 5);
	data_key_fini(&s.key, aead);
	assert_memory_equal(&s, zeros, sizeof(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_key_gives_the_known_v2_packet),
		cmocka_unit_test(data_key_gives_the_known_v1_packet),
		cmocka_unit_test(data_key_puts_key_id_and_peer_id_into_the_head),
		cmocka_unit_test(data_key_carries_batches_of_every_cipher),
		cmocka_unit_test(data_key_opens_both_heads_with_one_key),
		cmocka_unit_test(data_key_drops_second_copy_in_batch),
		cmocka_unit_test(data_key_refuses_replays_and_old_ids),
		cmocka_unit_test(data_key_refuses_every_changed_byte),
		cmocka_unit_test(data_key_refuses_short_packets_and_other_opcodes),
		cmocka_unit_test(data_key_refuses_id_zero_before_it_decrypts),
		cmocka_unit_test(data_key_seals_the_last_id_and_no_more),
		cmocka_unit_test(data_key_refuses_an_empty_plaintext),
		cmocka_unit_test(data_key_ends_at_the_aead_limit),
		cmocka_unit_test(data_key_opens_nothing_after_too_many_failed_tags),
		cmocka_unit_test(data_key_wants_renegotiation_near_each_limit),
		cmocka_unit_test(data_key_fini_leaves_zeros),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
