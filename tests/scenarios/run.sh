#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The scenarios: the built program as a black box. Each part prints `PASS name`, `FAIL name: reason`, `SKIP name: reason`.
set -u
cd "$(dirname "$0")" || exit 1
status=0
./schema.sh || status=1
./cli.sh || status=1
exit $status
