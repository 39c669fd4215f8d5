/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/link.h"

static void handshake_gives_both_ends_the_same_keys(void **state)
{
	(void)state;
	struct link *l = link_new(&(struct link_setup){0});
	bool up = link_run(l, 60000, link_is_up);
	print_message("%s\n---\n%s\n", l->ends[0].log, l->ends[1].log);
	assert_true(up);
	assert_true(link_keys_match(l, 0));
	link_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_gives_both_ends_the_same_keys),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	link_pki_fini();
	return failed;
}
