/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_NETNS_H
#define TESTS_SUPPORT_NETNS_H

/* For tests that need a network of their own: nothing of the machine's is touched. */

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline bool netns_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return is_written;
}

/* Run a shell command made by printf; true if it exits with 0. */
__attribute__((format(printf, 1, 2))) static inline bool netns_run(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	fflush(stdout);
	return system(command) == 0;
}

/* True if the output of a shell command contains `text`. */
static inline bool netns_output_has(const char *command, const char *text)
{
	char out[8192];
	FILE *f = popen(command, "r");
	if (!f)
		return false;
	size_t len = fread(out, 1, sizeof(out) - 1, f);
	out[len] = 0;
	pclose(f);
	return strstr(out, text) != NULL;
}

/* Move this process into an empty network namespace with lo up; without privileges by way of a user
 * namespace, where those are allowed. On failure says why and returns false: skip. */
static inline bool netns_enter(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWNET) != 0) {
		char map[64];
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
			printf("# SKIP: no permission to make a network namespace\n");
			return false;
		}
		snprintf(map, sizeof(map), "0 %u 1", uid);
		bool is_mapped = netns_write_file("/proc/self/setgroups", "deny") &&
				 netns_write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (!is_mapped || !netns_write_file("/proc/self/gid_map", map)) {
			printf("# SKIP: no permission to map users\n");
			return false;
		}
	}
	if (!netns_run("ip link set lo up")) {
		printf("# SKIP: cannot bring lo up (is iproute2 installed?)\n");
		return false;
	}
	return true;
}

#endif
