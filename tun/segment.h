/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_SEGMENT_H
#define TUN_SEGMENT_H

/* What a tun queue hands over, as packets: a super-packet (TSO, USO) is split, and checksums that
 * the kernel left to the device are finished. A frame is a struct virtio_net_hdr (VIRTIO_LEN bytes,
 * host order) and an IP packet behind it. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/drop.h"

#define VIRTIO_LEN 10 /* of the header in front of each packet of a tun queue, both ways */

/* A parsed frame. Points into it; plain value. */
struct super_packet {
	uint8_t *packet; /* the IP header, inside the frame */
	uint32_t len;	 /* of the packet, headers included */
	/* Of a super-packet (count > 1) only: */
	uint32_t header_len;  /* IP, extension headers, TCP or UDP: in front of each segment */
	uint32_t payload_len; /* of each segment but the last, which is shorter or equal */
	unsigned count;	      /* segments; 1: the packet goes as it is */
	uint32_t ip_len;      /* offset of the TCP or UDP header */
	/* Folded sums of the headers, without what is the segment's own: for the split alone. */
	uint16_t ip_sum, transport_sum;
	bool is_tcp;
	bool is_ipv6; /* of any packet */
};

/* Look at a frame of `len` bytes. The headers are parsed, since hdr_len is not to be believed. A
 * packet of one segment gets its checksum finished in place. A super-packet whose payload fits one
 * segment is a packet of one. DROP_BAD_IP: shorter than what it says, a gso_type that was not
 * asked for, or headers that the header in front contradicts; the frame is as it was, and `out`
 * means nothing. Bytes behind the packet's end are left out. */
enum drop super_packet_parse(uint8_t *frame, uint32_t len, struct super_packet *out);

/* Bytes of segment `i` (below count), headers included. */
uint32_t super_packet_segment_len(const struct super_packet *s, unsigned i);

/* Write segments first..first+n-1 of a super-packet as whole packets: segment first+j to
 * `out + j * stride`, with lengths, IPv4 id and checksum, TCP sequence and flags (FIN and PSH on
 * the last only, CWR on the first only) or UDP length, and its own checksum. `out` does not overlap
 * the frame; stride is at least header_len + payload_len. */
void super_packet_split(const struct super_packet *s, unsigned first, unsigned n, uint8_t *out,
			uint32_t stride);

#endif
