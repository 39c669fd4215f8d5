/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_UDP_H
#define WORKERS_UDP_H

/* Reuseport groups: one UDP socket per thread and listen address, and single datagrams with the
 * source address that the peer talked to. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/addr.h"
#include "config/config.h"

/* Room for one PKTINFO control message of either family, and UDP_SEGMENT or UDP_GRO. */
#define UDP_CONTROL_LEN 64

struct udp_group {
	union sockaddr_any local; /* as bound */
	bool has_pktinfo;	  /* wildcard bind: answers name the address the packet came to */
	unsigned count;		  /* sockets: acceptor first, then the workers */
	int fds[WORKERS_MAX + 1];
};

/* Open and bind 1 + worker_count sockets on `spec` (name resolution blocks: call before threads).
 * Sets SO_REUSEPORT, buffers, IPV6_V6ONLY, PKTINFO for wildcard binds. sndbuf, rcvbuf: bytes, 0
 * asks for 4 MiB. Port 0 takes a free one (out->local says which). EADDRINUSE is retried for a few
 * seconds, also if only sockets that share the port have it: they would shift the places in the
 * group. On failure `why` (256 bytes) says what to do. Steering is attached by the caller. */
__attribute__((warn_unused_result)) int udp_group_open(const struct listen_spec *spec,
						       unsigned worker_count, uint32_t sndbuf,
						       uint32_t rcvbuf, struct udp_group *out,
						       char *why, size_t why_len);
void udp_group_close(struct udp_group *g);
/* Let every socket of the group receive super-datagrams (UDP_GRO). Returns false where the kernel
 * has none. */
bool udp_group_merge(const struct udp_group *g);

/* Fill `mh` for sending to `l`: name, and PKTINFO into `control` (UDP_CONTROL_LEN bytes, aligned)
 * if has_pktinfo. iov is the caller's. */
void udp_msg_to(struct msghdr *mh, struct link_addr *l, bool has_pktinfo, void *control);
/* Have what `mh` sends split into datagrams of `gso_size` bytes (UDP_SEGMENT); after udp_msg_to,
 * with the same `control`. */
void udp_msg_segment(struct msghdr *mh, void *control, uint16_t gso_size);
/* Read name and control messages of a received `mh` into `l` (listener is left alone). Returns 0,
 * or the length of each datagram but the last in a super-datagram. */
uint16_t udp_msg_from(const struct msghdr *mh, struct link_addr *l);

/* Send one datagram now, MSG_DONTWAIT. Returns 0 or -errno. Thread: acceptor. */
int udp_send(int fd, const struct link_addr *l, bool has_pktinfo, const void *data, size_t len);

#endif
