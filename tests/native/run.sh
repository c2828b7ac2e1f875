#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The built program on this machine's own kernel and groups: first the figures against the threads' own clocks (truth), alone
# because they are about time, then the black-box tests.
#
# usage: tests/native/run.sh [NAME...]       truth, or one of the .py files; TIMES=1 shows how long each test takes
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"
export BUILD
# The distribution's interpreter: another one may come first in PATH and lack the distribution's modules.
python=${PYTHON:-/usr/bin/python3}
names=${*:-truth reports replay places watching surroundings}
failed=0

skip_all() {
	for name in $names; do
		echo "SKIP native/$name: $1"
	done
	exit 0
}

[ -x "$BUILD/throttlescope" ] || { echo "FAIL native: $BUILD/throttlescope is not built" && exit 1; }
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to make groups and to load BPF programs"
where=$("$BUILD/tests/load" where) || skip_all "${where#UNSUPPORTED }"

# A run that was cut short could not remove its groups; one that is still going on has its processes in them.
mount=$(echo "$where" | sed -n 's/^mount //p')
for group in "$mount"/throttlescope-native-*; do
	if [ -d "$group" ] && ! kill -0 "$(echo "${group##*/throttlescope-native-}" | cut -d- -f1)" 2>/dev/null; then
		find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
	fi
done

# Each says by its lines what went wrong; a status without such a line is a failure, too.
ring() {
	name=$1
	shift
	out=$(mktemp)
	status=0
	{ timeout -k 10 "$limit" "$@" </dev/null || echo "$?" >"$out.status"; } 2>&1 | tee "$out"
	[ ! -s "$out.status" ] || status=$(cat "$out.status")
	if grep -q '^FAIL ' "$out"; then
		failed=1
	elif [ "$status" -ne 0 ]; then
		echo "FAIL native/$name: ended with status $status"
		failed=1
	elif ! grep -qE '^(PASS|SKIP) ' "$out"; then
		echo "FAIL native/$name: no test ran"
		failed=1
	fi
	rm -f "$out" "$out.status"
}

for name in $names; do
	limit=600
	if [ "$name" = truth ]; then
		ring truth "$BUILD/tests/truth" --load "$BUILD/tests/load"
	elif [ -x "$python" ]; then
		ring "$name" "$python" "tests/native/$name.py"
	else
		echo "SKIP native/$name: $python is not there"
	fi
done
exit "$failed"
