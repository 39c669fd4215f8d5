/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_PRIVILEGE_H
#define SERVER_PRIVILEGE_H

/* User, group, capabilities, limits, daemon, pid file, readiness (libsystemd). Thread: main. */

#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"

/* Enough tasks and open files for the threads that the configuration asks for? Raises soft limits
 * where allowed. On failure `why` (512 bytes) names limit, need and cure (systemd drop-in).
 * Returns 0 or -EAGAIN. */
__attribute__((warn_unused_result)) int privilege_check_limits(const struct config *c, char *why,
							       size_t why_len);
/* Resolve user and group; -ENOENT with a sentence in `why`. uid/gid -1: not configured. */
__attribute__((warn_unused_result)) int privilege_lookup(const struct config *c, uid_t *uid,
							 gid_t *gid, char *why, size_t why_len);
/* Give up root, keeping CAP_NET_ADMIN (to remove routes at the end), no new privileges, not
 * dumpable. Existing reuseport sockets stay usable. Returns 0 or -errno. Before threads. */
__attribute__((warn_unused_result)) int privilege_drop(uid_t uid, gid_t gid, char *why,
						       size_t why_len);
/* --daemon: to the background; the first process waits for privilege_ready and exits 0, or 1 if the
 * daemon dies before. Returns 0 or -errno in the daemon. */
__attribute__((warn_unused_result)) int privilege_daemon(void);
/* Ready: let the first process go, READY=1 to systemd. */
void privilege_ready(const char *status);
void privilege_stopping(void);
__attribute__((warn_unused_result)) int privilege_pid_file(const char *path);

#endif
