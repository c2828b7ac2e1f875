#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program from outside: usage, exit statuses, output that is slow or closed, signals at any moment, the wrapper. Measures with
# method files, so that it needs no privileges; what needs a group with a limit, or a PID namespace, is skipped without root.
#
# usage: tests/scenarios/cli.sh [NAME...]      only the tests whose name contains one of the words
set -eu
cd "$(dirname "$0")/../.."
export BUILD="${BUILD:-build}"
python=${PYTHON:-/usr/bin/python3}
if ! command -v "$python" >/dev/null 2>&1; then
	echo "SKIP cli: no $python"
	exit 0
fi
status=0
for part in usage agent wrapper; do
	"$python" "tests/scenarios/cli_$part.py" "$@" || status=1
done
exit $status
