/* SPDX-License-Identifier: Apache-2.0 */
#include "config/retry.h"

#include <time.h>

#define WAIT_MS	  50
#define WAITS_MAX 60

bool retry_wait(unsigned *tries)
{
	const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000L};
	if (*tries >= WAITS_MAX)
		return false;
	++*tries;
	nanosleep(&wait, NULL);
	return true;
}
