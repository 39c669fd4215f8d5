/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workers/payload.h"

static void payload_knows_ping_only_as_a_whole(void **state)
{
	(void)state;
	uint8_t text[PAYLOAD_MAGIC_LEN + 1] = {0};
	memcpy(text, payload_ping, PAYLOAD_MAGIC_LEN);
	assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN), PAYLOAD_PING);
	assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN - 1), PAYLOAD_IP);
	assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN + 1), PAYLOAD_IP);
	for (unsigned i = 0; i < PAYLOAD_MAGIC_LEN; i++) {
		text[i] ^= 0x80;
		assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN), PAYLOAD_IP);
		text[i] ^= 0x80;
	}
}

static void payload_occ_needs_its_op_byte(void **state)
{
	(void)state;
	uint8_t text[PAYLOAD_MAGIC_LEN + 4] = {0};
	memcpy(text, payload_occ, PAYLOAD_MAGIC_LEN);
	text[PAYLOAD_MAGIC_LEN] = OCC_EXIT;
	assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN), PAYLOAD_IP);
	assert_int_equal(payload_kind(text, PAYLOAD_MAGIC_LEN + 1), PAYLOAD_OCC);
	assert_int_equal(payload_kind(text, sizeof(text)), PAYLOAD_OCC);
	assert_int_equal(payload_occ_op(text), OCC_EXIT);
}

static void payload_takes_the_empty_plaintext_for_no_message(void **state)
{
	(void)state;
	assert_int_equal(payload_kind(payload_ping, 0), PAYLOAD_IP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payload_knows_ping_only_as_a_whole),
		cmocka_unit_test(payload_occ_needs_its_op_byte),
		cmocka_unit_test(payload_takes_the_empty_plaintext_for_no_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
