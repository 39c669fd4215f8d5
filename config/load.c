/* SPDX-License-Identifier: Apache-2.0 */
/* A command line or a text -> a checked configuration (config.h). */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/check.h"
#include "config/options.h"

static struct options begin(struct config *c, struct config_report *report, bool has_files)
{
	return (struct options){.config = c,
				.report = report,
				.has_files = has_files,
				.permitted = CLASSES_FILE,
				.is_mssfix_default = true};
}

/* Give the configuration out if nothing is wrong with it. */
static int conclude(struct config *c, struct config_report *report, struct config **out)
{
	int err = 0;
	if (!arena_ok(c->arena) || report->is_out_of_memory) {
		config_report_fault(report, "out of memory");
		err = -ENOMEM;
	} else if (report->fault_count > 0) {
		err = -EINVAL;
	}
	if (err)
		config_free(c);
	else
		*out = c;
	return err;
}

int config_parse(const char *name, const char *text, size_t len, struct config_report *report,
		 struct config **out)
{
	struct config *c = config_new();
	if (!c)
		return -ENOMEM;
	struct options o = begin(c, report, false);
	options_parse(&o, name, text, len);
	options_finish(&o);
	config_check(c, report);
	return conclude(c, report, out);
}

static bool is_option(const char *word)
{
	return strncmp(word, "--", 2) == 0;
}

/* Take the words from argv[i] on that belong together: a directive with its arguments. Returns the
 * number of words taken. */
static int take_line(int argc, char *const *argv, int i, struct lexer_line *l)
{
	int n = 1;
	*l = (struct lexer_line){.count = 1};
	l->words[0] = argv[i] + 2;
	for (; i + n < argc && !is_option(argv[i + n]); n++)
		if (l->count < LEXER_WORDS_MAX)
			l->words[l->count++] = argv[i + n];
	return n;
}

static void parse_args(struct options *o, int argc, char *const *argv)
{
	struct lexer_line l = {.count = 2, .words = {"config"}};
	int i = 1;
	/* A first word that is no option is a file; -h is a mistake. */
	if (argc > 1 && argv[1][0] != '-') {
		l.words[1] = argv[1];
		options_apply(o, &l);
		i = 2;
	}
	while (i < argc) {
		if (!is_option(argv[i])) {
			l = (struct lexer_line){.count = 1, .words = {argv[i]}};
			options_fault(o, &l, "not an option: `--` is missing in front");
			i++;
			continue;
		}
		int taken = take_line(argc, argv, i, &l);
		if (taken > LEXER_WORDS_MAX)
			options_fault(o, &l, "more than %d words", LEXER_WORDS_MAX);
		else
			options_apply(o, &l);
		i += taken;
	}
}

int config_load(int argc, char *const *argv, enum config_action *action,
		struct config_report *report, struct config **out)
{
	struct config *c = config_new();
	*action = CONFIG_RUN;
	if (!c)
		return -ENOMEM;
	if (argc < 2) {
		config_report_fault(report, "no configuration: name its file, as in `shardvpn "
					    "server.conf`");
		return conclude(c, report, out);
	}
	struct options o = begin(c, report, true);
	parse_args(&o, argc, argv);
	*action = o.action;
	if (o.action == CONFIG_VERSION || o.action == CONFIG_HELP)
		return conclude(c, report, out);
	options_finish(&o);
	config_check(c, report);
	/* Whoever has to correct the text sees what is wrong with the machine in the same run. */
	config_check_files(c, report);
	config_check_cpus(c, report);
	return conclude(c, report, out);
}
