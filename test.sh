#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests everything. Run as root: the tests make network namespaces of their own, and touch
# nothing of the machine's network.
#
#   ./test.sh          release and sanitizer builds, unit tests, simulation, corpora, architecture,
#                      about 20 interoperability cases
#   ./test.sh --full   all of them, on both I/O engines, and: clang, ThreadSanitizer, valgrind, aarch64,
#                      a build without ipsec-mb; with FUZZ_SECONDS=n each fuzz target runs n seconds
set -u
cd "$(dirname "$0")" || exit 1
. tests/support/packages.sh

usage() {
	sed -n '3,10s/^# \{0,1\}//p' test.sh
	exit "$1"
}

is_full=0
for word in "$@"; do
	case $word in
	--full) is_full=1 ;;
	-h | --help) usage 0 ;;
	*) usage 64 >&2 ;;
	esac
done
if [ "$(id -u)" -ne 0 ]; then
	echo "test.sh: network namespaces need root; run it with sudo" >&2
	exit 77
fi

out=$(mktemp -d /tmp/shardvpn-test.XXXXXX) || exit 1
results=$out/results
: >"$results"
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
started=$SECONDS

step() {
	printf '\n== %s (%d s)\n' "$1" $((SECONDS - started))
}

# result WORD NAME: one line into the tally, and to the reader.
result() {
	echo "$1 $2" | tee -a "$results"
}

# must NAME COMMAND...: a step that is a test itself.
must() {
	local name=$1
	shift
	if "$@" </dev/null >"$out/log" 2>&1; then
		result PASS "$name"
	else
		result FAIL "$name"
		grep -vE '^\[[0-9]+/[0-9]+\] ' "$out/log" | tail -n 80
		return 1
	fi
}

# build DIR OPTION...: configure (again, if the options changed) and compile, warnings being errors.
build() {
	local dir=$1
	shift
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" -Dwerror=true "$@" || return 1
	else
		rm -rf "$dir"
		meson setup "$dir" -Dwerror=true "$@" || return 1
	fi
	meson compile -C "$dir" --ninja-args=-k0
}

# meson_tests DIR LABEL WORD...: run tests of a build and count each.
meson_tests() {
	local dir=$1 label=$2
	shift 2
	rm -f "$dir"/meson-logs/testlog*.json
	meson test -C "$dir" --no-rebuild --print-errorlogs --no-stdsplit "$@" </dev/null |
		grep -vE '^ *[0-9]+/[0-9]+ .* OK |^ninja: |^$'
	if ls "$dir"/meson-logs/testlog*.json >/dev/null 2>&1; then
		python3 tests/support/tally.py meson "$dir" "$label" "$results"
	else
		result FAIL "$label: meson test"
	fi
}

interop() {
	python3 tests/interop/run.py --results "$results" "$@" </dev/null | grep -v ' passed, '
}

report() {
	step "results"
	python3 tests/support/tally.py sum "$results"
	exit
}

step "packages"
# shellcheck disable=SC2086
must "build: packages" install_packages $packages_build $packages_run $packages_test || report

step "release build"
must "build: release" build build -Dbuildtype=release -Dtests=enabled || report
step "sanitizer build"
is_sanitized=1
must "build: ASan and UBSan" build build-asan -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
	-Dtests=enabled || is_sanitized=0

step "architecture"
python3 tests/arch/check.py | tee "$out/tap"
python3 tests/support/tally.py tap "$out/tap" "$results"

step "unit tests, simulation, corpora: release"
meson_tests build "unit"
[ $is_sanitized -eq 0 ] || step "unit tests, simulation, corpora: sanitizers"
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:abort_on_error=0:exitcode=99
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:exitcode=99
[ $is_sanitized -eq 0 ] || meson_tests build-asan "unit (sanitizers)"

step "interoperability: release build"
if [ $is_full -eq 1 ]; then
	interop --server build/server/shardvpn --full --jobs 2 --scale 2
else
	interop --server build/server/shardvpn --jobs 2 --scale 2
fi
[ $is_sanitized -eq 0 ] || step "interoperability: sanitizer build"
if [ $is_sanitized -eq 0 ]; then
	:
elif [ $is_full -eq 1 ]; then
	interop --server build-asan/server/shardvpn --label "interop (sanitizers)" --engine both --jobs 2 --scale 3
else
	interop --server build-asan/server/shardvpn --label "interop (sanitizers)" --engine both --jobs 2 --scale 3 \
		hostile_data_packets hostile_control_packets killed_and_restarted renegotiation_by_client server_stops
fi

if [ $is_full -eq 1 ]; then
	. tests/support/full.sh
fi
report
