#!/bin/bash
# The outputs of heapdump, for a program that wrote a dump and its own heap profile at the same
# moment (testdata/programs/dumped): sites are those of its profile, what holds what is as it says.
set -u
. tests/support/lib.sh
need_go
check=$O/tools/pprofcheck
TYPES=alloc_objects,alloc_space,inuse_objects,inuse_space
# What the writer of the profile allocates after it has read it; and the library's stacks, whose
# inlined frames have the name of the function that they are in.
OWN='runtime/pprof|compress|^sync|^fmt|^os'

# What was wrong since the last result is told by then.
result() { JUDGES_ASKED=$((JUDGES_ASKED + 1)); outcome "heapdump_out/$1"; }
# dumped V N NAME: makes $TMP/NAME and $TMP/NAME.pb.gz, and sets LIST, ROOT and MIDDLE.
dumped() {
	local p
	p=$(subject "$1" dumped) && "$p" "$TMP/$3.pb.gz" "$TMP/$3" "$2" >"$TMP/said" || return
	LIST=$(sed -n 's/^list //p' "$TMP/said") ROOT=$(sed -n 's/^root //p' "$TMP/said") MIDDLE=$(sed -n 's/^middle //p' "$TMP/said")
}
# has_cum NAME BYTES FILE: a frame of this name, with what is below it
has_cum() {
	"$check" cum -type inuse_space "$3" | grep -qx -- "$2 $1" || wrong "$1: not $2 bytes"
}

# Variables on the stack that pointers lead to: of its own frame, of one further out, and one before another.
"$O/tests/mkdump" stack >"$TMP/stack"
echo first >"$TMP/got"
"$GOPROF" heapdump "$TMP/stack" --holders - --format folded >>"$TMP/got" || wrong "stdout: $?"
judge diff - "$TMP/got" <<-END
	first
	goroutine main.outer: chan receive;main.inner;32 B, pointers at 0 8 32
	goroutine main.outer: chan receive;main.outer;32 B, pointers at 0 8 64
	(garbage that was not collected yet) 32
END
result "stack objects"

# On a terminal a bar shows bytes and time left, and is taken away again; elsewhere there is none.
"$O/tests/mkdump" cycle 300000 >"$TMP/ring"
if command -v script >/dev/null; then
	TERM=xterm script -qc "$GOPROF heapdump $TMP/ring --holders $TMP/x" /dev/null </dev/null | tr '\r' '\n' >"$TMP/bar"
	has -E '^\[#* *\] [0-9.]+ [kM]B of [0-9.]+ [kM]B, .* left' "$TMP/bar" || wrong "no bar: $(head -c 200 "$TMP/bar")"
	[ "$(tail -n 1 "$TMP/bar")" = $'\033[K' ] || wrong "the bar stays"
fi
"$GOPROF" heapdump "$TMP/ring" --holders "$TMP/x" 2>"$TMP/err" || wrong "a ring: $?"
[ -s "$TMP/err" ] && wrong "a bar without a terminal: $(head -c 200 "$TMP/err")"
result bar

# What grew of who holds what: not what has another name alone.
for how in 0 1 3 4 9 16; do "$O/tests/mkdump" held $how >"$TMP/held$how"; done
grew() { # BEFORE AFTER: the table of holders
	"$GOPROF" heapdump "$TMP/held$1" "$TMP/held$2" 2>"$TMP/err" | sed -n '/^Holders/,/^$/p' | tail -n +3 | grep . >"$TMP/grew"
}
grew 0 4
judge grep -qx ' *none' "$TMP/grew" # globals lie elsewhere
grew 1 3
judge grep -qx ' *none' "$TMP/grew" # another site made most of them
grew 0 1
judge diff - "$TMP/grew" <<-END
	      none
	         2 more, +64 B and -64 B: one thing held before what several hold now, or the other way round
END
# Held by several now, and more of it: that is growth.
grew 0 9
has ' shared: 32 B, pointers at 0 8' "$TMP/grew" || wrong "what grew is told to have moved: $(cat "$TMP/grew")"
has . "$TMP/err" && wrong "two dumps of one program: $(cat "$TMP/err")"
grew 0 16
has -x 'goprof-bpf: the dumps are of go1.21.13 amd64 and of go1.20.14 amd64: hardly of one program' "$TMP/err" ||
	wrong "dumps of two programs: $(cat "$TMP/err")"
result "holders of the same name"

for v in 1.19.13 1.27.4; do
	dumped $v 20000 before || { fail "heapdump_out/$v" "no dump"; continue; }
	"$GOPROF" heapdump "$TMP/before" --pprof "$TMP/own" 2>"$TMP/err" || wrong "--pprof: $(cat "$TMP/err")"
	"$GOPROF" heapdump - --pprof "$TMP/piped" <"$TMP/before" 2>"$TMP/err" || wrong "stdin: $(cat "$TMP/err")"
	cat "$TMP/before" | "$GOPROF" heapdump - --pprof "$TMP/piped" 2>"$TMP/err" || wrong "a pipe: $(cat "$TMP/err")"
	judge cmp "$TMP/own" "$TMP/piped"
	judge "$check" check "$TMP/own"
	# The leaf of a stack has the line of its return address in dumps: it is shown of those stacks
	# alone that are all the runtime's.
	judge "$check" equal -types $TYPES -ignore-zero -ignore-startline -without "$OWN|^runtime[.]([^m]|m[^a]|ma[^i])" "$TMP/before.pb.gz" "$TMP/own"
	result "sites as /debug/pprof/heap has them, Go $v"

	"$GOPROF" heapdump "$TMP/before" --holders "$TMP/holders" --dot "$TMP/dot" 2>"$TMP/err" || wrong "--holders: $(cat "$TMP/err")"
	judge "$check" check -merged "$TMP/holders"
	# 20,000 nodes of 32 bytes with 112 for their data; 10,000 of a tree with 48 each.
	has_cum "global $LIST" 2880000 "$TMP/holders"
	has_cum "global $ROOT" 480000 "$TMP/holders"
	# A buffer of 1 MB, and one of 256 kB that only a stack object holds, in each of three goroutines.
	has_cum main.hold 3932160 "$TMP/holders"
	# What all three goroutines share is held by none of them.
	"$check" stacks -type inuse_space "$TMP/holders" | grep '65536 B without pointers' | grep -q hold && wrong "shared, and held by one"
	"$GOPROF" heapdump "$TMP/before" --json >"$TMP/json"
	bytes=$(sed -n 's/^  "bytes": \([0-9]*\),/\1/p' "$TMP/json")
	[ "$("$check" sum "$TMP/holders" | awk '$2 == "inuse_space" { print $1 }')" = "${bytes:-none}" ] ||
		wrong "holders: the sum is not the $bytes bytes of the heap"
	grep -q 'label="main.hold\\lretains 3.75 MB' "$TMP/dot" || wrong "--dot: no main.hold"
	awk '{ gsub(/\\./, "") } gsub(/"/, "") % 2 { exit 1 }' "$TMP/dot" || wrong "--dot: quotes"
	for format in folded text flame; do
		"$GOPROF" heapdump "$TMP/before" --holders "$TMP/x" --format $format || wrong "--format $format"
		grep -q "global $LIST" "$TMP/x" || wrong "--format $format: no global"
	done
	result "who holds what, Go $v"

	"$GOPROF" heapdump "$TMP/before" --path "$MIDDLE" --dot "$TMP/dot" >"$TMP/path" || wrong "--path: $?"
	# Half of the list was made before it: it is below the 9,999 newer ones.
	grep -q 'of 10001 steps' "$TMP/path" || wrong "--path: $(grep steps "$TMP/path")"
	grep -q "2.75 MB  global $LIST\$" "$TMP/path" || wrong "--path: not from the list"
	[ "$(grep -c -- '-> +0 -> object 0x' "$TMP/path")" = 45 ] || wrong "--path: $(grep -c -- '-> +0' "$TMP/path") fields"
	grep -q "label=\"9953 more steps\"" "$TMP/dot" || wrong "--path --dot: no gap"
	"$GOPROF" heapdump "$TMP/before" --path 0x10 2>"$TMP/err" && wrong "--path to nothing"
	grep -q 'no object lies at 0x10' "$TMP/err" || wrong "--path to nothing: $(cat "$TMP/err")"
	result "path, Go $v"

	dumped $v 30000 after || wrong "no second dump"
	"$GOPROF" heapdump "$TMP/before" "$TMP/after" >"$TMP/grew" || wrong "two dumps: $?"
	grep -Eq "^ +\+0 +1 +\+1.37 MB +4.12 MB  global $LIST" "$TMP/grew" || wrong "the list did not grow"
	grep -Eq "^ +\+5000 .* 48 B, pointers at 0 8" "$TMP/grew" || wrong "the tree did not grow"
	has 'by samples; one in 524288 bytes is assumed' "$TMP/grew" || wrong "two dumps: not which rate"
	# At Go's own rate 1.37 MB may well be no sample.
	export RATE=4096
	dumped $v 20000 before && dumped $v 30000 after || wrong "no two dumps"
	unset RATE
	"$GOPROF" heapdump "$TMP/before" "$TMP/after" --heap-rate 4096 >"$TMP/grew" || wrong "two dumps: $?"
	grep -q 'main.makeList main.go:' "$TMP/grew" || wrong "no site grew: $(sed -n '/^Allocation sites/,$p' "$TMP/grew" | head -n 20)"
	"$GOPROF" heapdump "$TMP/before" "$TMP/after" --json >"$TMP/json" || wrong "two dumps in JSON: $?"
	has '"bytes_after": 4320000' "$TMP/json" || wrong "two dumps in JSON: not the list"
	"$GOPROF" heapdump "$TMP/before" - <"$TMP/before" | grep -c '^ *none$' | grep -qx 4 || wrong "one dump grew"
	result "growth, Go $v"
done
finish
