/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CONTROL_VERIFY_H
#define SERVER_CONTROL_VERIFY_H

/* Certificates: usage, names, CRL. What was verified is an identity, locked at first
 * authentication (security.md, F-6). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERIFY_DEPTH_MAX 16

struct identity {
	bool has_certificate;
	char common_name[64]; /* NUL-terminated; "" without certificate */
	uint8_t chain_hash[32]; /* SHA-256 over the chain's certificate hashes; zero without */
};

/* Same certificate chain and same name. */
bool identity_equal(const struct identity *a, const struct identity *b);

#endif
