/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "config/addr.h"

static union sockaddr_any endpoint(const char *addr, uint16_t port, uint32_t scope)
{
	union sockaddr_any e;
	memset(&e, 0, sizeof(e));
	if (inet_pton(AF_INET, addr, &e.in4.sin_addr) == 1) {
		e.in4.sin_family = AF_INET;
		e.in4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, addr, &e.in6.sin6_addr) == 1) {
		e.in6.sin6_family = AF_INET6;
		e.in6.sin6_port = htons(port);
		e.in6.sin6_scope_id = scope;
	}
	return e;
}

static struct ip_addr parsed(const char *text)
{
	struct ip_addr a;
	assert_true(ip_addr_parse(text, &a));
	return a;
}

static void address_is_parsed_and_printed(void **state)
{
	static const struct {
		const char *text, *printed;
		uint8_t family;
	} cases[] = {
		{"0.0.0.0", "0.0.0.0", 4},
		{"192.0.2.7", "192.0.2.7", 4},
		{"255.255.255.255", "255.255.255.255", 4},
		{"::", "::", 6},
		{"2001:DB8:0:0::7", "2001:db8::7", 6},
		{"::ffff:192.0.2.7", "::ffff:192.0.2.7", 6},
	};
	char buf[IP_ADDR_TEXT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_addr a = parsed(cases[i].text);
		assert_int_equal(a.family, cases[i].family);
		assert_string_equal(ip_addr_print(&a, buf), cases[i].printed);
	}
	struct ip_addr none = {0};
	assert_string_equal(ip_addr_print(&none, buf), "");
}

static void address_refuses_what_is_none(void **state)
{
	static const char *const wrong[] = {
		"",	      "192.0.2",	 "192.0.2.256", " 192.0.2.1",
		"192.0.2.1 ", "192.0.2.1/32",	 "localhost",	":::",
		"fe80::1%lo", "2001:db8::12345", "1.2.3.4.5"};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ip_addr a = {.family = 9};
		assert_false(ip_addr_parse(wrong[i], &a));
		assert_int_equal(a.family, 9);
	}
}

static void netmask_must_be_contiguous(void **state)
{
	static const struct {
		const char *text;
		int bits; /* -1: refused */
	} cases[] = {
		{"0.0.0.0", 0},
		{"128.0.0.0", 1},
		{"255.255.0.0", 16},
		{"255.255.255.248", 29},
		{"255.255.255.254", 31},
		{"255.255.255.255", 32},
		{"255.0.255.0", -1},
		{"0.0.0.255", -1},
		{"255.255.255.253", -1},
		{"24", -1},
		{"", -1},
		{"ffff::", -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bits = 99;
		assert_int_equal(ip_mask_parse(cases[i].text, &bits), cases[i].bits >= 0);
		assert_int_equal(bits, cases[i].bits >= 0 ? cases[i].bits : 99);
	}
}

static void prefix_has_bits_of_its_family(void **state)
{
	static const struct {
		const char *text;
		int bits; /* -1: refused */
	} cases[] = {
		{"10.0.0.0/0", 0},
		{"10.8.0.0/24", 24},
		{"10.8.0.1", 32},
		{"2001:db8::/32", 32},
		{"2001:db8::1", 128},
		{"::/128", 128},
		{"10.0.0.0/33", -1},
		{"::/129", -1},
		{"10.0.0.0/", -1},
		{"10.0.0.0/ 8", -1},
		{"10.0.0.0/-1", -1},
		{"/8", -1},
		{"10.0.0.0/8/8", -1},
		{"1111111111111111111111111111111111111111111111111111/1", -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_prefix p = {.bits = 200};
		assert_int_equal(ip_prefix_parse(cases[i].text, &p), cases[i].bits >= 0);
		assert_int_equal(p.bits, cases[i].bits >= 0 ? cases[i].bits : 200);
	}
}

static void prefix_contains_its_own(void **state)
{
	static const struct {
		const char *prefix, *addr;
		bool is_inside;
	} cases[] = {
		{"10.8.0.0/16", "10.8.255.255", true},
		{"10.8.0.0/16", "10.9.0.0", false},
		{"10.8.0.0/23", "10.8.1.0", true},
		{"10.8.0.0/23", "10.8.2.0", false},
		{"0.0.0.0/0", "255.1.1.1", true},
		{"10.8.0.1/32", "10.8.0.1", true},
		{"10.8.0.1/32", "10.8.0.0", false},
		{"::/0", "10.8.0.1", false},
		{"2001:db8::/33", "2001:db8:7fff::", true},
		{"2001:db8::/33", "2001:db8:8000::", false},
		{"2001:db8::1/128", "2001:db8::1", true},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_prefix p;
		struct ip_addr a = parsed(cases[i].addr);
		assert_true(ip_prefix_parse(cases[i].prefix, &p));
		assert_int_equal(ip_prefix_contains(&p, &a), cases[i].is_inside);
	}
	struct ip_prefix none = {0};
	struct ip_addr nowhere = {0};
	assert_false(ip_prefix_contains(&none, &nowhere));
}

static void prefix_mask_clears_host_bits(void **state)
{
	static const char *const cases[][2] = {
		{"10.8.3.7/24", "10.8.3.0"},
		{"10.8.3.7/23", "10.8.2.0"},
		{"10.8.3.7/32", "10.8.3.7"},
		{"255.255.255.255/0", "0.0.0.0"},
		{"2001:db8::ffff/113", "2001:db8::8000"},
		{"ffff::1/128", "ffff::1"},
	};
	char buf[IP_ADDR_TEXT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_prefix p;
		assert_true(ip_prefix_parse(cases[i][0], &p));
		ip_prefix_mask(&p);
		assert_string_equal(ip_addr_print(&p.addr, buf), cases[i][1]);
	}
}

static void address_addition_carries(void **state)
{
	static const struct {
		const char *addr;
		uint32_t n;
		const char *sum;
	} cases[] = {
		{"10.8.0.255", 1, "10.8.1.0"},
		{"255.255.255.255", 1, "0.0.0.0"},
		{"2001:db8::", 0x1000, "2001:db8::1000"},
		{"2001:db8::ffff:ffff", 1, "2001:db8::"}, /* only the low 32 bits count */
	};
	char buf[IP_ADDR_TEXT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_addr a = parsed(cases[i].addr);
		struct ip_addr sum = ip_addr_add(&a, cases[i].n);
		assert_string_equal(ip_addr_print(&sum, buf), cases[i].sum);
	}
	struct ip_addr a = ip_addr_from_be32(htonl(0xC0000207));
	assert_string_equal(ip_addr_print(&a, buf), "192.0.2.7");
	assert_int_equal(ip_addr_to_host32(&a), 0xC0000207);
}

static void endpoint_is_printed_as_tools_expect(void **state)
{
	static const struct {
		const char *addr;
		uint32_t scope;
		const char *plain, *with_family;
	} cases[] = {
		{"192.0.2.7", 0, "192.0.2.7:40000", "[AF_INET]192.0.2.7:40000"},
		{"::ffff:192.0.2.7", 0, "192.0.2.7:40000", "[AF_INET]192.0.2.7:40000"},
		{"2001:db8::7", 0, "[2001:db8::7]:40000", "[AF_INET6]2001:db8::7:40000"},
		{"2001:db8::7", 1, "[2001:db8::7]:40000", "[AF_INET6]2001:db8::7:40000"},
		{"fe80::7", 0, "[fe80::7]:40000", "[AF_INET6]fe80::7:40000"},
		{"fe80::7", 999999, "[fe80::7%999999]:40000", "[AF_INET6]fe80::7%999999:40000"},
	};
	char buf[ENDPOINT_TEXT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union sockaddr_any e = endpoint(cases[i].addr, 40000, cases[i].scope);
		assert_string_equal(endpoint_print(&e, buf), cases[i].plain);
		assert_string_equal(endpoint_print_af(&e, buf), cases[i].with_family);
	}
	union sockaddr_any none = {.sa = {.sa_family = AF_UNSPEC}};
	assert_string_equal(endpoint_print(&none, buf), "[undef]");
	assert_int_equal(endpoint_len(&none), 0);
	assert_int_equal(endpoint_port(&none), 0);
}

static void longest_endpoint_fits(void **state)
{
	char buf[ENDPOINT_TEXT_MAX];
	union sockaddr_any e =
		endpoint("fe80:1111:1111:1111:1111:1111:1111:1111", 65535, UINT32_MAX);
	(void)state;
	assert_string_equal(endpoint_print_af(&e, buf),
			    "[AF_INET6]fe80:1111:1111:1111:1111:1111:1111:1111%4294967295:65535");
}

static void endpoints_differ_in_each_part(void **state)
{
	union sockaddr_any e = endpoint("fe80::7", 1, 3);
	union sockaddr_any others[] = {endpoint("fe80::8", 1, 3), endpoint("fe80::7", 2, 3),
				       endpoint("fe80::7", 1, 4), endpoint("192.0.2.7", 1, 0)};
	(void)state;
	union sockaddr_any same = endpoint("fe80::7", 1, 3);
	assert_true(endpoint_equal(&e, &same));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(endpoint_equal(&e, &others[i]));
	/* A scope means nothing outside the link. */
	union sockaddr_any a = endpoint("2001:db8::7", 1, 3), b = endpoint("2001:db8::7", 1, 0);
	assert_true(endpoint_equal(&a, &b));
	/* Mapped and plain IPv4 reach a peer by different sockets. */
	a = endpoint("192.0.2.7", 1, 0);
	b = endpoint("::ffff:192.0.2.7", 1, 0);
	assert_false(endpoint_equal(&a, &b));
}

static void endpoint_key_ignores_padding(void **state)
{
	union sockaddr_any a = endpoint("192.0.2.7", 1, 0), b = a;
	uint8_t ka[ENDPOINT_KEY_LEN], kb[ENDPOINT_KEY_LEN];
	(void)state;
	memset(b.in4.sin_zero, 0xAA, sizeof(b.in4.sin_zero));
	endpoint_key(&a, ka);
	endpoint_key(&b, kb);
	assert_memory_equal(ka, kb, sizeof(ka));
}

static void number_is_decimal_and_whole(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		int64_t value; /* -1: refused */
	} cases[] = {
		{"0", 0, 0},
		{"007", 10, 7},
		{"65535", 65535, 65535},
		{"65536", 65535, -1},
		{"", 10, -1},
		{"-1", 10, -1},
		{"+1", 10, -1},
		{" 1", 10, -1},
		{"1 ", 10, -1},
		{"0x10", 99, -1},
		{"1.0", 10, -1},
		{"1e1", 10, -1},
		{"9223372036854775807", INT64_MAX, INT64_MAX},
		{"18446744073709551616", UINT64_MAX, -1},
		{"99999999999999999999999999", UINT64_MAX, -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t n = 12345;
		assert_int_equal(number_parse(cases[i].text, cases[i].max, &n),
				 cases[i].value >= 0);
		assert_int_equal(n, cases[i].value >= 0 ? cases[i].value : 12345);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_is_parsed_and_printed),
		cmocka_unit_test(address_refuses_what_is_none),
		cmocka_unit_test(netmask_must_be_contiguous),
		cmocka_unit_test(prefix_has_bits_of_its_family),
		cmocka_unit_test(prefix_contains_its_own),
		cmocka_unit_test(prefix_mask_clears_host_bits),
		cmocka_unit_test(address_addition_carries),
		cmocka_unit_test(endpoint_is_printed_as_tools_expect),
		cmocka_unit_test(longest_endpoint_fits),
		cmocka_unit_test(endpoints_differ_in_each_part),
		cmocka_unit_test(endpoint_key_ignores_padding),
		cmocka_unit_test(number_is_decimal_and_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
