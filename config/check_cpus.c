/* SPDX-License-Identifier: Apache-2.0 */
#include "config/check.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* First bytes of a small file as text; false if it cannot be read. */
static bool read_text(const char *path, char *out, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, out, cap - 1);
	close(fd);
	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

/* "200000 100000" -> 2; "max 100000" or nonsense -> no limit. Part of a CPU counts as one. */
static unsigned parse_quota(char *text)
{
	char *rest = NULL;
	uint64_t quota, period;
	const char *first = strtok_r(text, " \n", &rest);
	const char *second = strtok_r(NULL, " \n", &rest);
	if (!first || !second || !number_parse(first, INT64_MAX, &quota) ||
	    !number_parse(second, INT64_MAX, &period) || period == 0)
		return UINT_MAX;
	uint64_t cpus = quota / period + (quota % period != 0);
	return cpus == 0 ? 1 : cpus < UINT_MAX ? (unsigned)cpus : UINT_MAX;
}

/* Path of our cgroup below the root, of the line "0::/path"; "" if there is none. */
static void own_cgroup(const char *self_cgroup, char *out, size_t cap)
{
	char text[PATH_MAX];
	out[0] = '\0';
	if (!read_text(self_cgroup, text, sizeof(text)))
		return;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "0::/", 4) == 0) {
			snprintf(out, cap, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
			return;
		}
	}
}

/* The tightest quota on the way from our cgroup up to the root. */
static unsigned cgroup_cpus(const char *root, const char *self_cgroup)
{
	char group[PATH_MAX], path[2 * PATH_MAX], text[128];
	unsigned least = UINT_MAX;
	own_cgroup(self_cgroup, group, sizeof(group));
	for (;;) {
		snprintf(path, sizeof(path), "%s%s/cpu.max", root, group);
		if (read_text(path, text, sizeof(text))) {
			unsigned cpus = parse_quota(text);
			least = cpus < least ? cpus : least;
		}
		char *slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

static unsigned affinity_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	int n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

unsigned config_usable_cpus(const char *cgroup_root, const char *self_cgroup)
{
	unsigned by_affinity = affinity_cpus();
	unsigned by_quota = cgroup_cpus(cgroup_root, self_cgroup);
	return by_quota < by_affinity ? by_quota : by_affinity;
}

/* A CPU that the worker could not be pinned to is a mistake in the list. */
static void check_worker_cpus(const struct config *c, struct config_report *r)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (size_t i = 0; i < c->worker_cpu_count; i++)
		if (!CPU_ISSET((size_t)c->worker_cpus[i], &set))
			config_fault(r, c, DIRECTIVE_WORKER_CPUS,
				     "this process may not use CPU %d (see taskset -p)",
				     c->worker_cpus[i]);
}

void config_check_cpus(struct config *c, struct config_report *report)
{
	unsigned cpus = config_usable_cpus("/sys/fs/cgroup", "/proc/self/cgroup");
	check_worker_cpus(c, report);
	if (c->workers > cpus)
		config_warn(report, c, DIRECTIVE_WORKERS, "%u workers share %u CPUs", c->workers,
			    cpus);
	if (c->workers == 0 && c->worker_cpus)
		c->workers = (uint32_t)c->worker_cpu_count;
	else if (c->workers == 0)
		c->workers = cpus < WORKERS_MAX ? cpus : WORKERS_MAX;
	if (c->handshake_threads == 0)
		c->handshake_threads = cpus / 4 > 0 ? cpus / 4 : 1;
}
