#!/bin/bash
# One cell of the support matrix: tests/matrix/cell.sh VERSION KIND
#
# Builds the subject (testdata/programs/matrix) and asks one running process of it everything.
# Prints "ok V-KIND/CHECK" or "not ok V-KIND/CHECK - why" for each CHECK:
#
#	F frames	all frames equal the runtime's own, at pcs across every function
#	V variables	addresses decoded from instructions equal the symbols (of the twin that
#			has them), and so do the probes' sites; what stands there is plausible
#	R heap read	every sample equals the program's own profile
#	C cpu		callers of a frameless leaf 3:1; the total is what the kernel charged
#	P heap probe	known counts, each line within what chance allows (tests/README.md)
#	E heap enable	the same by the runtime's own sampler, and the rate is as it was after it
#
# What a run of it used is hashed into the result file $O/matrix/res/V-KIND, one "CHECK ok" or
# "CHECK why" a line; a cell that passed with the same hash is not run again (FRESH=1: it is).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lib.sh
. tests/support/judges.sh
. tests/matrix/kinds.sh
V=$1 KIND=$2
CELL=$V-$KIND
RES=$MATRIX/res/$CELL
RATE=4096 # mean bytes between samples of a heap that is probed or enabled
FRAMES=$O/tests/frames
GOFACTS=$O/tests/gofacts
RTLIVE=$O/tests/rtlive
FD=

# verdict CHECK: of the judges asked since the last one.
verdict() {
	local said
	outcome "$CELL/$1" >"$TMP/outcome"
	said=$(cat "$TMP/outcome")
	echo "$said"
	case $said in
	"ok "*) echo "$1 ok" >>"$RES.new" ;;
	*)      echo "$1 ${said#* - }" >>"$RES.new" ;;
	esac
}

last_words() { tail -n 2 "$1" | tr '\n' ' '; }

hash_of_all() {
	cat "$GOPROF" "$O/tools/pprofcheck" "$FRAMES" "$GOFACTS" "$RTLIVE" "$CODE" "${PROGRAM[0]}" "$RUNTIME" \
		tests/matrix/cell.sh tests/support/judges.sh tests/support/lib.sh | sha256sum | cut -d ' ' -f 1
}

# ---- checks that need no process -----------------------------------------------------------------

# A plugin's main package is called by its path.
anchor() {
	[ "$KIND" = plugin ] || { echo main.oracleAnchor; return; }
	readelf -sW "$CODE" | sed -n 's/.* \([^ ]*\.oracleAnchor\)$/\1/p' | grep -v '^local\.' | tail -n 1
}

check_frames() {
	local left
	"$FRAMES" pcs "$CODE" 4 "$ANCHOR" >"$TMP/pcs" 2>"$TMP/said" ||
		{ tail -n 1 "$TMP/said"; return 1; }
	left=$(sed -n 's/ pcs left out.*//p' "$TMP/said")
	"$FRAMES" dump "$CODE" "$ANCHOR" <"$TMP/pcs" >"$TMP/ours" 2>"$TMP/said" || { cat "$TMP/said"; return 1; }
	# When Go's runtime cannot answer for a pc it takes memory without end; the race detector
	# reserves more than any bound.
	([ "$KIND" = race ] || ulimit -v 16000000
	 GOPROF_ORACLE=1 timeout 120 "${PROGRAM[@]}" <"$TMP/pcs" >"$TMP/theirs") ||
		{ echo "the oracle ended with $?"; return 1; }
	echo "$(wc -l <"$TMP/theirs") pcs, $left left out" >&2
	judge_frames "$TMP/pcs" "$TMP/ours" "$TMP/theirs" "$left" ||
		{ diff "$TMP/ours" "$TMP/theirs" | head -n 4 | cut -c 1-300 >&2; return 1; }
}

# Compares "var NAME SYMBOL DECODED" of the twin with symbols and of the file itself. A variable
# that a program does not contain has no symbol, and then nothing may be found; all but two are in
# every program.
check_vars() {
	local with=$TMP/with
	"$GOFACTS" "$RUNTIME" >"$TMP/facts" 2>"$TMP/said" || { cat "$TMP/said"; return 1; }
	grep ^var "$TMP/facts" >&2
	if [ "$(twin "$KIND")" = "$KIND" ]; then
		cp "$TMP/facts" "$with"
	else
		(matrix_build "$V" "$(twin "$KIND")" && "$GOFACTS" "$RUNTIME" >"$with") >"$TMP/said" 2>&1 ||
			{ cat "$TMP/said"; return 1; }
	fi
	judge_vars "$with" "$TMP/facts"
}

# ---- the running subject -------------------------------------------------------------------------

# Lines go in by a pipe; its answers are in $TMP/out.
begin() {
	mkfifo "$TMP/in"
	: >"$TMP/out"
	# Old versions of the race detector do not work with today's address randomization.
	"${WRAP[@]}" "${PROGRAM[@]}" <"$TMP/in" >"$TMP/out" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {FD}>"$TMP/in"
	wait_for "$TMP/out" '^ready' || return 1
}

# wait_for FILE PATTERN [N]: until N lines match, or the subject is gone
wait_for() {
	local i
	for ((i = 0; i < 1200; i++)); do
		[ "$(grep -c -- "$2" "$1")" -ge "${3:-1}" ] && return
		kill -0 "$PID" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

ask() {
	local n
	n=$(grep -c '^done' "$TMP/out")
	echo "$*" >&"$FD"
	wait_for "$TMP/out" '^done' $((n + 1)) && ! grep '^error' "$TMP/out"
}

check_read() {
	local path rc
	ask own "$TMP/one.pb.gz" || { echo "the subject does not answer"; return 1; }
	path=$("$GOPROF" -p "$PID" --heap --source=read -d 100ms -o "$TMP" 2>"$TMP/err")
	rc=$?
	[ $rc = 0 ] || { echo "exit $rc: $(last_words "$TMP/err")"; return 1; }
	ask own "$TMP/two.pb.gz" || { echo "the subject does not answer"; return 1; }
	mv "$path" "$TMP/read.pb.gz"
	judge_read "$TMP/one.pb.gz" "$TMP/read.pb.gz" "$TMP/two.pb.gz"
	rc=$?
	[ $rc = 0 ] || head -n 30 "$TMP/diff" >&2
	grep '^A has' "$TMP/diff" >&2
	return $rc
}

# The values at those addresses must be such as these variables can hold. Whether each that the
# program has was found is what check_vars asks.
check_live() {
	"$RTLIVE" "$PID" >"$TMP/live" 2>&1 && [ "$(grep -c ' ok$' "$TMP/live")" -ge 10 ] ||
		{ cat "$TMP/live"; return 1; }
}

# watch KINDS...: runs the profiler while the subject does "$DO"; sets RC, CPU, HEAP, and the CPU
# time of the subject by /proc, from command to answer (TICKS) and from before the profiler until
# after it (OUTER), what was stolen of the machine's meanwhile (STOLEN), and the switches (SWITCHES).
watch() {
	local prof outer before what i
	: >"$TMP/err"
	outer=$(ticks "$PID") STOLEN=$(stolen) SWITCHES=$(switches "$PID")
	"$GOPROF" -p "$PID" "$@" -d 300s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 600; i++)); do
		grep -q 'profiling pid' "$TMP/err" && break
		kill -0 $prof 2>/dev/null || break
		sleep 0.1
	done
	before=$(ticks "$PID")
	for what in "${DO[@]}"; do
		# shellcheck disable=SC2086
		ask $what || echo "the subject did not do: $what" >&2
	done
	TICKS=$(($(ticks "$PID") - before))
	kill -INT $prof 2>/dev/null
	wait $prof
	RC=$?
	OUTER=$(($(ticks "$PID") - outer)) STOLEN=$(($(stolen) - STOLEN)) SWITCHES=$(($(switches "$PID") - SWITCHES))
	CPU=$(grep '\.cpu\.' "$TMP/paths")
	HEAP=$(grep '\.heap\.' "$TMP/paths")
}

# kept KIND FILE: there is a profile, and exit status 3 is fine when this kind lost nothing that matters.
kept() {
	[ "$RC" = 0 ] || [ "$RC" = 3 ] && [ -s "$2" ] || { echo "exit $RC: $(last_words "$TMP/err")"; return 1; }
	grep "^goprof-bpf: $1:" "$TMP/err" >"$TMP/err.$1"
	"$PPROFCHECK" comments "$2" >"$TMP/comments" || return 1
	cat "$TMP/comments" >&2
	"$PPROFCHECK" losses -list "$LOSSES" -status $(($(grep -c '^loss:' "$TMP/comments") > 0 ? 3 : 0)) "$TMP/err.$1" "$2"
}

judge_cpu() {
	judge kept cpu "$CPU"
	[ -s "$CPU" ] || return
	judge three_to_one "$CPU"
	judge whole_cpu "$CPU" "$TICKS" "$OUTER" "$STOLEN" "$SWITCHES"
	judge valid "$CPU"
}

# judge_heap JUDGE [ARG...]
judge_heap() {
	judge kept heap "$HEAP"
	[ -s "$HEAP" ] || return
	judge "$1" "$TMP/out" "$HEAP" $RATE "${@:2}"
	judge valid "$HEAP"
}

# Where the machine itself stands still for a while, clocks are served late, which is reported and
# counted. Such a window is not judged, unless it is the fifth in a row.
check_cpu_and_probe() {
	local try
	ask rate 0
	DO=("truth" "cpu 2000")
	watch --cpu -F 499 --heap --source=probe --heap-rate=$RATE --budget=0
	judge_heap judge_probe
	verdict P
	DO=("cpu 2000")
	for try in 1 2 3 4; do
		grep -q 'clock ticks' "$TMP/err" || break
		attempt $try "$CELL/C" "$(grep 'clock ticks' "$TMP/err")"
		watch --cpu -F 499
	done
	judge_cpu
	verdict C
}

# restored: what E demands besides the numbers
restored() {
	"$PPROFCHECK" comments "$HEAP" | grep -q "^enabled: runtime.MemProfileRate .* it is 0 again" ||
		{ echo "not said that it was enabled and restored"; return 1; }
	ask rate && [ "$(grep '^rate' "$TMP/out" | tail -n 1)" = "rate 0" ] ||
		{ echo "after it: $(grep '^rate' "$TMP/out" | tail -n 1)"; return 1; }
}

# The rate is on during the window, and off after it. A sample that is known to be a processor's
# first counts once; one that cannot be told apart counts a whole period.
check_enable() {
	local mixed
	DO=("truth")
	watch --heap --source=enable --heap-rate=$RATE
	mixed=$("$PPROFCHECK" comments "$HEAP" | sed -n 's/.* known (counted as one object each), \([0-9]*\) in it among.*/\1/p')
	judge_heap judge_allocs "${mixed:-64}"
	judge restored
	verdict E
}

check_process() {
	if ! begin; then
		wrong "$(head -c 300 "$TMP/out")"
		verdict start
		return
	fi
	judge check_vars
	judge check_live
	verdict V
	judge check_read
	verdict R
	check_cpu_and_probe
	check_enable
}

# ---- the cell ------------------------------------------------------------------------------------

main() {
	local hash why
	mkdir -p "$MATRIX/res"
	matrix_build "$V" "$KIND" >"$TMP/said" 2>&1
	why=$?
	if [ $why != 0 ]; then
		echo "hash none" >"$RES.new"
		wrong "$(tail -n 3 "$TMP/said")"
		verdict build
		mv "$RES.new" "$RES"
		return
	fi
	hash=$(hash_of_all)
	if [ -z "${FRESH:-}" ] && [ -f "$RES" ] && [ "$(head -n 1 "$RES")" = "hash $hash" ] &&
		! grep -qvE '^hash| ok$' "$RES"; then
		sed -n "s|^\([A-Z]\) ok|ok $CELL/\1 (before)|p" "$RES"
		return
	fi
	echo "hash $hash" >"$RES.new"
	ANCHOR=$(anchor)
	WRAP=()
	[ "$KIND" != race ] || WRAP=(setarch -R)
	judge check_frames
	verdict F
	check_process
	mv "$RES.new" "$RES"
}

main
finish
