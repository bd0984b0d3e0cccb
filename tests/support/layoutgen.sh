#!/bin/bash
# layoutgen.sh: user/go/layout/layout_tab.c from official toolchains.
#
#	tests/support/layoutgen.sh		print it (make layout puts it in its place)
#	tests/support/layoutgen.sh --check	compare with what the table of this tree says
#	tests/support/layoutgen.sh --code	the check of a Go nobody knows, on those we know
#
# A small program is built with each toolchain for amd64 and arm64, and build/tests/layoutgen
# reads the DWARF. The versions: first and last release of each minor that the module proxy
# serves, and both sides of each change inside a minor. Between two rows of a minor that agree
# nothing has changed, and layout.c relies on that. Where two neighbours differ and are not
# adjacent releases, the releases between them are not to be had.
#
# The output depends on the toolchains alone, each named with its checksum: made twice, it is
# the same byte for byte. GO_VERSIONS="1.28.0 ..." takes others, ARCHES="amd64" fewer.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/toolchains.sh

: "${GO_VERSIONS:=1.16 1.16.3 1.16.4 1.16.15 1.17 1.17.13 1.18 1.18.8 1.18.10 1.19 1.19.2 1.19.4
1.19.13 1.20 1.20.14 1.21.0 1.21.13 1.22.0 1.22.12 1.23.0 1.23.11 1.23.12 1.24.0 1.24.5 1.24.6
1.24.13 1.25.0 1.25.14 1.26.0 1.26.11 1.27.0 1.27.4}"
: "${ARCHES:=amd64 arm64}"
case ${1-} in
''|--check|--code) ;;
*) echo "layoutgen.sh: what is $1?" >&2; exit 2 ;;
esac

work=$O/layoutgen
mkdir -p "$work"
cat >"$work/prog.go" <<'GO'
package main

import "os"

func main() { println(len(os.Args), make([]byte, len(os.Args))) }
GO

# The toolchain's own list of slot sizes, "0,8,16,...".
classes() {
	local root=$1 f
	for f in "$root"/src/internal/runtime/gc/sizeclasses.go "$root"/src/runtime/sizeclasses.go; do
		[ ! -f "$f" ] || sed -n 's/^var \(class_to_size\|SizeClassToSize\) .*{\(.*\)}.*/\2/p' "$f" |
			tr -d ' '
	done
}

# What the checksum database vouches for.
checksum() {
	cat "$GOPROF_MODCACHE/cache/download/golang.org/toolchain/@v/v0.0.1-go$1.linux-$GOARCH_HOST.ziphash"
}

[ -x "$O/tests/layoutgen" ] || { echo "layoutgen.sh: no $O/tests/layoutgen: make layout" >&2; exit 1; }
for v in $GO_VERSIONS; do
	root=$(goroot "$v")
	IFS=. read -r _ minor patch _ <<<"$v.0"
	for arch in $ARCHES; do
		# Kept: a binary never changes for a version.
		if [ ! -f "$work/$v-$arch" ]; then
			GOARCH=$arch gobuild "$v" "$work/new" "$work/prog.go"
			mv "$work/new" "$work/$v-$arch"
		fi
		echo "$minor $patch $arch $(classes "$root") $(checksum "$v") $work/$v-$arch"
	done
done >"$work/list"
sort -k3,3 -k1,1n -k2,2n "$work/list" >"$work/sorted"
"$O/tests/layoutgen" ${1+"$1"} <"$work/sorted"
