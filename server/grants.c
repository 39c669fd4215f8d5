/* SPDX-License-Identifier: Apache-2.0 */
#include "server/grants.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "crypto/secret.h"

struct grant {
	struct data_key key; /* first: messages carry its address */
	struct grant *next, *prev;
	uint64_t window[REPLAY_WINDOW_MAX / 64]; /* until the worker gives the key one of its own */
	struct aead_schedule seal, open;
};

static_assert(offsetof(struct grant, key) == 0, "a key's address is its grant's");

struct grants {
	struct aead *aead;
	struct grant *first;
};

int grants_new(enum aead_choice choice, struct grants **out)
{
	struct grants *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	err = aead_new(choice, &g->aead);
	if (err) {
		free(g);
		return err;
	}
	*out = g;
	return 0;
}

void grants_free(struct grants *g)
{
	if (!g)
		return;
	while (g->first)
		grant_free(g, &g->first->key);
	aead_free(g->aead);
	free(g);
}

static void grants_link(struct grants *g, struct grant *grant)
{
	grant->next = g->first;
	if (g->first)
		g->first->prev = grant;
	g->first = grant;
}

int grant_new(struct grants *g, const struct data_key_material *m, const struct data_key_options *o,
	      uint64_t seal_from_ms, struct data_key **out)
{
	struct grant *grant = secret_alloc(sizeof(*grant));
	struct data_key_options options = *o;
	int err;

	if (!grant)
		return -ENOMEM;
	options.replay_bits = grant->window;
	err = data_key_init(&grant->key, g->aead, m, &options, &grant->seal, &grant->open);
	if (err) {
		secret_free(grant, sizeof(*grant));
		return err;
	}
	grant->key.seal_from_ms = seal_from_ms;
	grants_link(g, grant);
	*out = &grant->key;
	return 0;
}

void grant_free(struct grants *g, struct data_key *k)
{
	struct grant *grant = (struct grant *)(void *)k;

	if (grant->prev)
		grant->prev->next = grant->next;
	else
		g->first = grant->next;
	if (grant->next)
		grant->next->prev = grant->prev;
	/* What the worker took over is all zero by now. */
	data_key_fini(&grant->key, g->aead);
	secret_free(grant, sizeof(*grant));
}
