/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_DENY_BPF_H
#define TESTS_SUPPORT_DENY_BPF_H

/* A kernel that refuses bpf(2), or one command of it: a seccomp filter, so for a child only. */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* bpf(2) fails with `error` for `command`, or for any if that is negative. */
static inline bool deny_bpf(int command, int error)
{
	bool is_any = command < 0;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
		/* The low half, on all that we run on. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | (is_any ? BPF_JGE : BPF_JEQ) | BPF_K,
			 is_any ? 0 : (uint32_t)command, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
