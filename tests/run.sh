#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs rings of tests and sums them up.
#
# usage: tests/run.sh RING...        unit corpus scenarios native programs matrix check reproducible sanitize fuzz
#
# Whatever runs tests prints one line a test: `PASS name`, `FAIL name: reason` or `SKIP name: reason`; other lines are
# for people. At the end come all failed and skipped tests once more and one line `N passed, N failed, N skipped`.
# Exit status 1 if anything failed, also if a runner failed without saying which test it was, or ran none.
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}"
export BUILD
results=$BUILD/results
mkdir -p "$results"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
: >"$tmp/all"

# Converts the TAP of one Criterion binary. $1: its name, $2: TAP file, $3: its exit status, $4: what it printed.
from_tap() {
	awk -v name="$1" -v status="$3" '
		function flush() {
			if (pending != "")
				print "FAIL " pending (why != "" ? ": " why : ": " fallback)
			pending = why = ""
		}
		function claim(line) {
			sub(/^(not )?ok - /, "", line)
			sub(/ *\([0-9.]+s\)$/, "", line)
			return name "/" line
		}
		/^[0-9]+\.\.[0-9]+$/ { sub(/^.*\.\./, ""); planned = $0 + 0 }
		/^(not )?ok - / { flush(); ran++ }
		/^ok - .*# SKIP/ {
			reason = $0; sub(/^.*# SKIP */, "", reason); sub(/ *# SKIP.*$/, "")
			print "SKIP " claim($0) ": " (reason != "" ? reason : "no reason given")
			next
		}
		/^ok - / { print "PASS " claim($0) }
		/^not ok - / {
			fallback = "failed"
			if (match($0, / (unexpected signal|timed out|abnormal|exited).*$/)) {
				fallback = substr($0, RSTART + 1); $0 = substr($0, 1, RSTART - 1)
			}
			pending = claim($0); failed++
		}
		pending != "" && /^  - / && why == "" { where = $0; sub(/^ *- */, "", where); sub(/: *\|\+$/, "", where) }
		pending != "" && /^      / && why == "" { why = $0; sub(/^ */, "", why); why = where ": " why }
		END {
			flush()
			if (ran != planned || planned == 0)
				print "FAIL " name ": ran " ran + 0 " of " planned + 0 " tests, exit status " status
			else if (status != 0 && !failed)
				print "FAIL " name ": exit status " status " though every test passed"
		}' "$2" >"$tmp/lines"
	cat "$tmp/lines"
	! grep -q '^FAIL' "$tmp/lines" || sed "s|^|    |" "$4"
}

run_unit() {
	for source in tests/unit/*.c; do
		name=$(basename "$source" .c)
		status=0
		: >"$tmp/tap"
		timeout -k 5 300 "$BUILD/tests/unit/$name" --tap="$tmp/tap" --xml="$results/$name.xml" \
			>"$tmp/output" 2>&1 </dev/null || status=$?
		from_tap "$name" "$tmp/tap" "$status" "$tmp/output"
	done
}

run_corpus() {
	for source in tests/fuzz/fuzz_*.c; do
		[ -e "$source" ] || continue
		name=$(basename "$source" .c)
		status=0
		timeout -k 5 120 "$BUILD/tests/replay/$name" "tests/fuzz/corpus/$name" >"$tmp/output" 2>&1 </dev/null ||
			status=$?
		if [ "$status" -eq 0 ]; then
			echo "PASS corpus/$name"
		else
			echo "FAIL corpus/$name: exit status $status"
			sed 's/^/    /' "$tmp/output"
		fi
	done
}

run_fuzz() {
	for source in tests/fuzz/fuzz_*.c; do
		[ -e "$source" ] || continue
		name=$(basename "$source" .c)
		mkdir -p "$BUILD/corpus/$name" "$results/crashes"
		status=0
		"$BUILD/tests/fuzz/$name" -max_total_time="${FUZZ_SECONDS:-10}" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
			-artifact_prefix="$results/crashes/$name-" "$BUILD/corpus/$name" "tests/fuzz/corpus/$name" \
			>"$tmp/output" 2>&1 </dev/null || status=$?
		if [ "$status" -eq 0 ]; then
			echo "PASS fuzz/$name"
			tail -n 1 "$tmp/output" | sed 's/^/    /'
		else
			echo "FAIL fuzz/$name: exit status $status, input in $results/crashes"
			tail -n 40 "$tmp/output" | sed 's/^/    /'
		fi
	done
}

# A leak does not fail a Criterion test (its process has said "passed" before it is found): any report of a sanitizer
# is a failure of its own.
run_sanitize() {
	logs=$PWD/$results/sanitizer
	rm -rf "$logs"
	mkdir -p "$logs"
	export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
	export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1"
	run_unit
	run_corpus
	clean=1
	for log in "$logs"/*; do
		[ -e "$log" ] || continue
		clean=0
		echo "FAIL sanitizer/$(basename "$log"): $(grep -m 1 -E 'ERROR|runtime error' "$log" || echo report)"
		sed 's/^/    /' "$log"
	done
	[ "$clean" -eq 0 ] || echo "PASS sanitizer/no report"
}

run_script() {
	if [ -e "$1" ]; then
		"$1" </dev/null
	else
		echo "SKIP $1: not there"
	fi
}

run_ring() {
	case $1 in
	unit) run_unit ;;
	corpus) run_corpus ;;
	fuzz) run_fuzz ;;
	sanitize) run_sanitize ;;
	check) run_script tests/check.sh ;;
	reproducible) run_script tests/reproducible.sh ;;
	matrix) run_script tests/kernels/matrix.sh ;;
	*)
		# One runner, or every script of the folder.
		if [ -e "tests/$1/run.sh" ]; then
			run_script "tests/$1/run.sh"
			return
		fi
		for script in "tests/$1"/*.sh; do
			[ -x "$script" ] || continue
			status=0
			run_script "$script" >"$tmp/script" 2>&1 || status=$?
			cat "$tmp/script"
			[ "$status" -eq 0 ] || grep -q '^FAIL ' "$tmp/script" || echo "FAIL $script: exit status $status"
		done
		;;
	esac
}

for ring in "$@"; do
	echo "== $ring"
	echo 1 >"$tmp/status"
	# The sums of an inner runner would be taken for ours.
	{ (run_ring "$ring") 2>&1 && echo 0 >"$tmp/status" || echo $? >"$tmp/status"; } |
		awk '!/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { print; fflush() }' | tee "$tmp/ring"
	status=$(cat "$tmp/status")
	if [ "$status" -ne 0 ] && ! grep -q '^FAIL ' "$tmp/ring"; then
		echo "FAIL $ring: its runner exited with status $status" | tee -a "$tmp/ring"
	elif ! grep -qE '^(PASS|FAIL|SKIP) ' "$tmp/ring" && [ "$ring" != corpus ]; then
		echo "FAIL $ring: no test ran" | tee -a "$tmp/ring"
	fi
	# A runner may name its failures and skips once more at its end.
	awk '/^PASS / || /^(FAIL|SKIP) / && !seen[$0]++' "$tmp/ring" >>"$tmp/all"
done

count() { grep -c "^$1 " "$tmp/all" || :; }
passed=$(count PASS) failed=$(count FAIL) skipped=$(count SKIP)
if [ "$failed" -gt 0 ] || [ "$skipped" -gt 0 ]; then
	echo "== failed and skipped"
	grep -E '^(FAIL|SKIP) ' "$tmp/all" || :
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
