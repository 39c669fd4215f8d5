/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_IO_URING_ENGINE_H
#define WORKERS_IO_URING_ENGINE_H

/* The io_uring engine's state, and its entries into the kernel. Part of the io_uring engine. */

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "workers/io_engine.h"
#include "workers/io_uring_group.h"
#include "workers/udp.h"

#define URING_OUTS   512  /* sends and writes in flight */
#define URING_PIECES 1024 /* of those that are not submitted yet */

enum request { REQUEST_RECEIVE, REQUEST_READ, REQUEST_WAKE, REQUEST_OUT, REQUEST_CANCEL };

/* One socket. The buffer and the headers are of a single receive. */
struct source {
	bool is_armed;
	struct buffer *buffer;
	struct msghdr mh;
	struct iovec iov;
	union sockaddr_any name;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
};

/* A send or write, until its completion. The kernel has read the headers once it is submitted. */
struct out {
	struct buffer *chain; /* NULL: free */
	bool is_tun;
	struct msghdr mh;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_LEN];
};

struct uring {
	struct io io;
	struct io_uring ring;
	unsigned in_flight; /* requests that will complete yet */
	int error;	    /* why the engine cannot go on */
	bool is_starved;    /* something is not armed for want of buffers */
	struct io_batch ready;

	bool has_recv_multishot;
	struct msghdr multishot_mh;
	struct buffer_group datagrams;
	struct source sources[IO_SOCKETS_MAX];

	bool has_read_multishot;
	struct buffer_group packets;
	bool is_tun_armed;
	struct buffer *tun_buffer; /* of a single read */

	bool is_wake_armed;
	eventfd_t wake_count;

	struct out outs[URING_OUTS];
	uint16_t free_outs[URING_OUTS]; /* stack, so that few stay hot */
	unsigned free_out_count;
	struct iovec pieces[URING_PIECES];
	unsigned piece_count;

	uint32_t mean_datagram, mean_packet; /* bytes that a buffer brings */
};

/* Make the ring, with nothing in flight. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int uring_init(struct uring *e);
/* Hand over what is queued, without waiting; what the kernel does not take now stays queued. */
void uring_submit(struct uring *e);
/* Submit, and wait for `count` completions (for ever: UINT64_MAX; 0: only look). Returns 0, -ETIME,
 * or -errno if the ring is broken. */
__attribute__((warn_unused_result)) int uring_enter(struct uring *e, unsigned count,
						    uint64_t timeout_us);
/* An entry of the queue, submitting if it is full; NULL if it stays full. */
struct io_uring_sqe *uring_sqe(struct uring *e);
/* Say what the completion of a prepared request belongs to. */
void uring_name(struct uring *e, struct io_uring_sqe *sqe, enum request r, unsigned index);

#endif
