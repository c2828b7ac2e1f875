#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches into the cache, and does nothing for what is already there: the kernels of kernels.list, a static busybox, and
# a newer qemu if this machine's is old.
#
# usage: fetch.sh [--refresh] [NAME/ARCH...]      for example 6.12/amd64; without names: what matrix.sh boots
#
# --refresh reads the package lists anew and fetches kernels that have become newer.
# Exit status 1 if something could not be had; the reason is also left in the cache for matrix.sh to show.
# Functions are called in conditions, where `set -e` does not reach: inside them every step says what failing means.
# shellcheck disable=SC2317 # functions are called through attempt
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

# A vmlinuz may be an EFI program around a compressed image (arm64), which qemu only boots from 8.0 on: unpack it.
unwrap_efi_zboot() {
	[ "$(dd if="$1" bs=1 skip=4 count=4 2>/dev/null)" = zimg ] || return 0
	offset=$(od -An -tu4 -j8 -N4 "$1" | tr -d ' ') size=$(od -An -tu4 -j12 -N4 "$1" | tr -d ' ')
	kind=$(dd if="$1" bs=1 skip=24 count=4 2>/dev/null | tr -d '\0')
	case $kind in
	gzip) unpack='gzip -dc' ;;
	zstd) unpack='zstd -dc' ;;
	*) die "$1: EFI zboot image compressed with $kind" ;;
	esac
	# The trailing size field that some compressors' payload carries is not part of the stream: complaints are expected.
	tail -c +$((offset + 1)) "$1" | head -c "$size" | $unpack >"$1.raw" 2>/dev/null || [ -s "$1.raw" ]
	mv "$1.raw" "$1"
}

# fetch_package CONF PACKAGE ARCH DEST: fills DEST (vmlinuz, version, config if it is there).
fetch_package() (
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	deb_get "$1" "$2:$3" "$tmp/x" || exit 1
	image=$(find "$tmp/x" -type f -name 'vmlinuz*' | head -1)
	[ -n "$image" ] || die "$2 holds no vmlinuz"
	mkdir "$tmp/out"
	cp "$image" "$tmp/out/vmlinuz"
	unwrap_efi_zboot "$tmp/out/vmlinuz" || exit 1
	config=$(find "$tmp/x" -type f -name 'config-*' | head -1)
	[ -z "$config" ] || cp "$config" "$tmp/out/config"
	version=$(APT_CONFIG=$1 apt-cache show "$2:$3" | sed -n 's/^Version: //p' | head -1)
	release=${2#linux-image-}
	echo "${release#linux-binary-} $version" >"$tmp/out/version"
	rm -rf "$4"
	mv "$tmp/out" "$4"
)

# fetch_kernel NAME ARCH: 0 when the kernel is in the cache. The newest package may be gone from the mirror (a security
# suite at its end), so older ones are tried too.
fetch_kernel() (
	name=$1 arch=$2 dest=$cache/kernels/$1-$2
	row=$(kernel_row "$name")
	[ -n "$row" ] || die "no kernel $name in kernels.list"
	suites=$(echo "$row" | awk '{ print $2 }') match=$(echo "$row" | awk '{ print $3 }')
	conf=$(apt_private "$suites") || exit 1
	# linux-binary-… holds the image where it exists; linux-image-… of the same version is then empty.
	releases=$(apt_names "$conf" "linux-(image|binary)-$match.*-cloud-$arch" |
		sed -E 's/^linux-(image|binary)-//' | sort -uVr | head -8)
	[ -n "$releases" ] || die "no package for kernel $name on $arch in $suites"
	for release in $releases; do
		[ ! -e "$dest/vmlinuz" ] || [ "$(awk '{ print $1 }' "$dest/version")" != "$release" ] || return 0
		package=linux-image-$release
		[ -z "$(apt_names "$conf" "linux-binary-$(echo "$release" | sed 's/[.+]/\\&/g')")" ] ||
			package=linux-binary-$release
		say "fetching $package"
		if fetch_package "$conf" "$package" "$arch" "$dest"; then return 0; fi
	done
	die "kernel $name on $arch: none of its packages can be downloaded"
)

fetch_busybox() (
	dest=$cache/busybox-$1
	[ ! -x "$dest" ] || return 0
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	suite=$(host_release)
	conf=$(apt_private "$suite,$suite-security") || exit 1
	say "fetching busybox-static for $1"
	deb_get "$conf" "busybox-static:$1" "$tmp/x" || exit 1
	cp "$(find "$tmp/x" -type f -path '*/bin/busybox')" "$dest.new" || exit 1
	chmod 755 "$dest.new"
	mv "$dest.new" "$dest"
)

# fetch_qemu: qemu 7.2 with several threads loses stores to code that another virtual CPU is just translating: kernels,
# which patch themselves, die of a stale int3 (measured: one boot in four with 8 CPUs, none with 10.0). The backport of the
# machine's own release runs beside the installed packages, with their libraries and firmware.
fetch_qemu() (
	dest=$cache/qemu
	[ ! -d "$dest" ] || return 0
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	conf=$(apt_private "$(host_release)-backports") || exit 1
	say "fetching a newer qemu"
	for package in qemu-system-x86 qemu-system-arm qemu-system-common qemu-system-data; do
		deb_get "$conf" "$package" "$tmp/x" || exit 1
	done
	for program in qemu-system-x86_64 qemu-system-aarch64; do
		missing=$(ldd "$tmp/x/usr/bin/$program" | awk '/not found/ { print $1 }')
		[ -z "$missing" ] || die "$program of backports needs" "$missing"
	done
	mv "$tmp/x" "$dest"
)

# attempt ARCH NAME COMMAND...: runs it, keeps its complaint as $cache/kernels/NAME-ARCH.reason.
attempt() {
	reason=$cache/kernels/$2-$1.reason
	shift 2
	if "$@" 2>"$reason.new"; then
		cat "$reason.new" >&2
		rm -f "$reason" "$reason.new"
		return 0
	fi
	cat "$reason.new" >&2
	sed '$!d; s/^[a-z0-9]*\.sh: //' "$reason.new" >"$reason"
	rm -f "$reason.new"
	return 1
}

refresh=
[ "${1-}" != --refresh ] || { refresh=1 && shift; }
case ${1-} in -*) sed -n '3,9s/^# \{0,1\}//p' "$0" && exit 2 ;; esac
mkdir -p "$cache/kernels"
rm -f "$cache"/apt/*/failed
[ -z "$refresh" ] || rm -f "$cache"/apt/*/updated

[ $# -gt 0 ] || {
	# shellcheck disable=SC2046 # names have no blanks
	set -- $("$here/matrix.sh" --list | awk '{ print $2 "/" $3 }' | sort -u)
}
status=0
qemu_is_good qemu-system-x86_64 || fetch_qemu || say "going on with this machine's qemu: runs with 8 CPUs will be skipped"
for want; do
	name=${want%/*} arch=${want#*/}
	triplet_of "$arch" >/dev/null
	# Offline, a cached kernel must not need apt at all.
	if [ -n "$refresh" ] || ! [ -s "$cache/kernels/$name-$arch/vmlinuz" ]; then
		attempt "$arch" "$name" fetch_kernel "$name" "$arch" || { status=1 && continue; }
	fi
	[ -x "$cache/busybox-$arch" ] || attempt "$arch" "$name" fetch_busybox "$arch" || status=1
done
exit $status
