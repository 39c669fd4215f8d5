/* SPDX-License-Identifier: Apache-2.0 */
#include "server/keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "crypto/static_key.h"
#include "crypto/wrap.h"
#include "server/control/tls.h"

static bool is_given(const struct config_file *f)
{
	return f->path != NULL || f->text != NULL;
}

static const char *file_name(const struct config_file *f)
{
	return f->path != NULL ? f->path : "[inline]";
}

/* The 2048 bits of a key file, into pages that are kept out of core dumps. */
static int read_static_key(const struct config_file *f, const char *directive,
			   struct static_key *out, char *why, size_t why_len)
{
	char *text = NULL;
	size_t len = 0;
	int err = config_file_read(f, &text, &len);
	if (err != 0) {
		snprintf(why, why_len, "%s: cannot read %s: %s", directive, file_name(f),
			 strerror(-err));
		return err;
	}
	err = static_key_parse((struct view){(const uint8_t *)text, len}, out);
	if (err != 0)
		snprintf(why, why_len,
			 "%s: %s is no 2048-bit static key%s: make one with `openvpn --genkey "
			 "secret FILE`",
			 directive, file_name(f), err == -ERANGE ? " (it is too short)" : "");
	secret_wipe(text, len);
	free(text);
	return err;
}

static int make_wrap(const struct config *c, bool is_crypt, struct keys *k, char *why,
		     size_t why_len)
{
	const struct config_file *f = is_crypt ? &c->tls_crypt : &c->tls_auth;
	const char *directive = is_crypt ? "tls-crypt" : "tls-auth";
	k->wrap_key = secret_alloc(sizeof(*k->wrap_key));
	if (k->wrap_key == NULL)
		return -ENOMEM;
	int err = read_static_key(f, directive, k->wrap_key, why, why_len);
	if (err != 0)
		return err;
	enum key_direction direction =
		is_crypt ? KEY_DIRECTION_0 : (enum key_direction)c->tls_auth_direction;
	err = wrap_keys_new(is_crypt ? WRAP_TLS_CRYPT : WRAP_TLS_AUTH, k->wrap_key, direction,
			    c->auth, &k->wrap);
	if (err == -EINVAL)
		snprintf(why, why_len, "%s: %s or digest \"%s\" (`auth`) cannot be used", directive,
			 file_name(f), c->auth);
	return err;
}

static int load_wrap(const struct config *c, struct keys *k, char *why, size_t why_len)
{
	if (is_given(&c->tls_crypt))
		return make_wrap(c, true, k, why, why_len);
	if (is_given(&c->tls_auth))
		return make_wrap(c, false, k, why, why_len);
	return wrap_keys_new(WRAP_NONE, NULL, KEY_DIRECTION_NONE, NULL, &k->wrap);
}

int keys_load(const struct config *c, struct keys *out, char *why, size_t why_len)
{
	struct keys k = {0};
	snprintf(why, why_len, "keys: out of memory");
	int err = tls_context_new(c, true, &k.tls, why, why_len);
	if (err == 0)
		err = load_wrap(c, &k, why, why_len);
	if (err != 0)
		keys_free(&k);
	else
		*out = k;
	return err;
}

void keys_free(struct keys *k)
{
	wrap_keys_free(k->wrap);
	secret_free(k->wrap_key, sizeof(*k->wrap_key));
	if (k->tls != NULL)
		tls_context_unref(k->tls);
	*k = (struct keys){0};
}
