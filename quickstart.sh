#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a running VPN server, for trying it out. Run as root.
#
#   sudo ./quickstart.sh [--remote ADDRESS] [--nat]
#       installs what is missing, builds, makes a PKI and a configuration under run/ (kept for the next
#       start) and runs the server in the foreground on UDP 1194. --nat lets clients reach the network
#       behind this machine; without it, routes and firewall of the machine stay as they are.
#   sudo ./quickstart.sh --demo [--clients N]
#       a server and stock clients in network namespaces, pings and iperf3 through the tunnel, the share
#       of each worker; leaves nothing behind.
#   --server BINARY: another server instead of the build. --run FOLDER: instead of run/.
set -euo pipefail
cd "$(dirname "$0")"
. tests/support/packages.sh

run=$PWD/run
binary=
remote=
is_demo=0
is_nat=0
clients=
inside=10.8.0
port=1194
metrics_port=9176

fail() {
	echo "quickstart.sh: $*" >&2
	exit 1
}

arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--demo) is_demo=1 ;;
		--nat) is_nat=1 ;;
		--remote)
			[ -n "${2:-}" ] || fail "--remote needs an address"
			remote=$2 && shift
			;;
		--clients)
			[[ ${2:-} =~ ^[1-9][0-9]?$ ]] || fail "--clients needs a number from 1 to 99"
			clients=$2 && shift
			;;
		--run) run=$(realpath "${2:?--run needs a folder}") && shift ;;
		--server) binary=$(realpath "${2:?--server needs a file}") && shift ;;
		-h | --help) sed -n '3,14s/^# \{0,1\}//p' quickstart.sh && exit 0 ;;
		*) fail "unknown word $1; see --help" ;;
		esac
		shift
	done
	[ "$(id -u)" -eq 0 ] || fail "a tunnel device needs root: run it with sudo"
}

build() {
	# shellcheck disable=SC2086
	install_packages $packages_build $packages_run || fail "packages could not be installed"
	[ -z "$binary" ] || return 0
	echo "building ..."
	{
		[ -f build/build.ninja ] || meson setup build -Dbuildtype=release
		meson compile -C build shardvpn
	} >"$run/build.log" 2>&1 </dev/null || {
		tail -n 30 "$run/build.log" >&2
		fail "the build failed; all of it is in $run/build.log"
	}
	binary=$PWD/build/server/shardvpn
}

# issue NAME USAGE: a certificate of the throw-away CA.
issue() {
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$run/pki/$1.key" \
		-subj "/CN=$1" -out "$run/pki/$1.csr"
	openssl x509 -req -in "$run/pki/$1.csr" -CA "$run/pki/ca.crt" -CAkey "$run/pki/ca.key" -CAcreateserial \
		-days 3650 -out "$run/pki/$1.crt" -extfile <(printf '%s\n' 'basicConstraints=CA:FALSE' \
			'keyUsage=digitalSignature' "extendedKeyUsage=$2")
}

make_pki() {
	local n
	mkdir -p "$run/pki"
	if [ ! -f "$run/pki/ca.crt" ]; then
		openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$run/pki/ca.key" \
			-subj "/CN=shardvpn quickstart CA" -days 3650 -out "$run/pki/ca.crt"
	fi
	[ -f "$run/pki/server.crt" ] || issue server serverAuth
	for n in "$@"; do
		[ -f "$run/pki/$n.crt" ] || issue "$n" clientAuth
	done
	[ -f "$run/pki/tls-crypt.key" ] || openvpn --genkey secret "$run/pki/tls-crypt.key"
}

make_config() {
	if [ -f "$run/server.conf" ]; then
		port=$(awk '$1 == "port" { p = $2 } END { print p ? p : 1194 }' "$run/server.conf")
		return
	fi
	cat >"$run/server.conf" <<-CONF
		# Made by quickstart.sh, and kept: edit it as you like, remove it to get a fresh one.
		# The stock daemon takes this file as well; it leaves out our own directives.
		ignore-unknown-option workers metrics
		workers auto
		metrics 127.0.0.1 $metrics_port

		port $port
		proto udp
		dev tun
		topology subnet
		server $inside.0 255.255.255.0
		server-ipv6 fd00:8::/64
		keepalive 10 60
		explicit-exit-notify 1

		ca $run/pki/ca.crt
		cert $run/pki/server.crt
		key $run/pki/server.key
		tls-crypt $run/pki/tls-crypt.key
		dh none
		remote-cert-tls client
		verb 3
	CONF
}

# The address by which others reach this machine, as far as the machine knows.
own_address() {
	ip -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p' | grep . ||
		ip -4 -o addr show scope global | grep -vF " $inside." | sed -n 's/.* inet \([0-9.]*\).*/\1/p' | head -n 1 | grep . ||
		echo 127.0.0.1
}

# profile NAME ADDRESS: everything that a client needs, in one file.
profile() {
	cat <<-PROFILE
		client
		dev tun
		proto udp
		remote $2 $port
		nobind
		remote-cert-tls server
		explicit-exit-notify 1
		verb 3
		<ca>
		$(cat "$run/pki/ca.crt")
		</ca>
		<cert>
		$(cat "$run/pki/$1.crt")
		</cert>
		<key>
		$(cat "$run/pki/$1.key")
		</key>
		<tls-crypt>
		$(grep -v '^#' "$run/pki/tls-crypt.key")
		</tls-crypt>
	PROFILE
}

nat_on() {
	forward_before=$(sysctl -n net.ipv4.ip_forward)
	sysctl -qw net.ipv4.ip_forward=1
	nft -f - <<-RULES
		table ip shardvpn_quickstart {
			chain after {
				type nat hook postrouting priority srcnat;
				ip saddr $inside.0/24 ip daddr != $inside.0/24 masquerade
			}
		}
	RULES
}

nat_off() {
	nft delete table ip shardvpn_quickstart 2>/dev/null || true
	sysctl -qw net.ipv4.ip_forward="$forward_before"
}

serve() {
	local words=() code=0
	if [ $is_nat -eq 1 ]; then
		install_packages nftables || fail "nftables could not be installed"
		words=(--push "redirect-gateway def1" --push "dhcp-option DNS 9.9.9.9")
		nat_on
		trap nat_off EXIT
	fi
	cat <<-TEXT

		profile for a client:    $run/client.ovpn   (one file, import it anywhere)
		server outside:          ${remote} UDP $port
		server inside:           $inside.1, fd00:8::1
		clients inside:          from $inside.2 on
		to try, on the client:   iperf3 -c $inside.1        (here: iperf3 -s -B $inside.1)
		metrics:                 http://127.0.0.1:$metrics_port/metrics
		Ctrl-C ends the server.

	TEXT
	if [ $is_nat -eq 0 ]; then
		exec "$binary" --config "$run/server.conf"
	fi
	trap : INT TERM
	"$binary" --config "$run/server.conf" "${words[@]}" &
	wait $! || code=$?
	if kill -0 $! 2>/dev/null; then
		kill -TERM $! && wait $! && code=0
	fi
	exit "$code"
}

main() {
	arguments "$@"
	mkdir -p "$run"
	chmod 700 "$run"
	umask 077
	build
	if [ $is_demo -eq 1 ]; then
		. tests/support/demo.sh
		demo
		return
	fi
	make_pki client 2>"$run/pki.log" || fail "the PKI could not be made: $(tail -n 3 "$run/pki.log")"
	make_config
	[ -n "$remote" ] || remote=$(own_address)
	profile client "$remote" >"$run/client.ovpn"
	serve
}

main "$@"
