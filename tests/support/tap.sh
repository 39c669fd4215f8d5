#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tap.sh PROGRAM: runs a cmocka program, under the emulator of a cross build if there is one.
# cmocka 1.1 reports skip() as a failed test. It is passed on as TAP has it, with the reason that the
# program printed before in a line "# NAME: reason".
# shellcheck disable=SC2086
${MESON_EXE_WRAPPER:-} "$@" | awk '
	/^# [^ ].*: / { at = index($0, ": "); why[substr($0, 3, at - 3)] = substr($0, at + 2) }
	/^not ok [0-9]+ # SKIP / {
		number = $3
		sub(/^not ok [0-9]+ # SKIP /, "")
		print "ok " number " - " $0 " # SKIP " why[$0]
		fflush()
		next
	}
	{ print; fflush() }'
exit "${PIPESTATUS[0]}"
