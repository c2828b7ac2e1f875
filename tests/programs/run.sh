#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Real programs, started with their own configuration in a limited group: what throttlescope says of their parallelism is what they say
# themselves.
#
# usage: tests/programs/run.sh [NAME...]       one of the .py files; TIMES=1 shows how long each test takes
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"
export BUILD
# The distribution's interpreter: another one may come first in PATH and lack the distribution's modules.
python=${PYTHON:-/usr/bin/python3}
names=$*
failed=0

if [ -z "$names" ]; then
	for file in tests/programs/*.py; do
		name=$(basename "$file" .py)
		[ "$name" = programs_lib ] || names="$names $name"
	done
fi
skip_all() {
	for name in $names; do
		echo "SKIP programs/$name: $1"
	done
	exit 0
}
[ -x "$BUILD/throttlescope" ] || { echo "FAIL programs: $BUILD/throttlescope is not built" && exit 1; }
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to make groups and to read other processes"
[ -x "$python" ] || skip_all "no $python"
where=$("$BUILD/tests/load" where) || skip_all "${where#UNSUPPORTED }"

for name in $names; do
	out=$(mktemp)
	status=0
	{ timeout -k 10 300 "$python" "tests/programs/$name.py" </dev/null || echo "$?" >"$out.status"; } 2>&1 |
		sed -u -E 's,^(PASS|FAIL|SKIP) ,\1 programs/,' | tee "$out"
	[ ! -s "$out.status" ] || status=$(cat "$out.status")
	if grep -q '^FAIL ' "$out"; then
		failed=1
	elif [ "$status" -ne 0 ]; then
		echo "FAIL programs/$name: ended with status $status"
		failed=1
	elif ! grep -qE '^(PASS|SKIP) ' "$out"; then
		echo "FAIL programs/$name: no test ran"
		failed=1
	fi
	rm -f "$out" "$out.status"
done
exit "$failed"
