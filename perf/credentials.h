/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_CREDENTIALS_H
#define PERF_CREDENTIALS_H

/* What all clients of a thread show a server: certificate, control channel wrapping, settings. */

#include "crypto/static_key.h"
#include "crypto/wrap.h"
#include "perf/swarm_options.h"
#include "server/control/session.h"
#include "server/control/tls.h"

/* One owner thread: sessions take references of the TLS context. */
struct credentials {
	struct tls_context *tls;
	struct static_key wrap_key;
	struct wrap_keys *wrap;
	struct session_settings settings;
};

/* Reads the files. Says on stderr which one is wrong and why. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int credentials_init(struct credentials *c,
							 const struct swarm_options *o);
void credentials_fini(struct credentials *c);

#endif
