#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What connected, silent clients cost: see idle.py --help. Needs root.
cd "$(dirname "$0")/.." || exit 1
for file in build/server/shardvpn build/perf/swarm; do
	if [ ! -x $file ]; then
		echo "perf/idle.sh: build first: meson setup build && ninja -C build" >&2
		exit 1
	fi
done
exec python3 perf/idle.py "$@"
