/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_PRIVILEGE_CGROUP_H
#define SERVER_PRIVILEGE_CGROUP_H

/* How many tasks the control group of this process may still have. */

#include <stdint.h>

struct cgroup_tasks {
	uint64_t max;	  /* pids.max of the tightest level; UINT64_MAX: no limit */
	uint64_t current; /* tasks there */
};

/* Read `proc_file` (/proc/self/cgroup) and the pids files of the group and all above it under
 * `mount` (/sys/fs/cgroup). What cannot be read limits nothing. */
void cgroup_tasks_read(const char *proc_file, const char *mount, struct cgroup_tasks *out);

#endif
