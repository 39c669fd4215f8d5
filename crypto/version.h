/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_VERSION_H
#define CRYPTO_VERSION_H

/* Which cryptographic library runs, for log and metrics: "OpenSSL 3.0.17 1 Jul 2025". Static text.
 */
const char *crypto_version(void);

#endif
