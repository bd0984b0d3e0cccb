#!/bin/bash
# Block and mutex profiles by --source=enable: the runtime is made to record for the time of the
# window. The numbers are what a program that knows them waited for (testdata/programs/waits), at
# rate 1 and at others; and both rates are what they were afterwards, however the profiler ends: at
# its time, by Ctrl-C, by SIGKILL at any moment; unless the program sets them itself.
#
#	VERSIONS	of Go, for the numbers
#	KILLS		how often the profiler is killed at a random moment
. tests/support/lib.sh
. tests/support/waits.sh
need_root && need_go

SOURCE=enable
KILLS=${KILLS:-12}
RANDOM=${SEED:-$$}
echo "SEED=$RANDOM"
BOTH=(--block --mutex --block-rate 1 --mutex-fraction 1)

# check NAME FUNCTION [ARG...]: one outcome
check() {
	steps "${@:2}"
	outcome "$1"
}

# ---- the rates, from outside: of a program with symbols, not PIE ----

place() { echo $((0x$(nm "$1" | sed -n "s/ . runtime\\.$2\$//p") / 8)); }
word() { dd if="/proc/$PID/mem" bs=8 skip="$1" count=1 status=none 2>/dev/null | od -An -td8 | tr -d ' '; }
rates_are() { [ "$(word "$BLOCK_AT")" = "$1" ] && [ "$(word "$MUTEX_AT")" = "$2" ]; }
rates() { echo "rates $(word "$BLOCK_AT") and $(word "$MUTEX_AT")"; }
within() {
	local i n=$(($1 * 50))
	shift
	for ((i = 0; i < n; i++)); do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}
guardians() {
	local g
	for g in $(pgrep -x goprof-guardian || :); do
		! { ls -l "/proc/$g/fd" 2>/dev/null || :; } | has "/proc/$PID/mem$" || echo "$g"
	done
}
no_guardians() { [ -z "$(guardians)" ]; }
restored() {
	within 5 rates_are 0 0 || echo "$1: $(rates)"
	within 5 no_guardians || echo "$1: a guardian is left"
}

# ---- numbers ----

# A program that has never heard of profiles, stripped; what waits across the edges is not counted.
numbers() {
	ask park 5
	watch "${BOTH[@]}"
	ask release
	mark
	ask run all 20 10
	ask park 3
	unwatch
	judged block "$BLOCK"
	judged mutex "$MUTEX"
	comment "$BLOCK" '^enabled: runtime.blockprofilerate was 0 and was set to 1 for .* it is 0 again' "the rate was 0, was set to 1 and is 0"
	comment "$MUTEX" '^enabled: runtime.mutexprofilerate was 0 and was set to 1 for .* it is 0 again' "the fraction was 0, was set to 1 and is 0"
	ask release
}

# A second window of the same program, sampled: what was counted in the first is not in it.
sampled() {
	watch --block --mutex --block-rate 2ms --mutex-fraction 10
	ask rate 2000000 10
	mark
	ask run spread 80 2
	ask run spreadlock 500 2
	unwatch
	judged block "$BLOCK" -sampled
	judged mutex "$MUTEX" -sampled
}

for v in ${VERSIONS:-1.18.10 ${WIDE:+1.22.12} 1.27.4}; do
	begin "$v" waits '-ldflags=-s -w' || { fail "go$v" "no program"; continue; }
	check "go$v: known waits" numbers
	steps sampled
	steps end
	outcome "go$v: sampled waits, in a second window"
done

# ---- the rates afterwards ----

BIN=$(subject 1.27.4 waitself) || { fail "waitself" "does not build"; finish; }
BLOCK_AT=$(place "$BIN" blockprofilerate) MUTEX_AT=$(place "$BIN" mutexprofilerate)
start "$BIN" || { fail "waitself" "does not start"; finish; }
rates_are 0 0 || { fail "waitself" "$(rates) before anything was done"; finish; }

until_its_end() {
	watch "${BOTH[@]}" -v
	rates_are 1 1 || echo "in the window: $(rates)"
	http_get "$PORT" /more "$TMP/ok"
	unwatch
	rates_are 0 0 || echo "afterwards: $(rates)"
	restored "Ctrl-C"
	"$PPROFCHECK" sum "$BLOCK" | awk '$2 == "delay" && $1 > 0 { ok = 1 } END { if (!ok) { print "no delay"; exit 1 } }'
	"$GOPROF" -p "$PID" --source=enable --heap "${BOTH[@]}" -d 300ms -o "$TMP" >"$TMP/paths" 2>"$TMP/err" ||
		echo "three kinds: exit $?: $(tail -n 2 "$TMP/err")"
	[ "$(wc -l <"$TMP/paths")" = 3 ] || echo "three kinds: $(cat "$TMP/paths")"
	restored "at its time"
}
check "Ctrl-C, and the end of the window: restored" until_its_end

seen=0
killed() {
	local round
	for ((round = 1; round <= KILLS; round++)); do
		"$GOPROF" -p "$PID" --source=enable "${BOTH[@]}" -d 60s -o "$TMP" >/dev/null 2>"$TMP/err" </dev/null &
		PROF=$!
		sleep "0.$(printf '%03d' $((RANDOM % 250)))"
		rates_are 0 0 || seen=$((seen + 1))
		kill -KILL $PROF
		wait $PROF 2>/dev/null || [ $? = 137 ]
		restored "round $round"
	done
	[ $seen -gt 0 ] || echo "never on when it was killed: this shows nothing"
}
check "SIGKILL at $KILLS random moments: restored" killed
echo "on in $seen of $KILLS rounds"

guardians_killed() {
	local all
	watch "${BOTH[@]}"
	all=$(guardians)
	[ -n "$all" ] || echo "there are no guardians"
	# shellcheck disable=SC2086
	kill -KILL $all
	sleep 0.3
	unwatch
	restored "guardians killed"
}
check "SIGKILL of the guardians: the profiler restores" guardians_killed

# Two at once: the second takes the rates that are in force, and the last one restores.
two_at_once() {
	watch --block --mutex --block-rate 1 --mutex-fraction 3
	FIRST=$PROF
	cp "$TMP/paths" "$TMP/first"
	watch --block --mutex --block-rate 1ms --mutex-fraction 7
	rates_are 1 3 || echo "with two: $(rates)"
	http_get "$PORT" /more "$TMP/ok"
	unwatch
	rates_are 1 3 || echo "with one left: $(rates)"
	comment "$MUTEX" 'was on, claimed by a lock on the target, at 3; after .* left on while a lock' "another had switched it on"
	comment "$MUTEX" '^rate: one contention in 3$' "the rate is one in 3"
	"$GOPROF" -p "$PID" --block --source=read -d 50ms -o "$TMP" >/dev/null 2>"$TMP/err" &&
		echo "what another had switched on was read as the program's own"
	grep -q 'another goprof-bpf' "$TMP/err" || tail -n 1 "$TMP/err"
	kill -KILL "$FIRST"
	wait "$FIRST" 2>/dev/null || [ $? = 137 ]
	restored "both gone"
}
check "two at once share the rates" two_at_once

# The program's own doing wins.
own_doing() {
	watch "${BOTH[@]}"
	sleep 0.3
	http_get "$PORT" "/rate?mutex=5" "$TMP/ok"
	sleep 1.2
	kill -INT $PROF
	wait $PROF && RC=0 || RC=$?
	[ $RC = 3 ] || echo "exit status $RC, not 3: $(tail -n 2 "$TMP/err")"
	rates_are 0 5 || echo "$(rates)"
	MUTEX=$(file_of mutex)
	comment "$MUTEX" 'the program has set it to 5 itself, which was left alone' "the program has set it itself"
	"$GOPROF" -p "$PID" --mutex --source=enable -d 50ms -o "$TMP" >"$TMP/paths" 2>"$TMP/err" || echo "exit $?"
	grep -q 'source read: the target records it itself' "$TMP/err" || tail -n 2 "$TMP/err"
	rates_are 0 5 || echo "it was read, and $(rates)"
}
check "a program that sets its fraction itself wins, and is read" own_doing

# It ends, and what was read until then is there.
target_goes() {
	local f n
	http_get "$PORT" /off "$TMP/ok"
	watch "${BOTH[@]}"
	http_get "$PORT" /more "$TMP/ok"
	sleep 1.2
	kill -KILL "$PID"
	wait "$PID" 2>/dev/null || [ $? = 137 ]
	wait $PROF && RC=0 || RC=$?
	[ $RC = 3 ] || echo "exit status $RC, not 3: $(tail -n 2 "$TMP/err")"
	for f in $(cat "$TMP/paths"); do
		"$PPROFCHECK" stacks "$f" | has main.work || echo "$f has nothing of it"
	done
	n=$(wc -l <"$TMP/paths")
	[ "$n" = 2 ] || echo "$n files"
	within 5 no_guardians || echo "a guardian is left"
}
check "the target goes: what was read until then is written" target_goes

# What cannot be written is refused before anything is.
too_long() {
	start "$BIN"
	"$GOPROF" -p "$PID" --block --block-rate 100s --source=enable -d 50ms -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &&
		echo "it took 100 s for a rate"
	grep -q 'block-rate: at most [0-9]* ms can be written here' "$TMP/err" || tail -n 1 "$TMP/err"
	rates_are 0 0 || echo "$(rates)"
}
check "a rate that is too long is refused" too_long
finish
