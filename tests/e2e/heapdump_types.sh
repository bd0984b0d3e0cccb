#!/bin/bash
# heapdump --exe: each type that testdata/programs/knownheap says it holds is found, as often as it
# says, under its name; globals have theirs; another build is refused; without DWARF globals have
# names all the same.
#
#	WIDE=1				more of both
#	VERSIONS="1.7.6 1.12.17 ..."	other versions of Go, from 1.4.3 on
#	KINDS="plain pie cgo race noopt noheaders 386 s390x ..."	all of these kinds for each of them
set -u
. tests/support/lib.sh
. tests/support/emulator.sh
need_go

# What was wrong since the last result is told by then.
result() { JUDGES_ASKED=$((JUDGES_ASKED + 1)); outcome "heapdump_types/$1"; }

build() {
	case $2 in
	plain) subject "$1" knownheap ;;
	pie) subject "$1" knownheap -buildmode=pie ;;
	cgo) CGO=1 subject "$1" knownheap -buildmode=pie -ldflags='-linkmode external' ;;
	race) CGO=1 subject "$1" knownheap -race ;;
	noopt) subject "$1" knownheap -gcflags='-N -l' ;;
	noheaders) GOEXPERIMENT=noallocheaders subject "$1" knownheap -tags=noheaders ;; # 1.22 and 1.23
	nodwarf) subject "$1" knownheap -ldflags=-w ;;
	stripped) subject "$1" knownheap -ldflags='-s -w' ;;
	*) GOARCH=$2 subject "$1" knownheap ;;
	esac
}

# dumped V KIND: makes $TMP/dump, and sets PROGRAM.
dumped() {
	local emulator=
	case $2 in 386 | arm* | s390x | ppc64* | mips* | riscv64)
		emulator=$(emulator "$2") || { fail "heapdump_types/$1_$2" "no emulator"; return 1; } ;;
	esac
	PROGRAM=$(build "$1" "$2") || { fail "heapdump_types/$1_$2" "does not build"; return 1; }
	$emulator "$PROGRAM" "$TMP/dump" >"$TMP/truth" || { fail "heapdump_types/$1_$2" "no dump"; return 1; }
}

# held COUNT NAME: what is held there. A variable holds all that only its pointers lead to.
held() {
	awk -v name="$2" -v n="$1" '/^inuse_space/ { exit } index($0, "  " name) && substr($0, length($0) - length(name) + 1) == name { have = $4 } END { if (have != n) { print name " holds " have + 0 ", not " n; exit 1 } }' "$TMP/held"
}

judge_held() {
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" --holders "$TMP/held" --format text
	held 200 main.ring
	held 72000 main.shards
	held 72000 'main.shards[*].buckets[*]: main.slot'
}

# From --json: objects, how they are known, and their type; and what is known in all.
types() { awk '/"type": / { sub(/^ *"type": "/, ""); sub(/",$/, ""); gsub(/\\u00B7/, "·"); t = $0 } /"known_by": / { k = $2 } /"objects": / && t { print $2 + 0, k, t; t = "" }' "$1" | tr -d '",'; }
known() { sed -n '/"known": {/,/"exe"/p' "$1" | awk -v how="\"$2\":" '$1 == how { on = 1 } on && /"objects"/ { print $2 + 0; exit }'; }

# judge_types MINOR: types against truth. Names in which types() leaves out a comma do without here, too.
judge_types() {
	types "$TMP/json" >"$TMP/types"
	awk -v minor="$1" '
		NR == FNR { n = $1; sub(/^[0-9]+ [a-z]+ /, ""); have[$0] += n; next }
		{
			sub(/ \/\/ .*/, "")
			gsub(/,/, "")
			since = 0
			if (match($0, / since 1\.[0-9]+$/)) { since = substr($0, RSTART + 9) + 0; $0 = substr($0, 1, RSTART - 1) }
			if (since > minor) next
			gsub(/\{bucket\}/, minor >= 24 ? "map group" : "map bucket")
			how = $1; n = 0
			if (how == "none") sub(/^none /, "")
			else { match($0, /[0-9]+/); n = substr($0, RSTART, RLENGTH) + 0; sub(/^[a-z ]*[0-9]+ /, "") }
			asked++
			if (how == "at" ? have[$0] < n : have[$0] + 0 != n) { print $0 ": " have[$0] + 0 ", not " how " " n; bad = 1 }
		}
		END { if (asked < 25) { print "only " asked + 0 " types were asked for"; bad = 1 } exit bad }' "$TMP/types" "$TMP/truth"
}

judge_known() {
	local exact inferred layout all how sum
	exact=$(known "$TMP/json" exact) inferred=$(known "$TMP/json" inferred) layout=$(known "$TMP/json" layout)
	all=$(sed -n 's/^  "objects": \([0-9]*\),/\1/p' "$TMP/json")
	[ "$((exact + inferred + layout))" = "$all" ] || echo "$exact + $inferred + $layout are not $all objects"
	for how in exact inferred layout; do
		sum=$(awk -v how="\"${how}_objects\":" '$1 == how { n += $2 } END { print n + 0 }' "$TMP/json")
		[ "$sum" = "${!how}" ] || echo "$sum objects of all types are known as $how, and ${!how} in all"
	done
	[ "$exact" -ge 40 ] || echo "only $exact objects are known exactly"
	# The rest is the runtime's, and differs.
	[ "$((layout * 10))" -lt "$all" ] || echo "$layout of $all objects have no type"
}

run() {
	local minor=${1#1.}
	dumped "$1" "$2" || return
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" --json >"$TMP/json" 2>"$TMP/err" || wrong "exit $?: $(cat "$TMP/err")"
	[ -s "$TMP/err" ] && wrong "$(cat "$TMP/err")"
	judge judge_types "${minor%%.*}"
	steps judge_known
	# Fields have names, and so have globals: a path goes over them.
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" >"$TMP/text" || wrong "the summary ends with $?"
	has 'global main\.longest$' "$TMP/text" || wrong "no global main.longest"
	has ' global main\.shards$' "$TMP/text" || wrong "no global main.shards"
	steps judge_held
	has 'known exactly' "$TMP/text" || wrong "the summary does not say how much is known"
	result "$1_$2"
}

# No types, but names of globals; when stripped of these, too, it says so and does the rest.
without() {
	dumped "$1" "$2" || return
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" >"$TMP/text" 2>"$TMP/err" || wrong "exit $?"
	has 'has no DWARF' "$TMP/err" || wrong "not told: $(cat "$TMP/err")"
	has 'DWARF does not describe' "$TMP/text" && wrong "types of a DWARF that is not there"
	if [ "$2" = nodwarf ]; then
		has 'global main\.longest$' "$TMP/text" || wrong "no global main.longest"
	else
		has 'global main' "$TMP/text" && wrong "names from nowhere"
	fi
	has ' 163840 B, every 32 B pointers at 0 8$' "$TMP/text" || wrong "layouts are gone"
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" --json >"$TMP/json" 2>"$TMP/err"
	types "$TMP/json" >"$TMP/types"
	has -x '30 exact main.large' "$TMP/types" || wrong "objects that name their type: $(grep exact "$TMP/types")"
	result "$1_$2"
}

# Cut before its globals: the program is known by its types, and what is exact is what it is in the whole dump.
cut() {
	local cut=$TMP/cut rc
	"$GOPROF" heapdump "$TMP/dump" --exe "$PROGRAM" --json >"$TMP/json" 2>"$TMP/err" || wrong "the whole dump: $(cat "$TMP/err")"
	types "$TMP/json" >"$TMP/whole"
	head -c "$(($(stat -c %s "$TMP/dump") / 2))" "$TMP/dump" >"$cut"
	"$GOPROF" heapdump "$cut" --exe "$PROGRAM" --hprof "$TMP/cut.hprof" --holders "$TMP/cut.pb.gz" --dot "$TMP/cut.dot" --json >"$TMP/json" 2>"$TMP/err"
	rc=$?
	[ $rc = 3 ] || wrong "a cut dump: exit $rc: $(cat "$TMP/err")"
	has 'loss: the dump breaks off before its global variables' "$TMP/err" || wrong "a cut dump: $(cat "$TMP/err")"
	[ -s "$TMP/cut.hprof" ] && [ -s "$TMP/cut.pb.gz" ] && [ -s "$TMP/cut.dot" ] || wrong "a cut dump: no outputs"
	[ "$(known "$TMP/json" exact)" -gt 10 ] && [ "$(known "$TMP/json" inferred)" -gt 10 ] ||
		wrong "a cut dump: only $(known "$TMP/json" exact) objects are known exactly, $(known "$TMP/json" inferred) inferred"
	types "$TMP/json" >"$TMP/part"
	judge awk '{ n = $1; how = $2; sub(/^[0-9]+ [a-z]+ /, "") }
		NR == FNR { have[$0] += n; next }
		# What several instances share is one of them, once something points there; and so is what is
		# known by its name alone, once a pointer leads to what it begins with.
		how == "exact" && !/\[\.\.\.\]/ && $0 != "runtime.mPadded" && n > have[$0] { print $0 ": " n " of " have[$0] + 0; bad = 1 } END { exit bad }' "$TMP/whole" "$TMP/part"
	# Before anything is known of it.
	head -c 150 "$TMP/dump" >"$cut"
	"$GOPROF" heapdump "$cut" --exe "$PROGRAM" --json >"$TMP/json" 2>"$TMP/err"
	has 'loss: no types: the dump breaks off before its global variables' "$TMP/err" || wrong "cut at once: $(cat "$TMP/err")"
	[ "$(known "$TMP/json" exact)$(known "$TMP/json" inferred)" = 00 ] || wrong "cut at once: types of a program that was not checked"
	result "cut before its globals: $1"
}

# Another program of the same Go: its types are at other places than those of the cut dump.
other() {
	head -c 100000 "$TMP/dump" >"$TMP/cut"
	"$GOPROF" heapdump "$TMP/cut" --exe "$(GOARCH=386 subject 1.27.4 heapworld)" --json >"$TMP/json" 2>"$TMP/err"
	has 'loss: no types\|is not the program that wrote the dump' "$TMP/err" || wrong "$(cat "$TMP/err")"
	[ -s "$TMP/json" ] && [ "$(known "$TMP/json" exact)$(known "$TMP/json" inferred)" != 00 ] && wrong "types of another program"
	result "another program, by types"
}

# refused WHY BINARY NAME
refused() {
	"$GOPROF" heapdump "$TMP/dump" --exe "$2" >"$TMP/text" 2>"$TMP/err"
	[ $? = 1 ] || wrong "$2: not refused"
	[ -s "$TMP/text" ] && wrong "$2: a summary all the same"
	has "$1" "$TMP/err" || wrong "$2: $(cat "$TMP/err")"
	[ "$(wc -l <"$TMP/err")" = 1 ] || wrong "$2: more than one line"
	result "$3"
}

if [ -n "${VERSIONS:-}" ]; then
	for v in $VERSIONS; do for k in ${KINDS:-plain}; do run "$v" "$k"; done; done
else
	without 1.27.4 nodwarf
	without 1.27.4 stripped
	run 1.27.4 s390x
	run 1.27.4 386
	cut "of 32 bits"
	other
	refused 'the symbol table is needed, and it has none' "$(GOARCH=386 build 1.27.4 stripped)" "stripped, of 32 bits"
	run 1.4.3 plain
	run 1.19.13 plain
	refused 'is not the program that wrote the dump: its data segment' "$(build 1.27.4 stripped)" "another program"
	run 1.27.4 pie
	has 'adds Go.s types' <("$GOPROF" heapdump "$TMP/dump") || wrong "no hint at --exe"
	result "hint"
	cut "position-independent"
	# An output in place of the program.
	cp "$PROGRAM" "$TMP/program" && ln -sf program "$TMP/link"
	"$GOPROF" heapdump "$TMP/dump" --exe "$TMP/program" --hprof "$TMP/link" 2>"$TMP/err"
	[ $? = 1 ] || wrong "an output in place of the program: not refused"
	has 'that is the program of --exe' "$TMP/err" || wrong "an output in place of the program: $(cat "$TMP/err")"
	judge cmp "$PROGRAM" "$TMP/program"
	result "not over the program"
	refused 'not a Go program' /bin/sh "no Go program"
	objcopy --only-keep-debug "$PROGRAM" "$TMP/debug" || wrong "objcopy: $?"
	refused 'it has the debug data without the program: give the program' "$TMP/debug" "debug data alone"
	refused 'No such file' "$TMP/none" "no file"
	# The debug data are inflated: zeros among what they are packed into.
	at=$(readelf -SW "$PROGRAM" | sed -n 's/.* \.debug_info *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
	head -c 64 /dev/zero | dd of="$TMP/program" bs=1 seek=$((0x${at:-0} + 100)) conv=notrunc status=none || wrong "no zeros at 0x$at"
	refused '/program: .*debug data in the file from 0x' "$TMP/program" "damaged DWARF"
	# The same program with another constant: all segments and most functions are where they were.
	mkdir -p "$TMP/other" && sed 's/return c.n\[0\] + n/return c.n[0] + n*n + len(label)/' testdata/programs/knownheap/main.go >"$TMP/other/main.go"
	gobuild 1.27.4 "$TMP/other/other" "$TMP/other/main.go" -buildmode=pie || wrong "does not build"
	refused 'is not the program that wrote the dump' "$TMP/other/other" "another build"
	for v in ${WIDE:+1.5.4 1.6.2 1.7.6 1.10.8 1.12.17 1.16.15 1.17.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11}; do run "$v" plain; done
	[ -z "${WIDE:-}" ] || run 1.22.12 noheaders
	for v in ${WIDE:+1.5.4 1.6.2 1.7.6 1.12.17 1.17.13 1.22.12 1.26.11}; do run "$v" 386; done
	for v in ${WIDE:+1.12.17 1.17.13 1.22.12 1.26.11}; do run "$v" s390x; done
	for k in ${WIDE:+arm arm64 ppc64le ppc64 mips mipsle mips64 mips64le riscv64}; do run 1.27.4 "$k"; done
	for k in ${WIDE:+cgo race noopt}; do run 1.22.12 "$k" && run 1.27.4 "$k"; done
fi
finish
