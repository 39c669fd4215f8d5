/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_RETRY_H
#define CONFIG_RETRY_H

/* Patience at start: a process that died a moment ago holds its sockets and devices until the
 * kernel has taken its rings apart, some tens of ms. */

#include <stdbool.h>

/* Before another try: wait 50 ms. tries: 0 before the first call, counted here. Returns false, at
 * once, after 3 s of waiting. */
bool retry_wait(unsigned *tries);

#endif
