/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "crypto/packet.h"
#include "server/gateway.h"
#include "server/occ.h"
#include "workers/payload.h"

static void peer_ids_fill_whole_rounds_of_slots(void **state)
{
	(void)state;
	static const struct {
		uint32_t max_clients, limit;
	} table[] = {
		{0, 4 * 256},
		{1, 6 * 256},
		{256, 6 * 256},
		{257, 8 * 256},
		{1024, 12 * 256},
		{60000, (2 * 235 + 4) * 256},
		{8000000, 62504 * 256},
		{16777215, 65535 * 256}, /* below the id that means none */
		{UINT32_MAX, 65535 * 256},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(gateway_peer_id_limit(table[i].max_clients), table[i].limit);
	assert_true(65535 * 256 < PEER_ID_NONE);
}

static void occ_answers_have_prefix_operation_and_text(void **state)
{
	(void)state;
	struct config c = {.data_ciphers = "AES-256-GCM:AES-128-GCM",
			   .tun_mtu = 1500,
			   .tls_auth_direction = -1};
	uint8_t buf[OCC_REPLY_MAX];
	struct view v = occ_reply(&c, buf);
	assert_true(v.len > PAYLOAD_MAGIC_LEN + 2);
	assert_memory_equal(v.data, payload_occ, PAYLOAD_MAGIC_LEN);
	assert_int_equal(payload_occ_op(v.data), 1);
	const char *text = (const char *)v.data + PAYLOAD_MAGIC_LEN + 1;
	assert_int_equal(strlen(text), v.len - PAYLOAD_MAGIC_LEN - 2); /* with its NUL */
	assert_int_equal(strncmp(text, "V4,dev-type tun,", 16), 0);
	assert_non_null(strstr(text, "tls-server"));
	assert_null(strstr(text, "tls-auth"));
	c.tls_auth.path = "ta.key";
	c.tls_auth_direction = 0;
	v = occ_reply(&c, buf);
	assert_non_null(strstr((const char *)v.data + PAYLOAD_MAGIC_LEN + 1, "tls-auth"));
}

static void a_start_that_fails_says_why_and_leaves_nothing(void **state)
{
	(void)state;
	const struct config c = {.user = "no-such-user", .workers = 1};
	struct gateway *g = NULL;
	char why[GATEWAY_WHY] = "";
	assert_int_equal(gateway_new(&c, &g, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "no-such-user"));
	assert_null(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_ids_fill_whole_rounds_of_slots),
		cmocka_unit_test(occ_answers_have_prefix_operation_and_text),
		cmocka_unit_test(a_start_that_fails_says_why_and_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
