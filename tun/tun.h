/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUN_TUN_H
#define TUN_TUN_H

/* tun/: the kernel's inner side. This module: the multi-queue device. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUN_QUEUES_MAX 64

struct tun {
	char name[IFNAMSIZ];
	int ifindex;
	int queue_count;
	int fds[TUN_QUEUES_MAX]; /* one a queue, blocking, close-on-exec; -1: closed */
	bool was_there;		 /* existed before us (persistent): not removed at the end */
	uint32_t offloads;	 /* enum tun_offload (coalesce.h): what frames may be, both ways */
};

/* Open `queues` (1..TUN_QUEUES_MAX) queues of layer-3 device `name`: "tun" takes the first free
 * tunN, any other name is taken as it is. IFF_NO_PI | IFF_MULTI_QUEUE | IFF_VNET_HDR: each packet
 * has a header of VIRTIO_LEN (segment.h) bytes in front. No offloads yet. EBUSY is retried for a
 * few seconds, since a ring that died holds its descriptors for a while. On failure `why` (at least
 * 256 bytes) gets one sentence that says what to do: no /dev/net/tun, no CAP_NET_ADMIN, a
 * single-queue device of that name, name taken.
 * Returns 0 or -errno. Thread: main, before workers start. */
__attribute__((warn_unused_result)) int tun_open(const char *name, int queues, struct tun *out,
						 char *why, size_t why_len);
/* Let the kernel hand over and take super-packets: of those wanted, what it is able to do (probed
 * from the best down); sets t->offloads. */
void tun_set_offloads(struct tun *t, bool want_tcp, bool want_udp);
/* Close all queues; a device that was not there before goes away with the last. */
void tun_close(struct tun *t);

#endif
