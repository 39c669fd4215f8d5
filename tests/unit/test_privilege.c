/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/privilege.h"
#include "server/privilege_cgroup.h"

#define NOBODY 65534

/* What cannot be taken back is tried in a process of its own; its exit code is the failed line. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__ % 256;                                                     \
	} while (0)

static int in_child(int (*f)(void))
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(f());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* cmocka's skip() counts as a failure in TAP, so that what needs root says so and passes. */
static bool is_root(void)
{
	if (geteuid() != 0)
		print_message("# not tried, since this is not root\n");
	return geteuid() == 0;
}

static int cap_state(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return (int)syscall(SYS_capget, &head, data);
}

static int drop_cap(unsigned cap)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (cap_state(data) != 0)
		return -1;
	data[cap / 32].effective &= ~(1u << cap % 32);
	data[cap / 32].permitted &= ~(1u << cap % 32);
	return (int)syscall(SYS_capset, &head, data);
}

static void users_and_groups_are_looked_up(void **state)
{
	(void)state;
	static const struct {
		const char *user, *group;
		int err;
		uid_t uid;
		gid_t gid;
		const char *word; /* of the sentence */
	} table[] = {
		{NULL, NULL, 0, (uid_t)-1, (gid_t)-1, NULL},
		{"root", NULL, 0, 0, 0, NULL},
		{"nobody", NULL, 0, NOBODY, NOBODY, NULL}, /* with its own group */
		{"nobody", "daemon", 0, NOBODY, 1, NULL},
		{NULL, "daemon", 0, (uid_t)-1, 1, NULL},
		{"no-such-user", NULL, -ENOENT, 0, 0, "\"no-such-user\""},
		{"nobody", "no-such-group", -ENOENT, 0, 0, "\"no-such-group\""},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct config c = {.user = table[i].user, .group = table[i].group};
		char why[256] = "";
		uid_t uid = 0;
		gid_t gid = 0;
		assert_int_equal(privilege_lookup(&c, &uid, &gid, why, sizeof(why)), table[i].err);
		assert_int_equal(uid, table[i].uid);
		assert_int_equal(gid, table[i].gid);
		if (table[i].word != NULL)
			assert_non_null(strstr(why, table[i].word));
	}
}

static int drop_to_nobody(void)
{
	char why[256];
	struct __user_cap_data_struct data[2];
	gid_t groups[4];
	CHECK(privilege_drop(NOBODY, NOBODY, why, sizeof(why)) == 0);
	CHECK(getuid() == NOBODY && geteuid() == NOBODY);
	CHECK(getgid() == NOBODY && getegid() == NOBODY);
	CHECK(getgroups(4, groups) == 1 && groups[0] == NOBODY);
	CHECK(setuid(0) != 0 && setgid(0) != 0);
	CHECK(cap_state(data) == 0);
	CHECK(data[0].effective == 1u << CAP_NET_ADMIN && data[1].effective == 0);
	CHECK(data[0].permitted == 1u << CAP_NET_ADMIN && data[0].inheritable == 0);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0);
	/* A second time finds it done. */
	CHECK(privilege_drop(NOBODY, NOBODY, why, sizeof(why)) == 0);
	return 0;
}

static void root_is_given_up_but_for_net_admin(void **state)
{
	(void)state;
	if (!is_root())
		return;
	assert_int_equal(in_child(drop_to_nobody), 0);
}

static int drop_nothing(void)
{
	char why[256];
	struct __user_cap_data_struct before[2], after[2];
	CHECK(cap_state(before) == 0);
	uid_t uid = getuid();
	CHECK(privilege_drop((uid_t)-1, (gid_t)-1, why, sizeof(why)) == 0);
	CHECK(getuid() == uid && cap_state(after) == 0);
	CHECK(memcmp(before, after, sizeof(before)) == 0);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	return 0;
}

static void without_a_user_root_stays(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_nothing), 0);
}

static int drop_without_right(void)
{
	char why[256] = "";
	CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(privilege_drop(1, 1, why, sizeof(why)) == -EPERM);
	CHECK(strstr(why, "start as root") != NULL);
	return 0;
}

static void a_drop_that_is_not_permitted_is_refused(void **state)
{
	(void)state;
	if (!is_root())
		return;
	assert_int_equal(in_child(drop_without_right), 0);
}

static int limit_of_tasks(void)
{
	const struct config c = {.user = "nobody", .workers = 16, .handshake_threads = 4};
	const struct rlimit ten = {10, 10};
	char why[512] = "";
	CHECK(setrlimit(RLIMIT_NPROC, &ten) == 0 && drop_cap(CAP_SYS_RESOURCE) == 0);
	CHECK(privilege_check_limits(&c, why, sizeof(why)) == -EAGAIN);
	CHECK(strstr(why, "LimitNPROC=infinity") && strstr(why, "drop-in") &&
	      strstr(why, "nobody"));
	const struct config small = {.user = NULL, .workers = 16, .handshake_threads = 4};
	CHECK(privilege_check_limits(&small, why, sizeof(why)) == 0); /* root is not counted */
	return 0;
}

static void too_few_tasks_are_refused_before_they_are_needed(void **state)
{
	(void)state;
	if (!is_root())
		return;
	assert_int_equal(in_child(limit_of_tasks), 0);
}

static int limit_is_raised(void)
{
	const struct config c = {.user = "nobody", .workers = 64, .handshake_threads = 4};
	const struct rlimit tasks = {10, 5000}, files = {100, 4000};
	struct rlimit r;
	char why[512];
	CHECK(setrlimit(RLIMIT_NPROC, &tasks) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(privilege_check_limits(&c, why, sizeof(why)) == 0);
	CHECK(getrlimit(RLIMIT_NPROC, &r) == 0 && r.rlim_cur >= 64 + 4 + 2);
	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur >= 64 * 5);
	return 0;
}

static void soft_limits_are_raised(void **state)
{
	(void)state;
	if (!is_root())
		return;
	assert_int_equal(in_child(limit_is_raised), 0);
}

static int limit_of_files(void)
{
	const struct config c = {.workers = 64, .handshake_threads = 4};
	const struct rlimit files = {100, 100};
	char why[512] = "";
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0 && drop_cap(CAP_SYS_RESOURCE) == 0);
	CHECK(privilege_check_limits(&c, why, sizeof(why)) == -EAGAIN);
	CHECK(strstr(why, "LimitNOFILE=65536") != NULL);
	return 0;
}

static void too_few_files_are_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(limit_of_files), 0);
}

static char dir[32];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/privilege_XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (text == NULL) {
		assert_int_equal(mkdir(path, 0700), 0);
		return;
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_tasks(uint64_t max, uint64_t current)
{
	char proc[256];
	struct cgroup_tasks t;
	snprintf(proc, sizeof(proc), "%s/cgroup", dir);
	cgroup_tasks_read(proc, dir, &t);
	assert_true(t.max == max);
	assert_true(t.current == current);
}

static void the_tightest_level_of_the_group_counts(void **state)
{
	(void)state;
	put("cgroup", "1:name=systemd:/a/b\n0::/a/b\n");
	assert_tasks(UINT64_MAX, 0);
	put("a", NULL);
	put("a/b", NULL);
	put("a/b/pids.max", "100\n");
	put("a/b/pids.current", "3\n");
	assert_tasks(100, 3);
	put("a/pids.max", "max\n");
	put("a/pids.current", "50\n");
	assert_tasks(100, 3);
	put("a/pids.max", "60\n");
	assert_tasks(60, 50);
	put("pids.max", "20\n");
	put("pids.current", "20\n");
	assert_tasks(20, 20);
	put("cgroup", "0::/\n");
	put("pids.max", "7\n");
	put("pids.current", "2\n");
	assert_tasks(7, 2);
}

static void version_1_has_a_mount_of_its_own(void **state)
{
	(void)state;
	put("cgroup", "12:cpu,cpuacct:/x\n9:pids:/x\n");
	put("pids", NULL);
	put("pids/x", NULL);
	put("pids/x/pids.max", "10\n");
	put("pids/x/pids.current", "4\n");
	put("x", NULL);
	put("x/pids.max", "1\n");
	put("x/pids.current", "1\n");
	assert_tasks(10, 4);
}

static void broken_group_files_limit_nothing(void **state)
{
	(void)state;
	static const char *const lines[] = {"", "0", "0:", "0::", "0::relative", ":::", "\n\n"};
	put("pids.max", "-1\n");
	put("pids.current", "x\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		put("cgroup", lines[i]);
		assert_tasks(UINT64_MAX, 0);
	}
	put("cgroup", "0::/\n");
	assert_tasks(UINT64_MAX, 0);
}

static void the_pid_file_has_our_number(void **state)
{
	(void)state;
	char path[64], text[32] = "", expected[32];
	snprintf(path, sizeof(path), "%s/pid", dir);
	put("pid", "a longer text than any number\n");
	assert_int_equal(privilege_pid_file(path), 0);
	FILE *f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	snprintf(expected, sizeof(expected), "%ld\n", (long)getpid());
	assert_string_equal(text, expected);
	assert_null(fgets(text, sizeof(text), f));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(privilege_pid_file("/nonexistent/pid"), -ENOENT);
}

/* The first process returns only what the daemon's fate says. */
static int daemon_that_gets_ready(void)
{
	if (privilege_daemon() != 0)
		return 9;
	usleep(50000);
	privilege_ready("ready");
	return 8;
}

static int daemon_that_dies(void)
{
	return privilege_daemon() == 0 ? 0 : 9;
}

static void the_first_process_waits_for_the_daemon(void **state)
{
	(void)state;
	assert_int_equal(in_child(daemon_that_gets_ready), 0);
	assert_int_equal(in_child(daemon_that_dies), 1);
}

#ifdef HAVE_SYSTEMD
/* What the service manager hears. */
static void systemd_is_told(void **state)
{
	(void)state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char text[256] = "", pid[32];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/notify", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", a.sun_path, 1), 0);
	privilege_ready("2 workers");
	assert_true(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(strncmp(text, "READY=1\nSTATUS=2 workers\n", 25), 0);
	snprintf(pid, sizeof(pid), "MAINPID=%ld", (long)getpid());
	assert_non_null(strstr(text, pid));
	privilege_stopping();
	assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 10);
	assert_memory_equal(text, "STOPPING=1", 10);
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
	close(fd);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_and_groups_are_looked_up),
		cmocka_unit_test(root_is_given_up_but_for_net_admin),
		cmocka_unit_test(without_a_user_root_stays),
		cmocka_unit_test(a_drop_that_is_not_permitted_is_refused),
		cmocka_unit_test(too_few_tasks_are_refused_before_they_are_needed),
		cmocka_unit_test(soft_limits_are_raised),
		cmocka_unit_test(too_few_files_are_refused),
		cmocka_unit_test_setup_teardown(the_tightest_level_of_the_group_counts, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(version_1_has_a_mount_of_its_own, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(broken_group_files_limit_nothing, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(the_pid_file_has_our_number, make_dir, remove_dir),
		cmocka_unit_test(the_first_process_waits_for_the_daemon),
#ifdef HAVE_SYSTEMD
		cmocka_unit_test_setup_teardown(systemd_is_told, make_dir, remove_dir),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
