#!/bin/bash
# In a window of --all: from the exec of a program to its being observed, by the comment of its profile, and the CPU time of a busy one
# that its profile lacks, by the kernel's account; and the first of both with --follow. A program that nobody here has run, one that others run, an exec of a process that is
# observed, and one that gets the number of another that has ended.
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
has_begun $PROF "$TMP/err" 'profiling [0-9]* process' || { fail all_start "$(tail -n 1 "$TMP/err")"; finish; }

ticks_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '{ print $12 + $13 }'; }
# All threads are there until it is ended.
used_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ n += $1 } END { print n + 0 }'; }
# works PID: until it has used 0.2 s of CPU time; then it is ended. A process' clock is read each 0.1 s.
works() {
	local i
	for ((i = 0; i < 400; i++)); do
		[ "$(ticks_of "$1")" -lt 20 ] || break
		sleep 0.05
	done
	kill -STOP "$1"
	sleep 0.3
	USED[$1.$2]=$(used_ns "$1")
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

declare -A OF USED
# observed GROUP PID [LIFE.]
observed() {
	works "$2" "${3:-}"
	OF[$1]+=" $2.${3:-}"
}
for ((k = 0; k < STARTS; k++)); do
	launch "$TMP/bin/new$k" busy 1 1
	observed new $LAST
	launch "$TMP/bin/known" busy 1 1
	first=$LAST
	observed known $first
	again $first "$TMP/bin/known" busy 1 1 && observed number $first 2.
	launch "$TMP/bin/known" becomes "$TMP/bin/known" busy 1 1
	sleep 1.2
	observed exec $LAST 2.
done
kill -INT $PROF
wait $PROF

row() { printf '%-30s %4s %22s %22s\n' "$1" "$2" "$3" "${4:-}"; }
# middle FILE: the median, the least and the most of its numbers
middle() { sort -n "$1" | awk '{ v[NR] = $1 } END { if (NR) printf "%.1f (%.1f to %.1f)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }
# tells GROUP NAME WANTED-MS
tells() {
	local life f ns
	: >"$TMP/ms" && : >"$TMP/lack"
	for life in ${OF[$1]}; do
		# A program that slept until its exec may have no file.
		f=$(command ls "$TMP"/out/*."${life}cpu.pb.gz" 2>/dev/null) || [ "$1" != exec ] ||
			f=$(command ls "$TMP"/out/*."${life%2.}cpu.pb.gz" 2>/dev/null)
		[ -s "$f" ] || { wrong "$life has no profile"; continue; }
		"$PPROFCHECK" comments "$f" | sed -n 's/^begun: \([0-9.]*\) ms.*/\1/p' >>"$TMP/ms"
		ns=$("$PPROFCHECK" sum "$f" | awk '$2 == "cpu" { print $1 }')
		awk -v used="${USED[$life]}" -v ns="$ns" 'BEGIN { print (used - ns) / 1e6 }' >>"$TMP/lack"
	done
	row "$2" "$(wc -l <"$TMP/ms")" "$(middle "$TMP/ms")" "$(middle "$TMP/lack")"
	[ "$(wc -l <"$TMP/ms")" -ge $((STARTS - STARTS / 4)) ] || wrong "only $(wc -l <"$TMP/ms") starts are told of"
	judge soon "$TMP/ms" "$3"
	judge soon "$TMP/lack" "$3"
	outcome "all_start/$1"
}
soon() { awk -v got="$(middle "$1")" -v w="$2" 'BEGIN { if (!(got != "" && got + 0 <= w && got + 0 > -1)) { print "median " got " ms of " w; exit 1 } }'; }
uptime
row "milliseconds, median" n "after its exec" "of CPU time lacking"
tells new "an unknown executable" 300
tells known "a known one" 50
tells exec "exec of one that is observed" 50
tells number "a number that is used again" 50

# followed NAME WANTED-UNKNOWN WANTED-KNOWN KIND...: programs after each other, which a command starts
followed() {
	local name=$1 unknown=$2 known=$3 k f was
	shift 3
	rm -rf "$TMP/followed" "$TMP/bin" && mkdir "$TMP/bin" && cp "$bin" "$TMP/bin/known"
	for ((k = 0; k < STARTS; k++)); do cp "$bin" "$TMP/bin/new$k"; done
	"$GOPROF" --follow "$@" -F 499 -o "$TMP/followed" -- bash -c "$TMP/bin/known brief 300 0
		for ((i = 0; i < $STARTS; i++)); do $TMP/bin/new\$i brief 300 0; $TMP/bin/known brief 300 0; done" >"$TMP/said" 2>"$TMP/err"
	for was in new known; do
		for f in "$TMP"/followed/"$was"*.cpu.pb.gz; do
			"$PPROFCHECK" comments "$f" | sed -n 's/^followed: from \([0-9.]*\) ms.*/\1/p'
		done >"$TMP/ms.$was"
		[ "$(wc -l <"$TMP/ms.$was")" -ge $STARTS ] || wrong "only $(wc -l <"$TMP/ms.$was") of $was"
	done
	row "--follow$name, unknown" "$(wc -l <"$TMP/ms.new")" "$(middle "$TMP/ms.new")"
	row "--follow$name, known" "$(wc -l <"$TMP/ms.known")" "$(middle "$TMP/ms.known")"
	judge soon "$TMP/ms.new" "$unknown"
	judge soon "$TMP/ms.known" "$known"
	outcome "all_start/follow$name"
}
followed "" 300 50 --cpu
followed ", heap, wait" 300 50 --cpu --heap --wait
finish
