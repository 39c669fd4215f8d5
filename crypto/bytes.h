/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_BYTES_H
#define CRYPTO_BYTES_H

/* crypto/: bytes <-> authenticated plaintext. No descriptor, no clock, no log, and no allocation
 * after setup. This header is the only way in which bytes from outside are read or written.
 *
 * A reader that once ran out of bytes stays failed and yields zeros, so that a parser asks
 * once, at its end. A writer that once ran out of room stays failed and writes nothing more. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read-only look at `len` bytes that somebody else owns. */
struct view {
	const uint8_t *data;
	size_t len;
};

struct reader {
	const uint8_t *pos;
	const uint8_t *end;
	bool is_failed;
};

struct writer {
	uint8_t *start;
	uint8_t *pos;
	uint8_t *end;
	bool is_failed;
};

/* Start to read `len` bytes at `data`; the bytes stay the caller's and must outlive the reader. */
struct reader reader_init(const void *data, size_t len);
struct reader reader_of(struct view v);

/* Next integer in network order; 0 if fewer bytes are left, and the reader is failed. */
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* The next `n` bytes, as a view into the input; an empty view if fewer are left. */
struct view reader_bytes(struct reader *r, size_t n);
/* Copy the next `n` bytes to `out`; zeros if fewer are left. */
void reader_copy(struct reader *r, void *out, size_t n);
/* A reader over the next `n` bytes. The caller checks it with reader_done. */
struct reader reader_sub(struct reader *r, size_t n);
/* All bytes that are left. */
struct view reader_rest(struct reader *r);

/* Count of bytes that are left; 0 once a read failed. */
size_t reader_left(const struct reader *r);
/* No read failed so far. */
bool reader_ok(const struct reader *r);
/* No read failed, and nothing is left. */
bool reader_done(const struct reader *r);

/* Start to write at `buf`, at most `cap` bytes; the buffer stays the caller's. */
struct writer writer_init(void *buf, size_t cap);
void writer_u8(struct writer *w, uint8_t v);
void writer_u16(struct writer *w, uint16_t v);
void writer_u32(struct writer *w, uint32_t v);
void writer_u64(struct writer *w, uint64_t v);
void writer_bytes(struct writer *w, const void *data, size_t len);
void writer_view(struct writer *w, struct view v);
/* Leave `n` bytes to be filled by the caller; NULL if there is no room. */
uint8_t *writer_reserve(struct writer *w, size_t n);
/* A u16 that is known later: returns its offset, to be given to writer_set_u16. */
size_t writer_reserve_u16(struct writer *w);
void writer_set_u16(struct writer *w, size_t offset, uint16_t v);
/* Bytes written so far. */
size_t writer_len(const struct writer *w);
size_t writer_left(const struct writer *w);
bool writer_ok(const struct writer *w);
/* What was written so far, as a view into the buffer. */
struct view writer_done(const struct writer *w);

#endif
