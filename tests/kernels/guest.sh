# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What a run of the matrix does inside the guest; matrix.sh puts it there. It sets
#   RUN      the run's name            KERNEL  the kernel's name     CPUS    how many
#   CGROUP   v2, v1 or hybrid          CASES   all or few
# The programs are in /tests, which is in the PATH. What is left in $OUT comes back to the host.
#
# Says `PASS name`, `FAIL name: reason` or `SKIP name: reason` for each case; other lines are for people.

# case_of NAME SECONDS COMMAND...: runs one test and passes on what it prints. A test that says nothing, dies, or takes
# too long is a failure in its own name.
case_of() {
	name=$1 seconds=$2
	shift 2
	timeout -s KILL "$seconds" "$@" >/tmp/case 2>&1
	status=$?
	cat /tmp/case
	if [ $status -eq 0 ]; then
		grep -qE '^(PASS|FAIL|SKIP) ' /tmp/case || echo "FAIL $name: ended without a verdict"
	else
		grep -q '^FAIL ' /tmp/case || echo "FAIL $name: ended with status $status (137: took longer than $seconds s)"
	fi
}

# Is the machine fit for the rest? A failure here explains those that follow.
case_of smoke 30 smoke

if [ ! -x /tests/truth ]; then
	echo "SKIP truth: tests/truth is not built for $(uname -m)"
	exit 0
fi

# Whatever the kernel allows of hooks, kprobes and tracepoints looks at the same runs. `few` is for the runs whose CPUs are more
# than the host's, and for cgroup v1.
if [ "$CASES" = all ]; then
	case_of truth 420 truth --virtual --load /tests/load --seconds 2
else
	case_of truth 120 truth --virtual --load /tests/load --seconds 3 --few
fi
