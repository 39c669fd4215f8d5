/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/metrics_text.h"

#include <inttypes.h>
#include <string.h>

static const char *type_name(const struct metrics_text *m)
{
	switch (m->type) {
	case METRIC_COUNTER:
		return "counter";
	case METRIC_GAUGE:
		return "gauge";
	case METRIC_INFO:
		return m->format == METRICS_OPENMETRICS ? "info" : "gauge";
	case METRIC_HISTOGRAM:
		return "histogram";
	}
	return "unknown";
}

static const char *suffix(const struct metrics_text *m)
{
	return m->type == METRIC_COUNTER ? "_total" : m->type == METRIC_INFO ? "_info" : "";
}

void metrics_family(struct metrics_text *m, const char *name, enum metric_type type,
		    const char *unit, const char *help)
{
	m->family = name;
	m->type = type;
	/* In 0.0.4 the family is called what its samples are called. */
	const char *end = m->format == METRICS_OPENMETRICS ? "" : suffix(m);
	fprintf(m->f, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end, type_name(m));
	if (unit != NULL && m->format == METRICS_OPENMETRICS)
		fprintf(m->f, "# UNIT %s %s\n", name, unit);
}

/* Length of the valid UTF-8 sequence at `s`; 0 if there is none. */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char mask, head, first_min;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0}, {0xf0, 0xe0, 0xa0}, {0xf8, 0xf0, 0x90}};
	for (size_t n = 0; n < 4; n++) {
		if ((s[0] & forms[n].mask) != forms[n].head)
			continue;
		for (size_t i = 1; i <= n; i++)
			if ((s[i] & 0xc0) != 0x80)
				return 0;
		/* Overlong forms, surrogates, and what is above U+10FFFF. */
		bool is_overlong = (n == 1 && s[0] < 0xc2) ||
				   (n > 1 && s[0] == forms[n].head && s[1] < forms[n].first_min);
		bool is_outside = (s[0] == 0xed && s[1] >= 0xa0) || s[0] > 0xf4 ||
				  (s[0] == 0xf4 && s[1] >= 0x90);
		return is_overlong || is_outside ? 0 : n + 1;
	}
	return 0;
}

/* Most text is nothing but ASCII that needs no escape. */
static size_t plain_len(const unsigned char *s)
{
	size_t n = 0;
	while (s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static void value_print(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	while (*s != '\0') {
		size_t plain = plain_len(s);
		fwrite(s, 1, plain, f);
		s += plain;
		if (*s == '\0')
			return;
		size_t n = utf8_len(s);
		if (*s == '\n')
			fputs("\\n", f);
		else if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (n == 0)
			fputc('?', f);
		else
			fwrite(s, 1, n, f);
		s += n == 0 ? 1 : n;
	}
}

static void labels_print(const struct metrics_text *m, const struct label *labels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fputc(i == 0 ? '{' : ',', m->f);
		fputs(labels[i].name, m->f);
		fputs("=\"", m->f);
		value_print(m->f, labels[i].value);
		fputc('"', m->f);
	}
	if (count > 0)
		fputc('}', m->f);
}

static void sample_begin(const struct metrics_text *m, const struct label *labels, size_t count)
{
	fputs(m->family, m->f);
	fputs(suffix(m), m->f);
	labels_print(m, labels, count);
}

void metrics_integer(const struct metrics_text *m, const struct label *labels, size_t count,
		     uint64_t value)
{
	sample_begin(m, labels, count);
	fprintf(m->f, " %" PRIu64 "\n", value);
}

void metrics_seconds(const struct metrics_text *m, const struct label *labels, size_t count,
		     uint64_t value_ns)
{
	sample_begin(m, labels, count);
	fprintf(m->f, " %" PRIu64 ".%09" PRIu64 "\n", value_ns / 1000000000, value_ns % 1000000000);
}

void metrics_histogram(const struct metrics_text *m, struct label label, const uint64_t *buckets,
		       const char *const *bounds, size_t count, uint64_t sum_us)
{
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct label labels[] = {label, {"le", i + 1 < count ? bounds[i] : "+Inf"}};
		total += buckets[i];
		fprintf(m->f, "%s_bucket", m->family);
		labels_print(m, labels, 2);
		fprintf(m->f, " %" PRIu64 "\n", total);
	}
	fprintf(m->f, "%s_count", m->family);
	labels_print(m, &label, 1);
	fprintf(m->f, " %" PRIu64 "\n%s_sum", total, m->family);
	labels_print(m, &label, 1);
	fprintf(m->f, " %" PRIu64 ".%06" PRIu64 "\n", sum_us / 1000000, sum_us % 1000000);
}

void metrics_end(const struct metrics_text *m)
{
	if (m->format == METRICS_OPENMETRICS)
		fputs("# EOF\n", m->f);
}
