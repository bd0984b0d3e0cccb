#!/bin/bash
# Execution traces are read as Go's own readers read them: the same events in the same order, with the same
# times, threads, Ps, goroutines, stacks and clocks, and the same verdict. The traces are those of Go's own
# tests (Go 1.5 to 1.21, and the texts of all versions since), and such that programs wrote. What is cut or
# damaged gives at least what Go's reader gives, and says where and why it ends. What -o cuts from a trace of
# version 1 is judged by the same reader (that of version 2: trace_out.sh).
#
#	WIDE=1				programs of all versions of Go from 1.5 on
#	VERSIONS="1.9.7:plain ..."	other ones: plain, cpu (CPU samples in the trace), flight (from 1.25 on)
set -u
. tests/support/lib.sh
need_go

PROGRAMS="1.16.15:plain 1.19.13:cpu 1.21.13:plain 1.22.12:plain 1.24.13:cpu 1.25.14:flight 1.26.11:plain 1.27.4:flight 1.27.4:cpu"
if [ -n "${WIDE:-}" ]; then
	PROGRAMS=
	for v in 1.5.4 1.6.2 1.7.6 1.8.3 1.9.7 1.10.8 1.11.13 1.12.17 1.13.15 1.14.15 1.15.15 $ALL_MINORS; do
		PROGRAMS+=" $v:plain $v:cpu"
		case $v in 1.2[5-9].*) PROGRAMS+=" $v:flight" ;; esac
	done
fi
PROGRAMS=${VERSIONS:-$PROGRAMS}

made "$O/tracejudge/v2" testdata/tracejudge tests/support/tracejudge.sh -- tests/support/tracejudge.sh ||
	{ fail trace_readers/judges "they do not build"; finish; }
OLD=$(goroot 1.21.13) && NEW=$(goroot 1.27.4) || { fail trace_readers/toolchains "not there"; finish; }
OLD=$OLD/src/internal/trace/testdata NEW=$NEW/src/internal/trace/testdata

ours() { timeout 120 "$O/tests/traceevents" "$1" events >"$2"; }

# Events of the same time may come in any order in version 1: Go's reader draws lots. It also moves what is
# unblocked, and the begin of collections and the end of system calls, to a P that there is not.
any_order() {
	sed -E 's/^([0-9]+) M\S+ P\S+ (G\S+ (goroutine [0-9]+ (waiting>runnable|syscall>runnable)|range-begin "GC.concurrent))/\1 M* P* \2/' "$1" |
		grep -v -e ' sync ' -e '^end' | sort >"$2"
}

# same_v1 FILE: the judge is Go 1.21. What it refuses it says nothing of.
same_v1() {
	ours "$1" "$TMP/ours" && timeout 120 "$O/tracejudge/v1" events "$1" >"$TMP/theirs" || { echo "$1: a reader died"; return 1; }
	if [ "$(cut -c1-4 <<<"$(tail -n 1 "$TMP/theirs")")" = end: ]; then
		[[ $(tail -n 1 "$TMP/ours") == "end: "*"offset "* ]] && return
		echo "$1: Go says '$(tail -n 1 "$TMP/theirs")', we '$(tail -n 1 "$TMP/ours")'"
		return 1
	fi
	[ "$(tail -n 1 "$TMP/ours")" = end ] || { echo "$1: $(tail -n 1 "$TMP/ours")"; return 1; }
	any_order "$TMP/ours" "$TMP/a" && any_order "$TMP/theirs" "$TMP/b" || return 1
	[ -s "$TMP/b" ] && cmp -s "$TMP/a" "$TMP/b" || { echo "$1: $(diff "$TMP/a" "$TMP/b" | sed -n 2p)"; return 1; }
}

# part_v1 FILE: after same_v1: what -o cuts from its middle is a trace, which says the same of that time.
part_v1() {
	local n from to
	n=$(($(wc -l <"$TMP/theirs") - 1))
	from=$(sed -n "$((n * 3 / 10 + 1)){s/ .*//p}" "$TMP/theirs") to=$(sed -n "$((n * 7 / 10 + 1)){s/ .*//p}" "$TMP/theirs")
	timeout 120 "$GOPROF" trace "$1" --from "$(ns "$from")" --to "$(ns "$to")" -o "$TMP/part" 2>"$TMP/err" >/dev/null || { cat "$TMP/err"; return 1; }
	timeout 120 "$O/tracejudge/v1" events "$TMP/part" >"$TMP/said" || { echo "$1: its part: the reader died"; return 1; }
	python3 tests/support/cutjudge.py "$TMP/theirs" "$TMP/said" "$from" "$to" >"$TMP/judged" || { echo "$1: its part: $(head -n 1 "$TMP/judged")"; return 1; }
}
ns() { printf '%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000)); }

# same_v2 FILE: event by event. Where Go's reader ends with an error ours has as many, or more, and one too.
same_v2() {
	local n
	ours "$1" "$TMP/ours" && timeout 120 "$O/tracejudge/v2" events "$1" >"$TMP/theirs" || { echo "$1: a reader died"; return 1; }
	if [ "$(tail -n 1 "$TMP/theirs")" = end ]; then
		cmp -s "$TMP/ours" "$TMP/theirs" || { echo "$1: $(diff "$TMP/ours" "$TMP/theirs" | sed -n 2p)"; return 1; }
		return
	fi
	[[ $(tail -n 1 "$TMP/ours") == "end: "* ]] || { echo "$1: Go says '$(tail -n 1 "$TMP/theirs")', we nothing"; return 1; }
	# Where it fails, Go's reader ends with one more mark of a generation.
	sed -i '$d' "$TMP/theirs"
	case $(tail -n 1 "$TMP/theirs") in *" sync"*) sed -i '$d' "$TMP/theirs" ;; esac
	n=$(wc -l <"$TMP/theirs")
	cmp -s <(head -n "$n" "$TMP/ours") "$TMP/theirs" || { echo "$1: $(diff "$TMP/ours" "$TMP/theirs" | sed -n 2p)"; return 1; }
}

# ---- Go's own traces ----

n=0
for f in "$OLD"/*_good "$OLD"/*_unordered; do
	judge same_v1 "$f"
	case $f in *_good) judge part_v1 "$f" ;; esac
	n=$((n + 1))
done
[ $n -ge 25 ] || wrong "only $n traces of version 1"
outcome trace_readers/v1_tests

# fails_alike EXPECTED: "SUCCESS", or "FAILURE regexp", of Go's words; ours differ.
fails_alike() {
	local said
	said=$(tail -n 1 "$TMP/ours")
	case $1 in
	SUCCESS) [ "$said" = end ] ;;
	FAILURE*"expected a proc but didn't have one"*) [[ $said == "end: "*"it needs a P, and there is none" ]] ;;
	*) false ;;
	esac || { echo "expected is $1, and it is: $said"; return 1; }
}
n=0
for f in "$NEW"/tests/*.test; do
	"$O/tracejudge/v2" assemble "$f" "$TMP/trace" >"$TMP/expected" || wrong "$f cannot be assembled"
	judge same_v2 "$TMP/trace"
	judge fails_alike "$(cat "$TMP/expected")"
	n=$((n + 1))
done
[ $n -ge 22 ] || wrong "only $n texts of version 2"
outcome trace_readers/v2_tests

# Inputs by which Go's own readers were attacked: each is refused by both, or by none.
n=0
for f in "$NEW"/fuzz/FuzzReader/*; do
	"$O/tracejudge/v2" fuzzed "$f" "$TMP/trace" || wrong "$f cannot be read"
	case $(head -c 9 "$TMP/trace") in "go 1.11 t" | "go 1.19 t" | "go 1.21 t") continue ;; esac
	judge same_v2 "$TMP/trace"
	n=$((n + 1))
done
[ $n -ge 5 ] || wrong "only $n inputs"
outcome trace_readers/v2_attacks

# Nothing that is promised of an event is broken, and no memory is, by any of them, whole, cut or changed.
replayed() {
	timeout 300 "$O/asan/tests/fuzz/replay_exectrace" "$O/tracejudge/seeds" >"$TMP/replayed" 2>&1 || { tail -n 5 "$TMP/replayed"; return 1; }
}
if [ -x "$O/asan/tests/fuzz/replay_exectrace" ]; then
	judge replayed
	outcome trace_readers/sanitized
else
	skip trace_readers/sanitized "$O/asan/tests/fuzz/replay_exectrace is not built"
fi

# ---- programs ----

for what in $PROGRAMS; do
	v=${what%:*} kind=${what#*:} minor=${what#1.} minor=${minor%%.*}
	program=$(subject "$v" traced) || { fail "trace_readers/$what" "does not build"; continue; }
	seconds=0
	[ "$kind" = plain ] || seconds=0.3
	GOMAXPROCS=4 timeout 60 "$program" "$TMP/$what" "$seconds" "$kind" || wrong "$what: no trace"
	if [ "$minor" -lt 22 ]; then judge same_v1 "$TMP/$what" && judge part_v1 "$TMP/$what"; else judge same_v2 "$TMP/$what"; fi
	[ "$kind" != cpu ] || [ "$minor" -lt 19 ] || [ "$(count ' sample \[' "$TMP/ours")" -gt 0 ] || wrong "no CPU sample"
	[ "$(wc -l <"$TMP/ours")" -gt 3000 ] || wrong "only $(wc -l <"$TMP/ours") events"
	outcome "trace_readers/go$v-$kind"
done

# ---- what is cut ----

# cut_at FILE BYTES: what comes before the cut is there, and the last line tells of the cut.
cut_at() {
	head -c "$2" "$1" >"$TMP/cut"
	same_v2 "$TMP/cut" || return 1
	[[ $(tail -n 1 "$TMP/ours") == "end: offset "* ]] || { echo "cut at $2: $(tail -n 1 "$TMP/ours")"; return 1; }
}
for what in $PROGRAMS; do
	case $what in 1.2[2-9].*) ;; *) continue ;; esac
	size=$(stat -c %s "$TMP/$what")
	for i in 1 2 3 5 7; do judge cut_at "$TMP/$what" $((size * i / 8)); done
	# Of the last part, which Go's reader leaves out, there are events too.
	[ "$(wc -l <"$TMP/ours")" -gt 1000 ] || wrong "$what: only $(wc -l <"$TMP/ours") events of seven eighths"
done
outcome trace_readers/v2_cut

# Version 1 tells at its end how fast its clock goes, so times are in ticks. What Go's readers give nothing of has as
# many events as it has bytes, and time never falls.
cut_v1() {
	local g have want
	head -c $(($(stat -c %s "$1") * 3 / 4)) "$1" >"$TMP/cut"
	ours "$1" "$TMP/whole" && ours "$TMP/cut" "$TMP/ours" || return 1
	[[ $(tail -n 1 "$TMP/ours") == "end: offset "* ]] || { tail -n 1 "$TMP/ours"; return 1; }
	have=$(wc -l <"$TMP/ours") want=$(wc -l <"$TMP/whole")
	[ "$have" -gt $((want / 2)) ] || { echo "only $have events of $want"; return 1; }
	head -n -1 "$TMP/ours" | sort -s -n -k 1,1 -c || { echo "time goes back"; return 1; }
}
judge cut_v1 "$OLD/stress_1_19_good"
judge cut_v1 "$OLD/stress_1_7_good"
judge cut_v1 "$OLD/http_1_5_good"
outcome trace_readers/v1_cut
finish
