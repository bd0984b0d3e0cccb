#!/bin/bash
# Kernels by the names that docs/tested.md has for them (7.2, 7.2-arm64), those of each architecture by a `make ARCH=
# vmtest`; without a name all of both. The very last line is "N passed, N failed, N skipped", of all of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
O=${O:-build}
HOST_ARCH=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
rc=0

# named ARCH NAME...: those of this architecture, as kernels.txt names them
named() {
	local arch=$1 name
	for name in "${@:2}"; do
		case $name in
		short) echo short ;;
		*-arm64) [ "$arch" != arm64 ] || echo "${name%-arm64}" ;;
		*) [ "$arch" != amd64 ] || echo "$name" ;;
		esac
	done
}
# What another architecture needs is no part of building for this one: it may still have to be fetched.
one_arch() {
	local out=$O goals="vmtest"
	[ "$1" = "$HOST_ARCH" ] || out=$O/$1 goals="deps vmtest"
	# shellcheck disable=SC2086
	${MAKE:-make} ARCH="$1" O="$out" K="$2" $goals 2>&1 | tee "$O/log/vmtest.$1"
}

mkdir -p "$O/log"
rm -f "$O"/log/vmtest.*
for arch in amd64 arm64; do
	names=$(named $arch "$@" | paste -sd ' ')
	[ $# -gt 0 ] && [ -z "$names" ] || one_arch $arch "$names" || rc=1
done
for log in "$O"/log/vmtest.*; do tail -n 1 "$log"; done |
	awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped" }'
exit $rc
