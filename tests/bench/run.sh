#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the program costs, beside what it may cost. Says `within` or `over` and judges no further: speeds depend on the machine and
# on who else is on it. Needs root, clang, libbpf; compares with libbpf-tools where they are installed. docs/cost.md explains it.
#
# usage: tests/bench/run.sh [switches] [agent] [tick] [start]       (default: all)
# environment: BUILD (build), BENCH_ROUNDS (5), BENCH_SECONDS (2, each round), BENCH_AGENT_SECONDS (60)
set -eu
cd "$(dirname "$0")/../.."
: "${BUILD:=build}" "${BENCH_ROUNDS:=5}" "${BENCH_SECONDS:=2}" "${BENCH_AGENT_SECONDS:=60}" "${CC:=cc}" "${CLANG:=clang}"
program=$BUILD/throttlescope load=$BUILD/tests/load own=$BUILD/tests/bench
[ $# -gt 0 ] || set -- switches agent tick start

skip() {
	echo "bench: $1" >&2
	exit 77
}
for file in "$program" "$load"; do
	[ -x "$file" ] || skip "$file is not there: run make all workloads"
done
[ "$(id -u)" -eq 0 ] || skip "needs root"
where=$("$load" where) || skip "no cpu controller: $where"
mkdir -p "$own"
"$CLANG" -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -c -o "$own/empty.bpf.o" tests/bench/empty.bpf.c
"$CC" -std=gnu17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -o "$own/cost" tests/bench/cost.c -lbpf -lelf -lz
cost=$own/cost
cpus=$(getconf _NPROCESSORS_ONLN)

tmp=$(mktemp -d)
loads='' holder='' player=''
stop() {
	for pid in $1; do
		kill "$pid" 2>/dev/null || :
	done
	for pid in $1; do
		wait "$pid" 2>/dev/null || :
	done
}
clear_load() {
	stop "$player"
	stop "$loads"
	stop "$holder"
	player='' loads='' holder=''
}
trap 'clear_load; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

await() {
	tries=600
	until grep -q "^$1" "$2"; do
		tries=$((tries - 1))
		if [ "$tries" -eq 0 ] || ! kill -0 "$3" 2>/dev/null; then
			skip "the workload: $(head -n 1 "$2")"
		fi
		sleep 0.05
	done
}

# The group $1 with the limit $2, and threads in it that wake one another as fast as they can. Its path goes to $path.
play() {
	"$load" busy --group "$1" --seconds 1 threads=1 "quota=$2" period=100ms --window >"$tmp/holder" 2>&1 &
	holder=$!
	await READY "$tmp/holder" "$holder"
	path=$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p' "$tmp/holder")
	"$cost" pingpong &
	player=$!
	echo "$player" >"$path/cgroup.procs"
}

# $1: groups, $2: threads in each, $3: how long they sleep, $4: of how many groups the threads never rest
crowd() {
	"$load" busy --group "throttlescope-bench-$$/holder" --seconds 36000 threads=1 quota=1ms --no-wait >"$tmp/holder" 2>&1 &
	holder=$!
	await READY "$tmp/holder" "$holder"
	i=0
	while [ "$i" -lt "$1" ]; do
		i=$((i + 1))
		if [ "$i" -gt "$4" ]; then
			"$load" sleepers --group "throttlescope-bench-$$/c$i" --seconds 36000 --no-wait "threads=$2" burn=50us \
				"sleep=$3" quota=50ms >"$tmp/crowd" 2>&1 &
		else
			"$load" busy-unpinned --group "throttlescope-bench-$$/c$i" --seconds 36000 --no-wait "threads=$2" quota=5ms \
				>"$tmp/crowd" 2>&1 &
		fi
		loads="$loads $!"
		[ $((i % 20)) -ne 0 ] || await READY "$tmp/crowd" "$!"
	done
	sleep 5
}

# $1: what, $2: value, $3: unit, $4: target, empty: none
row() {
	awk -v what="$1" -v value="$2" -v unit="$3" -v target="$4" 'BEGIN {
		printf "%-66s %9.1f %-4s %s\n", what, value, unit, target == "" ? "" : \
			sprintf("%s %s %s", value + 0 < target + 0 ? "within" : "OVER  ", target, unit)
	}'
}

# One line of `cost switches`, into $switches $empty $at_switch $all.
measure_switches() {
	line=$("$cost" switches "$own/empty.bpf.o" "$BENCH_ROUNDS" "$BENCH_SECONDS" -- "$@") || return 1
	# shellcheck disable=SC2086 # words
	set -- $line
	switches=$1 empty=$2 at_switch=$3 all=$4
}
# The lesser of $1, which may be empty, and $2.
lesser() {
	printf '%s\n' "${1:-$2}" "$2" | sort -g | head -n 1
}

bench_switches() {
	echo "A switch, over the empty program on the same hooks (medians of $BENCH_ROUNDS rounds of $BENCH_SECONDS s); \`and wake-up' with all programs"
	play "throttlescope-bench-$$/a/b/c" max
	if measure_switches "$program" watch --scope node --interval 1h; then
		row "no limit: throttlescope, node" "$at_switch" ns 15
		row "no limit: throttlescope, node, and wake-up" "$all" ns ''
		row "          the empty program itself, $switches switches a second" "$empty" ns ''
	fi
	clear_load
	play "throttlescope-bench-$$/a/b/c" "$((cpus * 100))ms"
	least='' least_all=''
	for tool in 'runqslower 10000' 'runqlat 1000 1' 'cpudist 1000 1' 'offcputime 1000'; do
		command -v "${tool%% *}" >/dev/null || {
			echo "${tool%% *} is not installed (Debian and Ubuntu: libbpf-tools)"
			continue
		}
		# shellcheck disable=SC2086 # words
		measure_switches $tool || continue
		row "limit:    ${tool%% *}" "$at_switch" ns ''
		row "limit:    ${tool%% *}, and wake-up" "$all" ns ''
		least=$(lesser "$least" "$at_switch") least_all=$(lesser "$least_all" "$all")
	done
	if measure_switches "$program" watch --cgroup "${path#*/cpu}" --interval 1h; then
		row "limit:    throttlescope, this container" "$at_switch" ns "$least"
		row "limit:    throttlescope, this container, and wake-up" "$all" ns "$least_all"
	fi
	if measure_switches "$program" watch --scope node --interval 1h; then
		row "limit:    throttlescope, node" "$at_switch" ns "$least"
		row "limit:    throttlescope, node, and wake-up" "$all" ns "$least_all"
	fi
	clear_load
	play "throttlescope-bench-$$/a/b/c" "$((cpus * 50))ms"
	if measure_switches "$program" watch --scope node --interval 1h; then
		row "throttled: throttlescope, node" "$at_switch" ns "$least"
		row "throttled: throttlescope, node, and wake-up" "$all" ns "$least_all"
	fi
	clear_load
}

bench_agent() {
	crowd 100 10 100ms 4
	line=$("$cost" agent 15 "$BENCH_AGENT_SECONDS" -- "$program" watch --scope node --interval 10s)
	clear_load
	# shellcheck disable=SC2086 # words
	set -- $line
	echo "The agent, 100 containers with 10 threads each, every 10 s"
	row "CPU, thousandths of one" "$(awk -v ms="$1" -v s="$BENCH_AGENT_SECONDS" 'BEGIN { print ms / s }')" m 1
	row "CPU of its BPF programs (in the switches of others)" \
		"$(awk -v ms="$2" -v s="$BENCH_AGENT_SECONDS" 'BEGIN { print ms / s }')" m ''
	row "resident" "$(awk -v k="$3" 'BEGIN { print k / 1024 }')" MiB 10
	row "resident, at most since its start" "$(awk -v k="$4" 'BEGIN { print k / 1024 }')" MiB ''
}

bench_tick() {
	crowd 500 20 1s 4
	line=$("$cost" agent 12 50 -- "$program" watch --scope node --interval 5s)
	first=$("$cost" first -- "$program" check --scope node --for 100ms -o json)
	clear_load
	# shellcheck disable=SC2086 # words
	set -- $line
	echo "The agent, 500 containers with 20 threads each"
	row "CPU time of a tick" "$(awk -v ms="$1" 'BEGIN { print ms / 10 }')" ms 100
	row "resident" "$(awk -v k="$3" 'BEGIN { print k / 1024 }')" MiB 40
	row "resident, at most since its start" "$(awk -v k="$4" 'BEGIN { print k / 1024 }')" MiB ''
	row "check: start to first report, without its window" "$(awk -v ms="${first%% *}" 'BEGIN { print ms - 100 }')" ms ''
}

bench_start() {
	echo "From the start to the first report, without its window (median of $BENCH_ROUNDS)"
	crowd 1 4 100ms 0
	i=0
	: >"$tmp/first"
	while [ "$i" -lt "$BENCH_ROUNDS" ]; do
		"$cost" first -- "$program" check --cgroup "/throttlescope-bench-$$/c1" --for 100ms -o json >>"$tmp/first"
		i=$((i + 1))
	done
	clear_load
	median=$((BENCH_ROUNDS / 2 + 1))
	row "one container: wall time" "$(awk '{ print $1 - 100 }' "$tmp/first" | sort -g | sed -n "${median}p")" ms 300
	row "one container: CPU time until its end" "$(awk '{ print $2 }' "$tmp/first" | sort -g | sed -n "${median}p")" ms ''
	row "one container: largest resident set" "$(awk '{ print $3 / 1024 }' "$tmp/first" | sort -g | sed -n "${median}p")" MiB ''
}

echo "throttlescope $("$program" --version | head -n 1), Linux $(uname -r), $cpus CPUs, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
for part in "$@"; do
	case $part in
	switches | agent | tick | start) "bench_$part" ;;
	*)
		echo "bench: no part is called $part" >&2
		exit 2
		;;
	esac
done
