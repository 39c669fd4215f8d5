/* SPDX-License-Identifier: Apache-2.0 */
#include "server/privilege_cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/addr.h"

/* The first line of a file, without its end. */
static bool line_read(const char *path, char *line, int cap)
{
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	bool is_read = fgets(line, cap, f) != NULL;
	(void)fclose(f);
	if (is_read)
		line[strcspn(line, "\n")] = '\0';
	return is_read;
}

static bool number_read(const char *dir, const char *name, uint64_t *out)
{
	char path[PATH_MAX], line[64];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path) || !line_read(path, line, sizeof(line)))
		return false;
	return number_parse(line, UINT64_MAX, out);
}

static uint64_t room(const struct cgroup_tasks *t)
{
	return t->max > t->current ? t->max - t->current : 0;
}

/* The group at `dir` and its parents, up to the first `top_len` bytes of it. "max" is no number. */
static void walk_up(char *dir, size_t top_len, struct cgroup_tasks *out)
{
	for (;;) {
		struct cgroup_tasks here = {0};
		if (number_read(dir, "pids.max", &here.max) &&
		    number_read(dir, "pids.current", &here.current) && room(&here) < room(out))
			*out = here;
		char *slash = strrchr(dir, '/');
		if (slash == NULL || (size_t)(slash - dir) < top_len)
			return;
		*slash = '\0';
	}
}

/* "0::/path" of version 2; "9:pids:/path" of version 1, mounted one level below. */
static bool line_split(char *line, const char **sub_mount, const char **path)
{
	char *controllers = strchr(line, ':');
	char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
	if (group == NULL || group[1] != '/')
		return false;
	*group = '\0';
	if (strcmp(controllers, ":pids") != 0 && controllers[1] != '\0')
		return false;
	*sub_mount = controllers[1] == '\0' ? "" : "/pids";
	*path = strcmp(group + 1, "/") == 0 ? "" : group + 1;
	return true;
}

void cgroup_tasks_read(const char *proc_file, const char *mount, struct cgroup_tasks *out)
{
	*out = (struct cgroup_tasks){.max = UINT64_MAX};
	FILE *f = fopen(proc_file, "re");
	if (f == NULL)
		return;
	char line[PATH_MAX], dir[PATH_MAX];
	while (fgets(line, sizeof(line), f) != NULL) {
		const char *sub_mount, *path;
		line[strcspn(line, "\n")] = '\0';
		if (!line_split(line, &sub_mount, &path))
			continue;
		int n = snprintf(dir, sizeof(dir), "%s%s%s", mount, sub_mount, path);
		if (n > 0 && (size_t)n < sizeof(dir))
			walk_up(dir, strlen(mount) + strlen(sub_mount), out);
	}
	(void)fclose(f);
}
