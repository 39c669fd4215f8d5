/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/swarm_report.h"

#include <string.h>

static uint64_t grown(const struct swarm_moment *from, const struct swarm_moment *to,
		      enum count which)
{
	return to->counts[which] - from->counts[which];
}

/* A late packet may take back a loss from before. */
static int64_t lost(const struct swarm_moment *from, const struct swarm_moment *to)
{
	return (int64_t)grown(from, to, COUNT_DOWN_LOST);
}

static double per(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static double loss_percent(double lost_packets, double received)
{
	return lost_packets > 0 ? 100 * per(lost_packets, lost_packets + received) : 0;
}

static double mbit(uint64_t bytes, double seconds)
{
	return per((double)bytes * 8 / 1e6, seconds);
}

void swarm_progress(const struct swarm_moment *from, const struct swarm_moment *to, double seconds,
		    FILE *out)
{
	double s = to->cpu.wall - from->cpu.wall;
	uint64_t down = grown(from, to, COUNT_DOWN_PACKETS);

	fprintf(out,
		"%4.0f s: %ju connected (%.0f/s), %ju failed | up %.0f packets/s %.2f Gbit/s | "
		"down %.0f packets/s %.2f Gbit/s, lost %.2f %%\n",
		seconds, (uintmax_t)to->counts[COUNT_CONNECTED],
		per((double)grown(from, to, COUNT_CONNECTED), s),
		(uintmax_t)(to->counts[COUNT_FAILED] + to->counts[COUNT_CLOSED]),
		per((double)grown(from, to, COUNT_UP_PACKETS), s),
		mbit(grown(from, to, COUNT_UP_BYTES), s) / 1e3, per((double)down, s),
		mbit(grown(from, to, COUNT_DOWN_BYTES), s) / 1e3,
		loss_percent((double)lost(from, to), (double)down));
}

/* --- numbers that both forms say --- */

static struct cpu_times login_cpu(const struct swarm_report *r)
{
	return cpu_between(&r->start.cpu, &r->ready.cpu);
}

/* ms of CPU for each login; negative: unknown. */
static double each_ms(const struct swarm_report *r, double seconds)
{
	uint64_t n = r->ready.counts[COUNT_CONNECTED];

	return n == 0 || seconds < 0 ? -1 : seconds * 1e3 / (double)n;
}

static double quantile_ms(const struct histogram *h, double q)
{
	return (double)histogram_quantile(h, q) / 1e3;
}

/* --- JSON --- */

static void number_or_null(FILE *out, const char *key, double value, const char *tail)
{
	if (value < 0)
		fprintf(out, "\"%s\":null%s", key, tail);
	else
		fprintf(out, "\"%s\":%.6g%s", key, value, tail);
}

static void json_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":\"", key);
	for (; *text; text++)
		if ((unsigned char)*text >= ' ' && *text != '"' && *text != '\\')
			fputc(*text, out);
	fputs("\",", out);
}

static void json_setup(const struct swarm_report *r, FILE *out)
{
	const struct swarm_options *o = r->options;

	fprintf(out, "{\"clients\":%u,\"threads\":%u,\"size\":%u,\"flows\":%u,\"protocol\":\"%s\",",
		o->clients, o->threads, o->size, o->flows,
		o->protocol == INNER_TCP ? "tcp" : "udp");
	fprintf(out, "\"gso\":%s,\"gro\":%s,", o->has_gso ? "true" : "false",
		o->has_gro ? "true" : "false");
	json_text(out, "aead", r->aead);
}

static void json_login(const struct swarm_report *r, FILE *out)
{
	struct cpu_times cpu = login_cpu(r);
	uint64_t n = r->ready.counts[COUNT_CONNECTED];

	fprintf(out, "\"login\":{\"connected\":%ju,\"failed\":%ju,\"seconds\":%.6f,", (uintmax_t)n,
		(uintmax_t)r->ready.counts[COUNT_FAILED], cpu.wall);
	fprintf(out, "\"per_second\":%.2f,", per((double)n, cpu.wall));
	fprintf(out, "\"latency_ms\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},",
		quantile_ms(&r->logins, 0.5), quantile_ms(&r->logins, 0.9),
		quantile_ms(&r->logins, 0.99), (double)r->logins.max / 1e3);
	number_or_null(out, "swarm_cpu_ms_each", each_ms(r, cpu.self), ",");
	number_or_null(out, "server_cpu_ms_each", each_ms(r, cpu.server), ",");
	number_or_null(out, "machine_cpu_ms_each", each_ms(r, cpu.machine), "},");
}

static void json_up(const struct swarm_report *r, double seconds, FILE *out)
{
	uint64_t packets = grown(&r->begin, &r->end, COUNT_UP_PACKETS);
	uint64_t bytes = grown(&r->begin, &r->end, COUNT_UP_BYTES);
	uint64_t sends = grown(&r->begin, &r->end, COUNT_UP_SENDS);

	fprintf(out, "\"up\":{\"packets\":%ju,\"bytes\":%ju,\"mbit\":%.3f,\"sends\":%ju,",
		(uintmax_t)packets, (uintmax_t)bytes, mbit(bytes, seconds), (uintmax_t)sends);
	fprintf(out, "\"datagrams_per_send\":%.2f,\"refused\":%ju},",
		per((double)packets, (double)sends),
		(uintmax_t)grown(&r->begin, &r->end, COUNT_UP_REFUSED));
}

static void json_down(const struct swarm_report *r, double seconds, FILE *out)
{
	uint64_t packets = grown(&r->begin, &r->end, COUNT_DOWN_PACKETS);
	uint64_t bytes = grown(&r->begin, &r->end, COUNT_DOWN_BYTES);
	uint64_t receives = grown(&r->begin, &r->end, COUNT_DOWN_RECEIVES);
	int64_t gone = lost(&r->begin, &r->end);

	fprintf(out, "\"down\":{\"packets\":%ju,\"bytes\":%ju,\"mbit\":%.3f,\"receives\":%ju,",
		(uintmax_t)packets, (uintmax_t)bytes, mbit(bytes, seconds), (uintmax_t)receives);
	fprintf(out, "\"datagrams_per_receive\":%.2f,\"lost\":%jd,\"loss_percent\":%.4f,",
		per((double)grown(&r->begin, &r->end, COUNT_DOWN_DATAGRAMS), (double)receives),
		(intmax_t)gone, loss_percent((double)gone, (double)packets));
	fprintf(out, "\"reordered\":%ju,\"dropped\":%ju,\"unmarked\":%ju,\"overflowed\":%ju},",
		(uintmax_t)grown(&r->begin, &r->end, COUNT_DOWN_LATE),
		(uintmax_t)grown(&r->begin, &r->end, COUNT_DOWN_DROPPED),
		(uintmax_t)grown(&r->begin, &r->end, COUNT_DOWN_UNMARKED),
		(uintmax_t)(r->end.own_overflows - r->begin.own_overflows));
}

static void json_ping(const struct swarm_report *r, FILE *out)
{
	uint64_t sent = grown(&r->begin, &r->end, COUNT_PINGS_SENT);
	uint64_t answered = grown(&r->begin, &r->end, COUNT_PINGS_ANSWERED);
	const struct histogram *h = &r->pings;

	fprintf(out, "\"ping\":{\"sent\":%ju,\"received\":%ju,\"lost\":%ju,\"loss_percent\":%.4f,",
		(uintmax_t)sent, (uintmax_t)answered, (uintmax_t)(sent - answered),
		loss_percent((double)(sent - answered), (double)answered));
	fprintf(out, "\"rtt_us\":{\"p50\":%ju,\"p90\":%ju,\"p99\":%ju,\"max\":%ju}},",
		(uintmax_t)histogram_quantile(h, 0.5), (uintmax_t)histogram_quantile(h, 0.9),
		(uintmax_t)histogram_quantile(h, 0.99), (uintmax_t)h->max);
}

static void json_data(const struct swarm_report *r, FILE *out)
{
	struct cpu_times cpu = cpu_between(&r->begin.cpu, &r->end.cpu);
	const struct swarm_share *s = &r->share;

	fprintf(out, "\"data\":{\"seconds\":%.6f,", cpu.wall);
	json_up(r, cpu.wall, out);
	json_down(r, cpu.wall, out);
	json_ping(r, out);
	fprintf(out, "\"share\":{\"up_min_percent\":%.2f,\"up_max_percent\":%.2f,", s->up_least,
		s->up_most);
	fprintf(out, "\"down_min_percent\":%.2f,\"down_max_percent\":%.2f},", s->down_least,
		s->down_most);
	number_or_null(out, "swarm_cpu_s", cpu.self, ",");
	number_or_null(out, "server_cpu_s", cpu.server, ",");
	number_or_null(out, "machine_cpu_s", cpu.machine, "},");
}

void swarm_report_json(const struct swarm_report *r, FILE *out)
{
	json_setup(r, out);
	json_login(r, out);
	if (r->has_data)
		json_data(r, out);
	else
		fputs("\"data\":null,", out);
	fprintf(out, "\"total\":{\"up_packets\":%ju,\"up_bytes\":%ju,\"down_packets\":%ju,",
		(uintmax_t)r->total[COUNT_UP_PACKETS], (uintmax_t)r->total[COUNT_UP_BYTES],
		(uintmax_t)r->total[COUNT_DOWN_PACKETS]);
	fprintf(out, "\"down_lost\":%jd},", (intmax_t)r->total[COUNT_DOWN_LOST]);
	fprintf(out, "\"rekey\":{\"done\":%ju,\"failed\":%ju},\"closed\":%ju}\n",
		(uintmax_t)r->total[COUNT_REKEYED], (uintmax_t)r->total[COUNT_REKEY_FAILED],
		(uintmax_t)r->total[COUNT_CLOSED]);
}

/* --- text --- */

static void text_cpu(FILE *out, const char *who, double value, const char *unit)
{
	if (value >= 0)
		fprintf(out, ", %s %.3f %s", who, value, unit);
}

static void text_login(const struct swarm_report *r, FILE *out)
{
	struct cpu_times cpu = login_cpu(r);
	uint64_t n = r->ready.counts[COUNT_CONNECTED];

	fprintf(out, "logins: %ju in %.2f s (%.0f a second), %ju failed\n", (uintmax_t)n, cpu.wall,
		per((double)n, cpu.wall), (uintmax_t)r->ready.counts[COUNT_FAILED]);
	fprintf(out, "  latency ms: p50 %.1f, p90 %.1f, p99 %.1f, max %.1f\n",
		quantile_ms(&r->logins, 0.5), quantile_ms(&r->logins, 0.9),
		quantile_ms(&r->logins, 0.99), (double)r->logins.max / 1e3);
	fputs("  CPU of each", out);
	text_cpu(out, "swarm", each_ms(r, cpu.self), "ms");
	text_cpu(out, "server", each_ms(r, cpu.server), "ms");
	text_cpu(out, "machine", each_ms(r, cpu.machine), "ms");
	fputc('\n', out);
}

static void text_data(const struct swarm_report *r, FILE *out)
{
	const struct swarm_moment *a = &r->begin, *b = &r->end;
	struct cpu_times cpu = cpu_between(&a->cpu, &b->cpu);
	uint64_t up = grown(a, b, COUNT_UP_BYTES), down = grown(a, b, COUNT_DOWN_BYTES);

	fprintf(out, "up: %ju packets, %.1f Mbit/s, %.1f datagrams a send, %ju refused\n",
		(uintmax_t)grown(a, b, COUNT_UP_PACKETS), mbit(up, cpu.wall),
		per((double)grown(a, b, COUNT_UP_PACKETS), (double)grown(a, b, COUNT_UP_SENDS)),
		(uintmax_t)grown(a, b, COUNT_UP_REFUSED));
	fprintf(out,
		"down: %ju packets, %.1f Mbit/s, %.1f datagrams a receive, %jd lost, %ju dropped\n",
		(uintmax_t)grown(a, b, COUNT_DOWN_PACKETS), mbit(down, cpu.wall),
		per((double)grown(a, b, COUNT_DOWN_DATAGRAMS),
		    (double)grown(a, b, COUNT_DOWN_RECEIVES)),
		(intmax_t)lost(a, b), (uintmax_t)grown(a, b, COUNT_DOWN_DROPPED));
	if (r->pings.count)
		fprintf(out, "ping: %ju of %ju answered, us: p50 %ju, p90 %ju, p99 %ju, max %ju\n",
			(uintmax_t)grown(a, b, COUNT_PINGS_ANSWERED),
			(uintmax_t)grown(a, b, COUNT_PINGS_SENT),
			(uintmax_t)histogram_quantile(&r->pings, 0.5),
			(uintmax_t)histogram_quantile(&r->pings, 0.9),
			(uintmax_t)histogram_quantile(&r->pings, 0.99), (uintmax_t)r->pings.max);
	fprintf(out, "CPU in %.2f s", cpu.wall);
	text_cpu(out, "swarm", cpu.self, "s");
	text_cpu(out, "server", cpu.server, "s");
	text_cpu(out, "machine", cpu.machine, "s");
	fputc('\n', out);
}

void swarm_report_text(const struct swarm_report *r, FILE *out)
{
	fprintf(out, "%u clients, %u threads, %s\n", r->options->clients, r->options->threads,
		r->aead);
	text_login(r, out);
	if (r->has_data)
		text_data(r, out);
	if (r->total[COUNT_REKEYED] || r->total[COUNT_REKEY_FAILED])
		fprintf(out, "renegotiations: %ju, %ju failed\n",
			(uintmax_t)r->total[COUNT_REKEYED],
			(uintmax_t)r->total[COUNT_REKEY_FAILED]);
	if (r->total[COUNT_CLOSED])
		fprintf(out, "closed by the server or by time: %ju\n",
			(uintmax_t)r->total[COUNT_CLOSED]);
}
