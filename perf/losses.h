/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_LOSSES_H
#define PERF_LOSSES_H

/* What the kernel counts as lost where nobody is told: full socket buffers, full device queues. */

#include <stdint.h>
#include <sys/types.h>

/* Since the kernel began to count. A super-packet is one. */
struct losses {
	uint64_t lost, passed;
};

/* UDP datagrams that a full socket buffer lost in the network namespace of `pid` (0: ours), and
 * those that were read, IPv4 and IPv6. What cannot be read is 0. */
struct losses losses_of_sockets(pid_t pid);
/* Packets that device `name` of our namespace dropped and sent; 0 likewise. */
struct losses losses_of_device(const char *name);

#endif
