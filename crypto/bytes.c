/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/bytes.h"

#include <assert.h>
#include <string.h>

struct reader reader_init(const void *data, size_t len)
{
	const uint8_t *p = data;
	/* NULL with no bytes is a fair input, and NULL + 0 is not fair C. */
	return (struct reader){.pos = p, .end = len ? p + len : p};
}

struct reader reader_of(struct view v)
{
	return reader_init(v.data, v.len);
}

/* The next `n` bytes, or NULL and the reader is failed, at its end. */
static const uint8_t *take(struct reader *r, size_t n)
{
	if (r->is_failed || n > (size_t)(r->end - r->pos)) {
		r->is_failed = true;
		r->pos = r->end;
		return NULL;
	}
	const uint8_t *p = r->pos;
	if (n)
		r->pos += n;
	return p;
}

static uint64_t take_uint(struct reader *r, size_t n)
{
	const uint8_t *p = take(r, n);
	uint64_t v = 0;
	for (size_t i = 0; p && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

uint8_t reader_u8(struct reader *r)
{
	return (uint8_t)take_uint(r, 1);
}

uint16_t reader_u16(struct reader *r)
{
	return (uint16_t)take_uint(r, 2);
}

uint32_t reader_u32(struct reader *r)
{
	return (uint32_t)take_uint(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
	return take_uint(r, 8);
}

struct view reader_bytes(struct reader *r, size_t n)
{
	const uint8_t *p = take(r, n);
	return p ? (struct view){p, n} : (struct view){r->end, 0};
}

void reader_copy(struct reader *r, void *out, size_t n)
{
	const uint8_t *p = take(r, n);
	if (n == 0)
		return;
	if (p)
		memcpy(out, p, n);
	else
		memset(out, 0, n);
}

struct reader reader_sub(struct reader *r, size_t n)
{
	struct view v = reader_bytes(r, n);
	struct reader sub = reader_of(v);
	sub.is_failed = r->is_failed;
	return sub;
}

struct view reader_rest(struct reader *r)
{
	return reader_bytes(r, reader_left(r));
}

size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->pos);
}

bool reader_ok(const struct reader *r)
{
	return !r->is_failed;
}

bool reader_done(const struct reader *r)
{
	return !r->is_failed && r->pos == r->end;
}

struct writer writer_init(void *buf, size_t cap)
{
	uint8_t *p = buf;
	return (struct writer){.start = p, .pos = p, .end = cap ? p + cap : p};
}

uint8_t *writer_reserve(struct writer *w, size_t n)
{
	if (w->is_failed || n > (size_t)(w->end - w->pos)) {
		w->is_failed = true;
		return NULL;
	}
	uint8_t *p = w->pos;
	if (n)
		w->pos += n;
	return p;
}

static void store_uint(uint8_t *p, size_t n, uint64_t v)
{
	for (size_t i = n; i-- > 0; v >>= 8)
		p[i] = (uint8_t)v;
}

static void put_uint(struct writer *w, size_t n, uint64_t v)
{
	uint8_t *p = writer_reserve(w, n);
	if (p)
		store_uint(p, n, v);
}

void writer_u8(struct writer *w, uint8_t v)
{
	put_uint(w, 1, v);
}

void writer_u16(struct writer *w, uint16_t v)
{
	put_uint(w, 2, v);
}

void writer_u32(struct writer *w, uint32_t v)
{
	put_uint(w, 4, v);
}

void writer_u64(struct writer *w, uint64_t v)
{
	put_uint(w, 8, v);
}

void writer_bytes(struct writer *w, const void *data, size_t len)
{
	uint8_t *p = writer_reserve(w, len);
	if (p && len)
		memcpy(p, data, len);
}

void writer_view(struct writer *w, struct view v)
{
	writer_bytes(w, v.data, v.len);
}

size_t writer_reserve_u16(struct writer *w)
{
	size_t offset = writer_len(w);
	writer_u16(w, 0);
	return offset;
}

void writer_set_u16(struct writer *w, size_t offset, uint16_t v)
{
	if (w->is_failed)
		return;
	assert(offset <= writer_len(w) && writer_len(w) - offset >= 2);
	store_uint(w->start + offset, 2, v);
}

size_t writer_len(const struct writer *w)
{
	return (size_t)(w->pos - w->start);
}

size_t writer_left(const struct writer *w)
{
	return (size_t)(w->end - w->pos);
}

bool writer_ok(const struct writer *w)
{
	return !w->is_failed;
}

struct view writer_done(const struct writer *w)
{
	return (struct view){w->start, writer_len(w)};
}
