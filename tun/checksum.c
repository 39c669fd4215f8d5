/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/checksum.h"

#include <stddef.h>
#include <string.h>

/* How it is summed up: ones' complement sums do not mind the byte order (RFC 1071, section 2 (B)),
 * nor whether they are of 16 or of 32-bit words. So 64-bit lanes of the host's order are added up
 * modulo 2^64, and their upper halves once more by themselves; from both follows the sum of the
 * lower halves. That is three operations a vector, where widening each word costs more. */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Where the bytes come from and, unless NULL, go to. */
struct pass {
	const uint8_t *from;
	uint8_t *to;
	uint32_t len;
};

/* Take the next `n` bytes. */
ALWAYS_INLINE void take(struct pass *p, void *out, uint32_t n)
{
	memcpy(out, p->from, n);
	p->from += n;
	p->len -= n;
	if (p->to) {
		memcpy(p->to, out, n);
		p->to += n;
	}
}

/* The last bytes, fewer than fill a vector. */
ALWAYS_INLINE uint64_t sum_rest(struct pass *p, uint64_t sum)
{
	uint64_t lane;
	uint32_t dword;
	uint16_t word;
	uint8_t last[2] = {0};

	while (p->len >= sizeof(lane)) {
		take(p, &lane, sizeof(lane));
		sum += (lane & UINT32_MAX) + (lane >> 32);
	}
	if (p->len & sizeof(dword)) {
		take(p, &dword, sizeof(dword));
		sum += dword;
	}
	if (p->len & sizeof(word)) {
		take(p, &word, sizeof(word));
		sum += word;
	}
	if (p->len & 1) {
		take(p, last, 1);
		memcpy(&word, last, sizeof(word));
		sum += word;
	}
	return sum;
}

/* sum_lanesN: all of it, by vectors of N bytes. Of two accumulators neither waits for the other. */
#define SUM_LANES(N)                                                                               \
	typedef uint64_t lanes##N __attribute__((vector_size(N)));                                 \
                                                                                                   \
	ALWAYS_INLINE uint64_t sum_lanes##N(struct pass p)                                         \
	{                                                                                          \
		lanes##N v, all[2] = {{0}}, upper[2] = {{0}};                                      \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		while (p.len >= 2 * (N)) {                                                         \
			for (int i = 0; i < 2; i++) {                                              \
				take(&p, &v, (N));                                                 \
				all[i] += v;                                                       \
				upper[i] += v >> 32;                                               \
			}                                                                          \
		}                                                                                  \
		if (p.len >= (N)) {                                                                \
			take(&p, &v, (N));                                                         \
			all[0] += v;                                                               \
			upper[0] += v >> 32;                                                       \
		}                                                                                  \
		upper[0] += upper[1];                                                              \
		all[0] += all[1] - (upper[0] << 32) + upper[0];                                    \
		for (unsigned i = 0; i < (N) / sizeof(uint64_t); i++)                              \
			sum += all[0][i];                                                          \
		return sum_rest(&p, sum);                                                          \
	}

SUM_LANES(16)

#if defined(__x86_64__)

/* A branch that is always predicted stands in for target_clones, whose resolvers run before the
 * sanitizers are ready. */
SUM_LANES(32)
SUM_LANES(64)

__attribute__((target("avx2"))) static uint64_t sum_avx2(const uint8_t *p, uint32_t len)
{
	return sum_lanes32((struct pass){p, NULL, len});
}

__attribute__((target("avx2"))) static uint64_t copy_avx2(uint8_t *to, const uint8_t *p,
							  uint32_t len)
{
	return sum_lanes32((struct pass){p, to, len});
}

__attribute__((target("avx512f"))) static uint64_t sum_avx512(const uint8_t *p, uint32_t len)
{
	return sum_lanes64((struct pass){p, NULL, len});
}

__attribute__((target("avx512f"))) static uint64_t copy_avx512(uint8_t *to, const uint8_t *p,
							       uint32_t len)
{
	return sum_lanes64((struct pass){p, to, len});
}

static uint64_t sum_any(const uint8_t *p, uint32_t len)
{
	if (__builtin_cpu_supports("avx512f"))
		return sum_avx512(p, len);
	if (__builtin_cpu_supports("avx2"))
		return sum_avx2(p, len);
	return sum_lanes16((struct pass){p, NULL, len});
}

static uint64_t copy_any(uint8_t *to, const uint8_t *p, uint32_t len)
{
	if (__builtin_cpu_supports("avx512f"))
		return copy_avx512(to, p, len);
	if (__builtin_cpu_supports("avx2"))
		return copy_avx2(to, p, len);
	return sum_lanes16((struct pass){p, to, len});
}

#else

static uint64_t sum_any(const uint8_t *p, uint32_t len)
{
	return sum_lanes16((struct pass){p, NULL, len});
}

static uint64_t copy_any(uint8_t *to, const uint8_t *p, uint32_t len)
{
	return sum_lanes16((struct pass){p, to, len});
}

#endif

/* From the host's order to that of the network. */
static uint16_t in_order(uint64_t sum)
{
	uint16_t folded = checksum_fold(sum);
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(folded) : folded;
}

uint16_t checksum_sum(const uint8_t *p, uint32_t len)
{
	return in_order(sum_any(p, len));
}

uint16_t checksum_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	return in_order(copy_any(to, from, len));
}
