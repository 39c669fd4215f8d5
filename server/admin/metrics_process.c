/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "crypto/version.h"
#include "server/admin/metrics_families.h"

/* Of jemalloc; absent where another allocator runs (sanitizers). */
extern int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));

static void single(struct metrics_text *m, const char *name, enum metric_type type,
		   const char *unit, const char *help, uint64_t value)
{
	metrics_family(m, name, type, unit, help);
	metrics_integer(m, NULL, 0, value);
}

static void build(struct metrics_text *m)
{
	const struct label labels[] = {{"version", SHARDVPN_VERSION},
				       {"openssl", crypto_version()},
				       {"compat", OPENVPN_COMPAT_VERSION}};
	metrics_family(m, "shardvpn_build", METRIC_INFO, NULL, "What is running.");
	metrics_integer(m, labels, 3, 1);
}

static void cpu(struct metrics_text *m)
{
	struct timespec t = {0};
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	metrics_family(m, "process_cpu_seconds", METRIC_COUNTER, "seconds",
		       "CPU time of all threads, user and system.");
	metrics_seconds(m, NULL, 0, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

static void memory(struct metrics_text *m)
{
	unsigned long long pages[2] = {0};
	FILE *f = fopen("/proc/self/statm", "re");
	if (f == NULL)
		return;
	int n = fscanf(f, "%llu %llu", &pages[0], &pages[1]); // NOLINT(cert-err34-c)
	(void)fclose(f);
	if (n != 2)
		return;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	single(m, "process_virtual_memory_bytes", METRIC_GAUGE, "bytes", "Address space in use.",
	       pages[0] * page);
	single(m, "process_resident_memory_bytes", METRIC_GAUGE, "bytes", "Memory in RAM.",
	       pages[1] * page);
}

static void descriptors(struct metrics_text *m)
{
	struct rlimit limit;
	uint64_t count = 0;
	DIR *d = opendir("/proc/self/fd");
	if (d == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		goto out;
	/* Only this thread reads the stream. */
	for (struct dirent *e; (e = readdir(d)) != NULL;) // NOLINT(concurrency-mt-unsafe)
		count += e->d_name[0] != '.';
	single(m, "process_open_fds", METRIC_GAUGE, NULL, "Open file descriptors.",
	       count - 1); /* without the folder's */
	single(m, "process_max_fds", METRIC_GAUGE, NULL, "Most file descriptors.", limit.rlim_cur);
out:
	if (d != NULL)
		(void)closedir(d);
}

static void allocator(struct metrics_text *m)
{
	uint64_t epoch = 1;
	size_t epoch_len = sizeof(epoch), allocated = 0, resident = 0, len = sizeof(size_t);
	if (mallctl == NULL || mallctl("epoch", &epoch, &epoch_len, &epoch, epoch_len) != 0)
		return;
	if (mallctl("stats.allocated", &allocated, &len, NULL, 0) != 0 ||
	    mallctl("stats.resident", &resident, &len, NULL, 0) != 0)
		return;
	single(m, "shardvpn_jemalloc_allocated_bytes", METRIC_GAUGE, "bytes",
	       "Bytes given out by the allocator.", allocated);
	single(m, "shardvpn_jemalloc_resident_bytes", METRIC_GAUGE, "bytes",
	       "Bytes that the allocator holds in RAM.", resident);
}

void metrics_process(struct metrics_text *m, const struct metrics_input *in)
{
	build(m);
	single(m, "process_start_time_seconds", METRIC_GAUGE, "seconds",
	       "Start of the process, unix time.", (uint64_t)in->start_time_s);
	cpu(m);
	memory(m);
	descriptors(m);
	allocator(m);
}
