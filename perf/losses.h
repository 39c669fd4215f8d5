/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_LOSSES_H
#define PERF_LOSSES_H

/* What the kernel counts as lost where nobody is told: full socket buffers, full device queues. */

#include <stdint.h>
#include <sys/types.h>

/* Datagrams that a full socket buffer lost in the network namespace of `pid` (0: ours), IPv4 and
 * IPv6; 0 if that cannot be read. */
uint64_t losses_of_sockets(pid_t pid);
/* Packets that device `name` of our namespace dropped when sending; 0 likewise. */
uint64_t losses_of_device(const char *name);

#endif
