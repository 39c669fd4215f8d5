/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_INNER_H
#define PERF_INNER_H

/* The inner packets that swarm and source make and recognise: IPv4 with UDP, TCP or an ICMP echo,
 * checksums right, a stamp at the start of the payload and zeros behind it. */

#include <stdbool.h>
#include <stdint.h>

#define INNER_PORT	 9 /* discard, on the far side of every flow */
#define INNER_PORT_FIRST 20000
#define INNER_STAMP_LEN	 16
#define INNER_IP_LEN	 20
#define INNER_UDP_LEN	 28 /* IP and UDP header */
#define INNER_TCP_LEN	 40
#define INNER_ICMP_LEN	 28
#define INNER_PROBE_MIN	 32 /* payload of an echo request: stamp and its time */
#define INNER_SIZE_MAX	 8900

enum inner_protocol { INNER_UDP, INNER_TCP };

/* Which packet of whose sequence: what losses are counted with. */
struct inner_stamp {
	uint32_t stream;
	uint64_t seq;
};

/* One flow, and what counts up in it. Plain value. */
struct inner_flow {
	enum inner_protocol protocol;
	uint32_t source_be32, target_be32;
	uint16_t source_port, target_port;
	uint16_t ip_id;
	uint32_t tcp_seq;
};

/* What a received packet is. */
enum inner_kind {
	INNER_OTHER,   /* not made by us */
	INNER_STAMPED, /* UDP or TCP: stamp and payload_len */
	INNER_ECHO,    /* answer to an echo request of ours: stamp and sent_ns */
};
struct inner_seen {
	enum inner_kind kind;
	struct inner_stamp stamp;
	uint32_t payload_len;
	uint64_t sent_ns;
};

static inline uint32_t inner_header_len(enum inner_protocol p)
{
	return p == INNER_TCP ? INNER_TCP_LEN : INNER_UDP_LEN;
}

/* INNER_STAMP_LEN bytes at the start of a payload, network order. */
void inner_stamp_write(const struct inner_stamp *s, uint8_t *out);
/* The next packet of `f`: inner_header_len + payload_len bytes. payload_len: INNER_STAMP_LEN to
 * INNER_SIZE_MAX. is_last: TCP gets PSH. */
void inner_write(struct inner_flow *f, const struct inner_stamp *s, uint32_t payload_len,
		 bool is_last, uint8_t *out);
/* The headers alone of a TCP super-packet of `payload_len` bytes in segments of `segment_len`, its
 * checksum left to the device (INNER_TCP_LEN bytes); `f` advances by all segments. */
void inner_write_super(struct inner_flow *f, uint32_t payload_len, uint32_t segment_len,
		       uint8_t *out);
/* An echo request: INNER_ICMP_LEN + payload_len bytes. payload_len: INNER_PROBE_MIN or more. */
void inner_write_probe(const struct inner_flow *f, const struct inner_stamp *s, uint64_t sent_ns,
		       uint32_t payload_len, uint8_t *out);
/* Look at a received packet; anything odd is INNER_OTHER. */
struct inner_seen inner_read(const uint8_t *packet, uint32_t len);

#endif
