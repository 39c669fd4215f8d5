/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 1024

enum action_kind { ACT_NOTHING, ACT_FLAG, ACT_TEXT, ACT_FILE, ACT_NUMBER, ACT_CALL };

/* What a directive does to struct config. */
struct action {
	enum action_kind kind;
	size_t offset, size; /* of the field */
	uint64_t min, max;
	void (*call)(struct options *o, const struct lexer_line *l);
};

/* clang-format off */
#define FIELD(field) \
	.offset = offsetof(struct config, field), .size = sizeof(((struct config *)NULL)->field)
#define NOTHING {.kind = ACT_NOTHING},
#define SET_FLAG(field) {.kind = ACT_FLAG, FIELD(field)},
#define SET_TEXT(field) {.kind = ACT_TEXT, FIELD(field)},
#define SET_FILE(field) {.kind = ACT_FILE, FIELD(field)},
#define SET_NUMBER(field, least, most) {.kind = ACT_NUMBER, FIELD(field), .min = (least), .max = (most)},
#define CALL(handler) {.kind = ACT_CALL, .call = (handler)},
#define DIRECTIVE(id, name, min, max, where, fate, stage, classes, is_inline, action, usage, note) \
	[DIRECTIVE_##id] = action
static const struct action actions[DIRECTIVE_COUNT] = {
#include "config/directive.def"
};
/* clang-format on */

/* "FILE:LINE: " or "command line: ", then the directive's name. */
__attribute__((format(printf, 3, 0))) static void
print_message(char *out, const struct lexer_line *l, const char *fmt, va_list ap)
{
	const char *name = l->count > 0 ? l->words[0] : "";
	const char *colon = l->count > 0 ? ": " : "";
	int n;
	if (l->file)
		n = snprintf(out, MESSAGE_MAX, "%s:%u: %s%s", l->file, l->number, name, colon);
	else
		n = snprintf(out, MESSAGE_MAX, "command line: %s%s", name, colon);
	if (n >= 0 && n < MESSAGE_MAX)
		(void)vsnprintf(out + n, (size_t)(MESSAGE_MAX - n), fmt, ap);
}

void options_fault(struct options *o, const struct lexer_line *l, const char *fmt, ...)
{
	char line[MESSAGE_MAX];
	va_list ap;
	va_start(ap, fmt);
	print_message(line, l, fmt, ap);
	va_end(ap);
	config_report_fault(o->report, line);
}

void options_warn(struct options *o, const struct lexer_line *l, const char *fmt, ...)
{
	char line[MESSAGE_MAX];
	va_list ap;
	va_start(ap, fmt);
	print_message(line, l, fmt, ap);
	va_end(ap);
	config_report_warning(o->report, line);
}

bool options_number(struct options *o, const struct lexer_line *l, unsigned arg, uint64_t min,
		    uint64_t max, uint64_t *out)
{
	uint64_t n;
	if (number_parse(l->words[arg], max, &n) && n >= min) {
		*out = n;
		return true;
	}
	options_fault(o, l, "'%s' is no number from %llu to %llu", l->words[arg],
		      (unsigned long long)min, (unsigned long long)max);
	return false;
}

int options_choice(struct options *o, const struct lexer_line *l, unsigned arg,
		   const char *const *words)
{
	char list[256] = "";
	size_t len = 0;
	for (int i = 0; words[i]; i++) {
		if (strcmp(l->words[arg], words[i]) == 0)
			return i;
		int n = snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", words[i]);
		if (n > 0 && (size_t)n < sizeof(list) - len)
			len += (size_t)n;
	}
	options_fault(o, l, "'%s' is none of: %s", l->words[arg], list);
	return -1;
}

const char *options_text(struct options *o, const struct lexer_line *l, unsigned arg)
{
	if (l->words[arg][0] == '\0') {
		options_fault(o, l, "an empty word");
		return NULL;
	}
	return arena_strdup(o->config->arena, l->words[arg]);
}

bool options_file(struct options *o, const struct lexer_line *l, struct config_file *out)
{
	struct config_file f = {0};
	if (l->block) {
		f.text = arena_strndup(o->config->arena, l->block, l->block_len);
		f.text_len = l->block_len;
	} else {
		f.path = options_text(o, l, 1);
	}
	if (!f.text && !f.path)
		return false;
	*out = f;
	return true;
}

void options_add_push(struct options *o, const char *text)
{
	struct config *c = o->config;
	const char **texts = arena_grow(c->arena, c->push, c->push_count, sizeof(*texts));
	const char *copy = arena_strdup(c->arena, text);
	if (!texts || !copy)
		return;
	texts[c->push_count++] = copy;
	c->push = texts;
}

void options_add_route(struct options *o, const struct route_spec *r)
{
	struct config *c = o->config;
	struct route_spec *routes =
		arena_grow(c->arena, c->routes, c->route_count, sizeof(*routes));
	if (!routes)
		return;
	routes[c->route_count++] = *r;
	c->routes = routes;
}

static void set_number(struct options *o, const struct lexer_line *l, const struct action *a)
{
	uint64_t n;
	void *field = (char *)o->config + a->offset;
	if (!options_number(o, l, 1, a->min, a->max, &n))
		return;
	if (a->size == sizeof(uint64_t)) {
		memcpy(field, &n, sizeof(n));
		return;
	}
	assert(a->size == sizeof(uint32_t) && n <= UINT32_MAX);
	uint32_t n32 = (uint32_t)n;
	memcpy(field, &n32, sizeof(n32));
}

static void run(struct options *o, const struct lexer_line *l, const struct action *a)
{
	void *field = (char *)o->config + a->offset;
	const char *text;
	switch (a->kind) {
	case ACT_NOTHING:
		break;
	case ACT_FLAG:
		*(bool *)field = true;
		break;
	case ACT_TEXT:
		text = options_text(o, l, 1);
		if (text)
			memcpy(field, &text, sizeof(text));
		break;
	case ACT_FILE:
		options_file(o, l, field);
		break;
	case ACT_NUMBER:
		set_number(o, l, a);
		break;
	case ACT_CALL:
		a->call(o, l);
		break;
	}
}

/* May this line, which means nothing to us, be passed over? */
static bool is_ignorable(const struct options *o, const char *name)
{
	if (o->is_forward_compatible)
		return true;
	for (size_t i = 0; i < o->ignorable_count; i++)
		if (strcmp(name, o->ignorable[i]) == 0)
			return true;
	return false;
}

static void apply_unknown(struct options *o, const struct lexer_line *l)
{
	const char *near = directive_nearest(l->words[0]);
	if (is_ignorable(o, l->words[0]))
		options_warn(o, l, "unknown directive, ignored as the configuration allows");
	else if (near)
		options_fault(o, l, "unknown directive; did you mean %s?", near);
	else
		options_fault(o, l, "unknown directive");
}

static void apply_unbuilt(struct options *o, const struct lexer_line *l, const struct directive *d)
{
	options_fault(o, l, "not supported yet%s%s", d->note[0] ? "; " : "", d->note);
}

/* Our own directives are announced as ignorable for the stock daemon's sake; here they count. */
static void apply_miscounted(struct options *o, const struct lexer_line *l, enum directive_id id)
{
	const struct directive *d = directive_get(id);
	const char *gap = d->usage[0] ? " " : "";
	const char *problem = "Unrecognized option or missing or extra parameter(s)";
	if (is_ignorable(o, l->words[0]) && !directive_is_own(id))
		options_warn(o, l, "%s, ignored as the configuration allows", problem);
	else
		options_fault(o, l, "%s; usage: %s%s%s", problem, d->name, gap, d->usage);
}

static bool is_count_right(const struct lexer_line *l, const struct directive *d)
{
	unsigned args = l->count - 1 + (l->block ? 1 : 0);
	return args >= d->min_args && (d->max_args == DIRECTIVE_ARGS_ANY || args <= d->max_args);
}

static void mark_place(struct options *o, const struct lexer_line *l, enum directive_id id)
{
	o->config->places[id] =
		(struct config_place){.file = l->file, .line = l->number, .is_given = true};
}

static void apply_known(struct options *o, const struct lexer_line *l, enum directive_id id)
{
	const struct directive *d = directive_get(id);
	bool is_first = !o->config->places[id].is_given;
	size_t faults = o->report->fault_count;
	mark_place(o, l, id);
	if ((d->classes & o->permitted) == 0)
		options_fault(o, l, "cannot be used in this context");
	else if (d->fate == FATE_REFUSE)
		options_fault(o, l, "refused: %s", d->note);
	else if (d->fate == FATE_IMPLEMENT && d->stage != STAGE_CORE)
		apply_unbuilt(o, l, d);
	else if (!is_count_right(l, d))
		apply_miscounted(o, l, id);
	else if (l->block && !d->is_inline_ok)
		options_fault(o, l, "cannot be an inline block");
	else
		run(o, l, &actions[id]);
	if (d->fate == FATE_WARN && is_first && o->report->fault_count == faults)
		options_warn(o, l, "%s", d->note);
}

void options_apply(struct options *o, const struct lexer_line *l)
{
	enum directive_id id = directive_find(l->words[0]);
	if (id == DIRECTIVE_COUNT)
		apply_unknown(o, l);
	else
		apply_known(o, l, id);
}

void options_parse(struct options *o, const char *name, const char *text, size_t len)
{
	struct lexer lexer;
	struct lexer_line line;
	const char *reason;
	enum lexer_result result;
	/* Places of directives refer to the name until the configuration dies. */
	const char *kept = arena_strdup(o->config->arena, name);
	lexer_init(&lexer, kept ? kept : "", text, len);
	while ((result = lexer_next(&lexer, &line, &reason)) != LEXER_END) {
		if (result == LEXER_FAULT) {
			line.count = 0;
			options_fault(o, &line, "%s", reason);
		} else {
			options_apply(o, &line);
		}
	}
}
