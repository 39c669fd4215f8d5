/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_COALESCE_H
#define TUN_COALESCE_H

/* Packets of one batch as frames for a tun queue: consecutive TCP or UDP segments of a flow become
 * one super-packet, all else goes as it came. Nothing is kept between batches. In place: the first
 * segment keeps its headers, which then speak for all; the others only give their payload. */

#include <stdint.h>

#define COALESCE_BATCH 64
#define COALESCE_NONE  UINT8_MAX

/* What the tun device takes: bits of TUNSETOFFLOAD's argument, as tun.h probed them. */
enum tun_offload {
	TUN_OFFLOAD_TCP4 = 1 << 0,
	TUN_OFFLOAD_TCP6 = 1 << 1,
	TUN_OFFLOAD_ECN = 1 << 2, /* TCP segments with CWR */
	TUN_OFFLOAD_UDP = 1 << 3, /* both families */
};

/* One packet in, one piece of a frame out. */
struct coalesce_item {
	uint8_t *data; /* in: IP packet, VIRTIO_LEN writable bytes in front; out: piece to write */
	uint32_t len;
	uint8_t next;  /* out: the item whose piece follows in the same frame, or COALESCE_NONE */
	uint8_t first; /* out: the item that begins this one's frame; itself: it begins one */
};

/* Turn `n` (<= COALESCE_BATCH) packets into frames: an item that begins one starts with its
 * struct virtio_net_hdr, and the pieces of its chain follow. Frames are written in the order of
 * their first items; the order within a flow is kept. Merged only what is certain to be split
 * again into the same packets: equal headers but for what counts up (sequence, IPv4 id, lengths,
 * checksums), equal lengths but for a last shorter one, right checksums, plain ACK with PSH only
 * on the last, at most 64 segments and 65535 bytes. `offloads`: enum tun_offload; 0: nothing is
 * merged. Returns the number of frames. */
unsigned coalesce(struct coalesce_item *items, unsigned n, uint32_t offloads);

#endif
