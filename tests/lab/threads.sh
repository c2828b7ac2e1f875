#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How many threads fit a limit? 1, 2, 4 and 8 busy threads, pinned to CPUs in turn, under one limit that is below a CPU, and again
# with the limit raised to the thread count. Each row puts what the threads saw on their own clocks beside what throttlescope said
# about the same seconds. Ends with 1 if the two differ by more than they may for any thread:
#   stalled + waited against the kernel's own run_delay of the thread: 1 %
#   stalled + waited against the gaps that the thread saw: 2 % (and the time that the hypervisor took)
# both with 10 us a switch on top. 77: this cannot be measured here.
#
# environment: BUILD (build), LAB_SECONDS (5), LAB_QUOTA (28ms of each 100), LAB_THREADS ("1 2 4 8")
set -eu
cd "$(dirname "$0")/../.."
: "${BUILD:=build}" "${LAB_SECONDS:=5}" "${LAB_QUOTA:=28ms}" "${LAB_THREADS:=1 2 4 8}"
program=$BUILD/throttlescope load=$BUILD/tests/load

skip() {
	echo "lab-threads: $1" >&2
	exit 77
}
for file in "$program" "$load"; do
	[ -x "$file" ] || skip "$file is not there: run make all workloads"
done
[ "$(id -u)" -eq 0 ] || skip "needs root"
command -v jq >/dev/null || skip "needs jq"
where=$("$load" where) || skip "no cpu controller: $where"

tmp=$(mktemp -d)
load_pid='' check_pid=''
end() {
	for pid in $check_pid $load_pid; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	check_pid='' load_pid=''
}
trap 'end; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Until the file $2 has a line that begins with $1; $3: the process that writes it.
await() {
	tries=600
	until grep -q "^$1" "$2"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] && kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
}

# The agent measures from its first reading on, which it opens its ring of stalls before.
await_attached() {
	tries=200
	until cat "/proc/$1/fdinfo/"* 2>/dev/null | grep -q '^link_type:.*iter'; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] && kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	sleep 0.7
}

# $1: threads, $2: quota. The threads are there but rest until the agent looks, and rest again before it has looked its last.
measure() {
	mkfifo "$tmp/go"
	"$load" busy --group "throttlescope-lab-$$" --seconds "$LAB_SECONDS" "threads=$1" "quota=$2" period=100ms pinned=1 \
		<"$tmp/go" >"$tmp/load" 2>"$tmp/trouble" &
	load_pid=$!
	exec 3>"$tmp/go"
	rm "$tmp/go"
	await READY "$tmp/load" "$load_pid" || skip "the workload: $(cat "$tmp/load" "$tmp/trouble" | head -n 1)"
	path=$(sed -n 's/.*"cgroup":"\([^"]*\)".*/\1/p' "$tmp/load")
	"$program" check --cgroup "$path" --for 10m --threads 100 -o json >"$tmp/check" 2>"$tmp/trouble" 3>&- &
	check_pid=$!
	await_attached "$check_pid" || skip "throttlescope cannot use BPF here: $(head -n 1 "$tmp/trouble")"
	echo go >&3
	await '{"type":"machine"' "$tmp/load" "$load_pid" || skip "the workload ended early: $(head -n 1 "$tmp/trouble")"
	kill -INT "$check_pid"
	status=0
	wait "$check_pid" || status=$?
	check_pid=
	[ "$status" -eq 0 ] || skip "throttlescope ended with $status: $(head -n 1 "$tmp/trouble")"
	echo exit >&3
	exec 3>&-
	wait "$load_pid" || :
	load_pid=
}

# One row, and `FAR` before each thread whose figures are too far apart.
compare() {
	# shellcheck disable=SC2016 # jq's variables
	grep -h '^{' "$tmp/load" "$tmp/check" | jq -rs --arg threads "$1" --arg quota "$2" '
		def ms: . / 1e5 | round / 10;
		def percent: . * 1000 | round / 10;
		def apart($a; $b): ($a - $b | fabs) / ([$b, 1] | max);
		def far($a; $b; $part; $slack): ($a - $b | fabs) > $part * $b + $slack;
		(map(select(.type == "machine")) | first | .steal_ns // 0) as $steal
		| map(select(.type == "thread" and .role == "busy")) as $own
		| (map(select(.type == "container")) | last) as $report
		| [$own[] | . as $o | ($report.threads[] | select(.host_tid == $o.tid)) as $t | {
			name: $o.name, wall: $o.wall_ns, gap: $o.gap_ns, gap_max: $o.gap_max_ns,
			stall: $t.stall_ns, wait: $t.wait_ns, longest: $t.stall_longest_ns,
			delay: $o.run_delay_ns, gaps: ($o.gap_ns + $o.tail_delay_ns), lost: ($t.stall_ns + $t.wait_ns),
			slack: (10000 * $t.switches)
		} | . + {
			far: (far(.lost; .delay; 0.01; .slack) or far(.lost; .gaps; 0.02; .slack + $steal))
		}] as $pairs
		| ($pairs | map(.wall) | add) as $wall
		| if ($pairs | length) != ($own | length) then
			"FAR \($own | length) threads worked, \($pairs | length) were reported"
		else
			([$quota, $threads,
				([$pairs[].gap_max] | max | ms), ([$pairs[].gap] | add / $wall | percent),
				([$pairs[].longest] | max | ms), ([$pairs[].stall] | add / $wall | percent),
				([$pairs[].wait] | add / $wall | percent),
				([$pairs[] | apart(.lost; .delay)] | max * 100), ([$pairs[] | apart(.lost; .gaps)] | max * 100)
				] | @tsv),
			($pairs[] | select(.far) |
				"FAR \($threads) threads, limit \($quota): \(.name) stalled \(.stall | ms) ms and waited \(.wait | ms) ms; " +
				"the kernel says \(.delay | ms) ms, its gaps are \(.gaps | ms) ms")
		end' >"$tmp/row"
	grep -v '^FAR' "$tmp/row" | awk -F '\t' '{
		printf "%6s %8s %9.1f ms %7.1f %% %9.1f ms %7.1f %% %7.1f %% %8.3f %% %8.3f %%\n", $1, $2, $3, $4, $5, $6, $7, $8, $9
	}'
	sed -n 's/^FAR //p' "$tmp/row" >>"$tmp/far"
}

: >"$tmp/far"
echo "Per 100 ms, $(getconf _NPROCESSORS_ONLN) CPUs; $LAB_SECONDS s a row."
echo "On a quiet machine the stall of each 100 ms is about 100 - quota / min(threads, CPUs); busy neighbours turn it into waiting."
echo "                 | the threads' own clocks | throttlescope                   | apart (worst thread)"
echo " limit  threads    largest gap   in gaps     longest   stalled   waited   from delay from gaps"
for threads in $LAB_THREADS; do
	measure "$threads" "$LAB_QUOTA"
	compare "$threads" "$LAB_QUOTA"
done
for threads in $LAB_THREADS; do
	measure "$threads" "$((threads * 100))ms"
	compare "$threads" "$((threads * 100))ms"
done
if [ -s "$tmp/far" ]; then
	sed 's/^/too far apart: /' "$tmp/far"
	exit 1
fi
echo "The two agree: within 1 % of the kernel's delay and 2 % of the gaps, for every thread."
