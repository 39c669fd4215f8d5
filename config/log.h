/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_LOG_H
#define CONFIG_LOG_H

/* Log lines for operators, in the form that tools expect of OpenVPN: an optional time stamp, an
 * optional client prefix, the text. Control side only: a worker counts and sends messages.
 * Thread-safe: a line is one write. Text from peers must be made printable first (log_printable).
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value is the smallest `verb` at which a line appears. */
enum log_level {
	LOG_FATAL = 0,
	LOG_ERROR = 0,
	LOG_WARN = 1,
	LOG_NOTE = 1,
	LOG_INFO = 3,
	LOG_DEBUG = 4,
	LOG_TRACE = 6,
};

struct log_options {
	int verb;	     /* 0..11 */
	int mute;	     /* most consecutive lines of one call site; 0: no limit */
	bool has_timestamps; /* "YYYY-MM-DD HH:MM:SS " in front */
	const char *file;    /* NULL: stdout */
	bool is_append;
	const char *syslog_name; /* not NULL: syslog instead of a file */
};

/* Open the sink. Before this, lines go to stdout at verb 1. Returns 0 or -errno (file). */
__attribute__((warn_unused_result)) int log_open(const struct log_options *o);
void log_close(void);
bool log_is_on(enum log_level level);
int log_verb(void);
void log_set_verb(int verb);

/* One line without newline. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with "PREFIX " before the text; prefix NULL or "" leaves it out. */
void log_client(enum log_level level, const char *prefix, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* At most `per_s` lines a second from one call site; says how many it left out. Zero-initialised
 * by the caller as a static. now_ms: CLOCK_BOOTTIME. */
struct log_limit {
	uint64_t window_ms;
	uint32_t count;
	uint32_t suppressed;
};
bool log_limit_pass(struct log_limit *l, uint64_t now_ms, uint32_t per_s);

/* Copy peer-chosen text, printable ASCII only, everything else as '_'. Returns `out`. */
const char *log_printable(const char *text, size_t len, char *out, size_t cap);

#endif
