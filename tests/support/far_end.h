/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_FAR_END_H
#define TESTS_SUPPORT_FAR_END_H

/* The far ends of a worker, for tests that play them: clients with their sockets and keys, and the
 * kernel behind the tun queue. What goes wrong here fails the test. */

#include <stddef.h>
#include <stdint.h>

#include "config/addr.h"
#include "crypto/data_key.h"

#define INNER_LEN 28   /* of inner_packet */
#define SEAL_ROOM 2048 /* for seal_text */

/* A client's key of one generation. */
struct client_key {
	struct data_key key;
	struct aead_schedule seal, open;
};

/* A UDP socket on loopback, port chosen by the kernel. */
int udp_socket(void);
/* Where `fd` is bound. */
struct link_addr address_of(int fd);
/* One datagram or packet within timeout_ms; its length, 0 if none came. */
size_t receive(int fd, uint8_t *out, size_t cap, int timeout_ms);
/* A packet as the tun queue has it, with an empty virtio header in front, which `receive_frame`
 * takes off again. The kernel's end of the queue is `fd`. */
void send_frame(int fd, const void *packet, size_t len);
size_t receive_frame(int fd, uint8_t *out, size_t cap, int timeout_ms);

/* The inner address of the client with this peer-id, 10.8.0.0 + peer_id. */
struct ip_addr virtual_of(uint32_t peer_id);
/* An IPv4 packet between two of those, with `mark` at its end. */
void inner_packet(uint8_t out[INNER_LEN], uint32_t from, uint32_t to, uint8_t mark);

/* The other side of a server's key: directions exchanged. */
struct client_key *client_key(struct aead *a, uint32_t peer_id,
			      const struct data_key_material *server);
void free_key(struct aead *a, struct client_key *k);
/* The datagram that carries `len` bytes of `text`, at the start of `room`; returns its length. */
size_t seal_text(struct aead *a, struct client_key *k, const void *text, size_t len,
		 uint8_t room[SEAL_ROOM]);

#endif
