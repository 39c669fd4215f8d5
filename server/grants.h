/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_GRANTS_H
#define SERVER_GRANTS_H

/* Data keys on their way to a worker: expanded here, moved into the worker's slab there, wiped here
 * when the worker says so. Thread: acceptor. */

#include <stdint.h>

#include "crypto/data_key.h"

struct grants;

/* An engine of the same kind as the workers' makes the schedules. Returns 0, -ENOTSUP, -ENOMEM. */
__attribute__((warn_unused_result)) int grants_new(enum aead_choice choice, struct grants **out);
/* After the workers were joined; wipes what is still out. */
void grants_free(struct grants *g);

/* Expand `m` into a key that can be sent with MESSAGE_KEY_INSTALL; o->replay_bits is not looked at.
 * Returns 0, -ENOTSUP, -ENOMEM. */
__attribute__((warn_unused_result)) int grant_new(struct grants *g,
						  const struct data_key_material *m,
						  const struct data_key_options *o,
						  uint64_t seal_from_ms, struct data_key **out);
/* The worker has taken over (MESSAGE_KEY_INSTALLED), or the key was never sent: wipe and free. */
void grant_free(struct grants *g, struct data_key *k);

#endif
