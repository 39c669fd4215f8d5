/* SPDX-License-Identifier: Apache-2.0 */
/* The MSS clamp on rubbish: changes at most option values and the checksum, keeps the checksum's
 * error as it was, and changes nothing the second time. And what its sender would be told if it
 * were too big. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tun/ip.h"
#include "tun/too_big.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MSS4 1400
#define MSS6 1380

static uint32_t sum16(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff ? 0 : sum;
}

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

static void check_addresses(const uint8_t *data, uint32_t len)
{
	struct ip_addr source, destination;
	bool has_source = ip_source(data, len, &source);

	require(has_source == ip_destination(data, len, &destination));
	if (!has_source)
		return;
	require(source.family == data[0] >> 4 && destination.family == source.family);
	(void)ip_is_multicast(&destination);
	(void)ip_is_link_local(&source);
}

/* An answer, if any, is a packet to the sender that quotes what it answers. */
static void check_too_big(const uint8_t *data, uint32_t len)
{
	static const struct ip_addr from[2] = {{.family = 4, .bytes = {10, 8, 0, 1}},
					       {.family = 6, .bytes = {0xfd, [15] = 1}}};
	uint8_t *out = malloc(TOO_BIG_MAX);
	struct ip_addr to, sender;

	require(out != NULL);
	for (int i = 0; i < 2; i++) {
		uint32_t n = too_big_write(out, data, len, 1300, &from[i]);
		uint32_t head = i == 0 ? 28 : 48;
		if (n == 0)
			continue;
		require(n > head && n <= TOO_BIG_MAX && n <= head + len);
		require(memcmp(out + head, data, n - head) == 0);
		require(ip_source(data, len, &sender) && ip_destination(out, n, &to) &&
			ip_addr_equal(&sender, &to));
	}
	free(out);
}

/* A valid checksum sums up to nothing; so the sum over the header and what follows stays. */
static void check_changes(const uint8_t *before, const uint8_t *after, uint32_t len)
{
	if (len == 0 || memcmp(before, after, len) == 0)
		return;
	uint32_t ip_len = before[0] >> 4 == 4 ? (uint32_t)(before[0] & 15) * 4 : 40;
	uint32_t tcp_end = ip_len + (uint32_t)(before[ip_len + 12] >> 4) * 4;
	require(memcmp(before, after, ip_len + 16) == 0);
	require(memcmp(before + ip_len + 18, after + ip_len + 18, 2) == 0);
	require(memcmp(before + tcp_end, after + tcp_end, len - tcp_end) == 0);
	require(sum16(before + ip_len, tcp_end - ip_len) ==
		sum16(after + ip_len, tcp_end - ip_len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > 65535)
		return 0;
	/* Exactly as large as the packet, so that the sanitizer sees the first byte past it. */
	uint8_t *once = malloc(len ? len : 1), *twice = malloc(len ? len : 1);
	require(once && twice);
	check_addresses(data, (uint32_t)len);
	check_too_big(data, (uint32_t)len);
	memcpy(once, data, len);
	ip_clamp_mss(once, (uint32_t)len, MSS4, MSS6);
	check_changes(data, once, (uint32_t)len);
	memcpy(twice, once, len);
	ip_clamp_mss(twice, (uint32_t)len, MSS4, MSS6);
	require(memcmp(twice, once, len) == 0);
	free(once);
	free(twice);
	return 0;
}
