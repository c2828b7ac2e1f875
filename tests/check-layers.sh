#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes point downward only: base <- host <- probe <- runtimes <- judge <- kube, report <- cmd <- main. kube and
# report stand side by side; bpf/ is the probe's. Prints each line that points elsewhere; exit status 1 if there is one.
set -eu
cd "$(dirname "$0")/.."

find agent -name '*.[ch]' -exec grep -Hn '^[ \t]*#[ \t]*include[ \t]*"' {} + | awk -F: '
	BEGIN {
		below["base"] = " base "
		below["host"] = below["base"] "host "
		below["probe"] = below["host"] "probe bpf "
		below["runtimes"] = below["host"] "probe runtimes "
		below["judge"] = below["runtimes"] "judge "
		below["kube"] = below["judge"] "kube "
		below["report"] = below["judge"] "report "
		below["cmd"] = below["judge"] "kube report cmd "
		below["main"] = below["cmd"]
	}
	{
		depth = split($1, path, "/")
		from = depth == 2 ? "main" : path[2]
		header = $3
		sub(/^[^"]*"/, "", header)
		sub(/".*$/, "", header)
		if (header ~ /^\.\.\/\.\.\/bpf\// || header ~ /\.skel\.h$/)
			to = "bpf"
		else if (header ~ /^\.\.\/[a-z]+\//) {
			split(header, part, "/")
			to = part[2]
		} else if (header ~ /^[a-z]+\// && from == "main") {
			split(header, part, "/")
			to = part[1]
		} else if (header !~ /\//)
			to = from == "main" ? "cmd" : from
		else
			to = "elsewhere"
		if (!(from in below) || index(below[from], " " to " ") == 0) {
			print $1 ":" $2 ": " from " may not include " header
			bad = 1
		}
	}
	END { exit bad }'

# Rules and forms are pure: time, files and environment reach them as arguments.
if grep -nE '\b(clock_now|clock_gettime|time|getenv|fopen|open|openat|root_read|root_list|log_at|log_error|log_warning)\(' \
	agent/judge/*.c agent/report/*.c 2>/dev/null; then
	echo "the lines above: judge/ and report/ read no clock, file or environment, and do not log"
	exit 1
fi
