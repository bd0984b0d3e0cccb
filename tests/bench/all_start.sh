#!/bin/bash
# In a window of --all: from the exec of a program to its being observed, by the comment of its profile. A program that nobody here has
# run, one that others run, an exec of a process that is observed, and one that gets the number of another that has ended.
#
# Wanted (medians): 300 ms, and 50 ms where the executable is known.
. tests/support/lib.sh
need_root && need_bpf && need_go

STARTS=${STARTS:-9}
bin=$(subject 1.27.4 hosted -ldflags='-s -w') || { fail all_start "does not build"; finish; }
mkdir "$TMP/bin"
for ((i = 0; i < STARTS; i++)); do cp "$bin" "$TMP/bin/new$i"; done
cp "$bin" "$TMP/bin/known"
launch() { "$@" >/dev/null 2>&1 </dev/null & STARTED+=($!) LAST=$!; }
for ((i = 0; i < 20; i++)); do launch "$TMP/bin/known" idle; done
sleep 1
"$GOPROF" --all --match "cmd=$TMP/bin/" -F 499 -d 3600s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
PROF=$!
STARTED+=($PROF)
until grep -q 'profiling [0-9]* process' "$TMP/err"; do sleep 0.05; done

ticks_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '{ print $12 + $13 }'; }
# works PID: until it has used 0.2 s of CPU time; then it is ended.
works() {
	local i
	for ((i = 0; i < 400; i++)); do
		[ "$(ticks_of "$1")" -lt 20 ] || break
		sleep 0.05
	done
	kill -KILL "$1"
	wait "$1" 2>/dev/null
}
# again PID ARG...: a program that gets this number, in LAST. The kernel counts on from ns_last_pid.
again() {
	local pid=$1 i
	shift
	for ((i = 0; i < 50; i++)); do
		echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
		launch "$@"
		[ $LAST != "$pid" ] || return 0
		kill -KILL $LAST
		wait $LAST 2>/dev/null
	done
	return 1
}

declare -A OF
for ((k = 0; k < STARTS; k++)); do
	launch "$TMP/bin/new$k" busy 1 1
	OF[new]+=" *.$LAST.cpu"
	works $LAST
	launch "$TMP/bin/known" busy 1 1
	OF[known]+=" *.$LAST.cpu"
	first=$LAST
	works $LAST
	again $first "$TMP/bin/known" busy 1 1 && { OF[number]+=" *.$first.2.cpu"; works $first; }
	launch "$TMP/bin/known" becomes "$TMP/bin/known" busy 1 1
	OF[exec]+=" *.$LAST.cpu"
	sleep 1.2
	works $LAST
done
kill -INT $PROF
wait $PROF

row() { printf '%-28s %8s %8s %8s %8s\n' "$@"; }
# tells WHAT NAME WANTED-MS
tells() {
	local f
	for f in ${OF[$1]}; do
		"$PPROFCHECK" comments "$TMP"/out/$f.pb.gz | sed -n 's/^begun: \([0-9.]*\) ms.*/\1/p'
	done | sort -n >"$TMP/ms"
	local n got
	n=$(wc -l <"$TMP/ms")
	got=$(awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "none" }' "$TMP/ms")
	row "$2" "$n" "$got" "$(head -n 1 "$TMP/ms")" "$(tail -n 1 "$TMP/ms")"
	[ "$n" -ge $((STARTS / 2)) ] && awk -v g="$got" -v w="$3" 'BEGIN { exit !(g <= w) }' && pass "all_start/$1" || fail "all_start/$1" "$n starts, median $got ms of $3"
}
uptime
row "milliseconds after the exec" n median least most
tells new "an unknown executable" 300
tells known "a known one" 50
tells exec "exec of one that is observed" 50
tells number "a number that is used again" 50
finish
