/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_DEVICE_STEERING_H
#define SERVER_DEVICE_STEERING_H

/* Whether packets from the tun device are steered to their client's worker by eBPF, or as the
 * kernel does it. Thread: main. */

#include <stdint.h>

#include "config/config.h"

struct tun;
struct tun_steering;

/* Load the program before root is given up. *out is NULL if there is one worker, if the feature is
 * disabled, or where it is not permitted; the log says so. `t` must outlive it. */
void device_steering_load(const struct config *c, const struct tun *t, struct tun_steering **out);
/* Afterwards: keep it if its maps can be changed with the privileges that are left; else *s is
 * freed, and NULL. The log says which. */
void device_steering_settle(struct tun_steering **s);
/* Entries of a map with `each` for a client, and some to spare; bounded, because a hash makes its
 * buckets at once. */
uint32_t device_steering_entries(uint32_t max_clients, unsigned each);

#endif
