# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the scripts of this folder: where the cache is, and a private apt that leaves the machine's own alone.
# Sourced, with $here set to this folder.
: "${here:?}"

cache=${THROTTLESCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/throttlescope}

say() { printf '%s\n' "$*" >&2; }

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# need COMMAND PACKAGE: stop with the name of the missing package.
need() {
	command -v "$1" >/dev/null 2>&1 || die "$1 is missing (Debian package $2)"
}

# kernel_row NAME: the row of kernels.list, or nothing.
kernel_row() {
	awk -v name="$1" '$1 == name && !/^#/ { print; exit }' "$here/kernels.list"
}

kernel_names() {
	awk 'NF && !/^#/ { print $1 }' "$here/kernels.list"
}

triplet_of() {
	case $1 in
	amd64) echo x86_64-linux-gnu ;;
	arm64) echo aarch64-linux-gnu ;;
	*) die "unknown architecture $1 (amd64 or arm64)" ;;
	esac
}

# qemu_is_good PROGRAM: is it new enough for many virtual CPUs (see fetch_qemu in fetch.sh)?
qemu_is_good() {
	[ "$("$1" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')" -ge 10 ] 2>/dev/null
}

# The code name of the machine's own Debian release: the libraries in the guests come from it, because programs are
# linked against it.
host_release() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

# mirror_of KIND: the address of the Debian mirror (KIND main or security) that the machine's own apt is configured
# with. Needs no package lists.
mirror_of() (
	suite=$(host_release)
	[ "$1" = main ] || suite=$suite-$1
	# shellcheck disable=SC2016 # apt expands these
	env -u APT_CONFIG apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		awk -v suite="$suite" '$1 == suite { print $2; exit }'
)

# apt_private SUITES: makes the state for a comma separated list of suites if there is none, reads their package lists
# once, and prints the path of the apt.conf to be used as APT_CONFIG. Says on standard error why it fails, and does not
# try again while the mark `failed` is there, which fetch.sh takes away when it starts.
apt_private() (
	suites=$1
	root=$cache/apt/${suites%%,*}
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$root/lists/partial" "$root/archives/partial"
	: >"$root/status"
	main=$(mirror_of main) security=$(mirror_of security)
	[ -n "$main" ] || die "no Debian mirror in this machine's apt configuration"
	[ -r "$keyring" ] || die "no Debian archive keyring (package debian-archive-keyring)"
	for suite in $(echo "$suites" | tr , ' '); do
		case $suite in
		*-security) uri=$security ;;
		*) uri=$main ;;
		esac
		[ -z "$uri" ] || echo "deb [signed-by=$keyring] $uri $suite main"
	done >"$root/sources.list"
	{
		# How to reach the network is the machine's to say; everything else is ours, its hooks above all.
		env -u APT_CONFIG apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' || :
		cat <<-EOF
			Dir::Etc::parts "/dev/null";
			Dir::Etc::main "/dev/null";
			Dir::Etc::sourcelist "$root/sources.list";
			Dir::Etc::sourceparts "/dev/null";
			Dir::Etc::preferences "/dev/null";
			Dir::Etc::preferencesparts "/dev/null";
			Dir::State "$root";
			Dir::State::status "$root/status";
			Dir::Cache "$root";
			Dir::Cache::srcpkgcache "";
			Dir::Log "$root";
			APT::Architectures { "amd64"; "arm64"; };
			APT::Sandbox::User "$(id -un)";
			APT::Install-Recommends "0";
			Acquire::Languages "none";
			Acquire::GzipIndexes "true";
			Acquire::Retries "1";
			Acquire::http::Timeout "20";
			Debug::NoLocking "1";
		EOF
	} >"$root/apt.conf"
	if [ ! -e "$root/updated" ]; then
		[ ! -e "$root/failed" ] || die "the package lists of ${suites%%,*} cannot be had"
		APT_CONFIG=$root/apt.conf apt-get -qq --error-on=any update >"$root/update.log" 2>&1 || {
			grep '^E:' "$root/update.log" >&2 || cat "$root/update.log" >&2
			touch "$root/failed"
			die "the package lists of ${suites%%,*} cannot be had"
		}
		touch "$root/updated"
	fi
	echo "$root/apt.conf"
)

# apt_names CONF REGEX: every package name known to the private apt that matches the whole of REGEX.
apt_names() {
	APT_CONFIG=$1 apt-cache pkgnames 2>/dev/null | grep -Ex "$2" || :
}

# deb_get CONF PACKAGE:ARCH DIR: downloads the newest version of one package and unpacks it into DIR.
deb_get() (
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp" || exit 1
	APT_CONFIG=$1 apt-get -qq download "$2" >log 2>&1 || {
		sed -n 's/^E: //p' log | head -1 >&2
		exit 1
	}
	dpkg-deb -x ./*.deb "$3"
)
