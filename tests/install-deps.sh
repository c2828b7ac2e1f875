#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building and testing need, on Debian 12 and 13 and Ubuntu 24.04. Asks no network and needs no root if
# everything is there.
#
# usage: tests/install-deps.sh [build] [test] [programs] [check] [matrix]      (default: build test)
set -eu

build='gcc libc6-dev make clang libbpf-dev libelf-dev zlib1g-dev libcjson-dev'
test='libcriterion-dev python3 python3-jsonschema jq procps util-linux'
check='clang-format clang-tidy shellcheck'
# The real programs that throttlescope must recognise. Their services are kept from starting.
programs='haproxy
nginx-light
apache2
php-fpm
puma
unicorn
postgresql
pgbouncer
redis-server
memcached
mariadb-server
default-jdk-headless
gunicorn
uvicorn
celery
erlang-base
nodejs'
matrix='qemu-system-x86 qemu-system-arm cpio binutils zstd debian-archive-keyring gcc-aarch64-linux-gnu libc6-dev-arm64-cross'

[ $# -gt 0 ] || set -- build test
wanted=
for group in "$@"; do
	case $group in
	build) wanted="$wanted $build" ;;
	test) wanted="$wanted $test" ;;
	programs) wanted="$wanted $(echo "$programs" | tr '\n' ' ')" ;;
	check) wanted="$wanted $check" ;;
	matrix) wanted="$wanted $matrix" ;;
	*)
		echo "install-deps.sh: no group of packages is called $group" >&2
		exit 2
		;;
	esac
done

# Ubuntu's bpftool is a wrapper around the real one of some kernel's tools: only running it shows whether it is there.
has_bpftool() {
	for tool in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool; do
		! "$tool" version >/dev/null 2>&1 || return 0
	done
	return 1
}

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "install-deps.sh: neither Debian nor Ubuntu: install yourself what is missing of bpftool$wanted" >&2
	exit 0
fi

missing=
for package in $wanted; do
	case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || :) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
case " $* " in
*' build '*)
	if ! has_bpftool; then
		# shellcheck source=/dev/null
		id=$(. /etc/os-release && echo "$ID")
		[ "$id" = ubuntu ] && missing="$missing linux-tools-common linux-tools-generic" || missing="$missing bpftool"
	fi
	;;
esac
[ -n "$missing" ] || exit 0

echo "installing$missing"
as_root=
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		as_root='sudo -n'
	else
		echo "install-deps.sh: these packages are missing, and installing them needs root:$missing" >&2
		exit 1
	fi
fi
log=$(mktemp)
# invoke-rc.d and deb-systemd-invoke ask this program whether a service may start; one that is there knows better.
policy=/usr/sbin/policy-rc.d
case " $* " in
*' programs '*) [ ! -e "$policy" ] || policy= ;;
*) policy= ;;
esac
trap 'rm -f "$log"; [ -z "$policy" ] || $as_root rm -f "$policy"' EXIT
trap 'exit 130' INT TERM HUP
if [ -n "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$log"
	$as_root install -m 0755 "$log" "$policy"
fi
apt() {
	# shellcheck disable=SC2086 # one word or none
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@" \
		>"$log" 2>&1 </dev/null
}
# Lists that cannot be renewed may still do.
apt update || echo "install-deps.sh: the package lists could not be renewed: $(grep -m 1 '^[EW]:' "$log")" >&2
# shellcheck disable=SC2086 # a list of words
if ! apt install --no-install-recommends $missing; then
	grep '^E:' "$log" | tail -n 5 >&2
	echo "install-deps.sh: could not install$missing" >&2
	exit 1
fi
