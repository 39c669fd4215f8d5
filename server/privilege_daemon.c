/* SPDX-License-Identifier: Apache-2.0 */
#include "server/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

/* Of the pipe on which the first process waits; -1: we are that process. */
static int ready_fd = -1;

/* One byte says that the daemon is ready; the end of the pipe says that it died. */
_Noreturn static void wait_for_daemon(int fd)
{
	char byte;
	ssize_t n;
	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	_exit(n == 1 ? 0 : 1);
}

int privilege_daemon(void)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		int err = -errno;
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (pid > 0) {
		close(fds[1]);
		wait_for_daemon(fds[0]);
	}
	close(fds[0]);
	ready_fd = fds[1];
	return setsid() < 0 ? -errno : 0;
}

/* Until it is ready the daemon tells its faults to whoever started it; then it lets go. */
static void leave_terminal(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int std = 0; fd >= 0 && std <= 2; std++)
		(void)dup2(fd, std);
	if (fd > 2)
		close(fd);
}

void privilege_ready(const char *status)
{
	if (ready_fd >= 0) {
		leave_terminal();
		(void)!write(ready_fd, "", 1);
		close(ready_fd);
		ready_fd = -1;
	}
#ifdef HAVE_SYSTEMD
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s\nMAINPID=%ld", status, (long)getpid());
#else
	(void)status;
#endif
}

void privilege_stopping(void)
{
#ifdef HAVE_SYSTEMD
	(void)sd_notify(0, "STOPPING=1");
#endif
}

int privilege_pid_file(const char *path)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	int err = write(fd, text, (size_t)len) == len ? 0 : errno != 0 ? -errno : -EIO;
	close(fd);
	return err;
}
