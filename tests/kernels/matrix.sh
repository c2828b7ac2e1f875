#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the kernel matrix: boots each kernel below and runs guest.sh in it.
#
# usage: matrix.sh [--list] [--only NAME] [--guest SCRIPT] [--timeout S]
#
#   --list          the runs: name, kernel, architecture, CPUs, cgroup version, cases
#   --only NAME     the run of this name, or else all runs whose name begins with it; can be repeated
#   --guest SCRIPT  instead of guest.sh
#   --timeout S     seconds a guest's script may take (450)
#
# Takes the programs from $BUILD (default: build), those for arm64 from $BUILD_ARM64 (default: $BUILD/arm64). What each
# guest left behind is kept in $BUILD/kernels/RUN. Ends with `N passed, N failed, N skipped`; exit status 1 if any failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

# Machines run one after the other: two at a time on two CPUs lose half of their time to each other (measured: 40 to 100
# gaps of 1 ms and more a second instead of 3 to 5), and the tests compare clocks.
runs() {
	cat <<-EOF
		5.10        5.10 amd64 2 v2     all
		6.1         6.1  amd64 2 v2     all
		6.12        6.12 amd64 2 v2     all
		7           7    amd64 2 v2     all
		5.10-v1     5.10 amd64 2 v1     few
		5.10-8cpu   5.10 amd64 8 v2     few
		6.1-8cpu    6.1  amd64 8 v2     few
		6.12-8cpu   6.12 amd64 8 v2     few
		7-8cpu      7    amd64 8 v2     few
		6.1-arm64   6.1  arm64 2 v2     few
		7-arm64     7    arm64 2 v2     few
	EOF
}

# Paths below the build folder that go to /tests/ in the guest, those that exist.
programs=${THROTTLESCOPE_GUEST_PROGRAMS:-throttlescope tests/truth tests/load}

build=${BUILD:-$here/../../build}
build_arm64=${BUILD_ARM64:-$build/arm64}
guest=$here/guest.sh timeout=450 only=''
while [ $# -gt 0 ]; do
	case $1 in
	--list) runs && exit ;;
	--only | --guest | --timeout) [ $# -ge 2 ] || die "$1 needs a value" ;;
	*) sed -n '3,14s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
	esac
	case $1 in
	--only) only="$only $2" ;;
	--guest) guest=$2 ;;
	--timeout) timeout=$2 ;;
	esac
	shift 2
done
[ -r "$guest" ] || die "$guest: no such script"

tmp=$(mktemp -d)
boot_pid=''
cleanup() {
	[ -z "$boot_pid" ] || { kill "$boot_pid" && wait "$boot_pid"; } 2>/dev/null || :
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

if [ -n "$only" ]; then
	for name in $only; do
		runs | awk -v n="$name" '$1 == n { print; hit = 1 } END { exit !hit }' ||
			runs | awk -v n="$name" 'index($1, n) == 1 { print; hit = 1 } END { exit !hit }' ||
			die "no run is named $name: see --list"
	done >"$tmp/runs"
else
	runs >"$tmp/runs"
fi

# report RUN: reads a guest's lines, shows them with the run's name, keeps the verdicts.
report() {
	sed -nE "s/^(PASS|FAIL|SKIP) /\1 $1 /p; /^(PASS|FAIL|SKIP) /!s/^/     $1 /p" | tee -a "$tmp/lines"
}

# build_smoke ARCH: compiles smoke.c into $tmp/smoke-ARCH/smoke.
build_smoke() {
	[ ! -x "$tmp/smoke-$1/smoke" ] || return 0
	mkdir -p "$tmp/smoke-$1"
	case $1 in
	"$(dpkg --print-architecture)") compiler=cc ;;
	arm64) compiler=aarch64-linux-gnu-gcc ;;
	amd64) compiler=x86_64-linux-gnu-gcc ;;
	esac
	command -v "$compiler" >/dev/null || { echo "SKIP boot: no $compiler" && return 1; }
	"$compiler" -std=gnu17 -O2 -static "$here/smoke.c" -o "$tmp/smoke-$1/smoke" || { echo "FAIL boot: smoke.c does not compile" && return 1; }
}

# qemu_for ARCH: the program that boot.sh is going to use.
qemu_for() {
	case $1 in amd64) qemu='qemu-system-x86_64' ;; *) qemu='qemu-system-aarch64' ;; esac
	[ ! -x "$cache/qemu/usr/bin/$qemu" ] || qemu=$cache/qemu/usr/bin/$qemu
	echo "$qemu"
}

# run_one RUN KERNEL ARCH CPUS CGROUP CASES: prints the guest's lines.
run_one() {
	if ! [ -s "$cache/kernels/$2-$3/vmlinuz" ] || ! [ -x "$cache/busybox-$3" ]; then
		reason=$(cat "$cache/kernels/$2-$3.reason" 2>/dev/null || echo "it cannot be fetched")
		echo "SKIP boot: $reason" && return
	fi
	if [ "$4" -gt 2 ] && ! qemu_is_good "$(qemu_for "$3")"; then
		echo "SKIP boot: $4 CPUs need qemu 10 or newer, and none can be had" && return
	fi
	build_smoke "$3" || return 0

	out=$build/kernels/$1
	rm -rf "$out"
	{
		echo "export RUN=$1 KERNEL=$2 CPUS=$4 CGROUP=$5 CASES=$6"
		cat "$guest"
	} >"$tmp/script"
	case $3 in "$(dpkg --print-architecture)") from=$build ;; *) from=$build_arm64 ;; esac
	set -- "$1" --kernel "$2" --arch "$3" --cpus "$4" --cgroup "$5" --timeout "$timeout" --script "$tmp/script" --out "$out" \
		"$tmp/smoke-$3/smoke"
	for program in $programs; do
		[ ! -f "$from/$program" ] || set -- "$@" "$from/$program"
	done
	shift
	status=0
	"$here/boot.sh" "$@" >"$tmp/output" 2>"$tmp/errors" </dev/null &
	boot_pid=$!
	wait "$boot_pid" || status=$?
	boot_pid=''
	cat "$tmp/output"
	case $status in
	0) grep -qE '^(PASS|FAIL|SKIP) ' "$tmp/output" || echo "FAIL boot: the guest said nothing" ;;
	*) grep -q '^FAIL ' "$tmp/output" || echo "FAIL boot: status $status $(tail -1 "$tmp/errors")" ;;
	esac
	# A guest that died or ran out of time has not said everything, whatever it said before.
	case $status in 124 | 125) ! grep -q '^FAIL ' "$tmp/output" || echo "FAIL end: $(tail -1 "$tmp/errors")" ;; esac
	sed -n 's/^guest: /# /p' "$out/console.log" 2>/dev/null || :
}

# shellcheck disable=SC2046 # names have no blanks
"$here/fetch.sh" $(awk '{ print $2 "/" $3 }' "$tmp/runs" | sort -u) || say "some kernels cannot be had: their runs are skipped"

: >"$tmp/lines"
begin=$(date +%s)
while read -r name kernel arch cpus cgroup cases <&3; do
	started=$(date +%s)
	read -r load _ </proc/loadavg
	run_one "$name" "$kernel" "$arch" "$cpus" "$cgroup" "$cases" >"$tmp/run"
	report "$name" <"$tmp/run"
	echo "     $name # $(($(date +%s) - started)) s; load of this machine before: $load"
done 3<"$tmp/runs"

count() { grep -c "^$1 " "$tmp/lines" || :; }
echo
echo "took $(($(date +%s) - begin)) s"
grep -E '^(FAIL|SKIP) ' "$tmp/lines" || :
echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
! grep -q '^FAIL ' "$tmp/lines"
