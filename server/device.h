/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_DEVICE_H
#define SERVER_DEVICE_H

/* The tun device as the configuration wants it: queues, MTU, addresses, routes; and the way back.
 * Thread: main, before the workers start and after they ended. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "tun/tun.h"

struct netlink;

/* A route that we added, as it was given to the kernel. */
struct device_route {
	struct ip_prefix net;
	struct ip_addr gateway;
	uint32_t metric;
	int ifindex; /* of our device, or of the one to the named gateway */
};

struct device {
	struct tun tun;
	struct netlink *netlink;
	const struct config *config;
	bool has_addr4, has_addr6; /* added to the device */
	struct device_route *routes;
	size_t route_count;
};

/* Open the device with one queue a worker, set MTU and queue length, add addresses and routes, log
 * each as stock does. A route that the kernel refuses is a warning. `c` must outlive the device. On
 * failure nothing is left and `why` (256 bytes) says what to do. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int device_open(const struct config *c, struct device *out,
						    char *why, size_t why_len);
/* Take back the routes and addresses that were added, and close the queues. */
void device_close(struct device *d);

#endif
