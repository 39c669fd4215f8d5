/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/tun.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/retry.h"
#include "tun/coalesce.h"
#include "tun/segment.h"

#ifndef TUN_F_USO4 /* kernel 6.2 */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define DEVICE_NODE  "/dev/net/tun"
#define QUEUE_FLAGS  (IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE | IFF_VNET_HDR)
#define DRIVER_NAME  "tun"
#define LAYER_2_NAME "tap"

/* Fill `info` with the driver of interface `name`; false if there is none to be asked. */
static bool driver_of(const char *name, struct ethtool_drvinfo *info)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	struct ifreq ifr;
	memset(&ifr, 0, sizeof(ifr));
	memset(info, 0, sizeof(*info));
	info->cmd = ETHTOOL_GDRVINFO;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)info;
	bool is_known = ioctl(fd, SIOCETHTOOL, &ifr) == 0;
	close(fd);
	return is_known;
}

/* The kernel answers EINVAL for everything that does not fit: say what stands in the way. */
static void explain_mismatch(const char *name, char *why, size_t why_len)
{
	struct ethtool_drvinfo info;

	if (if_nametoindex(name) == 0)
		snprintf(why, why_len, "device name %s is not accepted by the kernel", name);
	else if (!driver_of(name, &info) || strcmp(info.driver, DRIVER_NAME) != 0)
		snprintf(why, why_len,
			 "the name %s belongs to an interface that is not a tun device; "
			 "choose another name with: dev NAME",
			 name);
	else if (strcmp(info.bus_info, LAYER_2_NAME) == 0)
		snprintf(why, why_len,
			 "device %s exists as tap; remove it or create it with: "
			 "ip tuntap add dev %s mode tun multi_queue",
			 name, name);
	else
		snprintf(why, why_len,
			 "device %s exists as single-queue; remove it or create it with: "
			 "ip tuntap add dev %s mode tun multi_queue",
			 name, name);
}

static void explain_node(int error, char *why, size_t why_len)
{
	if (error == ENOENT || error == ENODEV || error == ENXIO)
		snprintf(why, why_len,
			 "no " DEVICE_NODE
			 ": load the module (modprobe tun), make the node (mkdir -p "
			 "/dev/net && mknod " DEVICE_NODE " c 10 200), or give it to the container "
			 "(--device " DEVICE_NODE ")");
	else if (error == EACCES || error == EPERM)
		snprintf(why, why_len,
			 "no permission to open " DEVICE_NODE
			 ": start as root, or allow this user and container to open it");
	else
		snprintf(why, why_len, "cannot open " DEVICE_NODE ": %s", strerrordesc_np(error));
}

static void explain_queue(const char *name, int error, char *why, size_t why_len)
{
	if (error == EINVAL)
		explain_mismatch(name, why, why_len);
	else if (error == EPERM || error == EACCES)
		snprintf(why, why_len,
			 "no permission to create device %s: start as root or with CAP_NET_ADMIN, "
			 "or "
			 "create it beforehand with: ip tuntap add dev %s mode tun multi_queue "
			 "user NAME",
			 name, name);
	else if (error == EBUSY)
		snprintf(why, why_len,
			 "device %s is in use by another process; stop it or choose another name",
			 name);
	else if (error == E2BIG)
		snprintf(why, why_len,
			 "device %s has no free queue; another process holds some of them", name);
	else
		snprintf(why, why_len, "cannot open a queue of device %s: %s", name,
			 strerrordesc_np(error));
}

/* A queue in `fd` of the device called `name`; the name the kernel chose comes back in `name`. */
static int attach(const char *name, char chosen[IFNAMSIZ], int *flags, int *fd)
{
	int queue = open(DEVICE_NODE, O_RDWR | O_CLOEXEC);
	if (queue < 0)
		return -errno;
	struct ifreq ifr;
	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_flags = (short)QUEUE_FLAGS;
	int header_len = VIRTIO_LEN;
	if (ioctl(queue, TUNSETIFF, &ifr) != 0 || ioctl(queue, TUNGETIFF, &ifr) != 0 ||
	    ioctl(queue, TUNSETVNETHDRSZ, &header_len) != 0) {
		int error = errno;
		close(queue);
		return -error;
	}
	memcpy(chosen, ifr.ifr_name, IFNAMSIZ);
	*flags = (unsigned short)ifr.ifr_flags;
	*fd = queue;
	return 0;
}

/* The first queue. A device that was there and is not persistent lives by somebody else's open
 * queue, a running daemon's or one of a ring that died: to attach to it would share its packets. */
static int attach_first(const char *name, struct tun *t)
{
	int flags = 0, fd = -1;

	t->was_there = if_nametoindex(name) != 0;
	int error = attach(name, t->name, &flags, &fd);
	if (error)
		return error;
	if (t->was_there && !(flags & IFF_PERSIST)) {
		close(fd);
		return -EBUSY;
	}
	t->fds[0] = fd;
	t->queue_count = 1;
	t->ifindex = (int)if_nametoindex(t->name);
	return t->ifindex > 0 ? 0 : -ENODEV;
}

static int attach_patiently(const char *name, struct tun *t)
{
	unsigned tries = 0;
	int error = attach_first(name, t);
	while (error == -EBUSY && retry_wait(&tries))
		error = attach_first(name, t);
	return error;
}

static int attach_rest(struct tun *t, int queues)
{
	char chosen[IFNAMSIZ];
	int flags;

	while (t->queue_count < queues) {
		int error = attach(t->name, chosen, &flags, &t->fds[t->queue_count]);
		if (error)
			return error;
		t->queue_count++;
	}
	return 0;
}

int tun_open(const char *name, int queues, struct tun *out, char *why, size_t why_len)
{
	struct tun t = {.queue_count = 0};

	for (int i = 0; i < TUN_QUEUES_MAX; i++)
		t.fds[i] = -1;
	assert(queues >= 1 && queues <= TUN_QUEUES_MAX);
	if (strlen(name) >= IFNAMSIZ) {
		snprintf(why, why_len, "device name %s is longer than %d characters", name,
			 IFNAMSIZ - 1);
		return -EINVAL;
	}
	if (access(DEVICE_NODE, R_OK | W_OK) != 0) {
		int error = errno;
		explain_node(error, why, why_len);
		return -error;
	}
	int error = attach_patiently(strcmp(name, "tun") == 0 ? "tun%d" : name, &t);
	if (error == 0)
		error = attach_rest(&t, queues);
	if (error) {
		tun_close(&t);
		explain_queue(name, -error, why, why_len);
		return error;
	}
	*out = t;
	return 0;
}

/* What is asked of the kernel, the best first; USO of both families comes together or not at all.
 */
static const struct {
	unsigned flags;
	uint32_t offloads;
} offload_levels[] = {
	{TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | TUN_F_USO4 | TUN_F_USO6,
	 TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_ECN | TUN_OFFLOAD_UDP},
	{TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6, TUN_OFFLOAD_UDP},
	{TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN,
	 TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_ECN},
	{TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6, TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6},
	{0, 0},
};

void tun_set_offloads(struct tun *t, bool want_tcp, bool want_udp)
{
	const uint32_t tcp = TUN_OFFLOAD_TCP4 | TUN_OFFLOAD_TCP6 | TUN_OFFLOAD_ECN;
	uint32_t unwanted = (want_tcp ? 0 : tcp) | (want_udp ? 0u : (uint32_t)TUN_OFFLOAD_UDP);
	t->offloads = 0;
	for (size_t i = 0; i < sizeof(offload_levels) / sizeof(offload_levels[0]); i++) {
		if (offload_levels[i].offloads & unwanted)
			continue;
		if (ioctl(t->fds[0], TUNSETOFFLOAD, (unsigned long)offload_levels[i].flags) != 0)
			continue;
		t->offloads = offload_levels[i].offloads;
		return;
	}
}

void tun_close(struct tun *t)
{
	for (int i = 0; i < TUN_QUEUES_MAX; i++) {
		if (t->fds[i] >= 0)
			close(t->fds[i]);
		t->fds[i] = -1;
	}
	t->queue_count = 0;
}
