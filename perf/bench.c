/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/bench.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES_MAX 15
#define SAMPLE_NS   10e6
#define QUICK	    3
#define QUICK_NS    0.2e6
#define ROUNDS_MAX  (1u << 30)

static unsigned samples = SAMPLES_MAX;
static double sample_ns = SAMPLE_NS;

void bench_start(int argc, char **argv)
{
	if (argc == 1)
		return;
	if (argc != 2 || strcmp(argv[1], "--quick") != 0) {
		fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
		exit(64);
	}
	samples = QUICK;
	sample_ns = QUICK_NS;
}

static double clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double bench_wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static double run_once(const struct bench_subject *s, unsigned rounds)
{
	double start = bench_cpu_ns();
	s->run(s->context, rounds);
	return bench_cpu_ns() - start;
}

/* Doubles until the work is long enough to be timed; also warms it up. */
static unsigned calibrate(const struct bench_subject *s)
{
	unsigned rounds = 1;
	double ns = run_once(s, rounds);
	while (ns < sample_ns && rounds < ROUNDS_MAX) {
		rounds *= 2;
		ns = run_once(s, rounds);
	}
	return rounds;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
	assert(n > 0);
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void bench_measure(struct bench_subject *subjects, unsigned n)
{
	double(*taken)[SAMPLES_MAX] = calloc(n, sizeof(*taken));
	if (!taken)
		abort();
	for (unsigned i = 0; i < n; i++) {
		if (!subjects[i].rounds)
			subjects[i].rounds = calibrate(&subjects[i]);
	}
	for (unsigned s = 0; s < samples; s++) {
		for (unsigned i = 0; i < n; i++)
			taken[i][s] = run_once(&subjects[i], subjects[i].rounds);
	}
	for (unsigned i = 0; i < n; i++)
		subjects[i].ns = bench_median(taken[i], samples) / subjects[i].rounds;
	free(taken);
}

double bench_ns(void (*run)(void *context, unsigned rounds), void *context)
{
	struct bench_subject s = {.run = run, .context = context};
	bench_measure(&s, 1);
	return s.ns;
}

void bench_print(const char *name, const char *which, double value, const char *unit)
{
	printf("%-14s %-44s %10.2f %s\n", name, which, value, unit);
	fflush(stdout);
}

uint64_t bench_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}
