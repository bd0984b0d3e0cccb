#!/bin/bash
# The table of struct offsets says what the DWARF of official builds says, and the check for a Go
# nobody knows agrees with each of them, and with no set of offsets that is wrong: those of every
# older release, and those with a part of a struct moved. LAYOUT_VERSIONS=all: every row of the
# table, and the table made anew is the same byte for byte.
. tests/support/lib.sh
need_go

: "${LAYOUT_VERSIONS:=1.19.13 1.27.4}"
GEN=tests/support/layoutgen.sh
if [ "$LAYOUT_VERSIONS" = all ]; then
	"$GEN" >"$TMP/tab.c" && cmp "$TMP/tab.c" user/go/layout/layout_tab.c && pass "made anew, the same" ||
		fail "made anew, the same" "user/go/layout/layout_tab.c differs"
else
	export GO_VERSIONS=$LAYOUT_VERSIONS
fi
for mode in --check --code; do
	if said=$("$GEN" $mode 2>&1); then
		echo "$said"
		pass "layoutgen $mode"
	else
		fail "layoutgen $mode" "$(printf '%s\n' "$said" | tail -n 5)"
	fi
done
finish
