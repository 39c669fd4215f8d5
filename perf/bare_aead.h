/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_BARE_AEAD_H
#define PERF_BARE_AEAD_H

/* The libraries' calls alone, without anything of ours around them: what bench_crypto compares
 * with. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/aead.h"

struct bare_aead; /* one library, one cipher, one key */

/* library: AEAD_OPENSSL or AEAD_IPSEC_MB. Exits with a line on stderr if it cannot be made. */
struct bare_aead *bare_aead_new(enum aead_choice library, enum cipher c, const uint8_t *key);
void bare_aead_free(struct bare_aead *b);
/* One packet in place by the cheapest legal sequence of calls; the tag goes to `tag` when sealing,
 * and to where nobody looks when opening (OpenSSL compares it itself). */
void bare_aead_run(struct bare_aead *b, bool is_seal, const struct aead_segment *seg);

#endif
