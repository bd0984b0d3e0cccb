#!/bin/bash
# Fetches kernels and what runs on them from Debian's archive, without touching the machine's own apt.
#
#	fetch.sh kernel NAME [ARCH]	a line of kernels.txt: prints the path of its bzImage or Image
#	fetch.sh busybox [ARCH]		prints the path of a static busybox
#
# ARCH: amd64 (default) or arm64. Everything is kept in $VMTEST_CACHE (default ~/.cache/goprof-bpf-vmtest),
# and taken from there as long as it is there: FRESH=1 looks for newer point releases.
# MIRROR= names another archive.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VMTEST_CACHE:-$HOME/.cache/goprof-bpf-vmtest}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
suites="bookworm bullseye bookworm-backports trixie-backports sid"

die() { echo "$0: $*" >&2; exit 1; }

apt_opts=(-q -o Dir::Etc::SourceList="$cache/apt/etc/sources.list" -o Dir::Etc::SourceParts=-
	-o Dir::State::Lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
	-o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o Acquire::Retries=3)

# Lists are fetched once, and again when something that they name is no longer there.
lists() {
	mkdir -p "$cache"/apt/{lists/partial,cache/archives/partial,etc} "$cache"/{deb,x}
	grep -qsF " $MIRROR " "$cache/apt/etc/sources.list" ||
		for s in $suites; do echo "deb [signed-by=$keys] $MIRROR $s main"; done >"$cache/apt/etc/sources.list"
	[ "${1:-}" != again ] && compgen -G "$cache/apt/lists/*Packages*" >/dev/null && return
	[ -f $keys ] || die "$keys is not there (package debian-archive-keyring)"
	apt-get "${apt_opts[@]}" update >&2
}

# newest PATTERN ARCH: "PACKAGE VERSION" of the newest package whose whole name matches.
newest() {
	local best= bestv= p v names
	mapfile -t names < <(apt-cache "${apt_opts[@]}" pkgnames linux- | grep -xE "$1" | sort -Vu)
	[ ${#names[@]} != 0 ] || return 1
	while read -r p v; do
		if [ -z "$bestv" ] || dpkg --compare-versions "$v" ge "$bestv"; then best=$p bestv=$v; fi
	done < <(apt-cache "${apt_opts[@]}" show --no-all-versions "${names[@]/%/:$2}" 2>/dev/null |
		sed -n '/^Package: /{ s///; h; }; /^Version: /{ s///; H; g; s/\n/ /p; }')
	[ -n "$best" ] && echo "$best $bestv"
}

# unpacked PACKAGE ARCH: fetches it, and prints where it is unpacked.
unpacked() {
	local name=$1 arch=$2 deb dir
	cd "$cache/deb"
	deb=$(find . -name "${name}_*_$arch.deb" -printf '%f\n' | sort -V | tail -n 1)
	if [ -z "$deb" ]; then
		apt-get "${apt_opts[@]}" download "$name:$arch" >&2
		deb=$(find . -name "${name}_*_$arch.deb" -printf '%f\n' | sort -V | tail -n 1)
	fi
	[ -n "$deb" ] || die "$name:$arch was not fetched"
	dir=$cache/x/${deb%.deb}
	if [ ! -d "$dir" ]; then
		rm -rf "$dir.new"
		dpkg-deb -x "$deb" "$dir.new"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

# image PACKAGE ARCH
image() {
	local dir
	dir=$(unpacked "$1" "$2")
	find "$dir" -name 'vmlinuz*' -type f | head -n 1 | grep . || die "$1:$2 holds no kernel"
}

kernel() {
	local name=$1 arch=$2 line pattern have
	line=$(grep -E "^${name//./\\.}[[:space:]]" "$here/kernels.txt") || die "kernels.txt has no $name"
	pattern=$(awk '{ print $2 }' <<<"$line")
	pattern=${pattern//ARCH/$arch}
	mkdir -p "$cache"/{deb,x}
	have=$(find "$cache/deb" -name "linux-*_$arch.deb" -printf '%f\n' | sed 's/_.*//' | grep -xE "$pattern" | sort -V | tail -n 1 || :)
	if [ -z "$have" ] || [ -n "${FRESH:-}" ]; then
		lists ${FRESH:+again}
		have=$(newest "$pattern" "$arch") || { lists again; have=$(newest "$pattern" "$arch"); } ||
			die "the archive has no package like $pattern"
	fi
	image "${have%% *}" "$arch"
}

busybox() {
	local dir
	mkdir -p "$cache"/{deb,x}
	compgen -G "$cache/deb/busybox-static_*_$1.deb" >/dev/null || lists
	dir=$(unpacked busybox-static "$1")
	find "$dir" -path '*/bin/busybox' -type f | head -n 1
}

case ${1:-} in
kernel)  kernel "${2:?NAME}" "${3:-amd64}" ;;
busybox) busybox "${2:-amd64}" ;;
*)       sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
