/* SPDX-License-Identifier: Apache-2.0 */
/* Any order of calls on a reliable stream, held against what must always be true. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/bytes.h"
#include "server/control/reliable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool is_so)
{
	if (!is_so)
		abort();
}

struct world {
	struct reliable r;
	uint64_t now_ms;
	uint32_t queued; /* ids given out */
	uint32_t delivered;
};

static struct view payload_of(uint32_t id, uint8_t *buf)
{
	memset(buf, (int)(id & 0xFF), 4);
	return (struct view){buf, 4};
}

static void queue(struct world *w)
{
	uint8_t buf[4];
	bool has_room = reliable_can_queue(&w->r);
	int err = reliable_queue(&w->r, OPCODE_CONTROL_V1, payload_of(w->queued, buf));
	expect(has_room == (err == 0));
	if (has_room)
		w->queued++;
}

static void send_all(struct world *w)
{
	struct reliable_message m;
	unsigned n = 0;
	while (reliable_next(&w->r, w->now_ms, &m)) {
		expect(m.id < w->queued && w->queued - m.id <= RELIABLE_SEND_WINDOW);
		expect(m.payload.len == 4 && m.payload.data[0] == (uint8_t)m.id);
		expect(++n <= RELIABLE_SEND_WINDOW);
	}
	expect(reliable_deadline(&w->r) > w->now_ms);
}

static void receive(struct world *w, uint32_t id)
{
	uint8_t buf[4];
	bool is_taken = reliable_receive(&w->r, id, payload_of(id, buf));
	expect(is_taken == (id < w->delivered + RELIABLE_RECV_WINDOW));
}

static void deliver(struct world *w)
{
	struct view v;
	while (reliable_peek(&w->r, &v)) {
		expect(v.len == 4 && v.data[0] == (uint8_t)w->delivered);
		reliable_consume(&w->r);
		w->delivered++;
	}
}

static void take_acks(struct world *w, size_t max)
{
	uint32_t acks[ACK_MAX];
	size_t n = reliable_take_acks(&w->r, max, acks);
	expect(n <= ACK_MAX);
	for (size_t i = 0; i < n; i++) {
		expect(acks[i] < w->delivered + RELIABLE_RECV_WINDOW);
		for (size_t j = 0; j < i; j++)
			expect(acks[i] != acks[j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader in = reader_init(data, len);
	struct world w = {0};
	reliable_init(&w.r, 0, 0, 2000);
	while (reader_left(&in) >= 2) {
		uint8_t op = reader_u8(&in), arg = reader_u8(&in);
		switch (op % 8) {
		case 0:
			queue(&w);
			break;
		case 1:
			send_all(&w);
			break;
		case 2:
			reliable_acked(&w.r, w.queued - arg, w.now_ms);
			break;
		case 3:
			receive(&w, w.delivered + arg % 16);
			break;
		case 4:
			receive(&w, reader_u32(&in) >> (arg % 32));
			break;
		case 5:
			deliver(&w);
			break;
		case 6:
			take_acks(&w, arg % (ACK_MAX + 1));
			break;
		case 7:
			w.now_ms += (uint64_t)arg * 100;
			break;
		}
	}
	reliable_fini(&w.r);
	return 0;
}
