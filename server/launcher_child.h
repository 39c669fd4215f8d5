/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_LAUNCHER_CHILD_H
#define SERVER_LAUNCHER_CHILD_H

/* The launcher's own process, and what the daemon says to it: one message each way is one packet of
 * a SOCK_SEQPACKET pair, integers in network order.
 *
 *	LAUNCHER_DROP    u32 uid, u32 gid                       answered by LAUNCHER_DROP i32 result
 *	LAUNCHER_DETACH                                         answered by LAUNCHER_DETACH i32
 *result LAUNCHER_RUN     u64 job, u32 timeout_ms, list argv, list envp answered, sooner or later,
 *by LAUNCHER_RUN i32 status, u64 job, u8 is_timed_out
 *
 * A list is u16 count, then for each string u32 length with its NUL, bytes. */

#include <stdint.h>

enum launcher_kind { LAUNCHER_DROP = 1, LAUNCHER_DETACH, LAUNCHER_RUN };

#define LAUNCHER_MESSAGE_MAX 131072 /* bytes of a request */
#define LAUNCHER_ANSWER_MAX  16
#define LAUNCHER_ARGS_MAX    256
#define LAUNCHER_ENV_MAX     1024
#define LAUNCHER_RUNNING_MAX 8
#define LAUNCHER_QUEUED_MAX  64

/* Serve the socket `fd` until its other end is closed, then kill what still runs and exit.
 * Everything else that was inherited is closed, but for the standard descriptors. */
_Noreturn void launcher_child_run(int fd);

#endif
