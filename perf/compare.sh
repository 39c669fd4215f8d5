#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stock openvpn and shardvpn in turn: see compare.py --help. Needs root, openvpn and iperf3.
cd "$(dirname "$0")/.." || exit 1
if [ ! -x build/server/shardvpn ] && [[ " $* " != *" --binary "* ]]; then
	echo "perf/compare.sh: build first: meson setup build && ninja -C build" >&2
	exit 1
fi
exec python3 perf/compare.py "$@"
