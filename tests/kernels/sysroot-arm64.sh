#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a folder in the cache with the arm64 headers and libraries that the agent is linked with, from the same Debian
# release as this machine, so that the agent can be cross-compiled and its libraries put into a guest.
#
# usage: sysroot-arm64.sh [PACKAGE...]     -dev packages besides the usual ones; fetched once, then works offline
#
# Prints what to hand to make, to be used as: eval "make $(tests/kernels/sysroot-arm64.sh) BUILD=build/arm64"
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

sysroot=$cache/sysroot-arm64
packages="libbpf-dev libelf-dev zlib1g-dev libcjson-dev libcap-dev libseccomp-dev libc6-dev $*"

fetch() {
	suite=$(host_release)
	conf=$(apt_private "$suite,$suite-security") || exit 1
	root=${conf%/apt.conf}
	say "fetching the arm64 libraries"
	# With an empty package status the whole closure is downloaded; nothing is installed.
	# shellcheck disable=SC2086 # a list
	APT_CONFIG=$conf apt-get -qq -y --download-only -o APT::Architecture=arm64 -o "Dir::Cache::archives=$root/arm64" \
		install $packages >"$root/arm64.log" 2>&1 || {
		grep '^E:' "$root/arm64.log" >&2
		die "the arm64 libraries cannot be had"
	}
	new=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	for deb in "$root"/arm64/*_arm64.deb; do dpkg-deb -x "$deb" "$new"; done
	# Links to absolute paths would leave the folder.
	find "$new" -type l -lname '/*' | while read -r link; do
		target=$(readlink "$link")
		ln -sfr "$new$target" "$link"
	done
	echo "$packages" >"$new/packages"
	chmod 755 "$new"
	rm -rf "$sysroot" "$root/arm64"
	mv "$new" "$sysroot"
}

missing=
for package in $packages; do
	grep -qsw -e "$package" "$sysroot/packages" || missing=1
done
if [ -n "$missing" ]; then
	packages="$(cat "$sysroot/packages" 2>/dev/null || :) $packages"
	packages=$(echo "$packages" | tr ' ' '\n' | sort -u | tr '\n' ' ')
	mkdir -p "$cache"
	rm -rf "$cache/apt/$(host_release)/arm64"
	mkdir -p "$cache/apt/$(host_release)/arm64/partial"
	fetch
fi

lib=$sysroot/usr/lib/$(triplet_of arm64)
cat <<EOF
CC='aarch64-linux-gnu-gcc --sysroot=$sysroot' AR=aarch64-linux-gnu-ar PKG_CONFIG='env PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG_LIBDIR=$lib/pkgconfig:$sysroot/usr/share/pkgconfig pkg-config'
EOF
