/* SPDX-License-Identifier: Apache-2.0 */
#include "config/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* Last: it has macros named as our levels, which this file therefore does not use below. */
#include <syslog.h>

#define LINE_MAX_LEN 8192
#define USEC_VERB    4 /* from here on the time stamp has microseconds, as stock's */

struct mute {
	uint64_t site; /* of the last line */
	unsigned count;
	unsigned cutoff;
};

/* The lock orders lines and guards everything here but `verb`, which any thread reads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int verb_now = 1; /* relaxed */
static int sink_fd = -1;	/* -1: stdout */
static bool is_syslog;
static bool has_timestamps;
static char syslog_name[64];
static struct mute mute;

static int open_file(const struct log_options *o)
{
	int mode = O_CREAT | O_WRONLY | O_CLOEXEC | O_APPEND | (o->is_append ? 0 : O_TRUNC);
	int fd = open(o->file, mode, S_IRUSR | S_IWUSR);
	return fd >= 0 ? fd : -errno;
}

static void close_sink(void)
{
	if (sink_fd >= 0)
		close(sink_fd);
	if (is_syslog)
		closelog();
	sink_fd = -1;
	is_syslog = false;
}

int log_open(const struct log_options *o)
{
	int fd = -1;
	if (o->file && !o->syslog_name) {
		fd = open_file(o);
		if (fd < 0)
			return fd;
	}
	pthread_mutex_lock(&lock);
	close_sink();
	sink_fd = fd;
	has_timestamps = o->has_timestamps;
	mute = (struct mute){.cutoff = o->mute > 0 ? (unsigned)o->mute : 0};
	if (o->syslog_name) {
		snprintf(syslog_name, sizeof(syslog_name), "%s", o->syslog_name);
		openlog(syslog_name, LOG_PID, LOG_DAEMON);
		is_syslog = true;
	}
	pthread_mutex_unlock(&lock);
	log_set_verb(o->verb);
	return 0;
}

void log_close(void)
{
	pthread_mutex_lock(&lock);
	close_sink();
	pthread_mutex_unlock(&lock);
}

bool log_is_on(enum log_level level)
{
	return (int)level <= log_verb();
}

int log_verb(void)
{
	return atomic_load_explicit(&verb_now, memory_order_relaxed);
}

void log_set_verb(int verb)
{
	atomic_store_explicit(&verb_now, verb, memory_order_relaxed);
}

static size_t print_time(char *buf, size_t cap)
{
	struct timespec now;
	struct tm tm;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0 || !localtime_r(&now.tv_sec, &tm))
		return 0;
	size_t len = strftime(buf, cap, "%Y-%m-%d %H:%M:%S ", &tm);
	if (log_verb() < USEC_VERB)
		return len;
	int n = snprintf(buf + len, cap - len, "us=%ld ", now.tv_nsec / 1000);
	return len + (n > 0 && (size_t)n < cap - len ? (size_t)n : 0);
}

static int syslog_priority(unsigned level, const char *text)
{
	if (level == 0)
		return LOG_ERR;
	return strncmp(text, "WARNING", 7) == 0 ? LOG_WARNING : LOG_NOTICE;
}

/* A line is one write, so lines of threads and of processes that share the file do not mix. */
static void write_line(char *line, size_t len)
{
	line[len] = '\n';
	const char *p = line;
	size_t left = len + 1;
	while (left > 0) {
		ssize_t n = write(sink_fd >= 0 ? sink_fd : STDOUT_FILENO, p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* Nowhere to report it to. */
		p += n;
		left -= (size_t)n;
	}
}

static void emit(unsigned level, const char *prefix, const char *text)
{
	char line[LINE_MAX_LEN];
	const char *gap = prefix && *prefix ? " " : "";
	if (is_syslog) {
		syslog(syslog_priority(level, text), "%s%s%s", prefix ? prefix : "", gap, text);
		return;
	}
	size_t len = has_timestamps ? print_time(line, sizeof(line)) : 0;
	size_t cap = sizeof(line) - len - 1;
	int n = snprintf(line + len, cap, "%s%s%s", prefix ? prefix : "", gap, text);
	if (n < 0)
		return;
	write_line(line, len + ((size_t)n < cap ? (size_t)n : cap - 1));
}

/* Lines of one call site share the format; a caller that passes finished text is told apart by
 * the text (FNV-1a). */
static uint64_t site_of(const char *fmt, const char *text)
{
	if (strcmp(fmt, "%s") != 0)
		return (uint64_t)(uintptr_t)fmt;
	uint64_t h = 0xcbf29ce484222325u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

/* The sentences are stock's, tools look for them. */
static bool is_muted(uint64_t site)
{
	char note[96];
	if (mute.cutoff == 0)
		return false;
	if (site == mute.site) {
		if (mute.count == mute.cutoff)
			emit(1, NULL, "NOTE: --mute triggered...");
		return ++mute.count > mute.cutoff;
	}
	if (mute.count > mute.cutoff) {
		snprintf(note, sizeof(note),
			 "%u variation(s) on previous %u message(s) suppressed by --mute",
			 mute.count - mute.cutoff, mute.cutoff);
		emit(1, NULL, note);
	}
	mute.site = site;
	mute.count = 1;
	return false;
}

__attribute__((format(printf, 3, 0))) static void put(enum log_level level, const char *prefix,
						      const char *fmt, va_list ap)
{
	char text[LINE_MAX_LEN];
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		return;
	/* Nothing inside a line may look like the start of another. */
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			*p = '_';
	pthread_mutex_lock(&lock);
	/* Errors are never muted. */
	if ((unsigned)level == 0 || !is_muted(site_of(fmt, text)))
		emit((unsigned)level, prefix, text);
	pthread_mutex_unlock(&lock);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	va_list ap;
	if (!log_is_on(level))
		return;
	va_start(ap, fmt);
	put(level, NULL, fmt, ap);
	va_end(ap);
}

void log_client(enum log_level level, const char *prefix, const char *fmt, ...)
{
	va_list ap;
	if (!log_is_on(level))
		return;
	va_start(ap, fmt);
	put(level, prefix, fmt, ap);
	va_end(ap);
}

bool log_limit_pass(struct log_limit *l, uint64_t now_ms, uint32_t per_s)
{
	uint32_t left_out = 0;
	pthread_mutex_lock(&lock);
	if (l->count == 0 || now_ms - l->window_ms >= 1000) {
		left_out = l->suppressed;
		*l = (struct log_limit){.window_ms = now_ms};
	}
	bool is_pass = l->count < per_s;
	if (is_pass)
		l->count++;
	else
		l->suppressed++;
	pthread_mutex_unlock(&lock);
	if (left_out > 0)
		log_line((enum log_level)1, "NOTE: %u similar message(s) left out (rate limit)",
			 left_out);
	return is_pass;
}

const char *log_printable(const char *text, size_t len, char *out, size_t cap)
{
	size_t n = 0;
	if (cap == 0)
		return out;
	for (; n < len && n + 1 < cap; n++)
		out[n] = (char)(text[n] >= ' ' && text[n] <= '~' ? text[n] : '_');
	out[n] = '\0';
	return out;
}
