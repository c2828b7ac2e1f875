#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds an initramfs: busybox, /init, the script, the given files and the shared libraries they need.
#
# usage: initramfs.sh ARCH SCRIPT OUTPUT [--files DIR|LIST]... [FILE...]
#
# A DIR's content goes to the guest's root; a LIST has lines `SOURCE [DESTINATION]`; a FILE goes to /tests/.
# Libraries of amd64 programs come from this machine, those of arm64 programs from the sysroot (sysroot-arm64.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

[ $# -ge 3 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0" && exit 2; }
arch=$1 script=$2 output=$3
shift 3
triplet=$(triplet_of "$arch")
need cpio cpio
need readelf binutils
busybox=$cache/busybox-$arch
[ -x "$busybox" ] || die "no busybox for $arch in the cache: run fetch.sh"
case $arch in
amd64) sysroot='' machine='X86-64' ;;
arm64) sysroot=$cache/sysroot-arm64 machine='AArch64' ;;
esac

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/tests" "$root/lib/$triplet"
cp "$busybox" "$root/bin/busybox"
cp "$here/init" "$root/init"
cp "$script" "$root/script"
chmod 755 "$root/init" "$root/script" "$root/bin/busybox"

# put SOURCE [DESTINATION]
put() {
	[ -f "$1" ] || die "$1: no such file"
	set -- "$1" "$root/${2:-tests/${1##*/}}"
	mkdir -p "${2%/*}"
	cp -L "$1" "$2"
}

while [ $# -gt 0 ]; do
	case $1 in
	--files)
		if [ -d "$2" ]; then
			cp -RL "$2/." "$root/"
		else
			while read -r source destination; do
				case $source in '' | '#'*) continue ;; esac
				put "$source" "$destination"
			done <"$2"
		fi
		shift 2
		;;
	*)
		put "$1"
		shift
		;;
	esac
done

# library NAME: its path on the host, or nothing.
library() (
	for dir in "/lib/$triplet" "/usr/lib/$triplet" /usr/local/lib; do
		[ ! -e "$sysroot$dir/$1" ] || { echo "$sysroot$dir/$1" && break; }
	done
)

# add_needs FILE: copies the loader and the libraries that an ELF file asks for, and what those ask for.
add_needs() {
	headers=$(readelf -hld "$1" 2>/dev/null) || return 0
	case $headers in *"$machine"*) ;; *) die "${1#"$root"} is not a program for $arch" ;; esac
	for loader in $(echo "$headers" | sed -n 's/.*program interpreter: \(.*\)]$/\1/p'); do
		[ ! -e "$root$loader" ] || continue
		[ -e "$sysroot$loader" ] || die "${1##*/} needs $loader, which is not there (arm64: run sysroot-arm64.sh)"
		mkdir -p "$root${loader%/*}"
		cp -L "$sysroot$loader" "$root$loader"
	done
	for name in $(echo "$headers" | sed -n 's/.*(NEEDED).*\[\(.*\)]$/\1/p'); do
		[ ! -e "$root/lib/$triplet/$name" ] || continue
		path=$(library "$name")
		[ -n "$path" ] || die "${1##*/} needs $name, which is not there (arm64: run sysroot-arm64.sh)"
		cp -L "$path" "$root/lib/$triplet/$name"
		add_needs "$root/lib/$triplet/$name"
	done
}

# Programs are known by their first four bytes; objects for BPF are ELF files too, but of no machine that runs here.
elves=$(find "$root" -type f ! -name busybox -exec sh -c \
	'for f; do [ "$(head -c 4 "$f" | tail -c 3)" != ELF ] || readelf -h "$f" | grep -q "Machine:.*BPF" || echo "$f"; done' sh {} +)
for elf in $elves; do add_needs "$elf"; done

(cd "$root" && find . -print0 | cpio --null --quiet -o -H newc -R 0:0) >"$output"
