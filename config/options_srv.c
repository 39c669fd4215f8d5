/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypto/secret.h"

#define KEEPALIVE_MAX 86400

/* Role, clients, push. */

void options_set_mode(struct options *o, const struct lexer_line *l)
{
	static const char *const words[] = {"server", "p2p", NULL};
	int i = options_choice(o, l, 1, words);
	if (i == 0)
		o->config->is_server = true;
	else if (i == 1)
		options_fault(o, l, "p2p: not supported yet");
}

void options_set_push(struct options *o, const struct lexer_line *l)
{
	if (l->words[1][0] == '\0')
		options_fault(o, l, "an empty word");
	else if (strchr(l->words[1], ','))
		options_fault(o, l, "illegal comma (',') in '%s'", l->words[1]);
	else
		options_add_push(o, l->words[1]);
}

void options_set_keepalive(struct options *o, const struct lexer_line *l)
{
	uint64_t ping, restart;
	if (!options_number(o, l, 1, 0, KEEPALIVE_MAX, &ping) ||
	    !options_number(o, l, 2, 0, KEEPALIVE_MAX, &restart))
		return;
	if (restart < 2 * ping || (ping == 0 && restart > 0)) {
		options_fault(o, l,
			      "the second number (%s) must be at least twice the first (%s); "
			      "recommended is keepalive 10 60",
			      l->words[2], l->words[1]);
		return;
	}
	o->keepalive_ping_s = (uint32_t)ping;
	o->keepalive_restart_s = (uint32_t)restart;
}

static bool get_rate(struct options *o, const struct lexer_line *l, uint32_t *count,
		     uint32_t *seconds)
{
	uint64_t n, s;
	if (!options_number(o, l, 1, 1, INT32_MAX, &n) ||
	    !options_number(o, l, 2, 1, INT32_MAX, &s))
		return false;
	*count = (uint32_t)n;
	*seconds = (uint32_t)s;
	return true;
}

void options_set_connect_freq(struct options *o, const struct lexer_line *l)
{
	get_rate(o, l, &o->config->connect_freq_n, &o->config->connect_freq_s);
}

void options_set_connect_freq_initial(struct options *o, const struct lexer_line *l)
{
	get_rate(o, l, &o->config->connect_freq_initial_n, &o->config->connect_freq_initial_s);
}

/* Process. */

void options_set_cd(struct options *o, const struct lexer_line *l)
{
	const char *dir = options_text(o, l, 1);
	if (!dir)
		return;
	if (o->has_files && chdir(dir) != 0) {
		options_fault(o, l, "cannot change to '%s': %s", dir, strerrordesc_np(errno));
		return;
	}
	o->config->cd_dir = dir;
}

void options_set_daemon(struct options *o, const struct lexer_line *l)
{
	if (l->count > 1)
		o->config->daemon_name = options_text(o, l, 1);
	o->config->is_daemon = true;
}

void options_set_syslog(struct options *o, const struct lexer_line *l)
{
	if (l->count > 1)
		o->config->daemon_name = options_text(o, l, 1);
	o->config->is_syslog = true;
}

/* log and log-append */
void options_set_log(struct options *o, const struct lexer_line *l)
{
	const char *path = options_text(o, l, 1);
	if (!path)
		return;
	o->config->log_path = path;
	o->config->is_log_append = strcmp(l->words[0], "log-append") == 0;
}

void options_set_status(struct options *o, const struct lexer_line *l)
{
	uint64_t seconds = 60;
	if (l->count > 2 && !options_number(o, l, 2, 0, INT32_MAX, &seconds))
		return;
	const char *path = options_text(o, l, 1);
	if (!path)
		return;
	o->config->status_path = path;
	o->config->status_interval_s = (uint32_t)seconds;
}

static void add_env(struct options *o, const char *name, const char *value)
{
	struct config *c = o->config;
	struct config_env *env = arena_grow(c->arena, c->env, c->env_count, sizeof(*env));
	if (!env)
		return;
	env[c->env_count++] = (struct config_env){.name = arena_strdup(c->arena, name),
						  .value = arena_strdup(c->arena, value)};
	c->env = env;
}

/* setenv opt DIRECTIVE ...: the directive if we know it, else a warning. */
static void apply_optional(struct options *o, const struct lexer_line *l)
{
	struct lexer_line rest = *l;
	bool was_forward_compatible = o->is_forward_compatible;
	if (l->count < 3) {
		options_fault(o, l, "opt: the directive is missing");
		return;
	}
	rest.count = l->count - 2;
	for (unsigned i = 0; i <= rest.count; i++)
		rest.words[i] = l->words[i + 2];
	o->is_forward_compatible = true;
	options_apply(o, &rest);
	o->is_forward_compatible = was_forward_compatible;
}

void options_set_setenv(struct options *o, const struct lexer_line *l)
{
	const char *name = l->words[1];
	const char *value = l->count > 2 ? l->words[2] : "";
	if (strcmp(name, "opt") == 0) {
		apply_optional(o, l);
	} else if (l->count > 3) {
		options_fault(o, l,
			      "Unrecognized option or missing or extra parameter(s); "
			      "usage: setenv NAME [VALUE]");
	} else if (strcmp(name, "GENERIC_CONFIG") == 0) {
		options_fault(o, l, "this is a generic configuration and cannot directly be used");
	} else if (name[0] == '\0' || strchr(name, '=')) {
		options_fault(o, l, "'%s' is no name for a variable", name);
	} else {
		if (strcmp(name, "FORWARD_COMPATIBLE") == 0 && strcmp(value, "1") == 0)
			o->is_forward_compatible = true;
		add_env(o, name, value);
	}
}

/* The parse itself. */

void options_set_ignore_unknown(struct options *o, const struct lexer_line *l)
{
	struct arena *arena = o->config->arena;
	for (unsigned i = 1; i < l->count; i++) {
		const char **names =
			arena_grow(arena, o->ignorable, o->ignorable_count, sizeof(*names));
		const char *name = l->words[i];
		/* Written with or without the two hyphens. */
		name = arena_strdup(arena, strncmp(name, "--", 2) == 0 ? name + 2 : name);
		if (!names || !name)
			return;
		names[o->ignorable_count++] = name;
		o->ignorable = names;
	}
}

static int read_config(const char *path, char **text, size_t *len)
{
	struct config_file f = {.path = strcmp(path, "stdin") == 0 ? "/dev/stdin" : path};
	return config_file_read(&f, text, len);
}

static const char *include_obstacle(const struct options *o)
{
	if (!o->has_files)
		return "no other file may be opened here";
	if (o->depth == OPTIONS_INCLUDE_DEPTH)
		return "files inside files stand deeper than 10";
	return o->includes == OPTIONS_INCLUDES_MAX ? "more than 256 files" : NULL;
}

void options_set_config(struct options *o, const struct lexer_line *l)
{
	const char *path = options_text(o, l, 1);
	char *text;
	size_t len;
	if (!path)
		return;
	const char *obstacle = include_obstacle(o);
	if (obstacle) {
		options_fault(o, l, "'%s' is not read: %s", path, obstacle);
		return;
	}
	o->includes++;
	int err = read_config(path, &text, &len);
	if (err) {
		options_fault(o, l, "cannot read '%s': %s", path, strerrordesc_np(-err));
		return;
	}
	if (!o->config->config_path)
		o->config->config_path = path;
	o->depth++;
	options_parse(o, path, text, len);
	o->depth--;
	/* It may have held keys. */
	secret_wipe(text, len);
	free(text);
}

void options_set_help(struct options *o, const struct lexer_line *l)
{
	(void)l;
	o->action = CONFIG_HELP;
}

void options_set_version(struct options *o, const struct lexer_line *l)
{
	(void)l;
	if (o->action != CONFIG_HELP)
		o->action = CONFIG_VERSION;
}

void options_set_test_config(struct options *o, const struct lexer_line *l)
{
	if (o->action == CONFIG_RUN)
		o->action = CONFIG_TEST;
	if (l->count > 1) {
		struct lexer_line file = *l;
		file.words[0] = "config";
		options_apply(o, &file);
	}
}
