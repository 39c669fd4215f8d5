/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/cpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "perf/ticks.h"

#define TEXT_LEN 1024

static bool read_text(const char *path, char *text, size_t cap)
{
	FILE *f = fopen(path, "re");
	size_t len = f ? fread(text, 1, cap - 1, f) : 0;

	if (f)
		(void)fclose(f);
	text[len] = '\0';
	return len > 0;
}

static double seconds_of(unsigned long long ticks)
{
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

double cpu_of_process(pid_t pid)
{
	char path[64], text[TEXT_LEN];
	unsigned long long user, system;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	/* The name in brackets may hold anything, so the last bracket counts. */
	const char *rest = read_text(path, text, sizeof(text)) ? strrchr(text, ')') : NULL;
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			    &system) != 2)
		return -1;
	return seconds_of(user + system);
}

/* Everything but idle and iowait, soft interrupts and stolen time included. */
static double cpu_of_machine(void)
{
	char text[TEXT_LEN];
	unsigned long long t[8];

	if (!read_text("/proc/stat", text, sizeof(text)) ||
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
		   &t[4], &t[5], &t[6], &t[7]) != 8)
		return -1;
	return seconds_of(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
}

struct cpu_times cpu_now(pid_t server)
{
	return (struct cpu_times){
		.wall = (double)ticks_ns() / 1e9,
		.self = (double)ticks_ns_of(CLOCK_PROCESS_CPUTIME_ID) / 1e9,
		.machine = cpu_of_machine(),
		.server = server ? cpu_of_process(server) : -1,
	};
}

static double between(double from, double to)
{
	return from < 0 || to < 0 ? -1 : to - from;
}

struct cpu_times cpu_between(const struct cpu_times *from, const struct cpu_times *to)
{
	return (struct cpu_times){
		.wall = between(from->wall, to->wall),
		.self = between(from->self, to->self),
		.machine = between(from->machine, to->machine),
		.server = between(from->server, to->server),
	};
}
