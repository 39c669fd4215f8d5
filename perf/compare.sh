#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stock openvpn and shardvpn beside each other: the report in perf/results/. See compare.py --help.
# Needs root, openvpn, iperf3, nftables, ethtool; gnuplot for the chart.
cd "$(dirname "$0")/.." || exit 1
if [ ! -x build/server/shardvpn ] && [[ " $* " != *" --b"* && " $* " != *" --h"* && " $* " != *" -h "* ]]; then
	echo "perf/compare.sh: build first: meson setup build && ninja -C build" >&2
	exit 1
fi
exec python3 -B perf/compare.py "$@"
