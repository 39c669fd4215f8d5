/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/arena.h"

#define REPORT_LINE_MAX 1024

static void set_defaults(struct config *c)
{
	c->verb = 1;
	c->status_interval_s = 60;
	c->status_version = 1;
	c->listen.port = 1194;
	c->tun_mtu = 1500;
	c->pool_persist_s = 600;
	c->max_clients = 1024;
	c->tls_auth_direction = -1;
	c->tls_version_min = 12;
	c->auth = "SHA1";
	c->data_ciphers = "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305";
	c->replay_window = 64;
	c->replay_time_s = 15;
	c->reneg_sec_max = 3600;
	c->reneg_sec_min = 3240;
	c->hand_window_s = 60;
	c->tran_window_s = 3600;
	c->tls_timeout_s = 2;
	c->max_packet_size = 1250;
	c->worker_memory = 8 << 20;
	c->offloads = OFFLOAD_ALL;
}

struct config *config_new(void)
{
	struct arena *arena = arena_new();
	if (!arena)
		return NULL;
	struct config *c = arena_alloc(arena, sizeof(*c));
	struct config_place *places = arena_alloc(arena, DIRECTIVE_COUNT * sizeof(*places));
	if (!c || !places) {
		arena_free(arena);
		return NULL;
	}
	c->arena = arena;
	c->places = places;
	set_defaults(c);
	return c;
}

void config_free(struct config *c)
{
	if (c)
		arena_free(c->arena);
}

static void add_line(struct config_report *r, char ***lines, size_t *count, const char *line)
{
	char *copy = strdup(line);
	char **grown = copy ? reallocarray(*lines, *count + 1, sizeof(**lines)) : NULL;
	if (!grown) {
		free(copy);
		r->is_out_of_memory = true;
		return;
	}
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7F)
			*p = '_';
	grown[(*count)++] = copy;
	*lines = grown;
}

void config_report_fault(struct config_report *r, const char *line)
{
	add_line(r, &r->faults, &r->fault_count, line);
}

void config_report_warning(struct config_report *r, const char *line)
{
	add_line(r, &r->warnings, &r->warning_count, line);
}

/* "FILE:LINE: DIRECTIVE: reason" into `line`. */
__attribute__((format(printf, 4, 0))) static void
print_line(char *line, const struct config *c, enum directive_id id, const char *fmt, va_list ap)
{
	const struct config_place *p = &c->places[id];
	const char *name = directive_get(id)->name;
	int n;
	if (!p->is_given)
		n = snprintf(line, REPORT_LINE_MAX, "%s: ", name);
	else if (p->file)
		n = snprintf(line, REPORT_LINE_MAX, "%s:%u: %s: ", p->file, p->line, name);
	else
		n = snprintf(line, REPORT_LINE_MAX, "command line: %s: ", name);
	if (n >= 0 && n < REPORT_LINE_MAX)
		(void)vsnprintf(line + n, (size_t)(REPORT_LINE_MAX - n), fmt, ap);
}

void config_fault(struct config_report *r, const struct config *c, enum directive_id id,
		  const char *fmt, ...)
{
	char line[REPORT_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	print_line(line, c, id, fmt, ap);
	va_end(ap);
	config_report_fault(r, line);
}

void config_warn(struct config_report *r, const struct config *c, enum directive_id id,
		 const char *fmt, ...)
{
	char line[REPORT_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	print_line(line, c, id, fmt, ap);
	va_end(ap);
	config_report_warning(r, line);
}

static void free_lines(char **lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(lines[i]);
	free(lines);
}

void config_report_fini(struct config_report *r)
{
	free_lines(r->faults, r->fault_count);
	free_lines(r->warnings, r->warning_count);
	*r = (struct config_report){0};
}
