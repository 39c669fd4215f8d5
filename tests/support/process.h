/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

/* For tests of what happens without a privilege, and of what another process lets go. After
 * <cmocka.h>. */

#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Run `check` in a child; its return value is the exit code, which must be 0. */
static inline void process_in_child(int (*check)(void))
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(check());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Give up every capability of the calling process. */
static inline bool process_drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	return syscall(SYS_capset, &head, none) == 0;
}

static inline void *process_close_main(void *fd)
{
	struct timespec wait = {.tv_nsec = 150000000};

	nanosleep(&wait, NULL);
	close(*(int *)fd);
	return NULL;
}

/* Close `*fd` in 150 ms by a thread, to be joined. */
static inline pthread_t process_close_later(int *fd)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, process_close_main, fd), 0);
	return thread;
}

#endif
