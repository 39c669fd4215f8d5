/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, and what is said before there is a log; then the gateway runs. Exit codes: 0 a signal
 * ended it, or a question was answered; 1 the configuration is refused, the start or a worker
 * failed. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/log.h"
#include "crypto/version.h"
#include "server/gateway.h"
#include "server/keys.h"
#include "server/privilege.h"

/* Faults go to stderr, all of them: nothing was started, so there is no log either. */
static int refuse(const struct config_report *r)
{
	for (size_t i = 0; i < r->warning_count; i++)
		fprintf(stderr, "%s\n", r->warnings[i]);
	for (size_t i = 0; i < r->fault_count; i++)
		fprintf(stderr, "Options error: %s\n", r->faults[i]);
	fputs("Use --help for more information.\n", stderr);
	return 1;
}

static int print_version(void)
{
	printf("%s\n", config_version_line());
	printf("library versions: %s\n", crypto_version());
	puts("shardvpn is free software under the Apache License, version 2.0.");
	return fflush(stdout) == 0 ? 0 : 1;
}

static int print_help(void)
{
	char *text = config_help_text();
	if (text == NULL)
		return 1;
	fputs(text, stdout);
	free(text);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* The content of keys and certificates counts: a start would be refused for it. */
static int print_test(const struct config *c, const struct config_report *r)
{
	char why[GATEWAY_WHY];
	struct keys keys;
	for (size_t i = 0; i < r->warning_count; i++)
		printf("%s\n", r->warnings[i]);
	if (keys_load(c, &keys, why, sizeof(why)) != 0) {
		fprintf(stderr, "Options error: %s\n", why);
		return 1;
	}
	keys_free(&keys);
	puts("configuration is valid");
	return fflush(stdout) == 0 ? 0 : 1;
}

static int open_log(const struct config *c)
{
	const char *name = c->daemon_name != NULL ? c->daemon_name : "openvpn";
	bool is_syslog = c->is_syslog || (c->is_daemon && c->log_path == NULL);
	const struct log_options o = {
		.verb = c->verb,
		.mute = c->mute,
		.has_timestamps = !c->is_timestamps_off,
		.file = c->log_path,
		.is_append = c->is_log_append,
		.syslog_name = is_syslog ? name : NULL,
	};
	int err = log_open(&o);
	if (err != 0)
		fprintf(stderr, "cannot open the log file %s: %s\n", c->log_path, strerror(-err));
	return err;
}

static void log_start(const struct config_report *r)
{
	for (size_t i = 0; i < r->warning_count; i++)
		log_line(LOG_WARN, "WARNING: %s", r->warnings[i]);
	log_line(LOG_NOTE, "%s", config_version_line());
	log_line(LOG_NOTE, "library versions: %s", crypto_version());
}

/* Said in the log, and to whoever started a daemon and waits for it. */
static void say_fatal(const struct config *c, const char *why)
{
	log_line(LOG_FATAL, "%s", why);
	if (c->is_daemon || c->is_syslog || c->log_path != NULL)
		fprintf(stderr, "%s\n", why);
}

static int run_gateway(const struct config *c)
{
	char why[GATEWAY_WHY];
	struct gateway *g;
	if (gateway_new(c, &g, why, sizeof(why)) != 0) {
		say_fatal(c, why);
		log_line(LOG_FATAL, "Exiting due to fatal error");
		return 1;
	}
	int code = gateway_run(g, why, sizeof(why));
	if (why[0] != '\0')
		say_fatal(c, why);
	gateway_free(g);
	return code;
}

/* Until the acceptor listens to them, requests to read or write something anew have nothing to
 * act on; they must not end a server that is about to start, or to stop. */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGUSR1, SIGUSR2};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
}

static int run(const struct config *c, const struct config_report *r)
{
	if (open_log(c) != 0)
		return 1;
	log_start(r);
	int err = c->is_daemon ? privilege_daemon() : 0;
	if (err != 0)
		say_fatal(c, strerror(-err));
	int code = err != 0 ? 1 : run_gateway(c);
	log_close();
	return code;
}

static int act(enum config_action action, const struct config *c, const struct config_report *r)
{
	switch (action) {
	case CONFIG_VERSION:
		return print_version();
	case CONFIG_HELP:
		return print_help();
	case CONFIG_TEST:
		return print_test(c, r);
	case CONFIG_RUN:
		return run(c, r);
	}
	return 1;
}

int main(int argc, char **argv)
{
	ignore_signals();
	enum config_action action = CONFIG_RUN;
	struct config_report report = {0};
	struct config *c = NULL;
	int err = config_load(argc, argv, &action, &report, &c);
	bool is_question = action == CONFIG_VERSION || action == CONFIG_HELP;
	int code = err != 0 && !is_question ? refuse(&report) : act(action, c, &report);
	config_free(c);
	config_report_fini(&report);
	return code;
}
