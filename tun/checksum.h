/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_CHECKSUM_H
#define TUN_CHECKSUM_H

/* The internet checksum (RFC 1071): ones' complement sums of 16-bit words in network order, held as
 * host integers. Sums are added up as plain integers and folded at the end; a sum of anything but
 * zeros never folds to 0. A checksum field holds the complement of a sum. */

#include <stdint.h>
#include <string.h>

/* Bring a sum of words, or of folded sums, to 16 bits. */
static inline uint16_t checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* What `checksum` becomes when a word that it covers changes from `old` to `new` (RFC 1624,
 * equation 3). */
static inline uint16_t checksum_replace(uint16_t checksum, uint16_t old, uint16_t new)
{
	return (uint16_t)~checksum_fold((uint64_t)(uint16_t)~checksum + (uint16_t)~old + new);
}

/* Sum, not folded, of `n` 32-bit words at `p`: for headers of a length known to the compiler. */
static inline uint64_t checksum_words(const uint8_t *p, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t word;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&word, p + 4 * i, sizeof(word));
		sum += __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap32(word) : word;
	}
	return sum;
}

/* Folded sum of `len` bytes (at most 1 MiB) that begin at an even offset of what is summed up. An
 * odd last byte is the upper half of a word. Any alignment. */
uint16_t checksum_sum(const uint8_t *p, uint32_t len);

/* The same, and copy them to `to`, which does not overlap, in one pass. */
uint16_t checksum_copy(uint8_t *to, const uint8_t *from, uint32_t len);

#endif
