/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/bare_aead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

struct bare_aead {
	enum cipher cipher;
	EVP_CIPHER_CTX *evp; /* NULL: ipsec-mb */
	OSSL_PARAM tag[2];
#ifdef HAVE_IPSEC_MB
	IMB_MGR *mgr;
	aes_gcm_enc_dec_t seal, open; /* NULL: by jobs */
	struct gcm_context_data gcm;
	struct aead_schedule key;
#endif
};

static void give_up(const char *what)
{
	fprintf(stderr, "bare library call: %s\n", what);
	exit(2);
}

static void evp_new(struct bare_aead *b, const uint8_t *key)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, cipher_name(b->cipher), NULL);
	b->evp = EVP_CIPHER_CTX_new();
	if (!cipher || !b->evp || EVP_EncryptInit_ex2(b->evp, cipher, key, NULL, NULL) != 1)
		give_up("OpenSSL does not have the cipher");
	EVP_CIPHER_free(cipher);
	b->tag[0] =
		OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, AEAD_TAG_LEN);
	b->tag[1] = OSSL_PARAM_construct_end();
}

static void evp_end(const struct bare_aead *b)
{
	uint8_t none[AEAD_TAG_LEN];
	int len;
	if (b->cipher == CIPHER_CHACHA20_POLY1305)
		EVP_CipherFinal_ex(b->evp, none, &len);
	else
		EVP_Cipher(b->evp, none, NULL, 0);
}

static void evp_run(struct bare_aead *b, bool is_seal, const struct aead_segment *seg)
{
	b->tag[0].data = seg->tag;
	if (is_seal)
		EVP_EncryptInit_ex2(b->evp, NULL, NULL, seg->nonce, NULL);
	else
		EVP_DecryptInit_ex2(b->evp, NULL, NULL, seg->nonce, b->tag);
	EVP_Cipher(b->evp, NULL, seg->aad, seg->aad_len);
	EVP_Cipher(b->evp, seg->text, seg->text, seg->len);
	evp_end(b);
	if (is_seal)
		EVP_CIPHER_CTX_get_params(b->evp, b->tag);
}

#ifdef HAVE_IPSEC_MB
static void mb_new(struct bare_aead *b, const uint8_t *key)
{
	struct gcm_key_data *gcm = (struct gcm_key_data *)(void *)b->key.bytes;
	b->mgr = alloc_mb_mgr(0);
	if (!b->mgr)
		give_up("no memory for ipsec-mb");
	init_mb_mgr_auto(b->mgr, NULL);
	if (b->cipher == CIPHER_AES_128_GCM) {
		IMB_AES128_GCM_PRE(b->mgr, key, gcm);
		b->seal = b->mgr->gcm128_enc;
		b->open = b->mgr->gcm128_dec;
	} else if (b->cipher == CIPHER_AES_256_GCM) {
		IMB_AES256_GCM_PRE(b->mgr, key, gcm);
		b->seal = b->mgr->gcm256_enc;
		b->open = b->mgr->gcm256_dec;
	} else {
		memcpy(b->key.bytes, key, AEAD_KEY_MAX);
	}
}

static void mb_job(struct bare_aead *b, bool is_seal, const struct aead_segment *seg, uint8_t *tag)
{
	IMB_JOB *job = IMB_GET_NEXT_JOB(b->mgr);
	*job = (IMB_JOB){
		.cipher_direction = is_seal ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT,
		.chain_order = is_seal ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER,
		.cipher_mode = IMB_CIPHER_CHACHA20_POLY1305,
		.hash_alg = IMB_AUTH_CHACHA20_POLY1305,
		.enc_keys = b->key.bytes,
		.dec_keys = b->key.bytes,
		.key_len_in_bytes = AEAD_KEY_MAX,
		.iv = seg->nonce,
		.iv_len_in_bytes = AEAD_NONCE_LEN,
		.src = seg->text,
		.dst = seg->text,
		.msg_len_to_cipher_in_bytes = seg->len,
		.msg_len_to_hash_in_bytes = seg->len,
		.auth_tag_output = tag,
		.auth_tag_output_len_in_bytes = AEAD_TAG_LEN,
	};
	job->u.CHACHA20_POLY1305.aad = seg->aad;
	job->u.CHACHA20_POLY1305.aad_len_in_bytes = seg->aad_len;
	if (!IMB_SUBMIT_JOB_NOCHECK(b->mgr))
		while (IMB_FLUSH_JOB(b->mgr))
			continue;
}

static void mb_run(struct bare_aead *b, bool is_seal, const struct aead_segment *seg)
{
	uint8_t unseen[AEAD_TAG_LEN];
	uint8_t *tag = is_seal ? seg->tag : unseen;
	aes_gcm_enc_dec_t fn = is_seal ? b->seal : b->open;
	if (fn)
		fn((const struct gcm_key_data *)(const void *)b->key.bytes, &b->gcm, seg->text,
		   seg->text, seg->len, seg->nonce, seg->aad, seg->aad_len, tag, AEAD_TAG_LEN);
	else
		mb_job(b, is_seal, seg, tag);
}
#endif

struct bare_aead *bare_aead_new(enum aead_choice library, enum cipher c, const uint8_t *key)
{
	struct bare_aead *b =
		aligned_alloc(_Alignof(struct aead_schedule), (sizeof(*b) + 63) / 64 * 64);
	if (!b)
		give_up("no memory");
	memset(b, 0, sizeof(*b));
	b->cipher = c;
	if (library == AEAD_OPENSSL)
		evp_new(b, key);
#ifdef HAVE_IPSEC_MB
	else
		mb_new(b, key);
#endif
	return b;
}

void bare_aead_free(struct bare_aead *b)
{
	EVP_CIPHER_CTX_free(b->evp);
#ifdef HAVE_IPSEC_MB
	if (b->mgr)
		free_mb_mgr(b->mgr);
#endif
	free(b);
}

void bare_aead_run(struct bare_aead *b, bool is_seal, const struct aead_segment *seg)
{
#ifdef HAVE_IPSEC_MB
	if (!b->evp) {
		mb_run(b, is_seal, seg);
		return;
	}
#endif
	evp_run(b, is_seal, seg);
}
