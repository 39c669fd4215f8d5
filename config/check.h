/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

/* Rules across directives: what must stand together, what must not, and why (options.md, end of
 * section 3.7); then what the machine must have for this configuration. */

#include "config/config.h"

/* Judge the configuration by itself: no file, no system call. Mistakes go to `report`. */
void config_check(const struct config *c, struct config_report *report);
/* Look at every file, directory, user and group that the configuration names, as far as this
 * process may see now: all that is missing or unreadable goes to `report`, with what to do. */
void config_check_files(const struct config *c, struct config_report *report);
/* Turn `auto` of workers and handshake-threads into numbers that fit the CPUs which this process
 * may use (affinity, CPU quota of its cgroup v2), and hold worker-cpus against them. */
void config_check_cpus(struct config *c, struct config_report *report);
/* How many CPUs that are: at least 1. `cgroup_root` is "/sys/fs/cgroup", `self_cgroup`
 * "/proc/self/cgroup"; tests put their own in their place. */
unsigned config_usable_cpus(const char *cgroup_root, const char *self_cgroup);

#endif
