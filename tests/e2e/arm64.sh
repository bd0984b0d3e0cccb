#!/bin/bash
# Whole programs of arm64, read on any machine; nothing of them is run.
#
# sites: where probes would sit in every function, as its words say and no decoder of ours (tests/support/sitejudge.py): on the
# branch of each stack check, never between the halves of an exclusive access, never on what the kernel refuses. And the
# functions that are probed are those of the same program for amd64.
# types: what the code puts into interfaces is what testdata/programs/typed says line by line, and in all other functions what
# the same program for amd64 says.
#
# Go 1.18, 1.22 and 1.27; WIDE=1: all from 1.18 on; VERSIONS="1.24.13".
. tests/support/lib.sh
need_go

: "${VERSIONS:=1.18.10 1.22.12 1.27.4}"
[ -z "${WIDE:-}" ] || VERSIONS=$(tr ' ' '\n' <<<"$ALL_MINORS" | sed '/^1\.1[67]\./d')

# The runtime's internal functions may be linked to only when this check is off (tests/e2e/frames.sh).
flags() { case $1 in 1.1?.* | 1.2[0-2].*) echo "$2" ;; *) echo "$2 -checklinkname=0" ;; esac; }

# both TOOL V PROGRAM FLAG...: what TOOL says of both machines' builds: $TMP/amd64, $TMP/arm64; BIN is the second
both() {
	local tool=$O/tests/$1 arch
	shift
	for arch in amd64 arm64; do
		BIN=$(GOARCH=$arch subject "$@") && "$tool" "$BIN" >"$TMP/$arch" 2>"$TMP/why" || { wrong "$arch: $(cat "$TMP/why")"; return 1; }
	done
}
# same: the lines are, in any order
same() {
	sort "$TMP/amd64" >"$TMP/one" && sort "$TMP/arm64" >"$TMP/other" || return
	cmp -s "$TMP/one" "$TMP/other" && return
	echo "of one machine alone: $(diff "$TMP/one" "$TMP/other" | grep '^[<>]' | head -n 5 | tr '\n' ' ')"
	return 1
}

sites() {
	both sites "$1" oracle "${@:2}" || return
	judge tests/support/sitejudge.py "$BIN" "$TMP/arm64"
	tests/support/sitejudge.py "$BIN" "$TMP/arm64" | sed 's/^/# /'
	sed -i -n '/^use /s/ 0x[^ ]*//p' "$TMP/amd64" "$TMP/arm64"
	judge same
}

# as_written: of each line the types that main.go has behind "type:"
as_written() {
	awk -F'[: ]' 'FNR == NR { if ($1 == "main.interfaces") is[$3] = is[$3] " " $4; next }
		/\/\/ type:.*interface [^{]/ && FNR in is { n++; split(is[FNR], type, " ")
			for (i in type) if (!index($0, "interface " type[i])) bad = bad " line " FNR ": " type[i] }
		END { if (n < 10) bad = bad " only " n + 0 " lines"; print bad; exit bad != "" }' "$TMP/arm64" testdata/programs/typed/main.go
}
types() {
	both boxes "$1" typed || return
	# Each machine's standard library has functions of its own.
	awk 'FNR == NR { in_other[$1] = 1; next } $1 in in_other' "$TMP/arm64" "$TMP/amd64" >"$TMP/shared"
	awk 'FNR == NR { in_other[$1] = 1; next } $1 in in_other' "$TMP/amd64" "$TMP/arm64" >"$TMP/ours"
	mv "$TMP/shared" "$TMP/amd64" && mv "$TMP/ours" "$TMP/arm64"
	judge same
	judge as_written
}

for v in $VERSIONS; do
	sites "$v" "-ldflags=$(flags "$v" "")"
	outcome "arm64/sites/$v"
	sites "$v" -buildmode=pie "-ldflags=$(flags "$v" "-s -w")"
	outcome "arm64/sites/$v, stripped PIE"
	types "$v"
	outcome "arm64/types/$v"
done
finish
