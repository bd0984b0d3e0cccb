#!/bin/bash
# One target is sampled by a clock of each thread, many by a clock of each CPU. Of the same seconds of the same
# program both give the same shares, of every function, within what sampling allows; and the same CPU time. And
# the judge is not blind: another mix of work is another profile.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

# A thread's clock stands still while it is switched, and is served on the kernel's tick where that comes first.
EXACT=0.01

bin=$(subject 1.27.4 cpuself) && hosted=$(subject 1.27.4 hosted) || { fail cpu_clocks "does not build"; finish; }
small_losses() { [ "$1" = 0 ] || { [ "$1" = 3 ] && only_small_losses "$2" "$3"; } || { echo "exit $1: $(tail -n 2 "$2" | tr '\n' ' ')"; return 1; }; }

profiling() { # FILE PID: it says so
	local i
	for ((i = 0; i < 600; i++)); do grep -q ': profiling ' "$1" && return; kill -0 "$2" || return; sleep 0.05; done
	return 1
}

# both NAME SECONDS: $TMP/NAME.threads and $TMP/NAME.cpus. The program is stopped before and after, so both saw all it did.
both() {
	local rc rc_all one all
	kill -STOP $PID
	: >"$TMP/one.err" >"$TMP/all.err"
	"$GOPROF" -p $PID --cpu -F 499 -d 300s -o "$TMP" >"$TMP/one.paths" 2>"$TMP/one.err" &
	one=$!
	"$GOPROF" -p $PID -p $IDLE --cpu -F 499 -d 300s -o "$TMP/all" >"$TMP/all.paths" 2>"$TMP/all.err" &
	all=$!
	STARTED+=("$one" "$all")
	profiling "$TMP/one.err" $one && profiling "$TMP/all.err" $all
	kill -CONT $PID
	sleep "$2"
	kill -STOP $PID
	sleep 0.1
	kill -INT $one $all
	wait $one
	rc=$?
	wait $all
	rc_all=$?
	one=$(cat "$TMP/one.paths") all=$(grep "\.$PID\.cpu" "$TMP/all.paths")
	[ -s "$one" ] && [ -s "$all" ] || { wrong "no profile: $(tail -qn 1 "$TMP/one.err" "$TMP/all.err" | tr '\n' ' ')"; return 1; }
	judge small_losses $rc "$TMP/one.err" "$one"
	judge small_losses $rc_all "$TMP/all.err" "$all"
	mv "$one" "$TMP/$1.threads" && mv "$all" "$TMP/$1.cpus"
}
same() { "$PPROFCHECK" share -type samples -sampled -tolerance $EXACT "$TMP/$1" "$TMP/$2" >"$TMP/share" || { cat "$TMP/share" >&2; sed -n 's/^out of tolerance //p' "$TMP/share"; return 1; }; }
total() { "$PPROFCHECK" sum "$1" | awk '$2 == "cpu" { print $1 / 1e9 }'; }
same_total() {
	awk -v a="$(total "$TMP/$1.threads")" -v b="$(total "$TMP/$1.cpus")" 'BEGIN {
		if (a <= 0 || b / a < 0.98 || b / a > 1.02) { printf "%.2f s by thread, %.2f s by CPU\n", a, b; exit 1 } }'
}

start "$hosted" idle || { fail cpu_clocks "does not start"; finish; } # two processes are many
IDLE=$PID

# compare NAME PROGRAM ARG...
compare() {
	local seconds name=$1
	start "${@:2}" || { fail "cpu_clocks/$name" "does not start"; return; }
	for seconds in 6 18; do
		unjudged
		both "$name" $seconds && judge same "$name.threads" "$name.cpus" && judge same_total "$name"
		found_wrong && [ $seconds = 6 ] || break
		attempt $seconds "cpu_clocks/$name" "$FOUND"
	done
	kill -KILL $PID
	wait $PID 2>/dev/null
	outcome "cpu_clocks/$name"
}
compare hosted31 "$hosted" busy 3 1
compare hosted11 "$hosted" busy 1 1
compare labels "$bin" -work labels
compare threads "$bin" -lock -work inline,leaf
# A profile that cannot be read is no other one: its judge has died then, which fails the outcome.
other() {
	same hosted31.threads hosted11.cpus >/dev/null 2>&1 && { echo "3 to 1 and 1 to 1 look the same"; return 1; }
	return 0
}
judge other
outcome "cpu_clocks/another mix is another profile"

# A program with a period, and clocks of the same period: as much in one half as in the other. Of some 500 samples a standard error
# is 0.022, and a quarter larger where samples are not independent (tests/unit/test_uneven.c). A clock that had one period
# all the time gave 0.95 to one of the two.
halves() {
	"$PPROFCHECK" stacks -type samples "$1" | awk '
		/main\.first/ { a += $1 } /main\.second/ { b += $1 }
		END { n = a + b; if (n < 200 || a / n < 0.35 || a / n > 0.65) { print a + 0 " and " b + 0 " samples"; exit 1 } }'
}
periodic() { # HZ
	local rc paths path
	unjudged
	"$GOPROF" -p ${PERIODIC[0]} -p ${PERIODIC[1]} --cpu -F $1 -d 8s -o "$TMP/periodic" >"$TMP/paths" 2>"$TMP/err" && rc=0 || rc=$?
	paths=$(cat "$TMP/paths")
	judge small_losses $rc "$TMP/err" $paths
	[ "$(wc -w <<<"$paths")" = 2 ] || wrong "profiles: $paths"
	for path in $paths; do judge halves "$path"; done
	outcome "cpu_clocks/periodic, $1 Hz"
}
PERIODIC=()
for i in 0 1; do
	start "$hosted" periodic 10 || fail cpu_clocks/periodic "does not start"
	PERIODIC+=($PID)
done
sleep 0.5 # it learns how much is a third
for hz in 100 101; do periodic $hz; done
finish
