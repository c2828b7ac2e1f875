#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Do reports hold the contract? Without arguments: the kept reports, the schema, docs/report.md and the sources against each
# other. With FILEs ("-": standard input): each line of them is a report that may have no undocumented field.
#
# usage: tests/scenarios/schema.sh [FILE...]
set -eu
cd "$(dirname "$0")/../.."
# The distribution's interpreter: another one may come first in PATH and lack the distribution's modules.
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import jsonschema' 2>/dev/null; then
	echo "SKIP schema: $python has no module jsonschema (package python3-jsonschema)"
	exit 0
fi
exec "$python" tests/scenarios/schema.py "$@"
