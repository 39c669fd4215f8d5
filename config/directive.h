/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_DIRECTIVE_H
#define CONFIG_DIRECTIVE_H

/* The table of every directive (directive.def): names, argument counts, what becomes of each. */

#include <stdbool.h>
#include <stdint.h>

#define DIRECTIVE_ARGS_ANY UINT8_MAX /* as many as the line holds */

enum directive_where { WHERE_ANY, WHERE_SERVER, WHERE_CLIENT, WHERE_P2P, WHERE_CLIENT_P2P };
enum directive_fate { FATE_IMPLEMENT, FATE_WARN, FATE_REFUSE };
enum directive_stage { STAGE_NONE, STAGE_CORE, STAGE_SERVER, STAGE_OPS, STAGE_ROLES };

/* Permission classes (options.md, section 1): who may give a directive. A source of directives is a
 * mask of classes; a directive is accepted if it shares a bit with it. */
enum directive_class {
	CLASS_GENERAL = 1 << 0,
	CLASS_UP = 1 << 1,
	CLASS_ROUTE = 1 << 2,
	CLASS_DHCP_DNS = 1 << 3,
	CLASS_ROUTE_EXTRAS = 1 << 4,
	CLASS_SOCKBUF = 1 << 5,
	CLASS_SOCKFLAGS = 1 << 6,
	CLASS_SETENV = 1 << 7,
	CLASS_SHAPER = 1 << 8,
	CLASS_TIMER = 1 << 9,
	CLASS_COMP = 1 << 10,
	CLASS_PERSIST = 1 << 11,
	CLASS_MESSAGES = 1 << 12,
	CLASS_EXPLICIT_NOTIFY = 1 << 13,
	CLASS_ECHO = 1 << 14,
	CLASS_PULL_MODE = 1 << 15,
	CLASS_PEER_ID = 1 << 16,
	CLASS_NCP = 1 << 17,
	CLASS_PUSH_MTU = 1 << 18,
	CLASS_INSTANCE = 1 << 19,
	CLASS_INHERIT = 1 << 20,
	CLASS_PUSH = 1 << 21,
	CLASS_CONFIG = 1 << 22,
	CLASS_CONNECTION = 1 << 23,
	/* a configuration file or the command line */
	CLASSES_FILE = (1 << 24) - 1,
	/* a ccd file, client-connect's output, client-auth of the management */
	CLASSES_CLIENT = CLASS_INSTANCE | CLASS_INHERIT | CLASS_PUSH | CLASS_TIMER | CLASS_CONFIG |
			 CLASS_ECHO | CLASS_COMP | CLASS_SOCKFLAGS,
	/* a PUSH_REPLY */
	CLASSES_PULL = CLASS_UP | CLASS_ROUTE | CLASS_DHCP_DNS | CLASS_ROUTE_EXTRAS |
		       CLASS_SOCKBUF | CLASS_SOCKFLAGS | CLASS_SETENV | CLASS_SHAPER | CLASS_TIMER |
		       CLASS_COMP | CLASS_PERSIST | CLASS_MESSAGES | CLASS_EXPLICIT_NOTIFY |
		       CLASS_ECHO | CLASS_PULL_MODE | CLASS_PEER_ID | CLASS_NCP | CLASS_PUSH_MTU,
};

enum directive_id {
#define DIRECTIVE(id, ...) DIRECTIVE_##id,
#include "config/directive.def"
#undef DIRECTIVE
	DIRECTIVE_COUNT
};

struct directive {
	const char *name;
	uint8_t min_args, max_args; /* DIRECTIVE_ARGS_ANY: no upper limit */
	enum directive_where where;
	enum directive_fate fate;
	enum directive_stage stage;
	uint32_t classes; /* enum directive_class */
	bool is_inline_ok;
	const char *usage; /* arguments, or "" */
	const char *note;  /* why it warns or is refused, what to do until it is built, or "" */
};

/* id < DIRECTIVE_COUNT. */
const struct directive *directive_get(enum directive_id id);
/* Does the stock daemon not know it? */
bool directive_is_own(enum directive_id id);
/* Exact name without "--"; DIRECTIVE_COUNT if there is none. */
enum directive_id directive_find(const char *name);
/* Name of the directive with the fewest edits from `name`; NULL if none is near. */
const char *directive_nearest(const char *name);

#endif
