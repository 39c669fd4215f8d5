# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced: installs Debian packages, only those that are missing.

packages_build="gcc libc6-dev meson ninja-build pkgconf libssl-dev liburing-dev libck-dev libevent-dev
libnl-route-3-dev libjansson-dev libsystemd-dev libjemalloc-dev"
packages_run="openvpn iproute2 iputils-ping iperf3 openssl procps"
packages_test="libcmocka-dev python3 ethtool nftables tcpdump util-linux libcap2-bin netbase"
# The library for AEAD on x86-64; other machines do without.
[ "$(uname -m)" = x86_64 ] && packages_build="$packages_build libipsec-mb-dev"

# install_packages WORD...: nothing is done, and no index fetched, if all of them are there.
install_packages() {
	local missing=() p
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	echo "installing: ${missing[*]}"
	if [ -z "${apt_is_updated:-}" ]; then
		apt-get -qq update </dev/null || return 1
		apt_is_updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}" \
		</dev/null >/dev/null
}
