/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_PKI_H
#define TESTS_SUPPORT_PKI_H

/* Throwaway certificates (EC P-256), made at run time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_NOW 1700000000 /* the tests' wall clock; certificates are valid around it */

enum pki_usage { PKI_CLIENT, PKI_SERVER, PKI_NO_USAGE, PKI_CA };

struct pki_name; /* key and certificate of one subject */

struct pki_request {
	const char *cn;	 /* NULL: a subject without CN */
	size_t cn_len;	 /* 0: strlen; else may contain NUL bytes */
	const char *dns; /* NULL: no subjectAltName */
	size_t dns_len;
	enum pki_usage usage;
	long serial;
	int64_t not_before, not_after; /* 0: around PKI_NOW */
};

/* Signed by `issuer`, or by itself if that is NULL. Ends the test on failure. */
struct pki_name *pki_make(const struct pki_request *r, const struct pki_name *issuer);
void pki_free(struct pki_name *n);
/* PEM; the text stays the name's. */
const char *pki_cert(const struct pki_name *n);
const char *pki_key(const struct pki_name *n);
/* The key in PEM, under a password; the caller frees it. */
char *pki_encrypted_key(const struct pki_name *n, const char *password);
/* A CRL in PEM that revokes `serial` (0: none), until `next_update`; the caller frees it. */
char *pki_crl(const struct pki_name *ca, long serial, int64_t next_update);

#endif
