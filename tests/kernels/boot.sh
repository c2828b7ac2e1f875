#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Boots one kernel in a virtual machine (software emulation, no network) and runs a script in it.
#
# usage: boot.sh --kernel NAME [option...] [FILE...]
#
#   --kernel NAME     a name from kernels.list, or the path of a kernel image
#   --arch ARCH       amd64 (default) or arm64
#   --cpus N          2            --mem M     512M
#   --script FILE     the shell script to run, - for standard input; or
#   --run 'COMMAND'   the commands themselves; or
#   --shell           an interactive shell on the serial console
#   --files DIR|LIST  DIR's content goes to the guest's root; LIST has lines `SOURCE [DESTINATION]`; can be repeated
#   FILE              goes to /tests/ in the guest, which is in its PATH; shared libraries come along by themselves
#   --out DIR         where console.log, output, dmesg and whatever the script writes to $OUT end up (default: nowhere)
#   --timeout S       seconds the script may take (60); starting the machine has 60 seconds on top
#   --cgroup v2|v1|hybrid          --append 'WORDS'  added to the kernel's command line
#
# THROTTLESCOPE_ACCEL replaces what qemu is told by -accel (tcg,thread=multi).
# Prints the script's output and exits with its status; 124: took too long; 125: the machine died or could not start.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

usage() { sed -n '3,21s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
fail() { say "boot.sh: $*" && exit 125; }

kernel='' arch=amd64 cpus=2 mem=512M script='' run='' shell='' out='' timeout=60 cgroup=v2 append='' boot_timeout=60
tmp=$(mktemp -d)
qemu_pid=
cleanup() {
	[ -z "$qemu_pid" ] || kill -9 "$qemu_pid" 2>/dev/null || :
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

: >"$tmp/files"
while [ $# -gt 0 ]; do
	case $1 in
	--shell) shell=1 && shift && continue ;;
	--*) [ $# -ge 2 ] || usage ;;
	esac
	case $1 in
	--kernel) kernel=$2 ;;
	--arch) arch=$2 ;;
	--cpus) cpus=$2 ;;
	--mem) mem=$2 ;;
	--script) script=$2 ;;
	--run) run=$2 ;;
	--files) if [ -d "$2" ]; then mkdir -p "$tmp/tree" && cp -RL "$2/." "$tmp/tree/"; else cat "$2" >>"$tmp/files"; fi ;;
	--out) out=$2 ;;
	--timeout) timeout=$2 ;;
	--cgroup) cgroup=$2 ;;
	--append) append=$2 ;;
	-*) usage ;;
	*) echo "$1" >>"$tmp/files" && shift && continue ;;
	esac
	shift 2
done
[ -n "$kernel" ] || usage
[ -z "$out" ] || mkdir -p "$out" || fail "no folder $out"

if [ -n "$run" ]; then
	printf '%s\n' "$run" >"$tmp/script"
elif [ "$script" = - ] || [ -n "$shell" ]; then
	if [ -n "$shell" ]; then : >"$tmp/script"; else cat >"$tmp/script"; fi
else
	[ -r "$script" ] || fail "no script: --script FILE, --run COMMAND or --shell"
	cp "$script" "$tmp/script"
fi

triplet_of "$arch" >/dev/null
if [ -f "$kernel" ]; then
	image=$kernel
else
	image=$cache/kernels/$kernel-$arch/vmlinuz
	[ -s "$image" ] && [ -x "$cache/busybox-$arch" ] || "$here/fetch.sh" "$kernel/$arch" ||
		fail "kernel $kernel for $arch cannot be had"
fi

mkdir -p "$tmp/tree"
"$here/initramfs.sh" "$arch" "$tmp/script" "$tmp/initramfs" --files "$tmp/tree" --files "$tmp/files" || fail "no initramfs"
truncate -s 256M "$tmp/disk"

words="panic=-1 oops=panic mitigations=off nowatchdog quiet rdinit=/init ts_cgroup=$cgroup ts_timeout=$timeout"
[ -z "$shell" ] || words="$words ts_shell=1"
case $arch in
amd64)
	qemu='qemu-system-x86_64'
	set -- -machine q35 -cpu max,la57=off
	# The emulated time stamp counter is the host's: steady, and the only clock here that is cheap to read.
	words="console=ttyS0 tsc=reliable $words"
	;;
arm64)
	qemu='qemu-system-aarch64'
	set -- -machine virt,gic-version=3 -cpu cortex-a72
	words="console=ttyAMA0 $words"
	;;
esac
if [ -x "$cache/qemu/usr/bin/$qemu" ]; then
	qemu=$cache/qemu/usr/bin/$qemu
	set -- "$@" -L "$cache/qemu/usr/share/qemu" -L /usr/share/seabios
fi
need "$qemu" "qemu-system-x86 or qemu-system-arm"
set -- "$@" -accel "${THROTTLESCOPE_ACCEL:-tcg,thread=multi}" -smp "$cpus" -m "$mem" -nodefaults -no-user-config -display none -no-reboot -nic none \
	-kernel "$image" -initrd "$tmp/initramfs" -append "$words $append" \
	-drive "file=$tmp/disk,format=raw,if=none,id=results,cache=unsafe" -device nvme,drive=results,serial=results

if [ -n "$shell" ]; then
	"$qemu" "$@" -serial mon:stdio
	exit
fi

# Without a terminal of its own qemu is only to be told by its pid.
"$qemu" "$@" -serial "file:$tmp/console.log" </dev/null >"$tmp/qemu.log" 2>&1 &
qemu_pid=$!
waited=0 verdict=
while kill -0 "$qemu_pid" 2>/dev/null; do
	sleep 0.5
	waited=$((waited + 1))
	[ $waited -lt $(((timeout + boot_timeout) * 2)) ] || { verdict="did not finish in $((timeout + boot_timeout)) s" && break; }
done
[ -z "$verdict" ] || kill -9 "$qemu_pid"
wait "$qemu_pid" 2>/dev/null || [ -n "$verdict" ] || verdict="qemu failed: $(tail -1 "$tmp/qemu.log")"
qemu_pid=
mkdir "$tmp/out"
tar -xf "$tmp/disk" -C "$tmp/out" 2>/dev/null || :
tr -d '\r' <"$tmp/console.log" >"$tmp/out/console.log" 2>/dev/null || :
status=$(cat "$tmp/out/.status" 2>/dev/null || :)
rm -f "$tmp/out/.status"

[ -z "$out" ] || cp -R "$tmp/out/." "$out/"
if [ -n "$status" ]; then
	cat "$tmp/out/output"
	[ "$status" != 124 ] || say "boot.sh: the script was stopped after $timeout s"
	exit "$status"
fi
# The results did not arrive: what the console saw is all there is.
tail -60 "$tmp/out/console.log" || :
[ -n "$verdict" ] || ! grep -q 'Kernel panic' "$tmp/out/console.log" ||
		verdict="kernel panic: $(grep -m1 -o 'Kernel panic.*' "$tmp/out/console.log")"
# An int3 that nobody set is the emulator's (fetch.sh), not the tests'.
! grep -q 'Oops: int3\|int3: 0000' "$tmp/out/console.log" || verdict="$verdict (stale int3: a fault of qemu before 10)"
fail "kernel $kernel for $arch: ${verdict:-the machine stopped without leaving results}"
