/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/tun_steering.h"

#include <assert.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_PROGRAM (-1)
/* Neither of the two helpers that are called is reserved to GPL programs. */
#define LICENCE "Apache-2.0"

/* Owned by the gateway, used by the acceptor. The device holds the program, the program the maps.
 */
struct tun_steering {
	int tun_fd;
	struct tun_steering_maps maps;
};

/* The key of a trie; a host's is its address alone. */
struct net_key {
	uint32_t bits;
	uint8_t bytes[16];
};

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));
	return result < 0 ? -errno : (int)result;
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Under which `bpftool` shows a map or the program. */
static void set_name(char out[BPF_OBJ_NAME_LEN], const char *name)
{
	snprintf(out, BPF_OBJ_NAME_LEN, "%s", name);
}

static int map_new(enum bpf_map_type type, const char *name, uint32_t key_len, uint32_t max,
		   int *out)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key_len;
	attr.value_size = sizeof(uint32_t);
	attr.max_entries = max;
	attr.map_flags = BPF_F_NO_PREALLOC;
	set_name(attr.map_name, name);
	int fd = bpf(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		return fd;
	*out = fd;
	return 0;
}

static int maps_new(struct tun_steering_maps *m, uint32_t hosts_max, uint32_t nets_max)
{
	const uint32_t length_len = sizeof(uint32_t);
	int err = map_new(BPF_MAP_TYPE_HASH, "shardvpn_hosts4", 4, hosts_max, &m->hosts4);
	if (err == 0)
		err = map_new(BPF_MAP_TYPE_HASH, "shardvpn_hosts6", 16, hosts_max, &m->hosts6);
	if (err == 0)
		err = map_new(BPF_MAP_TYPE_LPM_TRIE, "shardvpn_nets4", length_len + 4, nets_max,
			      &m->nets4);
	if (err == 0)
		err = map_new(BPF_MAP_TYPE_LPM_TRIE, "shardvpn_nets6", length_len + 16, nets_max,
			      &m->nets6);
	return err;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int program_load(const struct tun_steering_maps *maps, unsigned queue_count)
{
	struct bpf_insn code[TUN_STEERING_PROGRAM_MAX];
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insn_cnt = tun_steering_program(maps, queue_count, code);
	attr.insns = address_of(code);
	attr.license = address_of(LICENCE);
	set_name(attr.prog_name, "shardvpn_queue");
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach(int tun_fd, int program)
{
	return ioctl(tun_fd, TUNSETSTEERINGEBPF, &program) != 0 ? -errno : 0;
}

int tun_steering_new(const struct tun_steering_setup *setup, struct tun_steering **out)
{
	assert(setup->queue_count >= 2);
	struct tun_steering *s = malloc(sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	*s = (struct tun_steering){.tun_fd = setup->tun_fd, .maps = {-1, -1, -1, -1}};
	int program = NO_PROGRAM;
	int err = maps_new(&s->maps, setup->hosts_max, setup->nets_max);
	if (err == 0) {
		program = program_load(&s->maps, setup->queue_count);
		err = program < 0 ? program : attach(setup->tun_fd, program);
	}
	close_if_open(program);
	if (err != 0) {
		tun_steering_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void tun_steering_clear(int tun_fd)
{
	(void)attach(tun_fd, NO_PROGRAM);
}

void tun_steering_free(struct tun_steering *s)
{
	if (s == NULL)
		return;
	tun_steering_clear(s->tun_fd);
	close_if_open(s->maps.hosts4);
	close_if_open(s->maps.hosts6);
	close_if_open(s->maps.nets4);
	close_if_open(s->maps.nets6);
	free(s);
}

/* Fill in map and key of `net`. `key` must outlive `attr`. */
static void key_set(const struct tun_steering *s, const struct ip_prefix *net, struct net_key *key,
		    union bpf_attr *attr)
{
	bool is_v4 = net->addr.family == 4;
	bool is_host = net->bits == (is_v4 ? 32 : 128);
	const struct tun_steering_maps *m = &s->maps;
	*key = (struct net_key){.bits = net->bits};
	memcpy(key->bytes, net->addr.bytes, is_v4 ? 4 : 16);
	memset(attr, 0, sizeof(*attr));
	if (is_host)
		attr->map_fd = (uint32_t)(is_v4 ? m->hosts4 : m->hosts6);
	else
		attr->map_fd = (uint32_t)(is_v4 ? m->nets4 : m->nets6);
	attr->key = is_host ? address_of(key->bytes) : address_of(key);
}

int tun_steering_add(struct tun_steering *s, const struct ip_prefix *net, uint32_t queue)
{
	struct net_key key;
	union bpf_attr attr;
	key_set(s, net, &key, &attr);
	attr.value = address_of(&queue);
	attr.flags = BPF_ANY;
	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int tun_steering_remove(struct tun_steering *s, const struct ip_prefix *net)
{
	struct net_key key;
	union bpf_attr attr;
	key_set(s, net, &key, &attr);
	int err = bpf(BPF_MAP_DELETE_ELEM, &attr);
	return err == -ENOENT ? 0 : err;
}

/* An entry that stands for what happens anyway to a destination that is not in the map. */
int tun_steering_check(struct tun_steering *s)
{
	const struct ip_prefix nowhere = {.addr = ip_addr_from_be32(0), .bits = 32};
	int err = tun_steering_add(s, &nowhere, TUN_STEERING_SPREAD);
	return err != 0 ? err : tun_steering_remove(s, &nowhere);
}
