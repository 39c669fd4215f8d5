/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

/* Lines of words -> struct config: the dispatch by the directive table, the handlers of single
 * directives (options_net.c, options_tls.c, options_srv.c) and the macros (options_macro.c).
 * A handler that meets a mistake reports it and leaves the configuration as it was. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/arena.h"
#include "config/config.h"
#include "config/lexer.h"

#define OPTIONS_INCLUDE_DEPTH 10       /* files inside files */
#define OPTIONS_INCLUDES_MAX  256      /* in all: files that include themselves multiply */
#define MAX_CLIENTS_LIMIT     0xFFFFFE /* peer-ids that there are */

enum proto { PROTO_UDP, PROTO_UDP4, PROTO_UDP6 };
enum dev_type { DEV_TYPE_BY_NAME, DEV_TYPE_TUN, DEV_TYPE_TAP };

/* One parse in the making. */
struct options {
	struct config *config;
	struct config_report *report;
	bool has_files;	    /* may open files, change directory, ask for service names */
	uint32_t permitted; /* enum directive_class: what this source may give */
	unsigned depth;	    /* of files inside files */
	unsigned includes;  /* files read so far */
	enum config_action action;
	bool is_forward_compatible;   /* setenv FORWARD_COMPATIBLE 1 was seen */
	const char *const *ignorable; /* ignore-unknown-option */
	size_t ignorable_count;

	/* What gets its meaning from other lines, at the end (options_finish). */
	enum proto proto;
	bool is_ipv6_only;
	unsigned local_count;
	enum dev_type dev_type;
	bool has_topology;
	struct ip_addr ifconfig_local;	  /* family 0: not given */
	const char *ifconfig_remote;	  /* address or netmask, as written */
	struct ip_prefix server, server6; /* of the macros; family 0: not given */
	bool is_nopool;
	uint32_t keepalive_ping_s, keepalive_restart_s; /* 0: not given */
	bool is_mssfix_default;
};

/* Parse a whole text called `name`. Mistakes go to o->report. */
void options_parse(struct options *o, const char *name, const char *text, size_t len);
/* One line. */
void options_apply(struct options *o, const struct lexer_line *l);
/* Macros, defaults that depend on each other, values that need two directives. */
void options_finish(struct options *o);

/* A mistake in this line: "FILE:LINE: DIRECTIVE: reason". */
void options_fault(struct options *o, const struct lexer_line *l, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void options_warn(struct options *o, const struct lexer_line *l, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Argument `arg` (1..) as a number from `min` to `max`; reports and returns false if it is none. */
bool options_number(struct options *o, const struct lexer_line *l, unsigned arg, uint64_t min,
		    uint64_t max, uint64_t *out);
/* Argument `arg` as one of `words` (NULL behind the last): its index, or -1 after a report. */
int options_choice(struct options *o, const struct lexer_line *l, unsigned arg,
		   const char *const *words);
/* Argument `arg` copied into the arena; reports and returns NULL if it is empty or there is none.
 */
const char *options_text(struct options *o, const struct lexer_line *l, unsigned arg);
/* Argument 1 or the inline block as file; reports and returns false if the name is empty. */
bool options_file(struct options *o, const struct lexer_line *l, struct config_file *out);
/* Append to the texts that are pushed; `text` is copied. */
void options_add_push(struct options *o, const char *text);
/* Append to the routes. */
void options_add_route(struct options *o, const struct route_spec *r);

/* The handlers that directive.def names: each takes a line whose argument count was checked. */
#define NOTHING
#define SET_FLAG(field)
#define SET_TEXT(field)
#define SET_FILE(field)
#define SET_NUMBER(field, least, most)
#define CALL(handler) void handler(struct options *o, const struct lexer_line *l);
#define DIRECTIVE(id, name, min, max, where, fate, stage, classes, is_inline, action, usage, note) \
	action
#include "config/directive.def"
#undef DIRECTIVE
#undef CALL
#undef SET_NUMBER
#undef SET_FILE
#undef SET_TEXT
#undef SET_FLAG
#undef NOTHING

#endif
