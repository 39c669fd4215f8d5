/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets in front of stateless replies (security.md, P-3). */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "server/control/initial.h"

#define SETS	   1024 /* a power of two */
#define WAYS	   4
#define MILLI	   1000 /* tokens are counted in thousandths */
#define PREFIX_LEN 9	/* family, and /32 or /56 with a zero byte */

struct bucket {
	uint8_t prefix[PREFIX_LEN]; /* all zero: free */
	uint64_t tokens_milli;
	uint64_t at_ms; /* when tokens_milli was right */
};

struct initial_limit {
	struct initial_limit_setup setup;
	uint8_t key[16];
	struct bucket total;
	struct bucket sets[SETS][WAYS];
};

int initial_limit_new(const struct initial_limit_setup *setup, struct initial_limit **out)
{
	struct initial_limit *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->setup = *setup;
	l->total.tokens_milli = (uint64_t)setup->total_per_s * MILLI;
	int err = secret_random(l->key, sizeof(l->key));
	if (err) {
		free(l);
		return err;
	}
	*out = l;
	return 0;
}

void initial_limit_free(struct initial_limit *l)
{
	free(l);
}

static void prefix_of(const union sockaddr_any *from, uint8_t out[PREFIX_LEN])
{
	memset(out, 0, PREFIX_LEN);
	if (from->sa.sa_family == AF_INET) {
		out[0] = 4;
		memcpy(out + 1, &from->in4.sin_addr, 4);
	} else if (IN6_IS_ADDR_V4MAPPED(&from->in6.sin6_addr)) {
		out[0] = 4;
		memcpy(out + 1, from->in6.sin6_addr.s6_addr + 12, 4);
	} else {
		out[0] = 6;
		memcpy(out + 1, from->in6.sin6_addr.s6_addr, 7);
	}
}

static void refill(struct bucket *b, uint32_t burst, uint32_t per_s, uint64_t now_ms)
{
	uint64_t passed_ms = now_ms > b->at_ms ? now_ms - b->at_ms : 0;
	uint64_t cap = (uint64_t)burst * MILLI, gain;
	/* One token a second is one thousandth a millisecond. */
	if (__builtin_mul_overflow(passed_ms, (uint64_t)per_s, &gain) || gain > cap)
		gain = cap;
	b->tokens_milli = b->tokens_milli + gain > cap ? cap : b->tokens_milli + gain;
	b->at_ms = now_ms;
}

static bool is_free(const struct bucket *b)
{
	return b->prefix[0] == 0;
}

static struct bucket *bucket_set(struct initial_limit *l, const uint8_t prefix[PREFIX_LEN])
{
	return l->sets[secret_siphash(l->key, prefix, PREFIX_LEN) % SETS];
}

static struct bucket *bucket_find(struct initial_limit *l, const uint8_t prefix[PREFIX_LEN])
{
	struct bucket *set = bucket_set(l, prefix);
	for (unsigned i = 0; i < WAYS; i++)
		if (memcmp(set[i].prefix, prefix, PREFIX_LEN) == 0)
			return &set[i];
	return NULL;
}

/* The bucket of a prefix. In a full set the one longest unused makes room: whoever floods with many
 * prefixes is held by the bucket of all. */
static struct bucket *bucket_get(struct initial_limit *l, const uint8_t prefix[PREFIX_LEN],
				 uint64_t now_ms)
{
	struct bucket *found = bucket_find(l, prefix);
	if (found)
		return found;
	struct bucket *set = bucket_set(l, prefix), *oldest = &set[0];
	for (unsigned i = 1; i < WAYS && !is_free(oldest); i++)
		if (is_free(&set[i]) || set[i].at_ms < oldest->at_ms)
			oldest = &set[i];
	*oldest = (struct bucket){
		.tokens_milli = (uint64_t)l->setup.prefix_burst * MILLI,
		.at_ms = now_ms,
	};
	memcpy(oldest->prefix, prefix, PREFIX_LEN);
	return oldest;
}

bool initial_limit_take(struct initial_limit *l, const union sockaddr_any *from, uint64_t now_ms)
{
	uint8_t prefix[PREFIX_LEN];
	prefix_of(from, prefix);
	struct bucket *b = bucket_get(l, prefix, now_ms);
	refill(b, l->setup.prefix_burst, l->setup.prefix_per_s, now_ms);
	refill(&l->total, l->setup.total_per_s, l->setup.total_per_s, now_ms);
	if (b->tokens_milli < MILLI || l->total.tokens_milli < MILLI)
		return false;
	b->tokens_milli -= MILLI;
	l->total.tokens_milli -= MILLI;
	return true;
}

static void give(struct bucket *b, uint32_t burst)
{
	uint64_t cap = (uint64_t)burst * MILLI;
	b->tokens_milli = b->tokens_milli + MILLI > cap ? cap : b->tokens_milli + MILLI;
}

void initial_limit_give(struct initial_limit *l, const union sockaddr_any *from)
{
	uint8_t prefix[PREFIX_LEN];
	prefix_of(from, prefix);
	struct bucket *b = bucket_find(l, prefix);
	if (b)
		give(b, l->setup.prefix_burst);
	give(&l->total, l->setup.total_per_s);
}
