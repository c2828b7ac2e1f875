#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Two builds in two folders must give the same program, byte for byte, and none may name the folder it was built in.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/one" "$folder/another/deeper"
cp -R agent bpf Makefile "$folder/one/"
cp -R "$folder/one/." "$folder/another/deeper/"
for copy in one another/deeper; do
	env -u MAKEFLAGS -u BUILD -u B make -C "$folder/$copy" -j"$(nproc)" all >"$folder/log" 2>&1 || {
		tail -n 20 "$folder/log"
		echo "FAIL reproducible: the copy does not build"
		exit 1
	}
done
if ! cmp "$folder/one/build/throttlescope" "$folder/another/deeper/build/throttlescope"; then
	echo "FAIL reproducible: two builds differ"
elif grep -aq "$folder" "$folder/one/build/throttlescope"; then
	echo "FAIL reproducible: the program names its build folder"
else
	echo "PASS reproducible"
fi
