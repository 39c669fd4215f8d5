/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "crypto/secret.h"

#define WHY_LEN 512

static int load_tls(struct credentials *c, const struct swarm_options *o)
{
	char why[WHY_LEN] = "";
	const struct config config = {
		.ca.path = o->ca,
		.cert.path = o->cert,
		.key.path = o->key,
		.remote_cert_tls = REMOTE_CERT_ANY,
		.tls_version_min = 12,
	};
	int err = tls_context_new(&config, false, &c->tls, why, sizeof(why));

	if (err)
		fprintf(stderr, "swarm: %s\n", why);
	return err;
}

static int load_wrap_key(struct credentials *c, const char *path)
{
	const struct config_file f = {.path = path};
	char *text;
	size_t len;
	int err = config_file_read(&f, &text, &len);

	if (!err) {
		err = static_key_parse((struct view){(uint8_t *)text, len}, &c->wrap_key);
		secret_wipe(text, len);
		free(text);
	}
	if (err)
		fprintf(stderr, "swarm: %s: %s\n", path, strerror(-err));
	return err;
}

static int load_wrap(struct credentials *c, const struct swarm_options *o)
{
	int err = o->tls_crypt ? load_wrap_key(c, o->tls_crypt) : 0;

	if (err)
		return err;
	return wrap_keys_new(o->tls_crypt ? WRAP_TLS_CRYPT : WRAP_NONE, &c->wrap_key,
			     KEY_DIRECTION_1, NULL, &c->wrap);
}

static void set_up(struct credentials *c, const struct swarm_options *o)
{
	c->settings = (struct session_settings){
		.role = SESSION_CLIENT,
		.wrap = c->wrap,
		.wrap_key = o->tls_crypt ? &c->wrap_key : NULL,
		.is_ipv6 = o->server.sa.sa_family == AF_INET6,
		.max_packet_size = 1250,
		.hand_window_s = 60,
		.tran_window_s = 3600,
		.tls_timeout_s = 2,
		.replay_window = REPLAY_WINDOW_DEFAULT,
		.replay_time_s = 15,
		.reneg_sec_max = o->rekey_s,
		/* Those who came together do not come again together. */
		.reneg_sec_min = o->rekey_s - o->rekey_s / 4,
		.data_ciphers = "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305",
		.auth = "SHA1",
		.key_direction = -1,
		.tun_mtu = 1500,
		.is_client_cert_required = true,
		.random = secret_random,
	};
}

int credentials_init(struct credentials *c, const struct swarm_options *o)
{
	*c = (struct credentials){0};
	int err = load_tls(c, o);
	if (!err)
		err = load_wrap(c, o);
	if (err) {
		credentials_fini(c);
		return err;
	}
	set_up(c, o);
	return 0;
}

void credentials_fini(struct credentials *c)
{
	wrap_keys_free(c->wrap);
	tls_context_unref(c->tls);
	secret_wipe(c, sizeof(*c));
}
