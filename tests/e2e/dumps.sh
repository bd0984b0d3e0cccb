#!/bin/bash
# Heap dumps of Go programs, of many versions and architectures: read to the last byte, objects and
# bytes as many as the runtime counted, and what the dumped program knows of its heap
# (testdata/programs/heapworld), by a second reader (tests/support/dumpjudge.py). Dumps of Go 1.3, of the
# draft of its format and of gccgo are made by tests/support/mkdump13.py.
# WIDE=1: every version and architecture. CELLS="VERSION[:GOARCH[:GOEXPERIMENT]]...": these.
. tests/support/lib.sh
. tests/support/emulator.sh
need_go
command -v python3 >/dev/null || skip_all "needs python3"

# judged NAME DUMP FACTS: one outcome.
judged() {
	"$O/tests/dumpfacts" "$2" >"$TMP/said" 2>"$TMP/why" || { fail "dumps/$1" "$(head -c 300 "$TMP/why")"; return; }
	judge python3 tests/support/dumpjudge.py "$2" "$3" "$TMP/said" 2>"$TMP/asked"
	outcome "dumps/$1 ($(tail -n 1 "$TMP/asked"))"
}

real() {
	local v arch experiment emulator bin
	IFS=: read -r v arch experiment <<<"$1"
	bin=$(GOARCH=$arch GOEXPERIMENT=$experiment subject "$v" heapworld 2>"$TMP/why") &&
		emulator=$(emulator "$arch" 2>"$TMP/why") ||
		{ fail "dumps/$1" "$(tail -n 1 "$TMP/why")"; return; }
	timeout 120 $emulator "$bin" "$TMP/dump" >"$TMP/facts" 2>"$TMP/why" && has "^go go$v" "$TMP/facts" ||
		{ fail "dumps/$1" "the program: $(head -n 1 "$TMP/why")"; return; }
	judged "$1" "$TMP/dump" "$TMP/facts"
}

# made13 NAME ARG...: of mkdump13.py
made13() {
	local name=$1
	shift
	python3 tests/support/mkdump13.py "$TMP/dump" "$@" >"$TMP/facts" 2>"$TMP/why" ||
		{ fail "dumps/$name" "$(tail -n 1 "$TMP/why")"; return; }
	judged "$name" "$TMP/dump" "$TMP/facts"
}

if [ -z "${CELLS:-}" ]; then
	made13 1.3 go13
	made13 1.3-big-endian-32 go13 1 4
	made13 1.3-draft draft
	made13 1.3-gccgo gccgo
	CELLS="1.4.3 1.16.15 1.22.12 1.27.4 1.27.4:386 1.27.4:s390x"
	[ -z "${WIDE:-}" ] || CELLS="$OLD_MINORS $ALL_MINORS 1.25.14::greenteagc 1.26.11::nogreenteagc 1.27.4::nogreenteagc
		1.7.6:386 1.13.15:386 1.21.13:386 1.22.12:386 1.25.14:386 1.26.11:386 1.26.11:386:nogreenteagc 1.27.4:386
		1.13.15:arm64 1.16.15:arm64 1.17.13:arm64 1.22.12:arm64 1.27.4:arm64 1.13.15:s390x 1.17.13:s390x 1.18.10:s390x 1.21.13:s390x 1.22.12:s390x 1.27.4:s390x
		1.13.15:ppc64 1.27.4:ppc64 1.13.15:mips 1.22.12:mips 1.27.4:mips"
fi
# Beyond 16 GB: objects and their bytes, and the list's global holds all of it.
sparse() {
	local objects bytes
	read -r objects bytes < <(python3 tests/support/sparsedump.py "$TMP/dump" 20)
	"$O/tests/dumpfacts" "$TMP/dump" >"$TMP/said"
	for line in "objects $objects $bytes" "memstats $objects $bytes" "reached $bytes" "global 6291464 $bytes"; do
		has -x "$line" "$TMP/said" || echo "not said: $line"
	done
	"$GOPROF" heapdump "$TMP/dump" >"$TMP/said"
	has 'as many as the runtime counted' "$TMP/said"
	rm "$TMP/dump"
}
steps sparse
outcome "dumps/20 GB"

# More than 4 GB of HPROF: whole records up to the end mark, and each GB of contents in one.
large_hprof() {
	python3 tests/support/sparsedump.py "$TMP/dump" 5 >"$TMP/said"
	"$GOPROF" heapdump "$TMP/dump" --contents --hprof - | python3 -c 'if 1:
		import sys
		f, n, large, tag = sys.stdin.buffer, 31, 0, 0
		f.read(31)
		while head := f.read(9):
			tag, left = head[0], int.from_bytes(head[5:], "big")
			n, large = n + 9 + left, large + (left > 1 << 30)
			while left > 0:
				got = len(f.read(min(left, 1 << 20)))
				assert got, "cut"
				left -= got
		assert n > 5 << 30 and large == 5 and tag == 0x2c, (n, large, tag)' 2>&1
	rm "$TMP/dump"
}
if [ -n "${WIDE:-}" ]; then
	steps large_hprof
	outcome "dumps/5 GB of HPROF"
fi

for cell in $CELLS; do
	real "$cell"
done
finish
