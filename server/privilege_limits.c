/* SPDX-License-Identifier: Apache-2.0 */
#include "server/privilege.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/privilege_cgroup.h"

#define TASKS_SPARE	 4 /* helpers of io_uring, a script */
#define FILES_PER_WORKER 8 /* tun queue, ring, eventfds, sockets; one more socket a listener */
#define FILES_SPARE	 64

#define DROP_IN "/etc/systemd/system/UNIT.service.d/10-shardvpn.conf"

static uint64_t tasks_needed(const struct config *c)
{
	uint64_t observer = c->metrics_host != NULL, launcher = 1, acceptor = 1;
	return acceptor + launcher + observer + c->workers + c->handshake_threads + TASKS_SPARE;
}

static uint64_t entries_count(const char *path)
{
	DIR *d = opendir(path);
	uint64_t count = 0;
	if (d == NULL)
		return 0;
	/* Only this thread reads the stream. */
	for (struct dirent *e; (e = readdir(d)) != NULL;) // NOLINT(concurrency-mt-unsafe)
		count += e->d_name[0] != '.';
	(void)closedir(d);
	return count;
}

/* Tasks that count against RLIMIT_NPROC of `uid` already, without our own process. */
static uint64_t tasks_of(uid_t uid)
{
	DIR *d = opendir("/proc");
	uint64_t count = 0;
	if (d == NULL)
		return 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) { // NOLINT(concurrency-mt-unsafe)
		char path[300];
		struct stat st;
		uint64_t pid;
		if (!number_parse(e->d_name, INT32_MAX, &pid) || pid == (uint64_t)getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", e->d_name);
		if (stat(path, &st) == 0 && st.st_uid == uid)
			count += entries_count(path);
	}
	(void)closedir(d);
	return count;
}

/* Raise a limit to at least `need` where we may; the soft limit goes up to the hard one. Returns
 * what is allowed now. */
static uint64_t limit_raise(__rlimit_resource_t resource, uint64_t need)
{
	struct rlimit r;
	if (getrlimit(resource, &r) != 0 || r.rlim_cur >= need)
		return UINT64_MAX;
	struct rlimit higher = {.rlim_cur = need,
				.rlim_max = need > r.rlim_max ? need : r.rlim_max};
	if (setrlimit(resource, &higher) == 0)
		return need;
	higher = (struct rlimit){.rlim_cur = r.rlim_max, .rlim_max = r.rlim_max};
	return setrlimit(resource, &higher) == 0 ? r.rlim_max : r.rlim_cur;
}

/* The kernel does not count the tasks of root. */
static int check_user_tasks(const struct config *c, char *why, size_t why_len)
{
	uid_t uid;
	gid_t gid;
	if (privilege_lookup(c, &uid, &gid, why, why_len) != 0)
		return 0; /* said elsewhere */
	if (c->user == NULL)
		uid = getuid();
	if (uid == 0)
		return 0;
	uint64_t need = tasks_needed(c), used = tasks_of(uid);
	uint64_t allowed = limit_raise(RLIMIT_NPROC, need + used);
	if (allowed >= need + used)
		return 0;
	snprintf(why, why_len,
		 "%" PRIu64 " tasks are needed, but RLIMIT_NPROC allows user %s %" PRIu64
		 " and %" PRIu64
		 " are taken: set LimitNPROC=infinity in the systemd drop-in " DROP_IN
		 ", or lower `workers`",
		 need, c->user != NULL ? c->user : "(own)", allowed, used);
	return -EAGAIN;
}

static int check_cgroup_tasks(const struct config *c, char *why, size_t why_len)
{
	struct cgroup_tasks t;
	cgroup_tasks_read("/proc/self/cgroup", "/sys/fs/cgroup", &t);
	uint64_t need = tasks_needed(c) - 1; /* we are there already */
	if (t.max == UINT64_MAX || t.current + need <= t.max)
		return 0;
	snprintf(why, why_len,
		 "%" PRIu64 " more tasks are needed, but the control group allows %" PRIu64
		 " (pids.max) and %" PRIu64
		 " are taken: set TasksMax=4096 in the systemd drop-in " DROP_IN
		 ", or lower `workers`",
		 need, t.max, t.current);
	return -EAGAIN;
}

static int check_files(const struct config *c, char *why, size_t why_len)
{
	uint64_t need = FILES_SPARE + (uint64_t)c->workers * FILES_PER_WORKER;
	uint64_t allowed = limit_raise(RLIMIT_NOFILE, need);
	if (allowed >= need)
		return 0;
	snprintf(why, why_len,
		 "%" PRIu64 " open files are needed, but RLIMIT_NOFILE allows %" PRIu64
		 ": set LimitNOFILE=65536 in the systemd drop-in " DROP_IN ", or lower `workers`",
		 need, allowed);
	return -EAGAIN;
}

int privilege_check_limits(const struct config *c, char *why, size_t why_len)
{
	int err = check_files(c, why, why_len);
	if (err == 0)
		err = check_user_tasks(c, why, why_len);
	if (err == 0)
		err = check_cgroup_tasks(c, why, why_len);
	return err;
}
