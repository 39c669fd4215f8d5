/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "config/log.h"
#include "server/device_steering.h"
#include "tests/support/deny_bpf.h"
#include "tests/support/netns.h"
#include "tests/support/skip.h"
#include "tun/tun.h"
#include "workers/tun_steering.h"

static char log_path[32];

static void entries_grow_with_the_clients_up_to_a_bound(void **state)
{
	(void)state;
	static const struct {
		uint32_t max_clients;
		unsigned each;
		uint32_t entries;
	} table[] = {
		{0, 2, 256},
		{1, 2, 258},
		{1024, 8, 8448},
		{524159, 2, (1u << 20) - 2},
		{524160, 2, 1u << 20},
		{524161, 2, 1u << 20},
		{UINT32_MAX, 8, 1u << 20},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(device_steering_entries(table[i].max_clients, table[i].each),
				 table[i].entries);
}

static void log_begin(void)
{
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = memfd_create("log", 0);
	assert_true(fd >= 0);
	snprintf(log_path, sizeof(log_path), "/proc/self/fd/%d", fd);
	assert_int_equal(log_open(&(struct log_options){.verb = 3, .file = log_path}), 0);
}

/* How often the log has `text`. */
static unsigned log_count(const char *text)
{
	static char all[8192];
	unsigned count = 0;
	FILE *f = fopen(log_path, "r");

	assert_non_null(f);
	all[fread(all, 1, sizeof(all) - 1, f)] = 0;
	fclose(f);
	for (const char *at = all; (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

static void device_of(struct config *c, struct tun *t)
{
	char why[256];

	c->max_clients = 100;
	if (tun_open("vpn9", (int)c->workers, t, why, sizeof(why)) != 0)
		fail_msg("%s", why);
}

static bool may_load(void)
{
	struct config c = {.workers = 2};
	struct tun t;
	struct tun_steering *s;

	device_of(&c, &t);
	log_begin();
	device_steering_load(&c, &t, &s);
	bool is_loaded = s != NULL;
	tun_steering_free(s);
	tun_close(&t);
	return is_loaded;
}

static void what_can_be_loaded_and_changed_is_kept(void **state)
{
	(void)state;
	struct config c = {.workers = 4};
	struct tun t;
	struct tun_steering *s;

	if (!may_load())
		SKIP_TEST("no permission to load eBPF programs");
	device_of(&c, &t);
	log_begin();
	device_steering_load(&c, &t, &s);
	assert_non_null(s);
	device_steering_settle(&s);
	assert_non_null(s);
	assert_int_equal(log_count("packets from the tun device"), 1);
	assert_int_equal(log_count("are steered to their client's worker by eBPF"), 1);
	tun_steering_free(s);
	tun_close(&t);
}

/* What an old kernel does once root is given up: each update wants the privilege. */
static int settle_without_updates(struct tun_steering *s)
{
	if (!deny_bpf(BPF_MAP_UPDATE_ELEM, EPERM))
		return 9;
	device_steering_settle(&s);
	return s == NULL ? 0 : 1;
}

static void what_cannot_be_changed_is_given_up(void **state)
{
	(void)state;
	struct config c = {.workers = 4};
	struct tun t;
	struct tun_steering *s;
	int status;

	if (!may_load())
		SKIP_TEST("no permission to load eBPF programs");
	device_of(&c, &t);
	log_begin();
	device_steering_load(&c, &t, &s);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(settle_without_updates(s));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(log_count("packets from the tun device are not steered"), 1);
	assert_int_equal(log_count("(this kernel wants CAP_BPF for each change of a map)"), 1);
	tun_steering_free(s);
	tun_close(&t);
}

static void one_worker_has_nothing_to_steer(void **state)
{
	(void)state;
	struct config c = {.workers = 1};
	struct tun t;
	struct tun_steering *s = (struct tun_steering *)&t;

	device_of(&c, &t);
	log_begin();
	device_steering_load(&c, &t, &s);
	assert_null(s);
	device_steering_settle(&s);
	assert_null(s);
	assert_int_equal(log_count("tun"), 0);
	tun_close(&t);
}

static void disabled_feature_is_said_once(void **state)
{
	(void)state;
	struct config c = {.workers = 2, .disabled_features = FEATURE_STEERING_EBPF};
	struct tun t;
	struct tun_steering *s = (struct tun_steering *)&t;

	device_of(&c, &t);
	log_begin();
	device_steering_load(&c, &t, &s);
	assert_null(s);
	device_steering_settle(&s);
	assert_null(s);
	assert_int_equal(log_count("packets from the tun device"), 1);
	assert_int_equal(log_count("(disable-feature steering-ebpf): the kernel's automatic"), 1);
	tun_close(&t);
}

static void refused_load_is_said_once(void **state)
{
	(void)state;
	struct config c = {.workers = 2};
	struct tun t;
	struct tun_steering *s = (struct tun_steering *)&t;

	device_of(&c, &t);
	int fd = t.fds[0];
	t.fds[0] = STDERR_FILENO; /* is no tun device */
	log_begin();
	device_steering_load(&c, &t, &s);
	t.fds[0] = fd;
	assert_null(s);
	assert_int_equal(log_count("packets from the tun device are not steered"), 1);
	tun_close(&t);
}

int main(void)
{
	const char *why = netns_enter_with_tun();
	if (why)
		return netns_skip(why);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_grow_with_the_clients_up_to_a_bound),
		cmocka_unit_test(what_can_be_loaded_and_changed_is_kept),
		cmocka_unit_test(what_cannot_be_changed_is_given_up),
		cmocka_unit_test(one_worker_has_nothing_to_steer),
		cmocka_unit_test(disabled_feature_is_said_once),
		cmocka_unit_test(refused_load_is_said_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
