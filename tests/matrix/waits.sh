#!/bin/bash
# One cell of the matrix of waits: tests/matrix/waits.sh VERSION KIND
#
# Builds testdata/programs/waits and asks one running process of it everything. Prints
# "ok V-KIND/CHECK" or "not ok V-KIND/CHECK - why" for each CHECK:
#
#	B block		probed, at rate 1: every wait the program knows of, counts within 1 %, time
#			within 3 %, Go's leaf frames, and nothing else
#	M mutex		the same
#	W wait		the same, by reason
#	E enable	block and mutex by the runtime's own recording, which was off and is off again
#	R read		block and mutex equal the program's own profiles
#	G goroutine	the same, of goroutines that stand still
#
# What a run of it used is hashed into the result file, as in cell.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lib.sh
. tests/support/waits.sh
MATRIX_SUBJECT=waits MATRIX_FLAGS=-tags=self
. tests/matrix/kinds.sh
V=$1 KIND=$2
CELL=$V-$KIND
RES=$MATRIX/res/$CELL
SOURCE=

# verdict CHECK FUNCTION: one outcome of steps (lib.sh). They are repeated once if something is wrong,
# because on a busy machine a goroutine may be late between its look at the clock and its wait.
verdict() {
	local why
	unjudged
	steps "$2"
	if found_wrong && [ "$1" != X ]; then
		attempt 1 "$CELL/$1" "$FOUND"
		unjudged
		steps "$2"
	fi
	why=$FOUND
	unjudged
	if [ -z "$why" ]; then
		pass "$CELL/$1"
		echo "$1 ok" >>"$RES.new"
	else
		fail "$CELL/$1" "$why"
		echo "$1 $why" >>"$RES.new"
	fi
}

WORK="run all,mutex100 10 20"

check_block() {
	watch --source=probe --block --block-rate 1
	mark
	ask $WORK
	unwatch
	judged block "$BLOCK"
}

check_mutex() {
	watch --source=probe --mutex --mutex-fraction 1
	mark
	ask $WORK
	unwatch
	judged mutex "$MUTEX"
}

check_wait() {
	watch --wait --budget=0 --wait-rate 1
	mark
	ask $WORK
	unwatch
	judged wait "$WAIT"
}

# What the program does once the rates are off again is not recorded.
check_enable() {
	local fraction kind
	ask rate 0 0
	watch --source=enable --block --mutex --block-rate 1 --mutex-fraction 1
	mark
	ask $WORK
	unwatch
	judged block "$BLOCK"
	judged mutex "$MUTEX"
	ask own "$TMP/off"
	fraction=$(grep ^fraction "$SAID" | tail -n 1)
	[ "$fraction" = "fraction 0" ] || echo "after it: $fraction"
	ask $WORK
	ask own "$TMP/later"
	for kind in block mutex; do
		"$PPROFCHECK" equal -addresses "$TMP/off.$kind" "$TMP/later.$kind" >"$TMP/diff" ||
			{ echo "$kind is recorded after it: $(sed -n 1,3p "$TMP/diff")"; return 1; }
	done
}

# A request for a profile leaves records of its own; the records of what the program did are the
# same in all.
check_read() {
	local kind f
	ask rate 1 1
	ask $WORK
	ask own "$TMP/one"
	"$GOPROF" -p "$PID" --source=read --block --mutex -d 10ms -o "$TMP/read" >"$TMP/paths" 2>"$TMP/err" ||
		echo "exit $?: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	ask own "$TMP/two"
	for kind in block mutex; do
		f=$(file_of $kind)
		[ -s "$f" ] || { echo "no $kind profile"; continue; }
		"$PPROFCHECK" grew -addresses -tolerance 0.01 -still '\(\*group\)\.do|exitWait' \
			"$TMP/one.$kind" "$f" "$TMP/two.$kind" >"$TMP/diff" || { sed -n 1,5p "$TMP/diff"; return 1; }
	done
}

# The goroutine that writes its own profile is at another place when it reads its next command.
check_goroutine() {
	local f
	ask park 20
	ask own "$TMP/now"
	f=$("$GOPROF" -p "$PID" --goroutine -o "$TMP/ours" 2>"$TMP/err") || echo "exit $?: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	"$PPROFCHECK" equal -addresses -without '\.Main\b' "$TMP/now.goroutine" "$f" >"$TMP/diff" || { sed -n 1,12p "$TMP/diff"; return 1; }
	"$PPROFCHECK" flat "$f" | awk '$1 >= 20 { ok = 1 } END { if (!ok) { print "20 that wait are not there"; exit 1 } }'
	ask release
}

check_process() {
	verdict B check_block
	verdict M check_mutex
	verdict W check_wait
	verdict E check_enable
	verdict R check_read
	verdict G check_goroutine
	verdict X end
}

main() {
	local hash wrap=()
	mkdir -p "$MATRIX/res"
	if ! matrix_build "$V" "$KIND" >"$TMP/said" 2>&1; then
		echo "hash none" >"$RES.new"
		echo "build $(tail -n 3 "$TMP/said" | tr '\n' ';')" >>"$RES.new"
		fail "$CELL/build" "$(tail -n 3 "$TMP/said" | tr '\n' ';')"
		mv "$RES.new" "$RES"
		return
	fi
	hash=$(cat "$GOPROF" "$O/tools/pprofcheck" "$CODE" "${PROGRAM[0]}" "$RUNTIME" tests/matrix/waits.sh \
		tests/support/waits.sh tests/support/lib.sh | sha256sum | cut -d ' ' -f 1)
	if [ -z "${FRESH:-}" ] && [ -f "$RES" ] && [ "$(head -n 1 "$RES")" = "hash $hash" ] &&
		! grep -qvE '^hash| ok$' "$RES"; then
		sed -n "s|^\([A-Z]\) ok|ok $CELL/\1 (before)|p" "$RES"
		return
	fi
	echo "hash $hash" >"$RES.new"
	# The race detector of old versions cannot live with today's address randomization.
	[ "$KIND" != race ] || wrap=(setarch -R)
	if begin_program "${wrap[@]}" "${PROGRAM[@]}"; then
		check_process
	else
		echo "start $(head -c 300 "$SAID" | tr '\n' ';')" >>"$RES.new"
		fail "$CELL/start" "$(head -c 300 "$SAID" | tr '\n' ';')"
	fi
	mv "$RES.new" "$RES"
}

main
finish
