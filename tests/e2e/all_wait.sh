#!/bin/bash
# Wait profiles of many processes in one run, each beside what its own program says (testdata/programs/waits): two Go
# versions and two builds, several that share a binary, one of which is nobody's target; one that starts in the window and
# one that ends in it; two containers of one image, whose files are one to the kernel; one with more goroutines than there is
# room for and stacks that are all different, which loses alone. Everything observed: numbers within 1 % and times within 3 %,
# as wait.sh judges them. Then in windows under the host's budget (testdata/programs/relay).
# Mounts of its own.
[ -n "${ALL_WAIT_INSIDE:-}" ] || exec unshare --mount env ALL_WAIT_INSIDE=1 bash "$0" "$@"
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

new=$(subject 1.27.4 waits '-ldflags=-s -w') && old=$(subject 1.18.10 waits -buildmode=pie '-ldflags=-s -w') &&
	host=$(subject 1.22.12 hosted '-ldflags=-s -w') && relay=$(subject 1.27.4 relay '-ldflags=-s -w') && older=$(subject 1.19.13 relay '-ldflags=-s -w') ||
	{ fail all_wait "does not build"; finish; }
mkdir "$TMP/bin"
for f in new old host relay older; do cp "${!f}" "$TMP/bin/$f"; done
for f in one two; do
	mkdir -p "$TMP/$f" "$TMP/up.$f" "$TMP/work.$f"
	mount -t overlay overlay -o "lowerdir=$TMP/bin,upperdir=$TMP/up.$f,workdir=$TMP/work.$f" "$TMP/$f" || { fail all_wait "no overlay"; finish; }
done

declare -A pid fd answers
# launch NAME PROGRAM: one that obeys
launch() {
	begin_program "$TMP/bin/$2" "${@:3}" || { fail all_wait "$1 does not start"; finish; }
	pid[$1]=$PID fd[$1]=$FD answers[$1]=$SAID
}
tell() { echo "${*:2}" >&"${fd[$1]}"; }
# answered NAME: to one command more than before
answered() {
	local i
	for ((i = 0; i < 2400; i++)); do
		[ "$(count '^done' "${answers[$1]}")" -ge "${2:-1}" ] && return
		sleep 0.05
	done
	return 1
}
wait_for() { # FILE TEXT
	local i
	for ((i = 0; i < 600; i++)); do command grep -q "$2" "$1" 2>/dev/null && return 0; sleep 0.1; done
	return 1
}
file_in() { command ls "$TMP/$1"/*."${pid[$2]}.wait.pb.gz" 2>/dev/null; }
comments() { "$PPROFCHECK" comments "$(file_in "$1" "$2")"; }

# profile DIR OPTION...: begins, in the background
profile() {
	local dir=$1
	shift
	: >"$TMP/err.$dir"
	"$GOPROF" --all --match "exe=$TMP/bin/*" --match "exe=$TMP/one/*" --match "exe=$TMP/two/*" --exclude "cmd=* -by" --wait -d 300s -o "$TMP/$dir" "$@" >"$TMP/paths.$dir" 2>"$TMP/err.$dir" &
	PROF=$!
	STARTED+=("$PROF")
	wait_for "$TMP/err.$dir" '^goprof-bpf: profiling' || { fail all_wait "$(tail -n 3 "$TMP/err.$dir" | tr '\n' ' ')"; finish; }
}
stop() { # sets RC
	kill -INT "$PROF"
	wait "$PROF"
	RC=$?
}

# ---- all of the time observed
ALL='a b c d e f gone'
launch a new
launch b new
launch by new -by # a bystander: not a target, and busy all the time
launch c old
launch d old
launch gone new
launch e ../one/new
launch f ../two/new
launch flood host waitflood
profile full --host-budget=0,0 --wait-rate=1
# Between the program's look at its clock and the goroutine's park its thread may lose the CPU, by up to 10 ms where as many
# want one: once in 100,000 waits, 3 % of ten waits of 20 ms. So they are longer.
for n in $ALL; do tell "$n" run all,mutex100 10 60; done
tell by run all 10 60
tell flood go
launch later old
sleep 1.5 # it is found and looked at
tell later run all 10 60
for n in $ALL later by; do answered "$n" || { fail all_wait "$n does not finish"; finish; }; done
tell gone end
sleep 1
stop
kill "${pid[flood]}"

# judge_one DIR NAME: by what its program said
judge_one() {
	local rc=0
	[ -s "$(file_in "$1" "$2")" ] || { echo "$2 has no profile"; return 1; }
	"$PPROFCHECK" known -kind wait "${answers[$2]}" "$(file_in "$1" "$2")" >"$TMP/verdict" || rc=$?
	sed '/ 0 of 0\.\.0, .* ok$/d; s/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -E '/: ok$|^left out/d' "$TMP/verdict"
	return $rc
}
for n in $ALL later; do
	judge judge_one full "$n"
	judge valid "$(file_in full "$n")"
	outcome all_wait/full/$n
done
bystander() {
	[ -z "$(file_in full by)" ] || { echo "it has a profile"; return 1; }
	comments full a | grep -qE ' [1-9][0-9]{3,} hits of processes that are not profiled' || { echo "its hits are not told"; return 1; }
}
judge bystander
outcome all_wait/bystander
flooded() {
	local lost
	grep -E "^goprof-bpf: pid [0-9]+ \(.*\): [a-z]+: [0-9]+ (samples (dropped|of more)|waits )" "$TMP/err.full" | grep -v "pid ${pid[flood]} " && { echo "others lose"; return 1; }
	lost=$(count "^goprof-bpf: pid ${pid[flood]} (.*): wait: [0-9]* waits" "$TMP/err.full")
	[ "$lost" -gt 0 ] && [ "$RC" = 3 ] || { echo "exit $RC, and the one that floods loses no goroutines"; sed -n "/^goprof-bpf: pid/p" "$TMP/err.full"; return 1; }
}
judge flooded
outcome all_wait/flood
told() {
	comments full a | grep -q '^source: probe' || { echo "the source"; return 1; }
	comments full gone | grep -q '^end: the process ended in the window' || { echo "the end"; return 1; }
	grep -qE "^ *${pid[a]} .* wait  " "$TMP/err.full" || { echo "the table"; return 1; }
	grep -qE '^[0-9.]+ s of waits in the window, by [0-9]+ of [0-9]+ Go processes' "$TMP/err.full" || { echo "the sums"; return 1; }
}
judge told
outcome all_wait/told
for n in a b c d e f later by; do tell "$n" end; done

# ---- in windows: two of one file, of which one does nearly all, and one of another
for n in heavy:relay:-own light:relay:-calm other:older:-calm; do
	IFS=: read -r name bin option <<<"$n"
	# shellcheck disable=SC2086
	start "$TMP/bin/$bin" $option "$TMP/log.$name"
	pid[$name]=$PID
done
sleep 0.5
"$GOPROF" --all --match "cmd=*$TMP/log.*" --wait --cpu --host-budget=5%,5% -d "${SECONDS_EACH:-30}s" -o "$TMP/windows" >"$TMP/paths.windows" 2>"$TMP/err.windows"
sleep 0.3
# in_budget NAME TYPE FLAG...: by relay's own log, what goroutines waited for (a mutex is a semaphore in Go 1.19)
in_budget() {
	local rc=0 name=$1 typ=$2
	shift 2
	"$PPROFCHECK" budget -kind block -reasons "chan receive,chan send,sync.Mutex.Lock,semacquire" -type "$typ" "$@" \
		"$TMP/log.$name" "$(file_in windows "$name")" >"$TMP/verdict" || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
	return $rc
}
for n in heavy light other; do
	comments windows $n | sed -nE 's/^(budget|hits|delays|error: all)/# &/p' >&2
	judge in_budget $n delay -few 2 -off 0.1 -within 0.1
	judge in_budget $n contentions -few 2 -sure 0.5 -off 0.02
	outcome all_wait/windows/$n
done
many() {
	[ "$(comments windows heavy | sed -n 's/^budget: .*[^0-9]\([0-9][0-9]*\) windows.*/\1/p')" -ge 5 ] || comments windows heavy
	comments windows heavy | grep -q '^budget: 4.5% of the CPU time of all that run the file .* of the 5% that --host-budget' || { echo "whose 4.5% is that?"; return 1; }
	comments windows light | grep -q '^delays: by [0-9]* looks' || { echo "where are delays from?"; return 1; }
}
judge many
outcome all_wait/windows

# ---- what starts while its file is in windows is looked at from its exec on, when its runtime has not begun: no kind is lost by that
fresh() {
	local prof i kind
	"$GOPROF" --all --match "cmd=*$TMP/log.*" --wait --block --mutex --source=probe -d 300s -o "$TMP/fresh" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	has_begun $prof "$TMP/err" 'profiling 3 processes'
	sleep 2
	for i in 1 2 3 4 5 6 7 8; do
		start "$TMP/bin/relay" -calm "$TMP/log.fresh$i"
		pid[fresh$i]=$PID
	done
	sleep 1
	kill -INT $prof
	wait $prof || true
	for i in 1 2 3 4 5 6 7 8; do
		for kind in wait block mutex; do [ -s "$(command ls "$TMP/fresh"/*."${pid[fresh$i]}.$kind.pb.gz")" ]; done
		kill -KILL "${pid[fresh$i]}"
	done
	"$PPROFCHECK" comments "$TMP"/fresh/*."${pid[heavy]}.wait.pb.gz" | has '[0-9] windows of'
}
steps fresh
outcome all_wait/fresh

# ---- the collector is killed while it probes all there is: the one helper takes the probes out and goes
profile killed --host-budget=0,0 --cpu --heap --block --mutex --source=probe --match "cmd=*$TMP/log.*"
sleep 1
helper=$(pgrep -P "$PROF" -x uprobe-attacher)
kill -KILL "$PROF"
wait "$PROF" 2>/dev/null
for ((i = 0; i < 100; i++)); do runs "$helper" || break; sleep 0.1; done
untouched() {
	local n
	[ "$(wc -w <<<"$helper")" = 1 ] || { echo "helpers: '$helper'"; return 1; }
	runs "$helper" && { echo "a helper is left"; return 1; }
	for n in heavy light other; do
		"$GOPROF" heal -p "${pid[$n]}" 2>&1 | has 'no breakpoints in the code' || { echo "$n has breakpoints"; return 1; }
	done
}
judge untouched
outcome all_wait/killed
for f in one two; do umount -l "$TMP/$f"; done
finish
