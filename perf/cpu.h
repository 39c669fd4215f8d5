/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_CPU_H
#define PERF_CPU_H

/* What was spent between two moments: CPU time of a server, of this process and of the machine. */

#include <stdint.h>
#include <sys/types.h>

/* Seconds; a negative value: cannot be known. */
struct cpu_times {
	double wall, self, machine, server;
};

/* server: process-id, or 0 for none. */
struct cpu_times cpu_now(pid_t server);
/* `to` minus `from`, field by field; what is unknown in either stays negative. */
struct cpu_times cpu_between(const struct cpu_times *from, const struct cpu_times *to);
/* Seconds of user and system time of all threads of a process, or -1. */
double cpu_of_process(pid_t pid);

#endif
