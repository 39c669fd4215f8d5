/* SPDX-License-Identifier: Apache-2.0 */
#include "server/device_steering.h"

#include <errno.h>
#include <string.h>

#include "config/log.h"
#include "tun/tun.h"
#include "workers/tun_steering.h"

/* A client that comes may stand beside the one that it replaces. */
#define HOSTS_PER_CLIENT 2
#define NETS_PER_CLIENT	 8
#define ENTRIES_SPARE	 256
#define ENTRIES_MAX	 (1u << 20)

uint32_t device_steering_entries(uint32_t max_clients, unsigned each)
{
	uint64_t count = (uint64_t)max_clients * each + ENTRIES_SPARE;
	return count < ENTRIES_MAX ? (uint32_t)count : ENTRIES_MAX;
}

static void log_automatic(const char *reason)
{
	log_line(LOG_NOTE,
		 "NOTE: packets from the tun device are not steered to their client's worker by "
		 "eBPF (%s): the kernel's automatic steering serves, and what it gives to another "
		 "worker is handed over",
		 reason);
}

void device_steering_load(const struct config *c, const struct tun *t, struct tun_steering **out)
{
	const struct tun_steering_setup setup = {
		.tun_fd = t->fds[0],
		.queue_count = c->workers,
		.hosts_max = device_steering_entries(c->max_clients, HOSTS_PER_CLIENT),
		.nets_max = device_steering_entries(c->max_clients, NETS_PER_CLIENT),
	};
	*out = NULL;
	if (c->workers == 1)
		return;
	if (c->disabled_features & FEATURE_STEERING_EBPF) {
		tun_steering_clear(setup.tun_fd);
		log_automatic("disable-feature steering-ebpf");
		return;
	}
	int err = tun_steering_new(&setup, out);
	if (err != 0)
		log_automatic(err == -EPERM ? "it takes CAP_BPF at start" : strerror(-err));
}

void device_steering_settle(struct tun_steering **s)
{
	if (*s == NULL)
		return;
	int err = tun_steering_check(*s);
	if (err == 0) {
		log_line(LOG_NOTE,
			 "packets from the tun device are steered to their client's worker by "
			 "eBPF");
		return;
	}
	log_automatic(err == -EPERM ? "this kernel wants CAP_BPF for each change of a map"
				    : strerror(-err));
	tun_steering_free(*s);
	*s = NULL;
}
