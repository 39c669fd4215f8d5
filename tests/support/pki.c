/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/pki.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct pki_name {
	EVP_PKEY *key;
	X509 *cert;
	char *cert_pem, *key_pem;
};

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static char *bio_text(BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);
	char *text = strndup(data, (size_t)len);
	MUST(text);
	BIO_free(bio);
	return text;
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	MUST(e && X509_add_ext(cert, e, -1));
	X509_EXTENSION_free(e);
}

static void add_dns(X509 *cert, const char *dns, size_t len)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	MUST(names && name && text && ASN1_STRING_set(text, dns, (int)len));
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	sk_GENERAL_NAME_push(names, name);
	MUST(X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0));
	GENERAL_NAMES_free(names);
}

static void add_usage(X509 *cert, X509 *issuer, enum pki_usage usage)
{
	switch (usage) {
	case PKI_CA:
		extend(cert, issuer, NID_basic_constraints, "critical,CA:TRUE");
		extend(cert, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
		break;
	case PKI_CLIENT:
		extend(cert, issuer, NID_key_usage, "digitalSignature");
		extend(cert, issuer, NID_ext_key_usage, "clientAuth");
		break;
	case PKI_SERVER:
		extend(cert, issuer, NID_key_usage, "digitalSignature");
		extend(cert, issuer, NID_ext_key_usage, "serverAuth");
		break;
	case PKI_NO_USAGE:
		break;
	}
}

static void add_subject(X509 *cert, const struct pki_request *r)
{
	X509_NAME *name = X509_get_subject_name(cert);
	MUST(X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Test", -1,
					-1, 0));
	if (!r->cn)
		return;
	/* Past the library's limit of 64 and with NULs, as an attacker would. */
	size_t len = r->cn_len ? r->cn_len : strlen(r->cn);
	X509_NAME_ENTRY *e = X509_NAME_ENTRY_create_by_NID(NULL, NID_commonName, V_ASN1_UTF8STRING,
							   (const unsigned char *)r->cn, (int)len);
	MUST(e && X509_NAME_add_entry(name, e, -1, 0));
	X509_NAME_ENTRY_free(e);
}

struct pki_name *pki_make(const struct pki_request *r, const struct pki_name *issuer)
{
	struct pki_name *n = calloc(1, sizeof(*n));
	MUST(n);
	n->key = EVP_EC_gen("P-256");
	n->cert = X509_new();
	MUST(n->key && n->cert && X509_set_version(n->cert, 2));
	X509 *by = issuer ? issuer->cert : n->cert;
	ASN1_INTEGER_set(X509_get_serialNumber(n->cert), r->serial ? r->serial : 1);
	ASN1_TIME_set(X509_getm_notBefore(n->cert),
		      r->not_before ? (time_t)r->not_before : PKI_NOW - 100000);
	ASN1_TIME_set(X509_getm_notAfter(n->cert),
		      r->not_after ? (time_t)r->not_after : PKI_NOW + 400000000);
	add_subject(n->cert, r);
	MUST(X509_set_pubkey(n->cert, n->key));
	MUST(X509_set_issuer_name(n->cert, X509_get_subject_name(by)));
	add_usage(n->cert, by, r->usage);
	if (r->dns)
		add_dns(n->cert, r->dns, r->dns_len ? r->dns_len : strlen(r->dns));
	MUST(X509_sign(n->cert, issuer ? issuer->key : n->key, EVP_sha256()));
	BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
	MUST(cert && key && PEM_write_bio_X509(cert, n->cert) &&
	     PEM_write_bio_PrivateKey(key, n->key, NULL, NULL, 0, NULL, NULL));
	n->cert_pem = bio_text(cert);
	n->key_pem = bio_text(key);
	return n;
}

void pki_free(struct pki_name *n)
{
	if (!n)
		return;
	EVP_PKEY_free(n->key);
	X509_free(n->cert);
	free(n->cert_pem);
	free(n->key_pem);
	free(n);
}

const char *pki_cert(const struct pki_name *n)
{
	return n->cert_pem;
}

const char *pki_key(const struct pki_name *n)
{
	return n->key_pem;
}

char *pki_encrypted_key(const struct pki_name *n, const char *password)
{
	BIO *bio = BIO_new(BIO_s_mem());
	MUST(bio && PEM_write_bio_PrivateKey(bio, n->key, EVP_aes_128_cbc(), NULL, 0, NULL,
					     (void *)(uintptr_t)password));
	return bio_text(bio);
}

char *pki_crl(const struct pki_name *ca, long serial, int64_t next_update)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *last = ASN1_TIME_set(NULL, PKI_NOW - 100000);
	ASN1_TIME *next = ASN1_TIME_set(NULL, (time_t)next_update);
	MUST(crl && last && next && X509_CRL_set_version(crl, 1));
	MUST(X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert)));
	X509_CRL_set1_lastUpdate(crl, last);
	X509_CRL_set1_nextUpdate(crl, next);
	if (serial) {
		X509_REVOKED *revoked = X509_REVOKED_new();
		ASN1_INTEGER *number = ASN1_INTEGER_new();
		MUST(revoked && number && ASN1_INTEGER_set(number, serial));
		X509_REVOKED_set_serialNumber(revoked, number);
		X509_REVOKED_set_revocationDate(revoked, last);
		MUST(X509_CRL_add0_revoked(crl, revoked));
		ASN1_INTEGER_free(number);
	}
	MUST(X509_CRL_sign(crl, ca->key, EVP_sha256()));
	BIO *bio = BIO_new(BIO_s_mem());
	MUST(bio && PEM_write_bio_X509_CRL(bio, crl));
	X509_CRL_free(crl);
	ASN1_TIME_free(last);
	ASN1_TIME_free(next);
	return bio_text(bio);
}
