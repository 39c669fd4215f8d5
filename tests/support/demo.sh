# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by quickstart.sh --demo.
#
#   NAME-srv: server, 10.8.0.1  --- veth 192.0.2.0/30 ---  NAME-c0: stock client, 10.8.0.x
#             iperf3 -s          --- veth 192.0.2.4/30 ---  NAME-c1: stock client ...
#
# Namespaces carry our process id in their names; nothing of the machine's own network is touched.

demo_name=shardvpn-$$
demo_pids=()
demo_namespaces=()

# in_ns NAMESPACE COMMAND...
in_ns() {
	local ns=$demo_name-$1
	shift
	ip netns exec "$ns" "$@"
}

# start NAMESPACE LOG COMMAND...: in the background; ended when the demo ends.
start() {
	local ns=$demo_name-$1 log=$2
	shift 2
	setsid ip netns exec "$ns" "$@" >"$log" 2>&1 </dev/null &
	demo_pids+=($!)
}

demo_end() {
	local code=$? p n
	trap - EXIT INT TERM
	for p in "${demo_pids[@]}"; do
		kill "$p" 2>/dev/null || true
	done
	for n in $(seq 30); do
		for p in "${demo_pids[@]}"; do
			kill -0 "$p" 2>/dev/null && sleep 0.1 && continue 2
		done
		break
	done
	for p in "${demo_pids[@]}"; do
		kill -9 "$p" 2>/dev/null || true
		wait "$p" 2>/dev/null || true
	done
	for n in "${demo_namespaces[@]}"; do
		ip netns del "$n" 2>/dev/null || true
	done
	exit "$code"
}

# wait_for SECONDS WHAT COMMAND...
wait_for() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what"
		sleep 0.1
	done
}

add_namespace() {
	ip netns add "$demo_name-$1"
	demo_namespaces+=("$demo_name-$1")
	ip -n "$demo_name-$1" link set lo up
}

# add_client N: its namespace and the link to the server's.
add_client() {
	local n=$1
	add_namespace "c$n"
	ip -n "$demo_name-srv" link add "to$n" type veth peer name out netns "$demo_name-c$n"
	ip -n "$demo_name-srv" addr add "192.0.2.$((4 * n + 1))/30" dev "to$n"
	ip -n "$demo_name-srv" link set "to$n" up
	ip -n "$demo_name-c$n" addr add "192.0.2.$((4 * n + 2))/30" dev out
	ip -n "$demo_name-c$n" link set out up
}

server_is_up() {
	kill -0 "$server_pid" 2>/dev/null || {
		tail -n 5 "$run/demo-server.log" >&2
		fail "the server ended"
	}
	grep -q 'Initialization Sequence Completed' "$run/demo-server.log"
}

client_is_up() {
	grep -q 'Initialization Sequence Completed' "$run/demo-client$1.log"
}

start_server() {
	add_namespace srv
	for n in $(seq 0 $((clients - 1))); do
		add_client "$n"
	done
	start srv "$run/demo-server.log" "$binary" --config "$run/server.conf"
	server_pid=${demo_pids[-1]}
	wait_for 15 "the server is not ready; see $run/demo-server.log" server_is_up
	grep -iE 'io_uring|epoll' "$run/demo-server.log" | tail -n 1 || true
}

start_clients() {
	local n
	for n in $(seq 0 $((clients - 1))); do
		profile "demo$n" "192.0.2.$((4 * n + 1))" >"$run/demo$n.ovpn"
		start "c$n" "$run/demo-client$n.log" openvpn --config "$run/demo$n.ovpn" --disable-dco --verb 3
	done
	for n in $(seq 0 $((clients - 1))); do
		wait_for 30 "client $n did not connect; see $run/demo-client$n.log" client_is_up "$n"
		in_ns "c$n" ping -n -q -c 3 -i 0.2 -W 2 "$inside.1" >"$run/demo-ping.log" ||
			fail "client $n: no ping through the tunnel"
		echo "client $n: $(in_ns "c$n" ip -4 -br addr show dev tun0 | awk '{print $3}')," \
			"ping $(sed -n 's/^rtt[^=]*= [0-9.]*\/\([0-9.]*\)\/.*/\1 ms/p' "$run/demo-ping.log")"
	done
}

iperf_listens() {
	in_ns srv ss -tlnH "sport = :$1" | grep -q .
}

# measure TITLE IPERF-OPTION...: every client at once, 4 streams each.
measure() {
	local title=$1 n total=0 pids=()
	shift
	for n in $(seq 0 $((clients - 1))); do
		in_ns "c$n" iperf3 -c "$inside.1" -p "$((5201 + n))" -P 4 -t 5 -f m "$@" \
			>"$run/demo-iperf$n.log" 2>&1 </dev/null &
		pids+=($!)
	done
	for n in $(seq 0 $((clients - 1))); do
		wait "${pids[$n]}" || fail "iperf3 of client $n: $(tail -n 2 "$run/demo-iperf$n.log")"
		total=$(awk -v t="$total" '/SUM.*receiver/ {t += $6} END {print t}' "$run/demo-iperf$n.log")
	done
	echo "$title: $total Mbit/s with $clients client(s), iperf3 -P 4 each"
}

scrape() {
	in_ns srv bash -c "exec 3<>/dev/tcp/127.0.0.1/$metrics_port &&
		printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3 && cat <&3"
}

print_shares() {
	scrape 2>/dev/null | tr -d '\r' | awk '
		match($0, /^shardvpn_link_(received|sent)_bytes_total\{.*worker="[^"]*"/) {
			split($0, part, "worker=\""); split(part[2], name, "\""); bytes[name[1]] += $NF; sum += $NF
		}
		END {
			for (w in bytes) printf "worker %s carried %.0f %%\n", w, sum ? 100 * bytes[w] / sum : 0 | "sort -V"
			exit sum == 0
		}' || fail "no metrics from the workers"
}

demo() {
	local n names=()
	install_packages iperf3 iputils-ping || fail "packages could not be installed"
	[ -n "$clients" ] || clients=$(($(nproc) < 4 ? $(nproc) : 4))
	for n in $(seq 0 $((clients - 1))); do
		names+=("demo$n")
	done
	make_pki client "${names[@]}" 2>"$run/pki.log" || fail "the PKI could not be made: $(tail -n 3 "$run/pki.log")"
	make_config
	trap demo_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	start_server
	start_clients
	for n in $(seq 0 $((clients - 1))); do
		start srv "$run/demo-iperf-server$n.log" iperf3 -s -B "$inside.1" -p "$((5201 + n))"
		wait_for 5 "iperf3 -s does not listen" iperf_listens "$((5201 + n))"
	done
	measure "to the server"
	measure "to the clients" -R
	print_shares
	kill -0 "$server_pid" || fail "the server ended"
	echo "demo passed"
}
