/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_BUFFER_H
#define WORKERS_BUFFER_H

/* workers/: the data channel. Everything here runs on, or is shared with, a worker.
 *
 * A thread of the data channel is named by its index: 0 is the acceptor, 1..N are the workers. The
 * same number is its socket's place in each reuseport group, its mailbox, and the home of its
 * buffers.
 *
 * This module: packet buffers with head and tail room, from pools of one thread, sized at start.
 * Every buffer has a home; whoever consumed it sends it home. A slice is a buffer that stands for a
 * part of a large one, whose storage is free when the last part was given back. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/addr.h"

/* Room in front of received bytes (headers of both sides) and behind them. */
#define BUFFER_HEADROOM 64
#define BUFFER_TAILROOM 64
#define BUFFER_SMALL	2048 /* storage of the small class, room included */
/* 17 pages less a cache line: the beginnings of many large buffers, which is all that single
 * packets use of them, must not share the few lines of a cache that have equal low address bits. */
#define BUFFER_LARGE  (17 * 4096 - 64)
#define BUFFER_SLICES 1024 /* of one pool of large buffers */

struct buffer {
	uint8_t *data;	      /* first valid byte */
	uint32_t len;	      /* valid bytes */
	uint32_t cap;	      /* storage bytes */
	uint8_t *storage;     /* fixed; of a slice: where its part begins */
	struct buffer *next;  /* in a list, chain or queue: the field of whoever holds the buffer */
	struct buffer *whole; /* of a slice: what it is a part of; else NULL */
	struct buffer_pool *pool; /* where it goes back to, on its home thread */
	uint16_t home;		  /* thread index */
	uint16_t id;		  /* index in its pool */
	uint16_t parts;		  /* how many buffers stand on this storage: itself, and slices */
	uint16_t gso_size; /* 0, or the length of each datagram in it (or in the chain) but the last
			    */
	bool is_frame;	   /* a super-packet of a tun queue, its virtio header in front */
	uint32_t queued_ms;    /* when it was queued for its peer, low bits of the worker's clock */
	uint32_t generation;   /* of the destination peer, when handed over for sealing */
	struct link_addr link; /* where a datagram came from, or goes to */
};

struct buffer_pool; /* one thread's buffers; only its thread takes and gives */

/* `count` buffers of `storage` bytes each (BUFFER_SMALL or BUFFER_LARGE), home = `home`; memory is
 * one mapping, touched when first used. Only a pool of large ones has slices. Returns 0 or -ENOMEM.
 */
__attribute__((warn_unused_result)) int buffer_pool_new(uint16_t home, uint32_t count,
							uint32_t storage, struct buffer_pool **out);
void buffer_pool_free(struct buffer_pool *p);
/* Last in, first out, so that the hot set stays in the cache. NULL if empty (a counted drop). The
 * data pointer stands behind BUFFER_HEADROOM and len is 0. */
struct buffer *buffer_take(struct buffer_pool *p);
/* A part of `whole`, a buffer of this pool that is no slice: `len` bytes at `data`, with its link.
 * The room around it belongs to its neighbours. NULL if there is no slice left. */
struct buffer *buffer_slice(struct buffer_pool *p, struct buffer *whole, uint8_t *data,
			    uint32_t len);
/* Give back a buffer whose home is this pool. Its storage is free once its slices are given back,
 * too. */
void buffer_give(struct buffer_pool *p, struct buffer *b);
/* The buffer with index `id`, for engines that number them. */
struct buffer *buffer_at(struct buffer_pool *p, uint16_t id);
uint32_t buffer_pool_size(const struct buffer_pool *p);
uint32_t buffer_pool_free_count(const struct buffer_pool *p);
/* Most bytes that can be received into a fresh buffer of this pool. */
uint32_t buffer_pool_payload(const struct buffer_pool *p);
#define BUFFER_SMALL_PAYLOAD (BUFFER_SMALL - BUFFER_HEADROOM - BUFFER_TAILROOM)

/* Bytes of a chain. */
static inline uint32_t buffer_chain_len(const struct buffer *b)
{
	uint32_t len = 0;
	for (; b; b = b->next)
		len += b->len;
	return len;
}

/* Bytes in front of data, and behind its end; nothing of a slice is free for use. */
static inline uint32_t buffer_headroom(const struct buffer *b)
{
	return (uint32_t)(b->data - b->storage);
}

static inline uint32_t buffer_tailroom(const struct buffer *b)
{
	return b->cap - buffer_headroom(b) - b->len;
}

#endif
