/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_LAUNCHER_H
#define SERVER_LAUNCHER_H

/* A small process, forked before threads and rings exist, that runs scripts for the daemon: it has
 * nothing of the daemon's but one socket, a clean environment and the same reduced privileges. The
 * threaded process itself never forks. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct launcher;

/* What became of a program. */
struct launcher_result {
	uint64_t job;	   /* as given to launcher_run */
	int status;	   /* exit code 0..255; -signal if killed; -errno if it could not start */
	bool is_timed_out; /* killed after its time was over */
};

/* Fork the launcher. All other descriptors are closed in it. Returns 0 or -errno.
 * Thread: main, while it is the only one. */
__attribute__((warn_unused_result)) int launcher_start(struct launcher **out);
/* Give up root in the launcher as in the daemon; before the first run. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int launcher_drop(struct launcher *l, uid_t uid, gid_t gid);
/* Programs that are run from now on write to /dev/null instead of our terminal: the daemon lets it
 * go, too. Returns 0 or -errno. */
__attribute__((warn_unused_result)) int launcher_detach(struct launcher *l);
/* Run argv (absolute program first, NULL-terminated) with exactly `envp`, killed after timeout_ms.
 * Never blocks. Returns 0, -EAGAIN (queue full), -E2BIG, -EPIPE (the launcher is gone). */
__attribute__((warn_unused_result)) int launcher_run(struct launcher *l, uint64_t job,
						     char *const argv[], char *const envp[],
						     uint32_t timeout_ms);
/* Readable when a result waits. */
int launcher_fd(const struct launcher *l);
/* Next result; false if none waits. */
bool launcher_result(struct launcher *l, struct launcher_result *out);
/* Close the socket, which ends the launcher (its running programs are killed), and reap it. */
void launcher_stop(struct launcher *l);

#endif
