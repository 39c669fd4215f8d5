# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by test.sh --full: other compilers, other sanitizers, another architecture.

step "clang"
must "full: packages" install_packages clang-14 valgrind libclang-rt-14-dev
if must "full: clang build" env CC=clang-14 bash -c "$(declare -f build); build build-clang -Dbuildtype=release -Dtests=enabled"; then
	meson_tests build-clang "unit (clang)"
fi

step "without ipsec-mb"
if must "full: build without ipsec-mb" build build-no-mb -Dbuildtype=release -Dtests=enabled -Dipsec_mb=disabled; then
	meson_tests build-no-mb "unit (no ipsec-mb)"
	interop --server build-no-mb/server/shardvpn --label "interop (no ipsec-mb)" --jobs 2 --scale 2 plain_aes256_v2 crypt_chacha_v2
fi

step "ThreadSanitizer"
# Its runtime of gcc 12 cannot map memory under the address randomisation of newer kernels.
export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp:halt_on_error=1:exitcode=99"
if must "full: TSan build" build build-tsan -Dbuildtype=debugoptimized -Db_sanitize=thread -Dtests=enabled; then
	names=$(meson test -C build-tsan --list </dev/null 2>/dev/null | sed 's/.* \/ //' |
		grep -E '^(mailbox|route_table|counters|observer|worker|hand_over|handshake|removal|sim_acceptor|sim_acceptor_limits)$' | sort -u)
	# shellcheck disable=SC2086
	meson_tests build-tsan "unit (TSan)" --wrapper "setarch -R" $names
	interop --server build-tsan/server/shardvpn --label "interop (TSan)" --engine epoll --scale 4 \
		--prefix "setarch -R" four_clients_transfer renegotiation_by_server server_stops
fi

step "valgrind"
if must "full: build for valgrind" build build-valgrind -Dbuildtype=debugoptimized -Dtests=enabled -Dipsec_mb=disabled; then
	interop --server build-valgrind/server/shardvpn --label "interop (valgrind)" --engine epoll --workers 1 \
		--prefix "valgrind -q --error-exitcode=99 --exit-on-first-error=yes --trace-children=yes --suppressions=$PWD/tests/support/valgrind.supp" server_stops
fi

step "aarch64"
tests/support/aarch64.sh "$out" >"$out/aarch64.log" 2>&1
case $? in
0)
	result PASS "full: aarch64 build"
	# What the user-mode emulator does not carry over to the kernel as it is.
	for name in "tun:ioctls of the device" "kernel_frames:ioctls of the device" "steering:BPF programs of a socket" \
		"tun_steering:bpf(2)" "launcher:the error of an exec" \
		"metrics:the speed of the machine"; do
		result SKIP "unit (aarch64): ${name%%:*}: qemu-user does not pass ${name#*:}"
	done
	names=$(meson test -C build-aarch64 --list --suite unit --suite corpora </dev/null 2>/dev/null | sed 's/.* \/ //' |
		grep -vxE "tun|kernel_frames|steering|tun_steering|launcher|metrics")
	# shellcheck disable=SC2086
	meson_tests build-aarch64 "unit (aarch64)" --timeout-multiplier 10 $names
	;;
77) result SKIP "full: aarch64 build: $(tail -n 1 "$out/aarch64.log")" ;;
*)
	result FAIL "full: aarch64 build"
	tail -n 40 "$out/aarch64.log"
	;;
esac

if [ -n "${FUZZ_SECONDS:-}" ]; then
	step "fuzzing, $FUZZ_SECONDS s a target"
	if must "full: fuzz build" env CC=clang-14 bash -c "$(declare -f build); build build-fuzz -Dbuildtype=debugoptimized -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link"; then
		for target in build-fuzz/tests/fuzz/fuzz_*; do
			if [ ! -x "$target" ] || [ ! -f "$target" ]; then continue; fi
			name=$(basename "$target")
			mkdir -p "$out/corpus/$name"
			echo "$name"
			must "fuzz: $name" "$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=4096 \
				-artifact_prefix="build-fuzz/$name-" "$out/corpus/$name" "tests/corpora/${name#fuzz_}"
		done
	fi
fi
