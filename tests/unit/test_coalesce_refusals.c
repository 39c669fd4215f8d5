/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/support/lot.h"

/* The second of three segments differs from what would follow the first: `at` of the packet, from
 * the front or from the transport header on, is changed by exclusive or. */
struct change {
	const char *what;
	enum { FROM_IP, FROM_TRANSPORT } from;
	uint8_t at, by;
	bool keeps_sums; /* the checksums are not made right again */
};

static void check_changes(const struct made_packet *flow, const struct change *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < 3; j++) {
			struct made_packet m = lot_nth(flow, j);
			uint8_t packet[LOT_PACKET_MAX];
			uint32_t len = made_write(&m, packet);
			if (j == 1) {
				uint32_t from =
					rows[i].from == FROM_IP ? 0 : made_transport_at(packet);
				packet[from + rows[i].at] ^= rows[i].by;
				if (!rows[i].keeps_sums)
					made_finish(packet, len);
			}
			lot_add_bytes(&l, packet, len);
		}
		unsigned frames = lot_coalesce(&l, LOT_OFFLOADS);
		if (frames != 3 || l.items[0].next != COALESCE_NONE)
			fail_msg("%s: %u frames", rows[i].what, frames);
		lot_fini(&l);
	}
}

static void tcp_segment_that_differs_is_not_merged(void **state)
{
	(void)state;
	static const struct change ip4[] = {
		{"type of service", FROM_IP, 1, 4, false},
		{"ECN", FROM_IP, 1, 1, false},
		{"id", FROM_IP, 4, 1, false},
		{"reserved bit", FROM_IP, 6, 0x80, false},
		{"DF", FROM_IP, 6, 0x40, false},
		{"more fragments", FROM_IP, 6, 0x20, false},
		{"fragment offset", FROM_IP, 7, 1, false},
		{"time to live", FROM_IP, 8, 1, false},
		{"IPv4 checksum", FROM_IP, 10, 1, true},
		{"total length", FROM_IP, 3, 1, true},
	};
	static const struct change ip6[] = {
		{"traffic class", FROM_IP, 0, 1, false},
		{"flow label", FROM_IP, 3, 1, false},
		{"payload length", FROM_IP, 5, 1, true},
		{"hop limit", FROM_IP, 7, 1, false},
	};
	static const struct change tcp[] = {
		{"sequence", FROM_TRANSPORT, 7, 1, false},
		{"acknowledged", FROM_TRANSPORT, 11, 1, false},
		{"header length", FROM_TRANSPORT, 12, 0x10, true},
		{"reserved bits", FROM_TRANSPORT, 12, 1, false},
		{"FIN", FROM_TRANSPORT, 13, FLAG_FIN, false},
		{"SYN", FROM_TRANSPORT, 13, FLAG_SYN, false},
		{"RST", FROM_TRANSPORT, 13, 0x04, false},
		{"no ACK", FROM_TRANSPORT, 13, FLAG_ACK, false},
		{"URG", FROM_TRANSPORT, 13, 0x20, false},
		{"ECE", FROM_TRANSPORT, 13, 0x40, false},
		{"CWR", FROM_TRANSPORT, 13, 0x80, false},
		{"window", FROM_TRANSPORT, 15, 1, false},
		{"checksum", FROM_TRANSPORT, 17, 1, true},
		{"urgent pointer", FROM_TRANSPORT, 19, 1, false},
		{"timestamp", FROM_TRANSPORT, 27, 1, false},
		{"payload", FROM_TRANSPORT, 40, 1, true},
	};
	struct made_packet flow = {.flags = FLAG_ACK, .option = 3, .payload_len = 100, .id = 40};

	check_changes(&flow, ip4, COUNT_OF(ip4));
	check_changes(&flow, tcp, COUNT_OF(tcp));
	flow.is_ipv6 = true;
	check_changes(&flow, ip6, COUNT_OF(ip6));
	check_changes(&flow, tcp, COUNT_OF(tcp));
}

static void udp_datagram_that_differs_is_not_merged(void **state)
{
	(void)state;
	static const struct change rows[] = {
		{"time to live", FROM_IP, 8, 1, false},
		{"id", FROM_IP, 5, 4, false},
		{"length", FROM_TRANSPORT, 5, 1, true},
		{"checksum", FROM_TRANSPORT, 6, 1, true},
		{"payload", FROM_TRANSPORT, 9, 0x80, true},
	};
	static const struct change rows6[] = {
		{"flow label", FROM_IP, 2, 1, false},
		{"payload", FROM_TRANSPORT, 8, 1, true},
	};
	struct made_packet flow = {.is_udp = true, .payload_len = 100, .id = 40};

	check_changes(&flow, rows, COUNT_OF(rows));
	flow.is_ipv6 = true;
	check_changes(&flow, rows6, COUNT_OF(rows6));
}

/* Packets of one flow, and into which frames they go: a number for each. */
struct row {
	const char *what;
	struct made_packet packets[6];
	uint8_t frames[6];
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lot l = {0};
		unsigned last = 0;
		for (unsigned j = 0; j < 6 && rows[i].frames[j]; j++) {
			lot_add(&l, &rows[i].packets[j]);
			last = rows[i].frames[j] > last ? rows[i].frames[j] : last;
		}
		unsigned frames = lot_coalesce(&l, LOT_OFFLOADS);
		if (frames != last)
			fail_msg("%s: %u frames", rows[i].what, frames);
		for (unsigned j = 1; j < l.count; j++) {
			bool is_joined = rows[i].frames[j] == rows[i].frames[j - 1];
			if ((l.items[j - 1].next == j) != is_joined)
				fail_msg("%s: packet %u", rows[i].what, j);
		}
		lot_fini(&l);
	}
}

static void chain_ends_where_the_split_would(void **state)
{
	(void)state;
#define TCP(s, len, f)                                                                             \
	{                                                                                          \
		.flags = (f), .seq = (s), .payload_len = (len), .is_ipv6 = true                    \
	}
#define UDP(i, len)                                                                                \
	{                                                                                          \
		.is_udp = true, .payload_len = (len), .id = (i), .seq = (i)*9                      \
	}
	static const struct row rows[] = {
		{"PSH closes", {TCP(0, 9, 0x10), TCP(9, 9, 0x18), TCP(18, 9, 0x10)}, {1, 1, 2}},
		{"PSH alone", {TCP(0, 9, 0x18), TCP(9, 9, 0x10), TCP(18, 9, 0x18)}, {1, 2, 2}},
		{"shorter closes", {TCP(0, 9, 0x10), TCP(9, 8, 0x10), TCP(17, 8, 0x10)}, {1, 1, 2}},
		{"longer begins", {TCP(0, 8, 0x10), TCP(8, 9, 0x10), TCP(17, 9, 0x10)}, {1, 2, 2}},
		{"repeated", {TCP(0, 9, 0x10), TCP(0, 9, 0x10), TCP(9, 9, 0x10)}, {1, 2, 2}},
		{"reordered", {TCP(9, 9, 0x10), TCP(0, 9, 0x10), TCP(18, 9, 0x10)}, {1, 2, 3}},
		{"no payload", {TCP(0, 9, 0x10), TCP(9, 0, 0x10), TCP(9, 9, 0x10)}, {1, 2, 3}},
		{"only ACKs", {TCP(0, 0, 0x10), TCP(0, 0, 0x10), TCP(0, 0, 0x10)}, {1, 2, 3}},
		{"FIN", {TCP(0, 9, 0x10), TCP(9, 9, 0x11), TCP(19, 9, 0x10)}, {1, 2, 3}},
		{"UDP shorter", {UDP(1, 9), UDP(2, 9), UDP(3, 8), UDP(4, 8)}, {1, 1, 1, 2}},
		{"UDP longer", {UDP(1, 9), UDP(2, 10), UDP(3, 10)}, {1, 2, 2}},
		{"UDP empty", {UDP(1, 0), UDP(2, 0), UDP(3, 9), UDP(4, 9)}, {1, 2, 3, 3}},
		{"ids stand still", {UDP(1, 9), UDP(1, 9), UDP(1, 9)}, {1, 2, 3}},
		{"ids jump", {UDP(1, 9), UDP(2, 9), UDP(4, 9), UDP(5, 9)}, {1, 1, 2, 2}},
		{"ids wrap", {UDP(65535, 9), UDP(0, 9), UDP(1, 9)}, {1, 1, 1}},
	};
#undef TCP
#undef UDP
	check_rows(rows, COUNT_OF(rows));
}

/* Fragments and options hide the ports; so does a cut or another protocol. Only flows between the
 * same addresses end there. */
static void packet_without_ports_is_not_overtaken(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		struct made_packet m;
		uint8_t at, by, cut;
		bool is_ended;
	} rows[] = {
		{"fragment", {.is_udp = true, .payload_len = 1}, 6, 0x20, 0, true},
		{"later fragment", {.is_udp = true, .payload_len = 1, .port = 5}, 7, 1, 0, true},
		{"options", {.is_udp = true, .payload_len = 1, .ip_options_len = 8}, 0, 0, 0, true},
		{"cut", {.is_udp = true, .payload_len = 1}, 0, 0, 1, true},
		{"ICMP", {.is_udp = true, .payload_len = 1}, 9, 17 ^ 1, 0, true},
		{"other port", {.is_udp = true, .payload_len = 1, .port = 5}, 0, 0, 0, false},
		{"fragment of others", {.is_udp = true, .payload_len = 1}, 6, 0x20, 0, false},
		{"IPv6", {.is_udp = true, .payload_len = 1, .is_ipv6 = true}, 0, 0, 0, false},
		{"IPv6 options",
		 {.is_udp = true, .is_ipv6 = true, .ip_options_len = 8},
		 0,
		 0,
		 0,
		 false},
		{"one byte", {.is_udp = true}, 0, 0, 27, false},
		{"nothing", {.is_udp = true}, 0, 0, 28, false},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct made_packet flow = {.is_udp = true, .payload_len = 1};
		struct lot l = {0};
		uint8_t packet[LOT_PACKET_MAX];
		for (unsigned j = 0; j < 5; j++) {
			struct made_packet m = lot_nth(&flow, j - (j > 2));
			uint32_t len = made_write(j == 2 ? &rows[i].m : &m, packet);
			if (j == 2) {
				packet[rows[i].at] ^= rows[i].by;
				packet[15] ^= strstr(rows[i].what, "others") ? 1 : 0;
				len -= rows[i].cut;
			}
			lot_add_bytes(&l, packet, len);
		}
		if (lot_coalesce(&l, LOT_OFFLOADS) != (rows[i].is_ended ? 3 : 2))
			fail_msg("%s", rows[i].what);
		lot_fini(&l);
	}
}

/* One of both forms of zero is written by the split; the other does not come back. */
static void other_form_of_a_checksum_is_not_merged(void **state)
{
	(void)state;
	enum { UDP_NONE, TCP_ZERO, IPV4_ONES, ROWS };

	for (int row = 0; row < ROWS; row++) {
		struct made_packet flow = {
			.is_udp = row == UDP_NONE, .flags = FLAG_ACK, .payload_len = 40, .id = 1};
		struct lot l = {0};
		uint8_t packet[LOT_PACKET_MAX];
		for (unsigned i = 0; i < 2; i++) {
			struct made_packet m = lot_nth(&flow, i);
			uint32_t len = made_write(&m, packet);
			if (i == 1 && row == UDP_NONE) {
				made_put16(packet + 26, 0);
			} else if (i == 1 && row == TCP_ZERO) {
				packet[50] = packet[51] = 0;
				made_finish(packet, len);
				made_put16(packet + 50, made_get16(packet + 36));
				made_put16(packet + 36, 0);
				assert_true(made_is_right(packet, len));
			} else if (row == IPV4_ONES) {
				/* Time to live and addresses as they must be for this sum. */
				made_put16(packet + 18, 0);
				made_finish(packet, len);
				made_put16(packet + 18, made_get16(packet + 10) - (i == 0));
				made_finish(packet, len);
				if (i == 1)
					made_put16(packet + 10, 0xffff);
				assert_true(made_is_right(packet, len));
			}
			lot_add_bytes(&l, packet, len);
		}
		assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 2);
		lot_fini(&l);
	}
}

static void first_segment_with_a_bad_checksum_stands_alone(void **state)
{
	(void)state;
	struct made_packet flow = {.flags = FLAG_ACK, .payload_len = 40};
	struct lot l = {0};

	for (unsigned i = 0; i < 4; i++) {
		struct made_packet m = lot_nth(&flow, i);
		uint8_t packet[LOT_PACKET_MAX];
		uint32_t len = made_write(&m, packet);
		packet[len - 1] ^= i == 0;
		lot_add_bytes(&l, packet, len);
	}
	assert_int_equal(lot_coalesce(&l, LOT_OFFLOADS), 2);
	assert_int_equal(l.items[0].next, COALESCE_NONE);
	lot_fini(&l);
}

/* All packets of a flow have the same fault, so that they do not differ. */
static void flow_of_a_shape_that_the_split_does_not_have_is_not_merged(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		struct made_packet flow;
		uint8_t at, by;
		int more; /* bytes behind the packet, or cut off */
	} rows[] = {
		{"TCP header of 16", {.flags = FLAG_ACK, .payload_len = 40}, 32, 0x10, 0},
		{"TCP header of 0", {.flags = FLAG_ACK, .payload_len = 40}, 32, 0x50, 0},
		{"TCP header too long", {.flags = FLAG_ACK, .payload_len = 8}, 32, 0xa0, 0},
		{"UDP shorter than IP", {.is_udp = true, .payload_len = 40}, 25, 48 ^ 40, 0},
		{"UDP longer than IP", {.is_udp = true, .payload_len = 40}, 25, 48 ^ 50, 0},
		{"UDP-Lite", {.is_udp = true, .payload_len = 40}, 9, 17 ^ 136, 0},
		{"padding", {.flags = FLAG_ACK, .payload_len = 3}, 0, 0, 3},
		{"padding of IPv6",
		 {.is_ipv6 = true, .flags = FLAG_ACK, .payload_len = 3},
		 0,
		 0,
		 1},
		{"cut", {.flags = FLAG_ACK, .payload_len = 40}, 0, 0, -1},
		{"no options", {.is_udp = true, .ip_options_len = 4, .payload_len = 9}, 0, 0, 0},
		{"TCP of 19", {.flags = FLAG_ACK}, 3, 40 ^ 39, -1},
		{"TCP of 8", {.flags = FLAG_ACK}, 3, 40 ^ 28, -12},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lot l = {0};
		for (unsigned j = 0; j < 3; j++) {
			struct made_packet m = lot_nth(&rows[i].flow, j);
			uint8_t packet[LOT_PACKET_MAX] = {0};
			uint32_t len = made_write(&m, packet);
			packet[rows[i].at] ^= rows[i].by;
			made_finish(packet, len);
			lot_add_bytes(&l, packet, (uint32_t)((int)len + rows[i].more));
		}
		if (lot_coalesce(&l, LOT_OFFLOADS) != 3)
			fail_msg("%s", rows[i].what);
		lot_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_segment_that_differs_is_not_merged),
		cmocka_unit_test(udp_datagram_that_differs_is_not_merged),
		cmocka_unit_test(chain_ends_where_the_split_would),
		cmocka_unit_test(packet_without_ports_is_not_overtaken),
		cmocka_unit_test(other_form_of_a_checksum_is_not_merged),
		cmocka_unit_test(first_segment_with_a_bad_checksum_stands_alone),
		cmocka_unit_test(flow_of_a_shape_that_the_split_does_not_have_is_not_merged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
