/* SPDX-License-Identifier: Apache-2.0 */
#include "server/launcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crypto/bytes.h"
#include "server/launcher_child.h"

#define ANSWER_WAIT_MS 5000
#define STOP_WAIT_MS   2000

struct launcher {
	int fd;
	pid_t pid;
	unsigned pending; /* runs without result */
};

int launcher_start(struct launcher **out)
{
	int fds[2];
	struct launcher *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		int err = -errno;
		free(l);
		return err;
	}
	l->pid = fork();
	if (l->pid == 0)
		launcher_child_run(fds[1]);
	int err = l->pid < 0 ? -errno : 0;
	close(fds[1]);
	l->fd = fds[0];
	if (err != 0) {
		close(l->fd);
		free(l);
		return err;
	}
	*out = l;
	return 0;
}

static int message_send(const struct launcher *l, struct view v)
{
	ssize_t n;
	do {
		n = send(l->fd, v.data, v.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EMSGSIZE ? -E2BIG : errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -EPIPE;
}

/* Wait for the answer to a question that is asked before anything runs. */
static int answer_wait(const struct launcher *l, enum launcher_kind kind)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	int n;
	do {
		n = poll(&p, 1, ANSWER_WAIT_MS);
	} while (n < 0 && errno == EINTR);
	ssize_t len = n == 1 ? recv(l->fd, buf, sizeof(buf), MSG_DONTWAIT) : -1;
	struct reader r = reader_init(buf, len > 0 ? (size_t)len : 0);
	bool is_ours = reader_u8(&r) == kind;
	int result = (int)reader_u32(&r);
	return is_ours && reader_done(&r) ? result : -EPIPE;
}

static int ask(const struct launcher *l, const struct writer *w, enum launcher_kind kind)
{
	int err = message_send(l, writer_done(w));
	return err != 0 ? err : answer_wait(l, kind);
}

int launcher_drop(struct launcher *l, uid_t uid, gid_t gid)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	struct writer w = writer_init(buf, sizeof(buf));
	writer_u8(&w, LAUNCHER_DROP);
	writer_u32(&w, uid);
	writer_u32(&w, gid);
	return ask(l, &w, LAUNCHER_DROP);
}

int launcher_detach(struct launcher *l)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	struct writer w = writer_init(buf, sizeof(buf));
	writer_u8(&w, LAUNCHER_DETACH);
	return ask(l, &w, LAUNCHER_DETACH);
}

static bool list_write(struct writer *w, char *const list[], unsigned max)
{
	size_t start = writer_reserve_u16(w);
	unsigned count = 0;
	for (; list[count] != NULL; count++) {
		size_t len = strlen(list[count]) + 1;
		if (count == max || len > writer_left(w))
			return false;
		writer_u32(w, (uint32_t)len);
		writer_bytes(w, list[count], len);
	}
	writer_set_u16(w, start, (uint16_t)count);
	return writer_ok(w);
}

int launcher_run(struct launcher *l, uint64_t job, char *const argv[], char *const envp[],
		 uint32_t timeout_ms)
{
	if (l->pending >= LAUNCHER_RUNNING_MAX + LAUNCHER_QUEUED_MAX)
		return -EAGAIN;
	uint8_t *buf = malloc(LAUNCHER_MESSAGE_MAX);
	if (buf == NULL)
		return -EAGAIN;
	struct writer w = writer_init(buf, LAUNCHER_MESSAGE_MAX);
	writer_u8(&w, LAUNCHER_RUN);
	writer_u64(&w, job);
	writer_u32(&w, timeout_ms);
	int err = -E2BIG;
	if (list_write(&w, argv, LAUNCHER_ARGS_MAX) && list_write(&w, envp, LAUNCHER_ENV_MAX))
		err = message_send(l, writer_done(&w));
	free(buf);
	if (err == 0)
		l->pending++;
	return err;
}

int launcher_fd(const struct launcher *l)
{
	return l->fd;
}

bool launcher_result(struct launcher *l, struct launcher_result *out)
{
	uint8_t buf[LAUNCHER_ANSWER_MAX];
	ssize_t len;
	do {
		len = recv(l->fd, buf, sizeof(buf), MSG_DONTWAIT);
	} while (len < 0 && errno == EINTR);
	if (len <= 0)
		return false;
	struct reader r = reader_init(buf, (size_t)len);
	bool is_run = reader_u8(&r) == LAUNCHER_RUN;
	struct launcher_result result = {.status = (int)reader_u32(&r)};
	result.job = reader_u64(&r);
	result.is_timed_out = reader_u8(&r) != 0;
	if (!is_run || !reader_done(&r) || l->pending == 0)
		return false;
	l->pending--;
	*out = result;
	return true;
}

/* It ends by itself as soon as the socket is closed; if it does not, it is made to. */
static void reap(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	for (int i = 0; i < STOP_WAIT_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		(void)nanosleep(&pause, NULL);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

void launcher_stop(struct launcher *l)
{
	if (l == NULL)
		return;
	close(l->fd);
	reap(l->pid);
	free(l);
}
