/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

/* Timing for the benches: CPU time of the calling thread, medians, interleaved samples. A bench
 * prints one line per case: `name case value unit`, separated by blanks. */

#include <stddef.h>
#include <stdint.h>

/* One thing to measure. */
struct bench_subject {
	void (*run)(void *context, unsigned rounds); /* do the work `rounds` times */
	void *context;
	unsigned rounds; /* per sample; 0: chosen so that a sample takes some 10 ms */
	double ns;	 /* result: CPU time of one round, median of the samples */
};

/* Read the command line: `--quick` takes few and short samples (to see that a bench works; its
 * figures mean nothing). Exits with a usage line on anything else. */
void bench_start(int argc, char **argv);

/* Measure `n` subjects in turns (a sample of each, then again), so that what disturbs the machine
 * disturbs all of them and their ratios hold. */
void bench_measure(struct bench_subject *subjects, unsigned n);
/* The same for one; returns ns per round. */
double bench_ns(void (*run)(void *context, unsigned rounds), void *context);

/* Sort `values` and return their median; n > 0. */
double bench_median(double *values, size_t n);

/* CPU time of the calling thread, and the monotonic clock, in ns. */
double bench_cpu_ns(void);
double bench_wall_ns(void);

/* One line of output. `name` of the bench, `which` case (no blanks in it), e.g.
 * "bench_crypto", "seal/aes-256-gcm/1400/ipsec-mb", 123.4, "ns". */
void bench_print(const char *name, const char *which, double value, const char *unit);

/* Keep the compiler from leaving out what computes `p`'s target. */
static inline void bench_use(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* 64-bit mixer (SplitMix64): repeatable test data and random orders. */
uint64_t bench_random(uint64_t *state);

#endif
