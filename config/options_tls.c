/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "crypto/cipher.h"
#include "crypto/replay.h"

#define CIPHER_NAME_MAX	 32
#define CIPHER_LIST_MAX	 127 /* MAX_NCP_CIPHERS_LENGTH of stock */
#define REPLAY_TIME_MAX	 600
#define TLS_VERSION_BEST 13

/* Names of algorithms. */

static const char *upper(struct options *o, const char *name)
{
	char *copy = arena_strdup(o->config->arena, name);
	for (char *p = copy; p && *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return copy;
}

static bool is_one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && strncasecmp(word, *list, len) == 0)
			return true;
	return false;
}

/* A cipher of stock that is not AEAD: a family and a mode that OpenSSL knows. */
static bool is_other_cipher(const char *name)
{
	static const char *const families[] = {"AES-128",
					       "AES-192",
					       "AES-256",
					       "ARIA-128",
					       "ARIA-192",
					       "ARIA-256",
					       "CAMELLIA-128",
					       "CAMELLIA-192",
					       "CAMELLIA-256",
					       "BF",
					       "CAST5",
					       "DES",
					       "DES-EDE",
					       "DES-EDE3",
					       "IDEA",
					       "RC2",
					       "SEED",
					       "SM4",
					       NULL};
	static const char *const modes[] = {"CBC", "CFB", "CFB1", "CFB8", "OFB", "GCM", NULL};
	const char *dash = strrchr(name, '-');
	if (!dash)
		return strcasecmp(name, "none") == 0;
	return is_one_of(name, (size_t)(dash - name), families) &&
	       is_one_of(dash + 1, strlen(dash + 1), modes);
}

/* Digests that the library has under the name people write; NULL if it is none of them. */
static const char *find_digest(const char *name)
{
	static const char *const digests[][2] = {
		{"SHA1", "SHA1"},
		{"SHA-1", "SHA1"},
		{"SHA224", "SHA224"},
		{"SHA-224", "SHA224"},
		{"SHA2-224", "SHA224"},
		{"SHA256", "SHA256"},
		{"SHA-256", "SHA256"},
		{"SHA2-256", "SHA256"},
		{"SHA384", "SHA384"},
		{"SHA-384", "SHA384"},
		{"SHA2-384", "SHA384"},
		{"SHA512", "SHA512"},
		{"SHA-512", "SHA512"},
		{"SHA2-512", "SHA512"},
		{"SHA512-224", "SHA512-224"},
		{"SHA512-256", "SHA512-256"},
		{"SHA3-224", "SHA3-224"},
		{"SHA3-256", "SHA3-256"},
		{"SHA3-384", "SHA3-384"},
		{"SHA3-512", "SHA3-512"},
		{"MD5", "MD5"},
		{"RIPEMD160", "RIPEMD160"},
		{"RIPEMD", "RIPEMD160"},
		{"BLAKE2B512", "BLAKE2B512"},
		{"BLAKE2S256", "BLAKE2S256"},
		{"SM3", "SM3"},
		{"NONE", "none"},
	};
	/* The old names of signature algorithms stand for their digests. */
	if (strncasecmp(name, "RSA-", 4) == 0)
		name += 4;
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
		if (strcasecmp(name, digests[i][0]) == 0)
			return digests[i][1];
	return NULL;
}

void options_set_auth(struct options *o, const struct lexer_line *l)
{
	const char *name = find_digest(l->words[1]);
	if (name)
		o->config->auth = name;
	else
		options_fault(o, l, "'%s' is no known digest (SHA1, SHA256, SHA512, none ...)",
			      l->words[1]);
}

/* Only for the options string and as what old peers may fall back to, as in 2.6. */
void options_set_cipher(struct options *o, const struct lexer_line *l)
{
	if (options_text(o, l, 1))
		o->config->cipher = upper(o, l->words[1]);
}

/* One name of a list. Returns its normalised form, NULL if it is left out or refused. */
static const char *take_cipher(struct options *o, const struct lexer_line *l, const char *name)
{
	bool is_optional = *name == '?';
	if (is_optional)
		name++;
	enum cipher c = cipher_from_name(name);
	if (c != CIPHER_NONE)
		return cipher_name(c);
	if (!is_optional && is_other_cipher(name))
		options_fault(o, l, "%s: not supported yet (only AES-GCM and CHACHA20-POLY1305)",
			      name);
	else if (!is_optional)
		options_fault(o, l, "'%s' is no known cipher (a ? in front makes it optional)",
			      name);
	return NULL;
}

/* Take the list apart; the ciphers that we have, in order, without repetition. False if a name is
 * refused. */
static bool read_cipher_list(struct options *o, const struct lexer_line *l, char *list, size_t cap)
{
	char text[CIPHER_LIST_MAX + 1];
	size_t faults = o->report->fault_count;
	size_t len = 0;
	char *rest = NULL;
	list[0] = '\0';
	snprintf(text, sizeof(text), "%s", l->words[1]);
	for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
		const char *name = take_cipher(o, l, word);
		if (!name || strstr(list, name))
			continue;
		int n = snprintf(list + len, cap - len, "%s%s", len ? ":" : "", name);
		if (n > 0 && (size_t)n < cap - len)
			len += (size_t)n;
	}
	return o->report->fault_count == faults;
}

void options_set_data_ciphers(struct options *o, const struct lexer_line *l)
{
	char list[CIPHER_LIST_MAX + 1];
	if (strcmp(l->words[0], "ncp-ciphers") == 0)
		options_warn(o, l, "renamed; write data-ciphers");
	if (strlen(l->words[1]) > CIPHER_LIST_MAX) {
		options_fault(o, l, "the list is longer than %d bytes", CIPHER_LIST_MAX);
		return;
	}
	if (!read_cipher_list(o, l, list, sizeof(list)))
		return;
	if (list[0] == '\0')
		options_fault(o, l, "the list has no cipher that can be used");
	else
		o->config->data_ciphers = arena_strdup(o->config->arena, list);
}

void options_set_data_ciphers_fallback(struct options *o, const struct lexer_line *l)
{
	char name[CIPHER_NAME_MAX];
	/* No question mark here. */
	if (l->words[1][0] == '?' || strlen(l->words[1]) >= sizeof(name)) {
		options_fault(o, l, "'%s' is no known cipher", l->words[1]);
		return;
	}
	const char *cipher = take_cipher(o, l, l->words[1]);
	if (cipher)
		o->config->data_ciphers_fallback = cipher;
}

/* TLS. */

void options_set_dh(struct options *o, const struct lexer_line *l)
{
	o->config->is_dh_none = !l->block && strcmp(l->words[1], "none") == 0;
	if (o->config->is_dh_none)
		o->config->dh = (struct config_file){0};
	else
		options_file(o, l, &o->config->dh);
}

void options_set_crl(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"dir", NULL};
	if (!l->block && l->count > 2 && options_choice(o, l, 2, words) < 0)
		return;
	if (options_file(o, l, &o->config->crl))
		o->config->is_crl_dir = !l->block && l->count > 2;
}

void options_set_ecdh_curve(struct options *o, const struct lexer_line *l)
{
	options_warn(o, l, "OpenSSL 3 chooses the curve itself, no effect; use tls-groups");
}

void options_set_engine(struct options *o, const struct lexer_line *l)
{
	static const char *const harmless[] = {"cryptodev", "aesni", "rdrand", "auto",
					       "dynamic",   "none",  NULL};
	if (l->count > 1 && !is_one_of(l->words[1], strlen(l->words[1]), harmless))
		options_fault(o, l,
			      "refused: engines are gone from OpenSSL 3; a key behind '%s' "
			      "cannot be used",
			      l->words[1]);
}

void options_set_key_method(struct options *o, const struct lexer_line *l)
{
	if (strcmp(l->words[1], "2") != 0)
		options_fault(o, l, "refused: method %s is insecure and gone; 2 is the only one",
			      l->words[1]);
}

void options_set_remote_cert_tls(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"client", "server", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->config->remote_cert_tls = i == 0 ? REMOTE_CERT_CLIENT : REMOTE_CERT_SERVER;
}

void options_set_client_cert(struct options *o, const struct lexer_line *l)
{
	/* In the order of enum client_cert. */
	static const char *const words[] = {"require", "optional", "none", NULL};
	int i = l->count > 1 ? options_choice(o, l, 1, words) : 0;
	if (i >= 0)
		o->config->client_cert = (enum client_cert)i;
}

void options_set_cert_profile(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"legacy", "preferred", "insecure", "suiteb", NULL};
	int i = options_choice(o, l, 1, words);
	if (i >= 0)
		o->config->tls_cert_profile = words[i];
}

/* "1.2" -> 12; 0 if it is no version. */
static int find_version(const char *text)
{
	static const char *const versions[] = {"1.0", "1.1", "1.2", "1.3"};
	for (int i = 0; i < 4; i++)
		if (strcmp(text, versions[i]) == 0)
			return 10 + i;
	return 0;
}

void options_set_tls_version_min(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"or-highest", NULL};
	if (l->count > 2 && options_choice(o, l, 2, words) < 0)
		return;
	int v = find_version(l->words[1]);
	if (v == 0 && l->count > 2)
		v = TLS_VERSION_BEST;
	if (v == 0)
		options_fault(o, l, "'%s' is no TLS version from 1.0 to 1.3", l->words[1]);
	else
		o->config->tls_version_min = v;
}

void options_set_tls_version_max(struct options *o, const struct lexer_line *l)
{
	int v = find_version(l->words[1]);
	if (v == 0)
		options_fault(o, l, "'%s' is no TLS version from 1.0 to 1.3", l->words[1]);
	else
		o->config->tls_version_max = v;
}

/* Keys of the control channel. */

static bool get_direction(struct options *o, const struct lexer_line *l, unsigned arg)
{
	static const char *const words[] = {"0", "1", NULL};
	int i = options_choice(o, l, arg, words);
	if (i >= 0)
		o->config->tls_auth_direction = i;
	return i >= 0;
}

void options_set_key_direction(struct options *o, const struct lexer_line *l)
{
	get_direction(o, l, 1);
}

void options_set_tls_auth(struct options *o, const struct lexer_line *l)
{
	/* A direction that key-direction gave stays unless this line has its own. */
	if (!l->block && l->count > 2 && !get_direction(o, l, 2))
		return;
	options_file(o, l, &o->config->tls_auth);
}

void options_set_tls_crypt(struct options *o, const struct lexer_line *l)
{
	if (l->count > 2)
		options_warn(o, l, "'%s': tls-crypt has no direction, the word has no effect",
			     l->words[2]);
	options_file(o, l, &o->config->tls_crypt);
}

void options_set_replay_window(struct options *o, const struct lexer_line *l)
{
	uint64_t window, seconds = o->config->replay_time_s;
	if (l->count == 1) {
		options_fault(o, l, "the size of the window is missing");
		return;
	}
	if (!options_number(o, l, 1, 0, REPLAY_WINDOW_MAX, &window) ||
	    (l->count > 2 && !options_number(o, l, 2, 0, REPLAY_TIME_MAX, &seconds)))
		return;
	o->config->replay_window = (uint32_t)window;
	o->config->replay_time_s = (uint32_t)seconds;
}

void options_set_reneg_sec(struct options *o, const struct lexer_line *l)
{
	uint64_t most, least;
	if (!options_number(o, l, 1, 0, INT32_MAX, &most))
		return;
	/* Without a second number sessions spread over the last tenth. */
	least = most * 9 / 10;
	if (l->count > 2 && !options_number(o, l, 2, 0, most, &least))
		return;
	o->config->reneg_sec_max = (uint32_t)most;
	o->config->reneg_sec_min = (uint32_t)least;
}
