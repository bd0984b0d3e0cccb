#!/bin/bash
# CPU profiles of many processes in one run: ten of two binaries, of which three are busy, one of these in a PID
# namespace of its own. They are stopped before and after their time in the window, so what /proc counted is what a
# profile must have.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

new=$(subject 1.27.4 hosted) && old=$(subject 1.19.13 hosted -ldflags='-s -w') || { fail all_cpu "does not build"; finish; }
ours=cmd=${new%/*}/hosted-1. # of this tree alone
ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
file_of() { command ls "$TMP"/out/*."$1".cpu.pb.gz 2>/dev/null; }
ns_of() { "$PPROFCHECK" sum "$(file_of "$1")" | awk '$2 == "cpu" { print $1 }'; }

declare -A pid before
launch() { # NAME PROGRAM ARG...
	start "${@:2}" || { fail all_cpu "$1 does not start"; finish; }
	pid[$1]=$PID
}
for i in 1 2 3; do launch idle$i "$new" idle; done
for i in 4 5 6; do launch idle$i "$old" idle; done

ran() {
	local n
	for n in $busy; do [ $(($(ticks_of "${pid[$n]}") - before[$n])) -ge $RUN ] || return 1; done
}

# observe FLAG...: all of $busy run in the window until each has used $RUN ticks of CPU time
observe() {
	local n i
	rm -rf "$TMP/out"
	: >"$TMP/err"
	for n in $busy; do before[$n]=$(ticks_of "${pid[$n]}"); done
	"$GOPROF" --all --match "$ours" --cpu -d 300s -o "$TMP/out" "$@" >"$TMP/paths" 2>"$TMP/err" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 1200; i++)); do
		grep -q 'profiling [0-9]* process' "$TMP/err" && break
		kill -0 "$PROF" 2>/dev/null || break
		sleep 0.05
	done
	for n in $busy; do kill -CONT "${pid[$n]}"; done
	for ((i = 0; i < 300; i++)); do
		ran || { sleep 0.1; continue; }
		break
	done
	meanwhile
	for n in $busy; do kill -STOP "${pid[$n]}"; done
	sleep 0.1
	kill -INT "$PROF"
	wait "$PROF"
	RC=$?
	: >"$TMP/totals"
	for n in $busy; do
		[ -s "$(file_of "${pid[$n]}")" ] || continue
		echo "$n $(($(ticks_of "${pid[$n]}") - before[$n])) $(ns_of "${pid[$n]}")" >>"$TMP/totals"
		"$PPROFCHECK" comments "$(file_of "${pid[$n]}")" >"$TMP/comments.$n"
	done
}

# Processes of others here that could not be looked at are not meant, by their command line.
ended_well() { [ "$RC" = 0 ] || { echo "exit $RC: $(grep '^goprof-bpf: ' "$TMP/err" | grep -v ' cost: ' | tr '\n' ' ')"; return 1; }; }
each() { # NAME...: has a valid profile
	local n
	for n; do "$PPROFCHECK" check "$(file_of "${pid[$n]}")" || return 1; done
}

# ---- who is meant
"$GOPROF" --all --match "$ours" --exclude cmd=*busy* --dry-run >"$TMP/table" 2>"$TMP/err"
said=$(count '  hosted-' "$TMP/table")
[ "$said" = 6 ] && [ -z "$(command ls "$TMP"/*.gz 2>/dev/null)" ] && pass all_cpu/dry-run || fail all_cpu/dry-run "$said of 6 processes are in the table"

few_descriptors() {
	# So few that it can hear of programs, and not hold them.
	(for fd in {3..60}; do eval "exec $fd>&-"; done; ulimit -n 19
		exec "$GOPROF" --all --match "$ours" --cpu -d 1s -o "$TMP/out") >"$TMP/paths" 2>"$TMP/err" && rc=0 || rc=$?
	[ $rc = 1 ]
	has 'no more file descriptors for processes' "$TMP/err"
}
steps few_descriptors
outcome all_cpu/few-descriptors

# As few as a run begins with: what starts later has no room, and that takes nothing from those that are in.
few_later() {
	local n prof rc=0 late
	launch f1 "$new" busy 1 1
	launch f2 "$old" busy 1 1
	for ((n = 24; n <= 120; n += 2)); do
		(for fd in {3..59}; do eval "exec $fd>&-"; done; ulimit -n $n
			exec "$GOPROF" --all --match "$ours" --cpu -d 3s -o "$TMP/out") >"$TMP/paths" 2>"$TMP/err" & prof=$!
		STARTED+=("$prof")
		until grep -q 'profiling [0-9]* process' "$TMP/err" || ! kill -0 $prof 2>/dev/null; do sleep 0.05; done
		if grep -q 'profiling [0-9]* process' "$TMP/err"; then break; fi
		wait $prof || rc=$?
	done
	[ "$rc" = 1 ] # fewer did not do
	for late in 1 2 3; do launch "late$late" "$new" busy 1 1; done
	wait $prof && rc=0 || rc=$?
	kill -KILL "${pid[f1]}" "${pid[f2]}" "${pid[late1]}" "${pid[late2]}" "${pid[late3]}"
	[ $rc = 3 ]
	[ "$(grep -c 'no more file descriptors for processes' "$TMP/err")" = 1 ]
	has '^goprof-bpf: [0-9]* programs that started meanwhile were not looked at' "$TMP/err"
	[ "$(awk '/ended|Too many open files/ { n++ } END { print n + 0 }' "$TMP/err")" = 0 ]
	for n in f1 f2; do [ "$(ns_of "${pid[$n]}")" -gt 500000000 ]; done
}
steps few_later
outcome all_cpu/few-later

# Programs of 20 ms, one after another: the sums have what their profiles have, though most are never met by a reading of their clocks.
brief() {
	local f sum=0 said shell prof
	(while :; do "$new" brief 20 0 >/dev/null; done) &
	shell=$!
	STARTED+=("$shell")
	"$GOPROF" --all --match "$ours" --cpu --host-budget=0,0 -d 3s -o "$TMP/brief" >"$TMP/paths" 2>"$TMP/err" || prof=$?
	kill -KILL $shell
	said=$(sed -n 's/^\([0-9.]*\) s of CPU time in .*/\1/p' "$TMP/err")
	while read -r f; do sum=$((sum + $("$PPROFCHECK" sum "$f" | awk '$2 == "cpu" { print $1 }'))); done <"$TMP/paths"
	[ "$(wc -l <"$TMP/paths")" -ge 20 ]
	# What no tick met has no file: a tick's distance of CPU time or so.
	unmet=$(($(sed -n 's/^goprof-bpf: \([0-9]*\) programs started meanwhile, .*/\1/p' "$TMP/err") - $(wc -l <"$TMP/paths")))
	awk -v said="$said" -v sum=$sum -v unmet=$unmet 'BEGIN { of = sum / 1e9
		exit !(of > 0.3 && said > 0.98 * of - 0.01 && said < 1.02 * of + 0.01 + 0.02 * unmet) }' || echo "$said s are said, and the files have $sum ns, without $unmet programs"
}
steps brief
outcome all_cpu/brief

# A process that its parent reaps at once has a total that is exact, too, even where samples are 100 ms apart: of what the shell counts,
# what was before its exec and before we looked is missing.
run_brief() { # N
	local TIMEFORMAT='%3U %3S'
	# shellcheck disable=SC2016
	{ time bash -c 'echo $$ >"$0"; exec "$@"' "$TMP/reaped/$1.pid" "$new" brief 300 0 >/dev/null; } 2>"$TMP/reaped/$1.time"
}
reaped() {
	local i prof=0 shell file
	mkdir "$TMP/reaped"
	"$GOPROF" --all --match "$ours" --cpu -F 10 -d 4s -o "$TMP/reaped/out" >"$TMP/paths" 2>"$TMP/err" &
	shell=$!
	STARTED+=("$shell")
	has_begun $shell "$TMP/err" 'profiling [0-9]* process'
	for i in 1 2 3 4 5 6 7 8; do run_brief $i; done
	wait $shell || prof=$?
	[ $prof = 0 ]
	for i in 1 2 3 4 5 6 7 8; do
		file=$(command ls "$TMP"/reaped/out/*."$(cat "$TMP/reaped/$i.pid")".cpu.pb.gz)
		"$PPROFCHECK" comments "$file" >"$TMP/reaped/$i.said"
		[ "$(grep -c 'by the kernel: each' "$TMP/reaped/$i.said")" = 1 ]
		awk -v ns="$("$PPROFCHECK" sum "$file" | awk '$2 == "cpu" { print $1 }')" -v late="$(sed -n 's/^begun: \([0-9.]*\) ms .*/\1/p' "$TMP/reaped/$i.said")" \
			'{ cpu = $1 + $2; missing = cpu - ns / 1e9; if (missing < -0.002 || missing > 0.01 + late / 1e3) print cpu " s, and the profile has " ns " ns, begun after " late " ms" }' "$TMP/reaped/$i.time"
	done
}
steps reaped
outcome all_cpu/reaped

# What starts meanwhile and cannot be profiled is counted and named as what ran before: it runs in spite of a table that lies.
unfit() {
	local at shell prof=0
	mkdir "$TMP/unfit"
	cp "$new" "$TMP/unfit/hosted-unfit"
	at=$((16#$(readelf -SW "$new" | sed -n 's/.* \.gopclntab  *[A-Z]*  *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')))
	printf '\377\377\377\377\377\377\377\377' | dd of="$TMP/unfit/hosted-unfit" bs=1 seek=$((at + 40)) conv=notrunc 2>/dev/null # cuOffset
	"$GOPROF" --all --match "exe=$TMP/unfit/*" --cpu -d 3s -o "$TMP/unfit/out" >"$TMP/paths" 2>"$TMP/err" &
	shell=$!
	STARTED+=("$shell")
	has_begun $shell "$TMP/err" 'profiling 0 processes'
	for at in 1 2; do "$TMP/unfit/hosted-unfit" brief 100 200 >/dev/null; done
	wait $shell || prof=$?
	[ $prof = 3 ]
	has '^goprof-bpf: 2 programs that started meanwhile cannot be profiled: pid [0-9]* (hosted-unfit) and [0-9]* (hosted-unfit); the first: .*cutab' "$TMP/err"
}
steps unfit
outcome all_cpu/unfit

# ---- totals and shares; one that ends, one that starts
launch b31 "$new" busy 3 1
launch b11 "$old" busy 1 1
launch gone "$new" busy 1 3
launch inner unshare --pid --fork --kill-child "$old" busy 1 3
pid[inner]=$(pgrep -P "$PID")
busy="b31 b11 inner"
for n in $busy; do kill -STOP "${pid[$n]}"; done
meanwhile() {
	kill -KILL "${pid[gone]}"
	wait "${pid[gone]}" 2>/dev/null
	launch late "$old" busy 1 1
	born=$EPOCHREALTIME
	sleep 1
	late_ticks=$(ticks_of "${pid[late]}") late_ns=$(awk -v a="$born" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
}
RUN=120
observe -v -F 250
# -v: each step once, in order.
told_steps() {
	local said
	said=$(sed -n 's/^goprof-bpf: \(.*\) in [0-9.]* m\{0,1\}s$/\1/p' "$TMP/err" | tr '\n' ',')
	[ "$said" = 'looked at the processes,loaded,opened,attached,collected,detached and written,' ] || { echo "steps: $said"; return 1; }
}
judge told_steps
outcome all_cpu/verbose
judge ended_well
judge each b31 b11 inner gone late
outcome all_cpu/profiles
judge judge_totals "$TMP/totals"
judge judge_unhurt "$TMP/comments.b31"
judge judge_unhurt "$TMP/comments.b11"
judge judge_unhurt "$TMP/comments.inner"
outcome all_cpu/totals
judge judge_split "$(file_of "${pid[b31]}")" first 0.75
judge judge_split "$(file_of "${pid[b11]}")" first 0.5
judge judge_split "$(file_of "${pid[inner]}")" first 0.25
outcome all_cpu/shares

# Of the new one at most what it did in its first half second is missing.
late() {
	awk -v got="$(ns_of "${pid[late]}")" -v ticks="$late_ticks" 'BEGIN {
		if (ticks < 10 || got / 1e9 < ticks / 100 - 0.5 || got <= 0) { printf "%.2f s of %.2f s\n", got / 1e9, ticks / 100; exit 1 } }'
	grep -qE 'programs? started meanwhile' "$TMP/err" || { echo "nobody told that one started"; return 1; }
}
judge late
outcome all_cpu/late
gone() {
	"$PPROFCHECK" comments "$(file_of "${pid[gone]}")" >"$TMP/comments.gone"
	has '^end: the process ended' "$TMP/comments.gone" || { echo "its end is not told"; return 1; }
	has "${pid[gone]}  hosted.*, ended" "$TMP/err" || { echo "the summary does not tell its end"; return 1; }
}
judge gone
outcome all_cpu/gone
idle_files=$(for i in 1 2 3 4 5 6; do file_of "${pid[idle$i]}"; done | wc -l)
[ "$idle_files" -le 2 ] && pass all_cpu/idle || fail all_cpu/idle "$idle_files profiles of processes that sleep"
kill "${pid[late]}"

# What all samples stand for is the CPU time that the kernel charged, within 10 %.
judge_whole_hits() { judge_charged "$1" 0.9 1.1; }

# ---- one floods: it loses, and the others do not
launch flood "$new" flood
kill -STOP "${pid[flood]}"
busy="b31 b11 flood"
meanwhile() { :; }
RUN=160
observe -F 10000 --host-budget=0,0
flooded() {
	has '^loss: [0-9]* samples of more distinct stacks' "$TMP/comments.flood" || { echo "it lost nothing: $(grep -E '^hits' "$TMP/comments.flood")"; return 1; }
	grep -qE "pid ${pid[flood]} \(hosted[^)]*\): cpu: [0-9]+ samples of more distinct stacks" "$TMP/err" || { echo "nobody told it"; return 1; }
	[ "$RC" = 3 ] || { echo "exit $RC"; return 1; }
}
judge flooded
judge judge_totals "$TMP/totals"
outcome all_cpu/flooder
judge judge_unhurt "$TMP/comments.b31" 0.02
judge judge_unhurt "$TMP/comments.b11" 0.02
judge judge_split "$(file_of "${pid[b31]}")" first 0.75
outcome all_cpu/untouched

# ---- a budget that is far too small: fewer samples, which stand for more
kill "${pid[flood]}"
busy="b31 b11"
# A clock whose ticks are 6.4 ms apart has another rate each 160 ms: of 1.7 s, 5 of 140 numbers of ticks were more than 10 % off.
RUN=640
observe -F 10000 --host-budget=0,0.01%
slowed() {
	grep -qE '^goprof-bpf: cost: .* of one CPU; no bound\); sampling took .* at most 0.01 %(; the time of .* is not in that)?\)$' "$TMP/err" || { echo "no receipt: $(grep cost: "$TMP/err")"; return 1; }
	grep -qE '^goprof-bpf: cost: samples were taken at 1/[0-9]+ of the rate' "$TMP/err" || { echo "it was not slowed down: $(grep cost: "$TMP/err")"; return 1; }
	grep -qE '^rate: [0-9.]+ Hz at the end' "$TMP/comments.b31" || { echo "the profile does not tell"; return 1; }
}
judge slowed
judge judge_totals "$TMP/totals"
judge judge_whole_hits "$TMP/comments.b31"
outcome all_cpu/budget

# ---- those that are named; one of them is none
sleep 300 &
STARTED+=($!)
kill -CONT "${pid[b31]}" "${pid[b11]}"
rm -rf "$TMP/out"
"$GOPROF" -p "${pid[b31]}" -p "${pid[b11]}" -p $! --cpu -d 1s --format pprof --format flame -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err"
rc=$?
[ $rc = 3 ] && [ "$(wc -l <"$TMP/paths")" = 5 ] && grep -q "pid $! is not a Go program" "$TMP/err" && each b31 b11 >"$TMP/check" &&
	[ -s "$TMP/out/host.cpu.html" ] && grep -q 'main.first' "$TMP/out/host.cpu.html" &&
	pass all_cpu/named || fail all_cpu/named "exit $rc: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"

# ---- kernel frames without names: said at the start, and in the profiles, as for a single process (which may lose
# something in so short a time: exit status 3)
nameless() {
	rm -rf "$TMP/out"
	setpriv --bounding-set=-syslog "$GOPROF" "$@" --cpu --kernel -d 1s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || [ $? = 3 ] || echo "exit status $?"
	WARNED="$(count '^goprof-bpf: cpu: warning: ' "$TMP/err")"
	"$PPROFCHECK" comments "$(file_of "${pid[b31]}")" >"$TMP/comments"
	while read -r _ _ _ line; do WARNED+=" $(count "^$line" "$TMP/comments")"; done < <(grep 'cpu: warning: ' "$TMP/err" | cut -c 1-90)
}
kernel_names() {
	local alone
	nameless -p "${pid[b31]}"
	alone=$WARNED
	nameless -p "${pid[b31]}" -p "${pid[b11]}"
	[ "$WARNED" = "$alone" ] || echo "$WARNED among many, $alone alone: $(cat "$TMP/err")"
}
steps kernel_names
outcome all_cpu/kernel_names
finish
