#!/bin/bash
# Block and mutex profiles of many processes in one run, each beside what its own program says (testdata/programs/waits): two Go
# versions, two that share a binary with one that is nobody's target, one that starts in the window, and one that records both
# itself, which is read. Everything observed: numbers within 1 % and times within 3 %, as contention_probe.sh judges them. Then
# mutexes alone, of two; and in windows under the host's budget (testdata/programs/relay).
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

new=$(subject 1.27.4 waits '-ldflags=-s -w') && old=$(subject 1.18.10 waits -buildmode=pie '-ldflags=-s -w') && self=$(subject 1.27.4 waits -tags=self) &&
	relay=$(subject 1.27.4 relay '-ldflags=-s -w') && older=$(subject 1.19.13 relay '-ldflags=-s -w') || { fail all_block "does not build"; finish; }
mkdir "$TMP/bin"
for f in new old self relay older; do cp "${!f}" "$TMP/bin/$f"; done

declare -A pid fd answers
# launch NAME PROGRAM: one that obeys
launch() {
	begin_program "$TMP/bin/$2" "${@:3}" || { fail all_block "$1 does not start"; finish; }
	pid[$1]=$PID fd[$1]=$FD answers[$1]=$SAID
}
tell() { echo "${*:2}" >&"${fd[$1]}"; }
# answered NAME N: to N commands
answered() {
	local i
	for ((i = 0; i < 2400; i++)); do
		[ "$(count '^done' "${answers[$1]}")" -ge "$2" ] && return
		sleep 0.05
	done
	fail all_block "$1 does not finish"
	finish
}
file_in() { command ls "$TMP/$1"/*."${pid[$2]}.$3.pb.gz" 2>/dev/null; }
comments() { "$PPROFCHECK" comments "$(file_in "$1" "$2" "$3")"; }

# profile DIR OPTION...: begins, in the background
profile() {
	local dir=$1 i
	shift
	: >"$TMP/err.$dir"
	"$GOPROF" -d 300s -o "$TMP/$dir" "$@" >"$TMP/paths.$dir" 2>"$TMP/err.$dir" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 600; i++)); do grep -q '^goprof-bpf: profiling' "$TMP/err.$dir" && return; sleep 0.1; done
	fail all_block "$(tail -n 3 "$TMP/err.$dir" | tr '\n' ' ')"
	finish
}
stop() { # sets RC
	kill -INT "$PROF"
	wait "$PROF"
	RC=$?
}
# judge_one DIR NAME KIND: by what its program said. One that is met early enough has the waits with which it begins, too.
judge_one() {
	local rc=0 wrong
	[ -s "$(file_in "$1" "$2" "$3")" ] || { echo "$2 has no $3 profile"; return 1; }
	"$PPROFCHECK" known -kind "$3" "${answers[$2]}" "$(file_in "$1" "$2" "$3")" >"$TMP/verdict" || rc=$?
	sed '/ 0 of 0\.\.0, .* ok$/d; s/^/# /' "$TMP/verdict" >&2
	wrong=$(sed -E '/: ok$|^left out|<- (runtime\.gcenable|main\.Main <- main\.main) <- runtime\.main$/d' "$TMP/verdict")
	[ $rc = 1 ] && [ -z "$wrong" ] && [ "$2" = later ] && return
	[ $rc = 0 ] || echo "$wrong"
	return $rc
}

# ---- all of the time observed
ALL='a b c'
launch a new
launch b new
launch by new -by # a bystander: not a target, and busy all the time
launch c old
launch rec self
profile full --all --match "exe=$TMP/bin/*" --exclude "cmd=* -by" --block --mutex --block-rate=1 --mutex-fraction=1 --host-budget=0,0
for n in $ALL by rec; do tell "$n" run all,mutex100 10 60; done # as long as in all_wait.sh
launch later old
sleep 1.5 # it is found and looked at
tell later run all,mutex100 10 60
for n in $ALL later by rec; do answered "$n" 1; done
stop
for n in $ALL later; do
	for kind in block mutex; do
		judge judge_one full "$n" $kind
		judge valid "$(file_in full "$n" $kind)"
	done
	outcome all_block/full/$n
done
told() {
	local kind
	[ -z "$(file_in full by block)$(file_in full by mutex)" ] || { echo "the bystander has a profile"; return 1; }
	for kind in block mutex; do
		comments full a $kind >"$TMP/comments"
		has '^source: probe' "$TMP/comments" && has -E ' [1-9][0-9]{3,} hits of processes that are not profiled' "$TMP/comments" && has '^probes: 4 ' "$TMP/comments" ||
			{ echo "$kind:"; cat "$TMP/comments"; return 1; }
		comments full rec $kind | grep -q '^source: read' || { echo "rec's $kind is not read"; return 1; }
	done
	grep -qE "^ *${pid[a]} .* block\(probe\),mutex\(probe\)  " "$TMP/err.full" && grep -qE "^ *${pid[rec]} .* block,mutex  " "$TMP/err.full" || { echo "the table"; return 1; }
	for kind in 'blocking' 'waits for mutexes'; do
		grep -qE "^[0-9.]+ s of $kind in the window, by [45] of 5 Go processes" "$TMP/err.full" &&
			grep -qE "^[0-9.]+ s of $kind since they started, by 1 of 1 Go processes" "$TMP/err.full" || { echo "the sums of $kind"; return 1; }
	done
	grep -E '^goprof-bpf: (pid [0-9]+ \(|[0-9]+ process(es)? (has|have) no )' "$TMP/err.full" && { echo "something is lost"; return 1; }
	[ "$RC" = 0 ] || grep -q 'could not be looked at' "$TMP/err.full" || { echo "exit $RC"; return 1; }
}
judge told
outcome all_block/told

# ---- one kind: only its places; and what records is probed when that is asked for
lines=$(wc -l <"${answers[rec]}")
profile mutex -p "${pid[c]}" -p "${pid[rec]}" --mutex --source=probe --mutex-fraction=1 --host-budget=0,0
tell rec run all,mutex100 10 20
answered rec 2
stop
sed -i "1,${lines}d" "${answers[rec]}"
alone() {
	comments mutex rec mutex | grep -q '^probes: 3 ' || { comments mutex rec mutex; return 1; }
	[ "$RC" = 0 ] && [ -z "$(file_in mutex rec block)" ] || { echo "exit $RC"; command ls "$TMP/mutex"; return 1; }
}
judge judge_one mutex rec mutex
judge alone
outcome all_block/alone
for n in $ALL later by rec; do tell "$n" end; done

# ---- in windows: two of one file, of which one does nearly all, and one of another
for n in heavy:relay:-own light:relay:-calm other:older:-calm; do
	IFS=: read -r name bin option <<<"$n"
	start "$TMP/bin/$bin" "$option" "$TMP/log.$name"
	pid[$name]=$PID
done
sleep 0.5
"$GOPROF" --all --match "cmd=*$TMP/log.*" --block --mutex --source=probe --host-budget=5%,5% -d "${SECONDS_EACH:-20}s" -o "$TMP/windows" >"$TMP/paths.windows" 2>"$TMP/err.windows"
sleep 0.3
# in_budget NAME TYPE FLAG...: by relay's own log
in_budget() {
	local rc=0 name=$1 typ=$2
	shift 2
	"$PPROFCHECK" budget -kind block -type "$typ" "$@" "$TMP/log.$name" "$(file_in windows "$name" block)" >"$TMP/verdict" || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
	return $rc
}
for n in heavy light other; do
	comments windows $n block | sed -nE 's/^(budget|hits|delays|error: all)/# &/p' >&2
	judge in_budget $n delay -few 2 -off 0.1 -within 0.1
	judge in_budget $n contentions -few 2 -sure 0.5 -off 0.02
	outcome all_block/windows/$n
done
many() {
	comments windows heavy mutex >"$TMP/comments"
	[ "$(sed -n 's/^budget: .*[^0-9]\([0-9][0-9]*\) windows.*/\1/p' "$TMP/comments")" -ge 5 ] &&
		has '^budget: 4.5% of the CPU time of all that run the file .* of the 5% that --host-budget' "$TMP/comments" || { cat "$TMP/comments"; return 1; }
	comments windows light block | grep -q '^delays: by [0-9]* looks' || { echo "where are delays from?"; return 1; }
}
judge many
outcome all_block/windows
finish
