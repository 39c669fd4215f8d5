/* SPDX-License-Identifier: Apache-2.0 */
#include "server/launcher_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crypto/bytes.h"
#include "server/privilege.h"

/* One program. The strings point into the request, which the job owns. */
struct job {
	uint64_t id;
	uint32_t timeout_ms;
	pid_t pid; /* also its process group */
	uint64_t deadline_ms;
	bool is_timed_out;
	uint8_t *request;
	char *argv[LAUNCHER_ARGS_MAX + 1];
	char *envp[LAUNCHER_ENV_MAX + 1];
	struct job *next;
};

struct child {
	int fd, signal_fd;
	struct job *running;
	unsigned running_count;
	struct job *queue, **queue_end;
};

static uint64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void job_free(struct job *j)
{
	free(j->request);
	free(j);
}

/* The daemon reads every answer or is gone, and then so are we. */
static void answer(const struct child *c, const struct writer *w)
{
	struct view v = writer_done(w);
	while (send(c->fd, v.data, v.len, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void answer_result(const struct child *c, enum launcher_kind kind, int result)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	struct writer w = writer_init(buf, sizeof(buf));
	writer_u8(&w, (uint8_t)kind);
	writer_u32(&w, (uint32_t)result);
	answer(c, &w);
}

static void answer_job(const struct child *c, const struct job *j, int status)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	struct writer w = writer_init(buf, sizeof(buf));
	writer_u8(&w, LAUNCHER_RUN);
	writer_u32(&w, (uint32_t)status);
	writer_u64(&w, j->id);
	writer_u8(&w, j->is_timed_out);
	answer(c, &w);
}

static int spawn_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int err = posix_spawnattr_init(a);
	if (err == 0)
		err = posix_spawnattr_setsigmask(a, &none);
	if (err == 0)
		err = posix_spawnattr_setsigdefault(a, &all);
	if (err == 0)
		err = posix_spawnattr_setpgroup(a, 0);
	if (err == 0)
		err = posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
							  POSIX_SPAWN_SETSIGMASK);
	return err;
}

/* In a process group of its own, with all signals as at first, nothing open but the standard
 * descriptors. Returns 0 or -errno, also if the program cannot be executed. */
static int spawn(struct job *j)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t files;
	int err = spawn_attributes(&attributes);
	if (err != 0)
		return -err;
	err = posix_spawn_file_actions_init(&files);
	if (err == 0) {
		err = posix_spawn_file_actions_addclosefrom_np(&files, 3);
		if (err == 0)
			err = posix_spawn(&j->pid, j->argv[0], &files, &attributes, j->argv,
					  j->envp);
		(void)posix_spawn_file_actions_destroy(&files);
	}
	(void)posix_spawnattr_destroy(&attributes);
	return -err;
}

static void start_queued(struct child *c)
{
	while (c->queue != NULL && c->running_count < LAUNCHER_RUNNING_MAX) {
		struct job *j = c->queue;
		c->queue = j->next;
		if (c->queue == NULL)
			c->queue_end = &c->queue;
		int err = spawn(j);
		if (err != 0) {
			answer_job(c, j, err);
			job_free(j);
			continue;
		}
		j->deadline_ms = now_ms() + j->timeout_ms;
		j->next = c->running;
		c->running = j;
		c->running_count++;
	}
}

static bool list_read(struct reader *r, char **list, unsigned max)
{
	unsigned count = reader_u16(r);
	if (count > max)
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct view v = reader_bytes(r, reader_u32(r));
		if (v.len == 0 || v.data[v.len - 1] != '\0')
			return false;
		memcpy(&list[i], &v.data, sizeof(list[i])); /* our own buffer, writable */
	}
	list[count] = NULL;
	return count > 0 || max == LAUNCHER_ENV_MAX;
}

/* Takes over `request`. */
static bool run_read(struct child *c, uint8_t *request, size_t len)
{
	struct job *j = calloc(1, sizeof(*j));
	if (j == NULL) {
		free(request);
		return false;
	}
	struct reader r = reader_init(request, len);
	j->request = request;
	(void)reader_u8(&r);
	j->id = reader_u64(&r);
	j->timeout_ms = reader_u32(&r);
	if (!list_read(&r, j->argv, LAUNCHER_ARGS_MAX) ||
	    !list_read(&r, j->envp, LAUNCHER_ENV_MAX) || !reader_done(&r)) {
		job_free(j);
		return false;
	}
	*c->queue_end = j;
	c->queue_end = &j->next;
	start_queued(c);
	return true;
}

static void drop_read(const struct child *c, const uint8_t *request, size_t len)
{
	char why[256];
	struct reader r = reader_init(request, len);
	(void)reader_u8(&r);
	uid_t uid = reader_u32(&r);
	gid_t gid = reader_u32(&r);
	int err = reader_done(&r) ? 0 : -EINVAL;
	/* As root everything stays as it is: a script may want to become somebody else. */
	if (err == 0 && (uid != UINT32_MAX || gid != UINT32_MAX))
		err = privilege_drop(uid, gid, why, sizeof(why));
	answer_result(c, LAUNCHER_DROP, err);
}

static int null_onto(int first, int last)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;
	for (int std = first; err == 0 && std <= last; std++)
		if (dup2(fd, std) < 0)
			err = -errno;
	if (fd > 2)
		close(fd);
	return err;
}

/* One request; false: the daemon is gone, or talks nonsense. */
static bool request_read(struct child *c)
{
	uint8_t *buf = malloc(LAUNCHER_MESSAGE_MAX);
	ssize_t len = buf == NULL ? -1 : recv(c->fd, buf, LAUNCHER_MESSAGE_MAX, 0);
	bool is_ok = len > 0;
	if (is_ok && buf[0] == LAUNCHER_RUN)
		return run_read(c, buf, (size_t)len);
	if (is_ok && buf[0] == LAUNCHER_DROP)
		drop_read(c, buf, (size_t)len);
	else if (is_ok && buf[0] == LAUNCHER_DETACH)
		answer_result(c, LAUNCHER_DETACH, null_onto(1, 2));
	else
		is_ok = false;
	free(buf);
	return is_ok;
}

static void job_end(struct child *c, pid_t pid, int wait_status)
{
	struct job **link = &c->running;
	while (*link != NULL && (*link)->pid != pid)
		link = &(*link)->next;
	struct job *j = *link;
	if (j == NULL)
		return;
	*link = j->next;
	c->running_count--;
	answer_job(c, j,
		   WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -WTERMSIG(wait_status));
	job_free(j);
}

static void reap(struct child *c)
{
	struct signalfd_siginfo info;
	int wait_status;
	pid_t pid;
	while (read(c->signal_fd, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
		job_end(c, pid, wait_status);
	start_queued(c);
}

/* Kill what is over its time; returns how long to wait for the next, -1: for ever. */
static int expire(struct child *c)
{
	uint64_t now = now_ms(), next = UINT64_MAX;
	for (struct job *j = c->running; j != NULL; j = j->next) {
		if (j->is_timed_out)
			continue;
		if (j->deadline_ms <= now) {
			j->is_timed_out = true;
			(void)kill(-j->pid, SIGKILL);
		} else if (j->deadline_ms < next) {
			next = j->deadline_ms;
		}
	}
	if (next == UINT64_MAX)
		return -1;
	return next - now > INT32_MAX ? INT32_MAX : (int)(next - now);
}

/* A stop of the whole control group must not take us before the daemon: it may have scripts to run
 * while it stops. */
static int set_up(struct child *c)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	/* The socket becomes 3, everything behind it goes. */
	if (c->fd != 3 && dup3(c->fd, 3, O_CLOEXEC) < 0)
		return -errno;
	c->fd = 3;
	if (close_range(4, ~0u, 0) != 0)
		return -errno;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return -errno;
	(void)prctl(PR_SET_NAME, "shardvpn-launch");
	return null_onto(0, 0);
}

static void serve(struct child *c)
{
	for (;;) {
		struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN},
				      {.fd = c->signal_fd, .events = POLLIN}};
		int n = poll(p, 2, expire(c));
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && p[1].revents != 0)
			reap(c);
		if (n > 0 && p[0].revents != 0 && !request_read(c))
			return;
	}
}

_Noreturn void launcher_child_run(int fd)
{
	struct child c = {.fd = fd};
	c.queue_end = &c.queue;
	if (set_up(&c) != 0)
		_exit(1);
	serve(&c);
	for (struct job *j = c.running; j != NULL; j = j->next)
		(void)kill(-j->pid, SIGKILL);
	_exit(0);
}
