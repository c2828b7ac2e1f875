#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Four busy threads in a group of their own that may use a fifth of a CPU, and what throttlescope says about them. The group is gone
# afterwards, also after Ctrl-C. Called by `make demo`.
#
# environment: BUILD (build), DEMO_TIME (5s: how long to look)
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${DEMO_TIME:=5s}"
program=$BUILD/throttlescope load=$BUILD/tests/load
group=throttlescope-demo-$$

fail() {
	echo "demo: $1" >&2
	exit 1
}
for file in "$program" "$load"; do
	[ -x "$file" ] || fail "$file is not there: run make demo, or make all workloads"
done
[ "$(id -u)" -eq 0 ] || fail "making a group with a CPU limit and looking at the scheduler need root: sudo make demo"
"$load" where >/dev/null 2>&1 ||
	fail "this machine offers no cpu controller: in a container, /sys/fs/cgroup has to be mounted writable (docker run --privileged)"

tmp=$(mktemp -d)
pid=
cleanup() {
	# Told to end, it removes its group.
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	[ -z "$pid" ] || wait "$pid" || :
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

"$load" busy-unpinned --group "$group" --seconds 600 --no-wait threads=4 quota=20ms period=100ms \
	>"$tmp/load" 2>"$tmp/trouble" &
pid=$!
# Until its threads are there.
tries=100
while ! grep -q '^READY' "$tmp/load"; do
	tries=$((tries - 1))
	if [ "$tries" -eq 0 ] || ! kill -0 "$pid" 2>/dev/null; then
		fail "the group could not be made: $(sed -n 's/^UNSUPPORTED //p' "$tmp/load" | cat - "$tmp/trouble" | head -n 1)"
	fi
	sleep 0.1
done
path=$(sed -n 's/.*"cgroup":"\([^"]*\)".*/\1/p' "$tmp/load")
echo "Four threads that never rest, in a group of their own: a fifth of a CPU, that is 20 ms in every 100 ms."
echo
echo "\$ throttlescope check --cgroup $path --for $DEMO_TIME"
echo
"$program" check --cgroup "$path" --for "$DEMO_TIME"
