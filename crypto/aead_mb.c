/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/aead.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#include "crypto/aead_engine.h"
#include "crypto/secret.h"

/* The header gives the struct alignment 1 unless LINUX is defined, and yet every implementation
 * needs more (SIGSEGV at 8 mod 16): the slot's alignment is what counts. */
static_assert(sizeof(struct gcm_key_data) <= AEAD_SCHEDULE_SIZE, "must fit a schedule's slot");
static_assert(_Alignof(struct aead_schedule) == 64, "the library needs 64");

#define POWERS_MAX 48
#define CHUNK	   64 /* jobs of one round; the library's queue takes more */

struct mb {
	struct aead base;
	IMB_MGR *mgr; /* never shared: jobs of two threads would mix */
	_Alignas(64) struct gcm_context_data gcm;
};

static struct mb *mb_of(struct aead *a)
{
	return (struct mb *)(void *)a;
}

static struct gcm_key_data *gcm_key(struct aead_schedule *s)
{
	return (struct gcm_key_data *)(void *)s->bytes;
}

static const struct gcm_key_data *gcm_key_const(const struct aead_schedule *s)
{
	return (const struct gcm_key_data *)(const void *)s->bytes;
}

static int schedule_init(struct aead *a, enum cipher c, const uint8_t *key,
			 struct aead_schedule *out)
{
	IMB_MGR *mgr = mb_of(a)->mgr;
	memset(out, 0, sizeof(*out));
	switch (c) {
	case CIPHER_AES_128_GCM:
		IMB_AES128_GCM_PRE(mgr, key, gcm_key(out));
		return 0;
	case CIPHER_AES_192_GCM:
		IMB_AES192_GCM_PRE(mgr, key, gcm_key(out));
		return 0;
	case CIPHER_AES_256_GCM:
		IMB_AES256_GCM_PRE(mgr, key, gcm_key(out));
		return 0;
	case CIPHER_CHACHA20_POLY1305:
		memcpy(out->bytes, key, cipher_key_len(c));
		return 0;
	case CIPHER_NONE:
	case CIPHER_COUNT:
		break;
	}
	return -ENOTSUP;
}

static void schedule_fini(struct aead_schedule *s)
{
	secret_wipe(s, sizeof(*s));
}

/* Round keys stand in front. Powers of the hash key end at byte 1008, the lowest last; as many are
 * used as there are blocks, with those of aad and lengths, up to 48. */
static void prefetch(enum cipher c, const struct aead_schedule *s, uint32_t len)
{
	const uint8_t *end = s->bytes + sizeof(struct gcm_key_data);
	__builtin_prefetch(s->bytes);
	if (c == CIPHER_CHACHA20_POLY1305)
		return;
	for (unsigned at = 64; at < sizeof(((struct gcm_key_data *)NULL)->expanded_keys); at += 64)
		__builtin_prefetch(s->bytes + at);
	uint32_t powers = len / 16 + 3 < POWERS_MAX ? len / 16 + 3 : POWERS_MAX;
	for (const uint8_t *p = end - 16 * powers; p < end; p += 64)
		__builtin_prefetch(p);
	__builtin_prefetch(end - 1);
}

/* NULL: the cipher goes through jobs. */
static aes_gcm_enc_dec_t gcm_fn(const IMB_MGR *mgr, enum cipher c, bool is_seal)
{
	switch (c) {
	case CIPHER_AES_128_GCM:
		return is_seal ? mgr->gcm128_enc : mgr->gcm128_dec;
	case CIPHER_AES_192_GCM:
		return is_seal ? mgr->gcm192_enc : mgr->gcm192_dec;
	case CIPHER_AES_256_GCM:
		return is_seal ? mgr->gcm256_enc : mgr->gcm256_dec;
	case CIPHER_NONE:
	case CIPHER_CHACHA20_POLY1305:
	case CIPHER_COUNT:
		break;
	}
	return NULL;
}

static void gcm_run(struct mb *mb, aes_gcm_enc_dec_t fn, const struct aead_schedule *s,
		    const struct aead_segment *seg, uint8_t *tag)
{
	fn(gcm_key_const(s), &mb->gcm, seg->text, seg->text, seg->len, seg->nonce, seg->aad,
	   seg->aad_len, tag, AEAD_TAG_LEN);
}

static void chacha_submit(IMB_MGR *mgr, const struct aead_schedule *s, struct aead_segment *seg,
			  uint8_t *tag, IMB_CIPHER_DIRECTION dir)
{
	IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);
	memset(job, 0, sizeof(*job));
	job->cipher_direction = dir;
	job->chain_order = dir == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
	job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
	job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
	job->enc_keys = job->dec_keys = s->bytes;
	job->key_len_in_bytes = 32;
	job->iv = seg->nonce;
	job->iv_len_in_bytes = AEAD_NONCE_LEN;
	job->u.CHACHA20_POLY1305.aad = seg->aad;
	job->u.CHACHA20_POLY1305.aad_len_in_bytes = seg->aad_len;
	job->src = seg->text;
	job->dst = seg->text;
	job->msg_len_to_cipher_in_bytes = job->msg_len_to_hash_in_bytes = seg->len;
	job->auth_tag_output = tag;
	job->auth_tag_output_len_in_bytes = AEAD_TAG_LEN;
	job->user_data = seg;
	IMB_JOB *done = IMB_SUBMIT_JOB(mgr);
	for (; done; done = IMB_GET_COMPLETED_JOB(mgr))
		((struct aead_segment *)done->user_data)->is_ok =
			done->status == IMB_STATUS_COMPLETED;
}

/* Up to CHUNK segments; is_ok says that the library did its work. */
static void chacha_run(IMB_MGR *mgr, const struct aead_schedule *s, struct aead_segment *seg,
		       unsigned n, uint8_t (*tags)[AEAD_TAG_LEN])
{
	for (unsigned i = 0; i < n; i++) {
		seg[i].is_ok = false;
		chacha_submit(mgr, s, &seg[i], tags ? tags[i] : seg[i].tag,
			      tags ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT);
	}
	for (IMB_JOB *done; (done = IMB_FLUSH_JOB(mgr));)
		((struct aead_segment *)done->user_data)->is_ok =
			done->status == IMB_STATUS_COMPLETED;
}

static unsigned chunk(unsigned left)
{
	return left < CHUNK ? left : CHUNK;
}

static void seal(struct aead *a, enum cipher c, const struct aead_schedule *s,
		 struct aead_segment *seg, unsigned n)
{
	struct mb *mb = mb_of(a);
	aes_gcm_enc_dec_t fn = gcm_fn(mb->mgr, c, true);
	for (unsigned i = 0; fn && i < n; i++) {
		gcm_run(mb, fn, s, &seg[i], seg[i].tag);
		seg[i].is_ok = true;
	}
	for (unsigned i = 0; !fn && i < n; i += chunk(n - i))
		chacha_run(mb->mgr, s, seg + i, chunk(n - i), NULL);
}

static void chacha_open(IMB_MGR *mgr, const struct aead_schedule *s, struct aead_segment *seg,
			unsigned n)
{
	uint8_t tags[CHUNK][AEAD_TAG_LEN];
	chacha_run(mgr, s, seg, n, tags);
	for (unsigned i = 0; i < n; i++)
		seg[i].is_ok = seg[i].is_ok && secret_equal(tags[i], seg[i].tag, AEAD_TAG_LEN);
}

static void open(struct aead *a, enum cipher c, const struct aead_schedule *s,
		 struct aead_segment *seg, unsigned n)
{
	struct mb *mb = mb_of(a);
	aes_gcm_enc_dec_t fn = gcm_fn(mb->mgr, c, false);
	for (unsigned i = 0; fn && i < n; i++) {
		uint8_t tag[AEAD_TAG_LEN];
		gcm_run(mb, fn, s, &seg[i], tag);
		seg[i].is_ok = secret_equal(tag, seg[i].tag, AEAD_TAG_LEN);
	}
	for (unsigned i = 0; !fn && i < n; i += chunk(n - i))
		chacha_open(mb->mgr, s, seg + i, chunk(n - i));
}

static void mb_free(struct aead *a)
{
	struct mb *mb = mb_of(a);
	free_mb_mgr(mb->mgr);
	secret_free(mb, sizeof(*mb));
}

static const struct aead_engine engine = {
	.free = mb_free,
	.schedule_init = schedule_init,
	.schedule_fini = schedule_fini,
	.prefetch = prefetch,
	.seal = seal,
	.open = open,
};

/* NULL: the library chose code that is slower than OpenSSL's, or failed its self-test. */
static const char *name_of(IMB_ARCH arch)
{
	switch (arch) {
	case IMB_ARCH_AVX2:
		return "ipsec-mb (avx2)";
	case IMB_ARCH_AVX512:
		return "ipsec-mb (avx512)";
	case IMB_ARCH_NONE:
	case IMB_ARCH_NOAESNI:
	case IMB_ARCH_SSE:
	case IMB_ARCH_AVX:
	case IMB_ARCH_NUM:
		break;
	}
	return NULL;
}

static int mgr_new(IMB_MGR **out, const char **name)
{
	if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("avx2"))
		return -ENOTSUP;
	IMB_MGR *mgr = alloc_mb_mgr(0);
	if (!mgr)
		return -ENOMEM;
	IMB_ARCH arch = IMB_ARCH_NONE;
	init_mb_mgr_auto(mgr, &arch);
	*name = name_of(arch);
	if (imb_get_errno(mgr) != 0 || !*name) {
		free_mb_mgr(mgr);
		return -ENOTSUP;
	}
	*out = mgr;
	return 0;
}

int aead_mb_new(struct aead **out)
{
	struct mb *mb = secret_alloc(sizeof(*mb));
	if (!mb)
		return -ENOMEM;
	int err = mgr_new(&mb->mgr, &mb->base.name);
	if (err) {
		secret_free(mb, sizeof(*mb));
		return err;
	}
	mb->base.engine = &engine;
	*out = &mb->base;
	return 0;
}
