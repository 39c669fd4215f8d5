/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/launcher.h"
#include "server/launcher_child.h"

#define LONG_MS 20000

static char *no_env[] = {NULL};

static int start(void **state)
{
	struct launcher *l;
	if (launcher_start(&l) != 0)
		return -1;
	*state = l;
	return 0;
}

static int stop(void **state)
{
	launcher_stop(*state);
	return 0;
}

static bool result_wait(struct launcher *l, int timeout_ms, struct launcher_result *r)
{
	struct pollfd p = {.fd = launcher_fd(l), .events = POLLIN};
	return poll(&p, 1, timeout_ms) == 1 && launcher_result(l, r);
}

static struct launcher_result result_of(struct launcher *l)
{
	struct launcher_result r;
	assert_true(result_wait(l, 10000, &r));
	return r;
}

static int run_shell(struct launcher *l, uint64_t job, const char *script, char *env[],
		     uint32_t timeout_ms)
{
	char text[1024];
	snprintf(text, sizeof(text), "%s", script);
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = {shell, option, text, NULL};
	return launcher_run(l, job, argv, env, timeout_ms);
}

static int run_program(struct launcher *l, uint64_t job, const char *program, const char *arg,
		       uint32_t timeout_ms)
{
	char name[256], word[256];
	snprintf(name, sizeof(name), "%s", program);
	snprintf(word, sizeof(word), "%s", arg);
	char *argv[] = {name, word, NULL};
	return launcher_run(l, job, argv, no_env, timeout_ms);
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void results_tell_the_exit_code(void **state)
{
	struct launcher *l = *state;
	static const struct {
		const char *script;
		int status;
	} table[] = {
		{"exit 0", 0},
		{"exit 1", 1},
		{"exit 2", 2},
		{"exit 255", 255},
		{"kill -9 $$", -SIGKILL},
		{"kill -15 $$", -SIGTERM},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t job = UINT64_MAX - i;
		assert_int_equal(run_shell(l, job, table[i].script, no_env, LONG_MS), 0);
		struct launcher_result r = result_of(l);
		assert_true(r.job == job);
		assert_int_equal(r.status, table[i].status);
		assert_false(r.is_timed_out);
	}
	struct launcher_result r;
	assert_false(launcher_result(l, &r));
}

static void programs_that_cannot_start_say_why(void **state)
{
	struct launcher *l = *state;
	assert_int_equal(run_program(l, 1, "/nonexistent/program", "", LONG_MS), 0);
	assert_int_equal(result_of(l).status, -ENOENT);
	assert_int_equal(run_program(l, 2, "/dev/null", "", LONG_MS), 0);
	assert_int_equal(result_of(l).status, -EACCES);
	assert_int_equal(run_program(l, 3, "/bin/true", "", LONG_MS), 0);
	assert_int_equal(result_of(l).status, 0);
}

/* A fifo that a script opens tells by its end of file that all who held it are gone. */
struct witness {
	char dir[32], path[64];
	int fd;
};

static void witness_open(struct witness *w)
{
	snprintf(w->dir, sizeof(w->dir), "/tmp/launcher_XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/fifo", w->dir);
	assert_int_equal(mkfifo(w->path, 0600), 0);
	w->fd = open(w->path, O_RDONLY | O_NONBLOCK);
	assert_true(w->fd >= 0);
}

/* The next read gives `expected` bytes. */
static void witness_sees(const struct witness *w, ssize_t expected)
{
	char byte;
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(read(w->fd, &byte, 1), expected);
}

static void witness_close(struct witness *w)
{
	close(w->fd);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(rmdir(w->dir), 0);
}

/* The script's child belongs to its group and goes with it. */
static void a_program_over_its_time_is_killed_with_its_children(void **state)
{
	struct launcher *l = *state;
	struct witness w;
	char script[128];
	witness_open(&w);
	snprintf(script, sizeof(script), "exec >%s; echo; sleep 30 & sleep 30", w.path);
	uint64_t begin = now_ms();
	assert_int_equal(run_shell(l, 1, script, no_env, 300), 0);
	struct launcher_result r = result_of(l);
	assert_true(r.is_timed_out);
	assert_int_equal(r.status, -SIGKILL);
	assert_in_range(now_ms() - begin, 300, 5000);
	witness_sees(&w, 1);
	witness_sees(&w, 0);
	witness_close(&w);
}

static void the_environment_is_what_was_given(void **state)
{
	struct launcher *l = *state;
	setenv("LEAKED", "x", 1);
	char one[] = "ONE=1", two[] = "TWO=a b;c";
	char *env[] = {one, two, NULL};
	assert_int_equal(run_shell(l, 1, "test -z \"$LEAKED$HOME\" && test \"$ONE$TWO\" = '1a b;c'",
				   env, LONG_MS),
			 0);
	assert_int_equal(result_of(l).status, 0);
}

static void nothing_of_the_daemon_is_open_in_a_program(void **state)
{
	struct launcher *l = *state;
	assert_int_equal(run_shell(l, 1,
				   "set -- $(ls /proc/self/fd); test \"$*\" = '0 1 2 3' && "
				   "test $(readlink /proc/self/fd/0) = /dev/null",
				   no_env, LONG_MS),
			 0);
	assert_int_equal(result_of(l).status, 0);
}

/* Eight at once: twelve sleeps of 0.2 s take two rounds, not twelve. */
static void more_programs_than_run_at_once_wait(void **state)
{
	struct launcher *l = *state;
	uint64_t begin = now_ms();
	uint32_t seen = 0;
	for (uint64_t i = 0; i < 12; i++)
		assert_int_equal(run_program(l, i, "/bin/sleep", "0.2", LONG_MS), 0);
	for (int i = 0; i < 12; i++) {
		struct launcher_result r = result_of(l);
		assert_int_equal(r.status, 0);
		seen |= 1u << r.job;
	}
	assert_int_equal(seen, 0xfff);
	assert_in_range(now_ms() - begin, 400, 2000);
}

static void the_queue_has_an_end(void **state)
{
	struct launcher *l = *state;
	unsigned taken = 0;
	int err;
	while ((err = run_program(l, taken, "/bin/sleep", "30", 100)) == 0 && taken < 1000)
		taken++;
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(taken, LAUNCHER_RUNNING_MAX + LAUNCHER_QUEUED_MAX);
	struct launcher_result r = result_of(l);
	assert_true(r.is_timed_out);
	assert_int_equal(run_program(l, taken, "/bin/true", "", LONG_MS), 0);
}

static void what_is_too_large_is_refused(void **state)
{
	struct launcher *l = *state;
	static char big[LAUNCHER_MESSAGE_MAX];
	memset(big, 'x', sizeof(big) - 1);
	char program[] = "/bin/true";
	char *argv[] = {program, big, NULL};
	assert_int_equal(launcher_run(l, 1, argv, no_env, LONG_MS), -E2BIG);
	char *many[LAUNCHER_ARGS_MAX + 2];
	for (size_t i = 0; i <= LAUNCHER_ARGS_MAX; i++)
		many[i] = program;
	many[LAUNCHER_ARGS_MAX + 1] = NULL;
	assert_int_equal(launcher_run(l, 1, many, no_env, LONG_MS), -E2BIG);
	many[LAUNCHER_ARGS_MAX] = NULL;
	assert_int_equal(launcher_run(l, 2, many, no_env, LONG_MS), 0);
	struct launcher_result r = result_of(l);
	assert_true(r.job == 2);
	assert_int_equal(r.status, 0);
}

/* 17 head, 2 argc, 4 + 10 program, 4 + n argument, 2 envc: one byte more than the message holds. */
static void the_largest_message_fits_exactly(void **state)
{
	struct launcher *l = *state;
	static char big[LAUNCHER_MESSAGE_MAX];
	char program[] = "/bin/true";
	char *argv[] = {program, big, NULL};
	size_t head = 1 + 8 + 4 + 2 + 4 + sizeof(program) + 4 + 2;
	size_t len = LAUNCHER_MESSAGE_MAX - head; /* with NUL */
	memset(big, 'x', len);
	big[len] = '\0';
	assert_int_equal(launcher_run(l, 1, argv, no_env, LONG_MS), -E2BIG);
	big[len - 1] = '\0';
	assert_int_equal(launcher_run(l, 2, argv, no_env, LONG_MS), 0);
	assert_int_equal(result_of(l).status, 0);
}

static void signals_for_the_daemon_do_not_end_the_launcher(void **state)
{
	struct launcher *l = *state;
	assert_int_equal(run_shell(l, 1, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID",
				   no_env, LONG_MS),
			 0);
	assert_int_equal(result_of(l).status, 0);
	assert_int_equal(run_program(l, 2, "/bin/true", "", LONG_MS), 0);
	assert_int_equal(result_of(l).status, 0);
}

static void a_dead_launcher_is_noticed(void **state)
{
	struct launcher *l = *state;
	struct launcher_result r;
	assert_int_equal(run_shell(l, 1, "kill -9 $PPID", no_env, LONG_MS), 0);
	struct pollfd p = {.fd = launcher_fd(l), .events = POLLIN};
	while (launcher_result(l, &r) || !(p.revents & POLLHUP))
		assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(run_program(l, 2, "/bin/true", "", LONG_MS), -EPIPE);
}

static void stopping_kills_what_runs(void **state)
{
	(void)state;
	struct launcher *l;
	struct witness w;
	char script[128];
	witness_open(&w);
	snprintf(script, sizeof(script), "exec >%s; echo; sleep 30", w.path);
	assert_int_equal(launcher_start(&l), 0);
	assert_int_equal(run_shell(l, 1, script, no_env, LONG_MS), 0);
	witness_sees(&w, 1);
	launcher_stop(l);
	witness_sees(&w, 0);
	witness_close(&w);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
}

static void the_launcher_gives_up_root(void **state)
{
	struct launcher *l = *state;
	if (geteuid() != 0) { /* cmocka's skip() counts as a failure in TAP */
		print_message("# not tried, since this is not root\n");
		return;
	}
	assert_int_equal(launcher_drop(l, 65534, 65534), 0);
	assert_int_equal(
		run_shell(l, 1,
			  "test $(id -u) = 65534 && test $(id -g) = 65534 && "
			  "! grep -q '^Cap\\(Prm\\|Eff\\|Amb\\):.*[1-9a-f]' /proc/self/status && "
			  "grep -q 'NoNewPrivs:.*1' /proc/self/status",
			  no_env, LONG_MS),
		0);
	assert_int_equal(result_of(l).status, 0);
	assert_int_equal(launcher_drop(l, 0, 0), -EPERM);
}

static void without_a_user_nothing_is_given_up(void **state)
{
	struct launcher *l = *state;
	char script[64];
	assert_int_equal(launcher_drop(l, (uid_t)-1, (gid_t)-1), 0);
	snprintf(script, sizeof(script), "test $(id -u) = %u", (unsigned)geteuid());
	assert_int_equal(run_shell(l, 1, script, no_env, LONG_MS), 0);
	assert_int_equal(result_of(l).status, 0);
}

static void a_detached_launcher_writes_nowhere(void **state)
{
	struct launcher *l = *state;
	assert_int_equal(launcher_detach(l), 0);
	assert_int_equal(run_shell(l, 1,
				   "test $(readlink /proc/self/fd/1) = /dev/null ||"
				   "test $(readlink /proc/$$/fd/1) = /dev/null",
				   no_env, LONG_MS),
			 0);
	assert_int_equal(result_of(l).status, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(results_tell_the_exit_code),
		TEST(programs_that_cannot_start_say_why),
		TEST(a_program_over_its_time_is_killed_with_its_children),
		TEST(the_environment_is_what_was_given),
		TEST(nothing_of_the_daemon_is_open_in_a_program),
		TEST(more_programs_than_run_at_once_wait),
		TEST(the_queue_has_an_end),
		TEST(what_is_too_large_is_refused),
		TEST(the_largest_message_fits_exactly),
		TEST(signals_for_the_daemon_do_not_end_the_launcher),
		TEST(a_dead_launcher_is_noticed),
		TEST(the_launcher_gives_up_root),
		TEST(without_a_user_nothing_is_given_up),
		TEST(a_detached_launcher_writes_nowhere),
		cmocka_unit_test(stopping_kills_what_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
