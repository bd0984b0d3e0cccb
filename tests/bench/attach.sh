#!/bin/bash
# From exec to the line "profiling pid", for each kind of profile: what somebody waits for before
# anything is observed, in which a probe profile opens the program's file, loads its BPF programs,
# measures prices, puts probes in and watches a first window that does not count. Two programs: one
# that keeps every CPU busy, and one that mostly sleeps. Medians of STARTS, and the CPU time of the
# whole run of 100 ms, which a busy machine does not stretch so much.
#
# Wanted: attached within 0.15 s of its start (median), each kind alone.
. tests/support/lib.sh
need_root && need_bpf && need_go

STARTS=${STARTS:-9}
WANTED=0.15

row() { printf '%-9s %-26s %8s %8s %8s %8s\n' "$@"; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "none" }'; }

# Every line of stdin behind the time at which it came.
stamp() { while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done; }

# one OPTION...: adds a line to $TMP/attached, and one to $TMP/cpu
one() {
	(
		echo "$EPOCHREALTIME" >"$TMP/began"
		exec "$O/tests/rusage" "$TMP/use" "$GOPROF" -p "$PID" "$@" -d 100ms -o "$TMP" 2>&1 >/dev/null
	) | stamp | awk -v b="$TMP/began" '/: profiling pid/ { getline from <b; printf "%.3f\n", $1 - from }' >>"$TMP/attached"
	awk '{ printf "%.0f\n", $1 + $2 }' "$TMP/use" >>"$TMP/cpu"
	rm -f "$TMP"/*.pb.gz
}

# starts PROGRAM OPTION...: tells
starts() {
	local program=$1 i got
	shift
	rm -f "$TMP/attached" "$TMP/cpu"
	for ((i = 0; i < STARTS; i++)); do one "$@"; done
	[ "$(wc -l <"$TMP/attached")" = "$STARTS" ] || { fail "attach/$program/$*" "it did not attach"; return; }
	got=$(median <"$TMP/attached")
	row "$program" "$*" "$got" "$(sort -n "$TMP/attached" | head -n 1)" "$(sort -n "$TMP/attached" | tail -n 1)" \
		"$(median <"$TMP/cpu")"
	[ -n "$WANTED" ] || return
	if awk -v t="$got" -v w=$WANTED 'BEGIN { exit !(t <= w) }'; then
		pass "attach/$program/$*"
	else
		fail "attach/$program/$*" "$got s"
	fi
}

# kinds PROGRAM: of the one that runs
kinds() {
	starts "$1" --cpu
	starts "$1" --heap --source=probe
	starts "$1" --block --source=probe
	starts "$1" --mutex --source=probe
	starts "$1" --wait
	starts "$1" --goroutine
	# Each has BPF programs to load and probes to put in, one after the other: this is only told.
	WANTED='' starts "$1" --cpu --heap --block --wait --source=probe
}

echo "Attached after, $STARTS starts each, $(uname -r)"
uptime
row program kind median/s least/s most/s cpu/ms
bin=$(subject 1.27.4 cpuself) && start "$bin" -work inline,leaf,mapping,copying,chan,labels &&
	kinds busy && kill "$PID"
bin=$(subject 1.27.4 churn -ldflags='-s -w') && start "$bin" light "$TMP/log" && kinds light
finish
