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
 * namespace, where those are allowed. Returns NULL, or why that cannot be done: netns_skip. */
static inline const char *netns_enter(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWNET) != 0) {
		char map[64];
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
			return "no permission to make a network namespace";
		snprintf(map, sizeof(map), "0 %u 1", uid);
		bool is_mapped = netns_write_file("/proc/self/setgroups", "deny") &&
				 netns_write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (!is_mapped || !netns_write_file("/proc/self/gid_map", map))
			return "no permission to map users of a namespace";
	}
	if (!netns_run("ip link set lo up"))
		return "cannot bring lo up (is iproute2 installed?)";
	return NULL;
}

/* The same for tests that make a tun device there. */
static inline const char *netns_enter_with_tun(void)
{
	const char *why = netns_enter();
	if (!why && access("/dev/net/tun", R_OK | W_OK) != 0)
		why = "no access to /dev/net/tun";
	return why;
}

/* Skip the whole program, as its exit code: cmocka's skip() of single tests is a failure in TAP
 * ("not ok N # SKIP"). */
static inline int netns_skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

#endif
