/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_SECRET_H
#define CRYPTO_SECRET_H

/* Secret bytes: wiped, compared in constant time, kept out of core dumps. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Source of random bytes; tests put their own in its place.
 * Returns 0, or -EIO if the generator failed (`out` must then not be used). */
typedef int (*random_fn)(void *out, size_t len);

/* Overwrite `len` bytes at `p` so that the compiler cannot leave it out. */
void secret_wipe(void *p, size_t len);
/* Compare `len` bytes without a branch on their content. */
bool secret_equal(const void *a, const void *b, size_t len);
/* Fill `out` from the library's generator. Thread-safe. Returns 0 or -EIO. */
__attribute__((warn_unused_result)) int secret_random(void *out, size_t len);
/* `len` zeroed bytes (aligned to 64) on pages that are not dumped; NULL if there is no memory. */
void *secret_alloc(size_t len);
/* Wipe and free what secret_alloc gave; `len` as it was given there. NULL is accepted. */
void secret_free(void *p, size_t len);

/* Keyed hash for tables whose keys strangers choose (SipHash-2-4). `key`: 16 random bytes. */
uint64_t secret_siphash(const uint8_t key[16], const void *data, size_t len);

/* Wipe an object (not through a pointer) on every way out of the scope:
 *	uint8_t master[48];
 *	WIPE_ON_EXIT(master);
 */
struct secret_scope {
	void *data;
	size_t len;
};
void secret_scope_end(const struct secret_scope *s);
#define SECRET_JOIN_(a, b) a##b
#define SECRET_JOIN(a, b)  SECRET_JOIN_(a, b)
#define WIPE_ON_EXIT(object)                                                                       \
	__attribute__((cleanup(secret_scope_end), unused)) const struct secret_scope SECRET_JOIN(  \
		wipe_, __LINE__) = {&(object), sizeof(object)}

/* A handle that its scope frees: CLEANUP(EVP_MD_CTX_free) EVP_MD_CTX *ctx = ...; after
 * CLEANUP_FN(EVP_MD_CTX, EVP_MD_CTX_free) at the top of the file. */
#define CLEANUP_FN(type, fn)                                                                       \
	static inline void cleanup_##fn(type **p)                                                  \
	{                                                                                          \
		fn(*p);                                                                            \
	}                                                                                          \
	struct secret_scope
#define CLEANUP(fn) __attribute__((cleanup(cleanup_##fn)))

#endif
