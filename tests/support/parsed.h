/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_PARSED_H
#define TESTS_SUPPORT_PARSED_H

/* The configuration that a test parsed last, and what was said of it. After <cmocka.h>. */

#include <string.h>

#include "config/config.h"

static struct config_report report;
static struct config *config;

static inline void parsed_drop(void)
{
	config_free(config);
	config_report_fini(&report);
	config = NULL;
}

/* Parse `text` as a file named "t"; 0 or config_parse's error. */
static inline int parsed_from(const char *text)
{
	parsed_drop();
	return config_parse("t", text, strlen(text), &report, &config);
}

/* The configuration of `text`, which must be accepted. */
static inline const struct config *parsed_accepted(const char *text)
{
	if (parsed_from(text) != 0)
		fail_msg("'%s' is refused: %s", text, report.faults[0]);
	return config;
}

static inline int parsed_tear_down(void **state)
{
	(void)state;
	parsed_drop();
	return 0;
}

#endif
