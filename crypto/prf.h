/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_PRF_H
#define CRYPTO_PRF_H

/* From a key exchange to data keys: the TLS 1.0 PRF of old peers (wire.md, section 7.2), and the
 * slicing of the 256 bytes that either derivation gives. */

#include <stdbool.h>
#include <stdint.h>

#include "crypto/bytes.h"
#include "crypto/data_key.h"
#include "crypto/packet.h"

#define KEY2_LEN       256
#define PRE_MASTER_LEN 48
#define KEY_RANDOM_LEN 32

/* What both sides said in key method 2. */
struct prf_input {
	uint8_t pre_master[PRE_MASTER_LEN]; /* the client's */
	uint8_t client_random1[KEY_RANDOM_LEN], client_random2[KEY_RANDOM_LEN];
	uint8_t server_random1[KEY_RANDOM_LEN], server_random2[KEY_RANDOM_LEN];
	struct session_id client_sid, server_sid;
};

/* MD5 and SHA-1 can be had from the library (not so under FIPS): without them peers that have no
 * exporter must be refused. */
bool prf_is_available(void);
/* PRF(secret, seed) of RFC 2246. Returns 0 or -ENOTSUP. */
__attribute__((warn_unused_result)) int prf_tls1(struct view secret, struct view seed, uint8_t *out,
						 size_t out_len);
/* master secret, then key expansion. Returns 0 or -ENOTSUP. */
__attribute__((warn_unused_result)) int prf_key2(const struct prf_input *in, uint8_t out[KEY2_LEN]);
/* Cut the 256 bytes for one side; `is_server`: we are the TLS server. The caller wipes both. */
void prf_slice(const uint8_t key2[KEY2_LEN], enum cipher cipher, uint8_t key_id, bool is_server,
	       struct data_key_material *out);

#endif
