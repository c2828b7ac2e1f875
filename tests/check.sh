#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The static checks, one line each. Started by `make check`, which brings the flags for clang-tidy.
#
# usage: tests/check.sh [--list-c]      --list-c: only names the C sources that have the house's format
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${CLANG_FORMAT:=clang-format}" "${CLANG_TIDY:=clang-tidy}" "${TIDY_FLAGS:=-D_GNU_SOURCE}"
lines_max=600
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Every file of the project, committed or not.
files() { find . \( -path ./.git -o -path "./${BUILD%%/*}" \) -prune -o -type f -print | sed 's|^\./||' | sort; }
c_files() { files | grep -E '^(agent|bpf|tests)/.*\.[ch]$'; }
scripts() {
	files | grep -vE '\.([chyd]|md|json|ya?ml|list)$' | while read -r file; do
		case $file in
		*.sh) echo "$file" ;;
		*) ! head -n 1 "$file" | grep -aqE '^#!.*\b(ba|da)?sh\b' || echo "$file" ;;
		esac
	done
}

if [ "${1:-}" = --list-c ]; then
	c_files
	exit 0
fi

# report NAME: a check is passed if it has printed nothing into $tmp/found.
report() {
	if [ -s "$tmp/found" ]; then
		echo "FAIL check/$1: $(wc -l <"$tmp/found") lines"
		head -n 60 "$tmp/found" | sed 's/^/    /'
	else
		echo "PASS check/$1"
	fi
}
# need TOOL NAME: is there the tool for this check?
need() {
	command -v "$1" >/dev/null 2>&1 || { echo "SKIP check/$2: $1 is not installed" && return 1; }
}

# What these two tools find changes with their version: only the one that the project is developed with counts.
major=14
is_ours() {
	need "$1" "$2" || return 1
	"$1" --version | grep -q "version $major\." || { echo "SKIP check/$2: $1 is not version $major" && return 1; }
}

check_format() {
	c_files | xargs "$CLANG_FORMAT" --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: \(warning\|error\):.*/\1/p' |
		uniq -c | awk '{ print $2 ": " $1 " places: make format" }' >"$tmp/found"
	report format
}

# The analyzer stops exploring a function at a fifth of its usual limit: a quarter of the time, and nothing less found.
analyzer='-Xclang -analyzer-config -Xclang max-nodes=40000'

# What clang-tidy says depends on the preprocessed source, its own version and the configuration: a source that was
# clean with all of these the same is clean. The comments stay in, because they can hold exceptions.
tidy_one() {
	flags="-std=gnu17 $TIDY_FLAGS -include agent/base/banned.h"
	# shellcheck disable=SC2086 # lists of words
	key=$({ echo "$analyzer" && cat .clang-tidy && "$CLANG_TIDY" --version && eval clang -E -C $flags '"$1"'; } 2>&1 | sha256sum | cut -c1-32)
	[ ! -e "$BUILD/tidy/$key" ] || return 0
	# shellcheck disable=SC2086
	if eval '"$CLANG_TIDY"' --quiet '"$1"' -- $flags $analyzer >"$2" 2>/dev/null; then
		: >"$BUILD/tidy/$key"
		rm -f "$2"
	fi
}
check_tidy() {
	mkdir -p "$BUILD/tidy" "$tmp/tidy"
	# shellcheck disable=SC2016 # the inner shell expands it
	files | grep -E '^agent/.*\.c$' | xargs -P "$(nproc)" -I '{}' sh -c 'exec "$0" --tidy-one "$1" "$2/$(echo "$1" | tr / _)"' \
		"$0" '{}' "$tmp/tidy"
	mkdir -p "$BUILD/results"
	find "$tmp/tidy" -type f -exec cat {} + | sed "s|^$PWD/||" >"$BUILD/results/tidy.txt"
	# The analyzer's paths are long: they are in the file.
	grep -E '(error|warning): ' "$BUILD/results/tidy.txt" | sort -u >"$tmp/found" || :
	report tidy
}

check_lines() {
	c_files | xargs wc -l | awk -v max=$lines_max '$2 != "total" && $1 > max { print $2 ": " $1 " lines, more than " max }' \
		>"$tmp/found"
	report lines
}

# The kernel accepts the helpers these programs call only from GPL programs; the rest is Apache.
check_licenses() {
	{ c_files && scripts && echo Makefile; } | sort -u | while read -r file; do
		license=$(head -n 3 "$file" | sed -n 's/.*SPDX-License-Identifier: \([A-Za-z0-9. -]*[A-Za-z0-9]\).*/\1/p')
		case $file:$license in
		bpf/*:GPL-2.0-only* | *.bpf.c:GPL-2.0-only | *.bpf.h:GPL-2.0-only) ;;
		bpf/* | *.bpf.c | *.bpf.h) echo "$file: must be GPL-2.0-only, is '$license'" ;;
		*:Apache-2.0) ;;
		*) echo "$file: must be Apache-2.0, is '$license'" ;;
		esac
	done >"$tmp/found"
	report licenses
}

# Paths of one person's machine, and what should have been done before it was committed.
check_words() {
	files | grep -vE '^(LICENSE|bpf/LICENSE|tests/check\.sh)$|^tests/(fuzz/corpus|fixtures|scenarios)/' |
		tr '\n' '\0' | xargs -0 grep -nIE '(^|[^A-Za-z0-9_.])/(work|root|home/[a-z]+)/|\b(TODO|FIXME|XXX)\b' >"$tmp/found" || :
	report words
}

check_findings() {
	grep -hoE '\.?code = "[A-Za-z]+"' agent/judge/*.c 2>/dev/null | sed 's/.*"\(.*\)"/\1/' | sort -u | while read -r code; do
		grep -qE "^#+ .*\b$code\b" docs/findings.md 2>/dev/null || echo "$code has no entry in docs/findings.md"
	done >"$tmp/found"
	report findings
}

if [ "${1:-}" = --tidy-one ]; then
	tidy_one "$2" "$3"
	exit 0
fi
! is_ours "$CLANG_FORMAT" format || check_format
tests/check-layers.sh >"$tmp/found" 2>&1 || :
report layers
check_lines
check_licenses
check_words
check_findings
if need shellcheck shell; then
	scripts | xargs shellcheck -x >"$tmp/found" 2>&1 || :
	report shell
fi
! is_ours "$CLANG_TIDY" tidy || check_tidy
