/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a stock client: changes what it says of itself, so that a current client looks like
 * an older one to the server. PEER_INFO_FROM is replaced by PEER_INFO_TO, of the same length, in what
 * the client hands to TLS (its key method 2 message). */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct bio;

int BIO_write(struct bio *b, const void *data, int len)
{
	int (*real)(struct bio *, const void *, int);
	*(void **)&real = dlsym(RTLD_NEXT, "BIO_write");
	const char *from = getenv("PEER_INFO_FROM"), *to = getenv("PEER_INFO_TO");
	char copy[4096];
	if (!from || !to || strlen(from) != strlen(to) || len <= 0 || (size_t)len > sizeof(copy))
		return real(b, data, len);
	memcpy(copy, data, (size_t)len);
	char *found = memmem(copy, (size_t)len, from, strlen(from));
	if (found)
		memcpy(found, to, strlen(to));
	return real(b, copy, len);
}
