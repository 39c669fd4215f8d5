/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_TUN_STEERING_H
#define WORKERS_TUN_STEERING_H

/* Which queue of the tun device gets a packet: an eBPF program on the device with maps by
 * destination, so that the packet is read by the worker that owns the peer it goes to. Hosts come
 * before prefixes, the longest prefix before shorter ones. A destination nobody announced, like one
 * that is announced as TUN_STEERING_SPREAD, is spread over all queues by addresses and, unless it
 * is a fragment, TCP or UDP ports: a flow keeps its queue.
 *
 * It is a shortcut and never the truth: a packet on another queue is passed on to its owner. So a
 * map that lacks an entry, or has a stale one, costs time and nothing else. */

#include <stdbool.h>
#include <stdint.h>

#include "config/addr.h"
#include "workers/tun_steering_program.h"

struct tun_steering;

struct tun_steering_setup {
	int tun_fd;	      /* any queue; the caller's, stays open as long as this */
	unsigned queue_count; /* at least 2: queue i is the i-th that was attached */
	uint32_t hosts_max;   /* entries, per family; memory is taken as they come */
	uint32_t nets_max;
};

/* Make the maps, load the program and attach it. Needs CAP_BPF (CAP_SYS_ADMIN before Linux 5.8).
 * Returns 0 or -errno, and then the kernel's automatic steering is on: EPERM without the privilege,
 * under a filter of system calls, or, before Linux 5.11, for a RLIMIT_MEMLOCK that is too low;
 * ENOSYS or EINVAL if the kernel has no such thing. Thread: main, before privileges are dropped. */
__attribute__((warn_unused_result)) int tun_steering_new(const struct tun_steering_setup *setup,
							 struct tun_steering **out);
/* Back to the automatic steering. */
void tun_steering_free(struct tun_steering *s);
/* Forget what an earlier process left on a persistent device. */
void tun_steering_clear(int tun_fd);

/* Whether the maps can be changed now that privileges are dropped. Kernels before 5.19 with
 * kernel.unprivileged_bpf_disabled set want the privilege for each change (EPERM): a program whose
 * maps stay empty is worse than none, so free it. Returns 0 or -errno. Thread: main. */
__attribute__((warn_unused_result)) int tun_steering_check(struct tun_steering *s);

/* `net`, a host if it has all bits, leads to `queue`, or is TUN_STEERING_SPREAD; adds or replaces.
 * A system call and no lock that a worker waits for. Returns 0 or -errno: E2BIG or ENOSPC if the
 * map is full, ENOMEM. Thread: acceptor. */
__attribute__((warn_unused_result)) int
tun_steering_add(struct tun_steering *s, const struct ip_prefix *net, uint32_t queue);
/* `net` leads nowhere. Returns 0, also if it was not there, or -errno. Thread: acceptor. */
__attribute__((warn_unused_result)) int tun_steering_remove(struct tun_steering *s,
							    const struct ip_prefix *net);

#endif
