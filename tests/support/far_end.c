/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/support/far_end.h"

#include "tun/segment.h"

int udp_socket(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	return fd;
}

struct link_addr address_of(int fd)
{
	struct link_addr l = {0};
	socklen_t len = sizeof(l.remote);
	assert_int_equal(getsockname(fd, &l.remote.sa, &len), 0);
	return l;
}

size_t receive(int fd, uint8_t *out, size_t cap, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, timeout_ms) != 1)
		return 0;
	ssize_t n = recv(fd, out, cap, 0);
	return n > 0 ? (size_t)n : 0;
}

void send_frame(int fd, const void *packet, size_t len)
{
	uint8_t frame[VIRTIO_LEN + 2048] = {0};
	assert_true(len <= sizeof(frame) - VIRTIO_LEN);
	memcpy(frame + VIRTIO_LEN, packet, len);
	assert_int_equal(send(fd, frame, VIRTIO_LEN + len, 0), VIRTIO_LEN + len);
}

size_t receive_frame(int fd, uint8_t *out, size_t cap, int timeout_ms)
{
	static const uint8_t none[VIRTIO_LEN];
	uint8_t frame[VIRTIO_LEN + 2048];
	size_t n = receive(fd, frame, sizeof(frame), timeout_ms);
	if (n < VIRTIO_LEN)
		return 0;
	assert_memory_equal(frame, none, VIRTIO_LEN);
	assert_true(n - VIRTIO_LEN <= cap);
	memcpy(out, frame + VIRTIO_LEN, n - VIRTIO_LEN);
	return n - VIRTIO_LEN;
}

struct ip_addr virtual_of(uint32_t peer_id)
{
	return ip_addr_from_be32(htonl(0x0a080000u + peer_id));
}

void inner_packet(uint8_t out[INNER_LEN], uint32_t from, uint32_t to, uint8_t mark)
{
	struct ip_addr s = virtual_of(from), d = virtual_of(to);
	memset(out, 0, INNER_LEN);
	out[0] = 0x45;
	out[3] = INNER_LEN;
	out[8] = 64;
	out[9] = 17;
	memcpy(out + 12, s.bytes, 4);
	memcpy(out + 16, d.bytes, 4);
	out[INNER_LEN - 1] = mark;
}

struct client_key *client_key(struct aead *a, uint32_t peer_id,
			      const struct data_key_material *server)
{
	struct data_key_material m = *server;
	struct data_key_options o = {.peer_id = peer_id, .replay_window = 64};
	struct client_key *k = aligned_alloc(64, (sizeof(*k) + 63) & ~(size_t)63);
	assert_non_null(k);
	memcpy(m.seal_key, server->open_key, sizeof(m.seal_key));
	memcpy(m.open_key, server->seal_key, sizeof(m.open_key));
	memcpy(m.seal_iv, server->open_iv, sizeof(m.seal_iv));
	memcpy(m.open_iv, server->seal_iv, sizeof(m.open_iv));
	assert_int_equal(data_key_init(&k->key, a, &m, &o, &k->seal, &k->open), 0);
	return k;
}

void free_key(struct aead *a, struct client_key *k)
{
	data_key_fini(&k->key, a);
	free(k);
}

size_t seal_text(struct aead *a, struct client_key *k, const void *text, size_t len,
		 uint8_t room[SEAL_ROOM])
{
	struct data_segment s = {.data = room + DATA_KEY_HEADROOM, .len = (uint32_t)len};
	assert_true(len <= SEAL_ROOM - DATA_KEY_HEADROOM - DATA_KEY_TAILROOM);
	memcpy(s.data, text, len);
	data_key_seal(&k->key, a, &s, 1);
	assert_int_equal(s.drop, DROP_NONE);
	memmove(room, s.data, s.len);
	return s.len;
}
