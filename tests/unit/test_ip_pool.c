/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/ip_pool.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;
	assert_true(ip_addr_parse(text, &a));
	return a;
}

static struct config pool4(enum topology t, const char *start, const char *end)
{
	struct config c = {.topology = t, .has_pool = true, .pool_bits = 24, .pool_persist_s = 600};
	c.pool_start = addr(start);
	c.pool_end = addr(end);
	c.ifconfig_local = addr("10.8.0.1");
	return c;
}

static void add_pool6(struct config *c, const char *base, uint8_t bits)
{
	c->has_pool6 = true;
	c->pool6_base = addr(base);
	c->pool6_bits = bits;
}

static struct ip_pool *pool_of(const struct config *c)
{
	struct ip_pool *p = NULL;
	assert_int_equal(ip_pool_new(c, &p), 0);
	assert_non_null(p);
	return p;
}

static struct ip_lease take(struct ip_pool *p, const char *name)
{
	struct ip_lease l;
	assert_int_equal(ip_pool_take(p, name, &l), 0);
	return l;
}

static void assert_addr(const struct ip_addr *a, const char *expected)
{
	char text[IP_ADDR_TEXT_MAX];
	assert_string_equal(ip_addr_print(a, text), expected);
}

static void no_pool_without_configuration(void **state)
{
	(void)state;
	struct config c = {0};
	struct ip_pool *p = (struct ip_pool *)1;
	assert_int_equal(ip_pool_new(&c, &p), 0);
	assert_null(p);
	ip_pool_free(NULL);
}

static void topologies_give_stock_addresses(void **state)
{
	(void)state;
	static const struct {
		enum topology topology;
		const char *start, *end;
		uint32_t size;
		const char *first, *first_peer, *second;
	} table[] = {
		{TOPOLOGY_SUBNET, "10.8.0.2", "10.8.0.254", 253, "10.8.0.2", "", "10.8.0.3"},
		{TOPOLOGY_P2P, "10.8.0.2", "10.8.0.3", 2, "10.8.0.2", "10.8.0.1", "10.8.0.3"},
		{TOPOLOGY_NET30, "10.8.0.4", "10.8.0.251", 62, "10.8.0.6", "10.8.0.5", "10.8.0.10"},
		{TOPOLOGY_NET30, "10.8.0.6", "10.8.0.9", 2, "10.8.0.6", "10.8.0.5", "10.8.0.10"},
		{TOPOLOGY_SUBNET, "10.0.0.0", "10.255.255.255", 65536, "10.0.0.0", "", "10.0.0.1"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct config c = pool4(table[i].topology, table[i].start, table[i].end);
		struct ip_pool *p = pool_of(&c);
		assert_int_equal(ip_pool_size4(p), table[i].size);
		assert_int_equal(ip_pool_size6(p), 0);
		struct ip_lease l = take(p, "a");
		assert_addr(&l.addr4, table[i].first);
		assert_addr(&l.peer4, table[i].first_peer);
		assert_int_equal(l.addr6.family, 0);
		l = take(p, "b");
		assert_addr(&l.addr4, table[i].second);
		ip_pool_free(p);
	}
}

static void ipv6_shares_the_slot(void **state)
{
	(void)state;
	static const struct {
		const char *base;
		uint8_t bits;
		uint32_t size;
		const char *first, *second;
	} table[] = {
		{"fd00:8::1000", 64, 65536, "fd00:8::1000", "fd00:8::1001"},
		{"fd00:8::", 64, 65536, "fd00:8::1", "fd00:8::2"},
		{"fd00:8::10", 120, 240, "fd00:8::10", "fd00:8::11"},
		{"fd00:8::100", 120, 255, "fd00:8::101", "fd00:8::102"},
		{"fd00:8::4", 126, 3, "fd00:8::5", "fd00:8::6"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct config c = {.topology = TOPOLOGY_SUBNET};
		add_pool6(&c, table[i].base, table[i].bits);
		struct ip_pool *p = pool_of(&c);
		assert_int_equal(ip_pool_size6(p), table[i].size);
		assert_int_equal(ip_pool_size4(p), 0);
		struct ip_lease l = take(p, "a");
		assert_addr(&l.addr6, table[i].first);
		assert_int_equal(l.addr4.family, 0);
		l = take(p, "b");
		assert_addr(&l.addr6, table[i].second);
		ip_pool_free(p);
	}
}

static void the_smaller_pool_limits(void **state)
{
	(void)state;
	struct config c = pool4(TOPOLOGY_SUBNET, "10.8.0.2", "10.8.0.4");
	add_pool6(&c, "fd00:8::1000", 64);
	struct ip_pool *p = pool_of(&c);
	struct ip_lease l;
	assert_int_equal(ip_pool_size4(p), 3);
	assert_int_equal(ip_pool_size6(p), 3);
	for (int i = 0; i < 3; i++)
		l = take(p, "same");
	assert_addr(&l.addr4, "10.8.0.4");
	assert_addr(&l.addr6, "fd00:8::1002");
	assert_int_equal(ip_pool_used(p), 3);
	struct ip_lease untouched = l;
	assert_int_equal(ip_pool_take(p, "late", &l), -ENOSPC);
	assert_memory_equal(&l, &untouched, sizeof(l));
	ip_pool_release(p, &l);
	assert_int_equal(ip_pool_used(p), 2);
	l = take(p, "late");
	assert_addr(&l.addr4, "10.8.0.4");
	ip_pool_free(p);
}

static void a_name_gets_its_address_again(void **state)
{
	(void)state;
	struct config c = pool4(TOPOLOGY_SUBNET, "10.8.0.2", "10.8.0.9");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease a = take(p, "alice"), b = take(p, "bob");
	ip_pool_release(p, &a);
	ip_pool_release(p, &b);
	b = take(p, "bob");
	assert_addr(&b.addr4, "10.8.0.3");
	a = take(p, "alice");
	assert_addr(&a.addr4, "10.8.0.2");
	ip_pool_free(p);
}

static void the_longest_unused_is_given_to_strangers(void **state)
{
	(void)state;
	struct config c = pool4(TOPOLOGY_SUBNET, "10.8.0.2", "10.8.0.5");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease a = take(p, "a"), b = take(p, "b"), d = take(p, "d"), e = take(p, "e");
	ip_pool_release(p, &d);
	ip_pool_release(p, &a);
	ip_pool_release(p, &e);
	ip_pool_release(p, &b);
	static const char *const expected[] = {"10.8.0.4", "10.8.0.2", "10.8.0.5", "10.8.0.3"};
	for (size_t i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "new%zu", i);
		struct ip_lease l = take(p, name);
		assert_addr(&l.addr4, expected[i]);
	}
	ip_pool_free(p);
}

static void duplicate_cn_takes_the_lowest(void **state)
{
	(void)state;
	struct config c = pool4(TOPOLOGY_SUBNET, "10.8.0.2", "10.8.0.5");
	c.is_duplicate_cn = true;
	struct ip_pool *p = pool_of(&c);
	struct ip_lease first = take(p, "x"), second = take(p, "x"), third = take(p, "x");
	assert_addr(&third.addr4, "10.8.0.4");
	ip_pool_release(p, &second);
	ip_pool_release(p, &first);
	struct ip_lease again = take(p, "y");
	assert_addr(&again.addr4, "10.8.0.2");
	again = take(p, "x");
	assert_addr(&again.addr4, "10.8.0.3");
	ip_pool_free(p);
}

static char file_path[] = "/tmp/ip_pool_XXXXXX";

static int make_file(void **state)
{
	(void)state;
	memcpy(file_path + sizeof(file_path) - 7, "XXXXXX", 6);
	int fd = mkstemp(file_path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(file_path);
}

static void file_put(const char *text)
{
	FILE *f = fopen(file_path, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static void assert_file(const char *expected)
{
	char text[4096];
	FILE *f = fopen(file_path, "r");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, expected);
}

static struct config persist(enum topology t)
{
	struct config c = pool4(t, "10.8.0.4", "10.8.0.251");
	c.pool_persist_path = file_path;
	return c;
}

static void file_lines_are_stocks(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_NET30);
	struct ip_pool *p = pool_of(&c);
	take(p, "alice");
	struct ip_lease bob = take(p, "bob");
	ip_pool_release(p, &bob);
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("alice,10.8.0.4,\nbob,10.8.0.8,\n");
	ip_pool_free(p);
	add_pool6(&c, "fd00:8::1000", 64);
	p = pool_of(&c);
	take(p, "carol");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("alice,10.8.0.4,fd00:8::1000\nbob,10.8.0.8,fd00:8::1001\n"
		    "carol,10.8.0.12,fd00:8::1002\n");
	ip_pool_free(p);
}

static void a_restart_keeps_addresses(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_SUBNET);
	file_put("# comment\n;another\n\nbob,10.8.0.9,\r\nold-form,10.8.0.7\nwith,comma,10.8.0.5,\n"
		 "out,10.9.0.1,\nno-address,,\nbroken\nbad,10.8.0.999,\nlast,10.8.0.6,");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease l = take(p, "bob");
	assert_addr(&l.addr4, "10.8.0.9");
	l = take(p, "old-form");
	assert_addr(&l.addr4, "10.8.0.7");
	l = take(p, "with,comma");
	assert_addr(&l.addr4, "10.8.0.5");
	l = take(p, "last");
	assert_addr(&l.addr4, "10.8.0.6");
	l = take(p, "stranger");
	assert_addr(&l.addr4, "10.8.0.4");
	l = take(p, "out");
	assert_addr(&l.addr4, "10.8.0.8");
	ip_pool_free(p);
}

static void net30_lines_may_name_any_address_of_the_block(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_NET30);
	file_put("base,10.8.0.8,\nclient,10.8.0.14,\nbelow,10.8.0.3,\nbehind,10.8.0.252,\n");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease l = take(p, "base");
	assert_addr(&l.addr4, "10.8.0.10");
	l = take(p, "client");
	assert_addr(&l.addr4, "10.8.0.14");
	l = take(p, "below");
	assert_addr(&l.addr4, "10.8.0.6");
	ip_pool_free(p);
}

static void ipv6_alone_is_remembered(void **state)
{
	(void)state;
	struct config c = {.topology = TOPOLOGY_SUBNET, .pool_persist_s = 600};
	c.pool_persist_path = file_path;
	add_pool6(&c, "fd00:8::1000", 64);
	file_put("bob,,fd00:8::1003\nfar,,fd00:9::1001\n");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease l = take(p, "bob");
	assert_addr(&l.addr6, "fd00:8::1003");
	l = take(p, "far");
	assert_addr(&l.addr6, "fd00:8::1000");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("far,,fd00:8::1000\nbob,,fd00:8::1003\n");
	ip_pool_free(p);
}

static void never_used_addresses_go_before_remembered_ones(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_SUBNET);
	c.pool_end = addr("10.8.0.6");
	file_put("a,10.8.0.4,\nb,10.8.0.5,\n");
	struct ip_pool *p = pool_of(&c);
	static const char *const expected[] = {"10.8.0.6", "10.8.0.4", "10.8.0.5"};
	for (size_t i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof(name), "new%zu", i);
		struct ip_lease l = take(p, name);
		assert_addr(&l.addr4, expected[i]);
	}
	ip_pool_free(p);
}

static void time_zero_reserves_and_never_writes(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_SUBNET);
	c.pool_persist_s = 0;
	c.pool_end = addr("10.8.0.5");
	file_put("a,10.8.0.4,\n");
	struct ip_pool *p = pool_of(&c);
	struct ip_lease l = take(p, "b");
	assert_addr(&l.addr4, "10.8.0.5");
	assert_int_equal(ip_pool_take(p, "c", &l), -ENOSPC);
	l = take(p, "a");
	assert_addr(&l.addr4, "10.8.0.4");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("a,10.8.0.4,\n");
	ip_pool_free(p);
}

static void names_that_would_break_the_file_are_not_written(void **state)
{
	(void)state;
	static const char *const names[] = {
		"",
		"#x",
		";x",
		"line\nbreak",
		"tab\there",
		"a-name-that-is-longer-than-anything-the-file-or-the-snapshot-would-hold"};
	struct config c = persist(TOPOLOGY_SUBNET);
	struct ip_pool *p = pool_of(&c);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		take(p, names[i]);
	take(p, "good");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("good,10.8.0.10,\n");
	ip_pool_free(p);
}

static void save_writes_in_place_and_only_after_a_change(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_SUBNET);
	file_put("long-name-that-makes-the-file-longer,10.8.0.4,\n");
	struct stat before, after;
	assert_int_equal(stat(file_path, &before), 0);
	c.pool_end = addr("10.8.0.4");
	struct ip_pool *p = pool_of(&c);
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("long-name-that-makes-the-file-longer,10.8.0.4,\n");
	take(p, "x");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("x,10.8.0.4,\n");
	assert_int_equal(stat(file_path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	file_put("operator\n");
	assert_int_equal(ip_pool_save(p), 0);
	assert_file("operator\n");
	ip_pool_free(p);
}

static void a_missing_file_is_made_and_a_missing_folder_refused(void **state)
{
	(void)state;
	struct config c = persist(TOPOLOGY_SUBNET);
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "%s.new", file_path);
	c.pool_persist_path = path;
	struct ip_pool *p = pool_of(&c);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	ip_pool_free(p);
	assert_int_equal(unlink(path), 0);
	c.pool_persist_path = "/nonexistent/ipp.txt";
	assert_int_equal(ip_pool_new(&c, &p), -ENOENT);
	c.pool_persist_s = 0; /* only read */
	p = pool_of(&c);
	ip_pool_free(p);
	c.pool_persist_path = "/";
	c.pool_persist_s = 600;
	assert_int_equal(ip_pool_new(&c, &p), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pool_without_configuration),
		cmocka_unit_test(topologies_give_stock_addresses),
		cmocka_unit_test(ipv6_shares_the_slot),
		cmocka_unit_test(the_smaller_pool_limits),
		cmocka_unit_test(a_name_gets_its_address_again),
		cmocka_unit_test(the_longest_unused_is_given_to_strangers),
		cmocka_unit_test(duplicate_cn_takes_the_lowest),
		cmocka_unit_test_setup_teardown(file_lines_are_stocks, make_file, remove_file),
		cmocka_unit_test_setup_teardown(a_restart_keeps_addresses, make_file, remove_file),
		cmocka_unit_test_setup_teardown(net30_lines_may_name_any_address_of_the_block,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(ipv6_alone_is_remembered, make_file, remove_file),
		cmocka_unit_test_setup_teardown(never_used_addresses_go_before_remembered_ones,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(time_zero_reserves_and_never_writes, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(names_that_would_break_the_file_are_not_written,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(save_writes_in_place_and_only_after_a_change,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(a_missing_file_is_made_and_a_missing_folder_refused,
						make_file, remove_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
