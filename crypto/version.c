/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/version.h"

#include <openssl/crypto.h>

const char *crypto_version(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}
