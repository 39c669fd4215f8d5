/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/drop.h"

#include <assert.h>

static const char *const words[] = {
#define X(name, word) [DROP_##name] = (word),
	DROP_REASONS(X)
#undef X
};

const char *drop_name(enum drop d)
{
	assert(d < DROP_COUNT);
	return words[d];
}
