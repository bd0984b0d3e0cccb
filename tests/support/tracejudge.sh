#!/bin/bash
# tracejudge.sh: build the judges of execution traces, $O/tracejudge/v1 and v2: Go's own readers, internal/trace of
# Go 1.21 and of the newest Go, as they are in the official toolchains, with a main function. And gather the traces of
# their tests, and the inputs that their fuzzing found, in $O/tracejudge/seeds.
set -eu
cd "$(dirname "$0")/../.."
. tests/support/toolchains.sh
J=$O/tracejudge

# package VERSION NAME: what lies below internal/, imported as judge/ and without tests.
package() {
	local root
	root=$(goroot "$1")
	mkdir -p "$D/$2"
	(cd "$root/src/internal/$2" && find . -name '*.go' ! -name '*_test.go' ! -path './testdata/*' \
		! -path './traceviewer/*' ! -path './testtrace/*' ! -path './internal/testgen/*' -print0 |
		while IFS= read -r -d '' f; do
			mkdir -p "$D/$2/$(dirname "$f")"
			sed 's|"internal/trace|"judge/trace|; s|"internal/txtar"|"judge/txtar"|' "$f" >"$D/$2/$f"
		done)
}

# judge NAME VERSION PACKAGE...
judge() {
	local name=$1 v=$2
	shift 2
	D=$J/$name.src
	rm -rf "$D"
	mkdir -p "$D"
	for p; do package "$v" "$p"; done
	printf 'module judge\n\ngo 1.21\n' >"$D/go.mod"
	cp "testdata/tracejudge/$name.go" "$D/main.go"
}

judge v2 1.27.4 trace txtar
sed -i 's/^go 1.21/go 1.24/' "$D/go.mod"
gobuild 1.27.4 "$J/v2" "$D" -trimpath
# Version 1 of before Go 1.7 is refused by Parse() without a binary, though it needs that only for names.
judge v1 1.21.13 trace
cat >"$D/trace/version.go" <<'EOF'
package trace

import "io"

func ParseVersion(r io.Reader) (int, ParseResult, error) { return parse(r, "") }
EOF
gobuild 1.21.13 "$J/v1" "$D" -trimpath

seeds() {
	local old new f
	old=$(goroot 1.21.13)/src/internal/trace/testdata
	new=$(goroot 1.27.4)/src/internal/trace/testdata
	rm -rf "$J/seeds"
	mkdir -p "$J/seeds"
	find "$old" -maxdepth 1 -type f -size -64k -exec cp {} "$J/seeds" \;
	for f in "$new"/tests/*.test; do "$J/v2" assemble "$f" "$J/seeds/$(basename "$f" .test)" >/dev/null; done
	for f in "$new"/fuzz/FuzzReader/*; do "$J/v2" fuzzed "$f" "$J/seeds/$(basename "$f")"; done
	chmod -R u+w "$J/seeds"
}
seeds
