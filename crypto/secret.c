/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/secret.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_LEAK_CHECK
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(HAVE_LEAK_CHECK)
#include <sanitizer/lsan_interface.h>
/* The leak checker does not look into mapped pages for pointers unless told. */
static void announce(void *p, size_t len)
{
	__lsan_register_root_region(p, len);
}

static void renounce(void *p, size_t len)
{
	__lsan_unregister_root_region(p, len);
}
#else
static void announce(void *p, size_t len)
{
	(void)p;
	(void)len;
}

static void renounce(void *p, size_t len)
{
	(void)p;
	(void)len;
}
#endif

void secret_wipe(void *p, size_t len)
{
	if (len)
		OPENSSL_cleanse(p, len);
}

bool secret_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

int secret_random(void *out, size_t len)
{
	if (len > INT_MAX || RAND_bytes(out, (int)len) != 1) {
		ERR_clear_error();
		return -EIO;
	}
	return 0;
}

void *secret_alloc(size_t len)
{
	if (len == 0)
		return NULL;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, len, MADV_DONTDUMP) != 0) {
		munmap(p, len);
		return NULL;
	}
	announce(p, len);
	return p;
}

void secret_free(void *p, size_t len)
{
	if (!p)
		return;
	secret_wipe(p, len);
	renounce(p, len);
	munmap(p, len);
}

void secret_scope_end(const struct secret_scope *s)
{
	secret_wipe(s->data, s->len);
}

/* SipHash-2-4 as in the paper of Aumasson and Bernstein. */
struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 = rotl(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	sip_round(s);
	sip_round(s);
	s->v0 ^= m;
}

static uint64_t load_le64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint64_t load_le32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* 0 to 7 bytes, little endian, zeros above. By loads of fixed sizes that overlap: a copy of
 * variable length would cost more than the hash. */
static uint64_t load_le_tail(const uint8_t *p, size_t len)
{
	if (len >= 4)
		return load_le32(p) | load_le32(p + len - 4) << 8 * (len - 4);
	if (len == 0)
		return 0;
	return p[0] | (uint64_t)p[len / 2] << 8 * (len / 2) | (uint64_t)p[len - 1] << 8 * (len - 1);
}

uint64_t secret_siphash(const uint8_t key[16], const void *data, size_t len)
{
	uint64_t k0 = load_le64(key), k1 = load_le64(key + 8);
	struct sip s = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
			k1 ^ 0x7465646279746573};
	const uint8_t *p = data;
	size_t left = len;
	for (; left >= 8; left -= 8, p += 8)
		sip_word(&s, load_le64(p));
	sip_word(&s, (uint64_t)len << 56 | load_le_tail(p, left));
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
