/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_TUN_STEERING_PROGRAM_H
#define WORKERS_TUN_STEERING_PROGRAM_H

/* The instructions of the program that chooses a tun queue; see tun_steering.h for the rule. */

#include <stdint.h>

struct bpf_insn;

#define TUN_STEERING_PROGRAM_MAX 256
#define TUN_STEERING_SPREAD	 0x10000u /* no queue: any, by the flow's hash */

/* The maps that the program asks, by descriptor: key is the address, or prefix length (host order)
 * and address; value is a u32: a queue, or TUN_STEERING_SPREAD. */
struct tun_steering_maps {
	int hosts4, hosts6, nets4, nets6;
};

/* Write the program into `code`, which has room for TUN_STEERING_PROGRAM_MAX instructions. Returns
 * their number. */
unsigned tun_steering_program(const struct tun_steering_maps *maps, unsigned queue_count,
			      struct bpf_insn *code);

#endif
