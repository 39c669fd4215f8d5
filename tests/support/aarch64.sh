#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: aarch64.sh FOLDER: cross-builds into build-aarch64 with libraries of the archive, unpacked in a
# root of their own; the machine's packages and architectures stay as they are. Exit code 77, and the
# reason on the last line, if compiler, emulator or libraries are not obtainable.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/packages.sh
root=$PWD/build-aarch64-root
apt=$1/apt

skip() {
	echo "$1"
	exit 77
}

install_packages gcc-aarch64-linux-gnu qemu-user || skip "cross compiler or qemu-user not obtainable"
if [ ! -f "$root/done" ]; then
	rm -rf "$root"
	mkdir -p "$root" "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/state/status"
	cat >"$apt/conf" <<-CONF
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		Dir::State "$apt/state";
		Dir::State::status "$apt/state/status";
		Dir::Cache "$apt/cache";
		APT::Sandbox::User "root";
	CONF
	export APT_CONFIG=$apt/conf
	# shellcheck disable=SC2086
	{
		apt-get -qq update </dev/null &&
			apt-get -qq -y --no-install-recommends --download-only install libc6-dev libgcc-12-dev libssl-dev \
				liburing-dev libck-dev libevent-dev libnl-route-3-dev libjansson-dev libsystemd-dev \
				libjemalloc-dev libcmocka-dev </dev/null
	} || skip "arm64 libraries not obtainable"
	unset APT_CONFIG
	for package in "$apt"/cache/archives/*.deb; do
		dpkg -x "$package" "$root" || exit 1
	done
	touch "$root/done"
fi

cat >"$root/cross.ini" <<CROSS
[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot=$root']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[properties]
sys_root = '$root'
pkg_config_libdir = '$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
CROSS
[ -f build-aarch64/build.ninja ] || meson setup build-aarch64 --cross-file "$root/cross.ini" -Dwerror=true \
	-Dbuildtype=release -Dtests=enabled || exit 1
meson compile -C build-aarch64
