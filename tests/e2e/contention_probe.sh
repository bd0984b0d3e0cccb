#!/bin/bash
# Block and mutex profiles by --source=probe, against a program that knows what it waited for
# (testdata/programs/waits), against Go's own profile of the same time, and against neither:
#
#	known	every kind of wait at rate 1: counts within 1 %, time within 3 %, Go's leaf frames,
#		and not one event that Go does not count; a stripped program without pprof
#	own	the same beside Go's own profile at rate 1, stack by stack: counts within 1 %, time
#		within 2 %
#	fight	so too for mutexes that starve, are taken over, and queued for again
#	queue	in windows: what a queue that becomes short and long is charged with, within four of the
#		stated errors of Go's own
#	rates	what is sampled is within what chance allows (tests/README.md)
#	labels	labels and goid of who waited
#	edges	waits that began before the window, or end after it
#	alone	one kind at a time; kill: SIGKILL leaves the program as it was
#	pgo	a profile-guided build, that copied the runtime's functions into their callers
#
# First of all the judge is judged, by Go's own profiles with deliberate errors.
# VERSIONS="1.18.10 ..." takes other versions, all of them for "all"; ONLY="known own" some parts.
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

ASKED=${WIDE:+wide}${VERSIONS:+these}
VERSIONS=${VERSIONS:-1.18.10 1.22.12 1.27.4}
[ "$VERSIONS" != all ] || VERSIONS=$WAITS_VERSIONS
ONLY=${ONLY:-judge known own fight queue rates labels edges alone kill pgo}

# beside KIND FILE FLAG...: what is not as Go's own profiles $TMP/a and $TMP/b
beside() {
	local kind=$1 file=$2 rc
	shift 2
	[ -s "$file" ] || { echo "no $kind profile"; return 1; }
	"$PPROFCHECK" contention "$@" "$TMP/a.$kind" "$TMP/b.$kind" "$file" >"$TMP/verdict" && rc=0 || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || head -n 4 "$TMP/verdict"
	return $rc
}

# ---- the judge itself, with Go's own profiles ----------------------------------------------------

# refuses COMMAND...: it says no, and does not just fail
refuses() {
	local rc
	"$PPROFCHECK" "$@" >/dev/null && rc=0 || rc=$?
	[ $rc = 1 ]
}

# doctored NAME FLAG...: it must say no to a profile that is wrong in this way
doctored() {
	local name=$1
	shift
	"$PPROFCHECK" delta "$@" "$TMP/a.block" "$TMP/b.block" "$TMP/wrong.pb.gz"
	refuses contention "$TMP/a.block" "$TMP/b.block" "$TMP/wrong.pb.gz" ||
		echo "contention accepts $name"
	refuses known "$TMP/truth" "$TMP/wrong.pb.gz" || echo "known accepts $name"
}

part_judge() {
	local kind
	ask run recv,mutex3 5 10
	ask own "$TMP/a"
	mark
	ask run all 10 10
	ask own "$TMP/b"
	for kind in block mutex; do
		"$PPROFCHECK" delta "$TMP/a.$kind" "$TMP/b.$kind" "$TMP/right.pb.gz"
		judged $kind "$TMP/right.pb.gz"
		beside $kind "$TMP/right.pb.gz"
	done
	truth
	doctored "5 % more delay" -delay 1.05
	doctored "5 % less delay" -delay 0.95
	doctored "every event twice" -count 2
	doctored "a missing kind" -drop main.recvWait
	doctored "a leaf frame too few" -leaf runtime.selectgo
	refuses contention "$TMP/a.block" "$TMP/b.block" "$TMP/b.block" ||
		echo "contention does not subtract"
	refuses known "$TMP/truth" "$TMP/b.block" || echo "known accepts what was before"
	# What it allows where Go samples is neither too little for Go itself, nor any number.
	ask rate 2000000 10
	ask own "$TMP/a"
	mark
	ask run spread 80 2
	ask run spreadlock 500 2
	ask own "$TMP/b"
	for kind in block mutex; do
		judged $kind "$TMP/b.$kind" -before "$TMP/a.$kind" -sampled
		"$PPROFCHECK" delta -count 1.5 -delay 1.5 "$TMP/a.$kind" "$TMP/b.$kind" "$TMP/wrong.pb.gz"
		refuses known -kind $kind -sampled "$TMP/truth" "$TMP/wrong.pb.gz" ||
			echo "known accepts half as much again of what is sampled: $kind"
	done
}

# ---- what is probed ------------------------------------------------------------------------------

RATE1=(--block-rate 1 --mutex-fraction 1)

part_known() {
	watch --block --mutex "${RATE1[@]}"
	ask run all,mutex100 30 20
	ask run gc,world 4 10
	ask run pingpong 3 1
	unwatch
	judged block "$BLOCK"
	judged mutex "$MUTEX"
}

# Go itself keeps 32 frames of a stack to 1.22, and 128 after it. Beside waits of microseconds the
# time that a probe takes is not small: a stack may be off by a millisecond in all.
part_own() {
	watch --block --mutex "${RATE1[@]}"
	ask own "$TMP/a"
	ask run all,mutex100 30 20
	ask run gc 4 10
	ask own "$TMP/b"
	unwatch
	beside block "$BLOCK" -depth 32 -slack 1000000
	beside mutex "$MUTEX" -depth 32 -slack 1000000
}

# Every processor is busy: a thread that is put aside between a probe and Go's own look at the clock
# makes one event tens of milliseconds longer on one side, of seconds in all.
part_fight() {
	watch --block --mutex "${RATE1[@]}"
	ask own "$TMP/a"
	ask run starve 100 3
	ask run storm 1 20
	ask own "$TMP/b"
	unwatch
	beside block "$BLOCK" -slack 60000000
	beside mutex "$MUTEX" -slack 60000000
}

# total TYPE FILE
total() { "$PPROFCHECK" sum "$2" | awk -v t="$1" '$2 == t { print $1 }'; }

# Go counts a waiter too many here: a third more than what goroutines waited. How many contentions windows
# count depends on whether the pace of all runs met them, which is not this part's question.
part_queue() {
	local ours own error
	local MAY_LOSE=(-allow mutex:RUNS_UNMET=any)
	watch --mutex --budget=0.1%
	ask own "$TMP/a"
	ask run queue "${ROUNDS:-1000}" 2
	ask own "$TMP/b"
	unwatch
	comment "$MUTEX" '^budget:.* windows of ' "there were windows"
	ours=$(total delay "$MUTEX") own=$(($(total delay "$TMP/b.mutex") - $(total delay "$TMP/a.mutex")))
	error=$(sed -n 's/^error: all sites delay [0-9]* +- \([0-9]*\) .*/\1/p' "$TMP/comments")
	awk -v ours="$ours" -v own="$own" -v e="${error:-0}" 'BEGIN {
		said = sprintf("%.3f s +- %.3f, own %.3f", ours / 1e9, e / 1e9, own / 1e9)
		print "# " said >"/dev/stderr"
		if (!own || !e || e > 0.2 * own || ours < own - 4 * e || ours > own + 4 * e) print said
	}'
}

# Waits from 1/32 of the rate to four times as long; and Go's usual rates, above which all count.
part_rates() {
	watch --block --mutex --block-rate 2ms --mutex-fraction 10
	ask rate 2000000 10
	mark
	ask run spread 80 2
	ask run spreadlock 500 2
	unwatch
	judged block "$BLOCK" -sampled
	judged mutex "$MUTEX" -sampled -period 10
	watch --block --mutex --block-rate 10us --mutex-fraction 10
	ask rate 10000 10
	mark
	ask run all 20 5
	ask run spreadlock 500 2
	unwatch
	judged block "$BLOCK" -sampled
	judged mutex "$MUTEX" -sampled -period 10
}

part_labels() {
	watch --block --mutex --labels --goid "${RATE1[@]}"
	ask run labels 10 5
	unwatch
	judged block "$BLOCK"
	truth
	judge_labels "$TMP/truth" "$BLOCK"
}

# through FILE: how many goroutines waited before, during and after its window
through() {
	THROUGH=$("$PPROFCHECK" comments "$1" | sed -n 's/^through: \([0-9]*\) .*/\1/p')
	THROUGH=${THROUGH:-0}
}

part_edges() {
	ask park 5
	watch --block --block-rate 1
	ask release
	mark
	ask run recv 5 10
	ask park 7
	unwatch
	"$PPROFCHECK" comments "$BLOCK" >&2
	judged block "$BLOCK"
	comment "$BLOCK" "^waiting: 7 waits had not ended" "7 waits had not ended"
	comment "$BLOCK" "^early: 5 waits ended that had begun before" "5 waits had begun before"
	through "$BLOCK"
	[ "$THROUGH" -lt 7 ] || echo "$THROUGH waited all through, and 7 came in it"
	watch --block --block-rate 1
	mark
	ask run recv 5 10
	unwatch
	judged block "$BLOCK"
	through "$BLOCK"
	[ "$THROUGH" -ge 7 ] || echo "not said that 7 waited all through: $THROUGH"
	ask release
}

part_alone() {
	watch --block --block-rate 1
	ask run all 10 10
	unwatch
	judged block "$BLOCK"
	[ -z "$MUTEX" ] || echo "a mutex profile that nobody asked for"
	watch --mutex --mutex-fraction 1
	mark
	ask run all 10 10
	unwatch
	judged mutex "$MUTEX"
	[ -z "$BLOCK" ] || echo "a block profile that nobody asked for"
}

# Killed while waits are under way; the next one starts from nothing.
part_kill() {
	watch --block --mutex "${RATE1[@]}"
	ask run all 3 5
	ask park 5
	kill -KILL $PROF
	wait $PROF 2>/dev/null || [ $? = 137 ]
	ask release
	ask run all,mutex100,gc,starve 3 5
	watch --block --mutex "${RATE1[@]}"
	mark
	ask run all 10 10
	unwatch
	judged block "$BLOCK"
	judged mutex "$MUTEX"
}

# Right, or refused.
part_pgo() {
	watch --block --block-rate 1
	ask run all,mutex100 10 20
	unwatch
	judged block "$BLOCK"
	watch --mutex --mutex-fraction 1 >"$TMP/watch" || :
	mark
	ask run all,mutex100 10 20
	unwatch >"$TMP/unwatch" || :
	if [ $RC = 1 ] && grep -q 'mutex: .* profile-guided' "$TMP/err"; then
		grep 'profile-guided' "$TMP/err" >&2
	else
		cat "$TMP/watch" "$TMP/unwatch"
		judged mutex "$MUTEX"
	fi
}

# hot FILE V: a CPU profile of a program that does nothing but wait, unless there is one of this goprof-bpf
hot() {
	local bin
	[ ! "$1" -nt "$GOPROF" ] || return 0
	bin=$(subject "$2" hotwaits '-ldflags=-s -w') && start_quiet "$bin" || return 1
	"$GOPROF" -p "$PID" --cpu -F 997 -d 3s -o "$TMP" >"$TMP/paths" 2>"$TMP/err"
	kill "$PID"
	mv "$(cat "$TMP/paths")" "$1"
}
HOT=$O/programs/hotwaits.pprof
v=${VERSIONS##* }
if [ -n "${PREPARE:-}" ]; then # what takes the compiler long, ahead of the measuring
	hot "$HOT" "$v" && subject "$v" waits -pgo="$HOT" '-ldflags=-s -w'
	finish
fi

for v in $VERSIONS; do
	# Each Go in two parts, the newest in all; with WIDE=1 or VERSIONS all in all of them.
	case $ASKED$v in 1.18.* | 1.22.*) ;; *) part judge "$v" -tags=self ;; esac
	case $ASKED$v in 1.22.*) ;; *) part known "$v" ;; esac
	case $ASKED$v in 1.18.*) ;; *) part own "$v" -tags=self ;; esac
	part fight "$v" -tags=self
	case $ASKED$v in 1.18.*) ;; *) part queue "$v" -tags=self ;; esac
done
# What does not depend on the version: once.
v=${VERSIONS##* }
part rates "$v"
part labels "$v" -tags=self
part edges "$v"
part alone "$v"
part kill "$v" -tags=self
if wanted pgo; then
	if hot "$HOT" "$v" >&2; then
		part pgo "$v" -pgo="$HOT"
	else
		fail "contention_probe/pgo/$v" "no profile to build by: $(tail -n 1 "$TMP/err")"
	fi
fi
finish
