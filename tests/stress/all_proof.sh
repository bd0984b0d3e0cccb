#!/bin/bash
# PROCS processes of every Go version that is profiled, stripped and not, of three users, some in PID and mount namespaces:
# each one's CPU total is what /proc counted, within 2 %, and its shares are its own within sampling error; the heap of each that
# records it is what it says itself. One of them floods: it loses, and the others do not. All busy ones are stopped but for their
# time in the window.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

PROCS=${PROCS:-200} BUSY=${BUSY:-48}
RUN=${RUN:-150}	# ticks of CPU time for each busy one
USERS=(0 42433 42434)
chmod 755 "$TMP" && mkdir -m 755 "$TMP/bin"

# built NAME: with each version and stripped, in BUILT
built() {
	local v flags bin to
	BUILT=()
	for v in $ALL_MINORS; do
		for flags in '' '-ldflags=-s -w'; do
			bin=$(subject "$v" "$1" ${flags:+"$flags"}) || { fail all_proof "$1 does not build with Go $v"; finish; }
			to=$TMP/bin/$1-$v${flags:+-stripped}
			cp "$bin" "$to" && chmod 755 "$to"
			BUILT+=("$to")
		done
	done
}
built hosted
HOSTED=("${BUILT[@]}")
built heapself
RECORDS=("${BUILT[@]}")

# launch I PROGRAM ARG...: the I-th process, with a user, and every fifth in namespaces of its own. It is under way when this returns.
# Its pid is in LAST, and in PORT what it said behind "ready".
launch() {
	local i=$1 user
	shift
	user=${USERS[i % 3]}
	set -- setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
	[ $((i % 5)) != 0 ] || set -- unshare --pid --mount --mount-proc --fork --kill-child "$@"
	start "$@" || { fail all_proof "process $i does not start"; finish; }
	LAST=$PID
	[ $((i % 5)) != 0 ] || LAST=$(pgrep -P "$PID")
}
hosted() { launch "$1" "${HOSTED[$1 % ${#HOSTED[@]}]}" "${@:2}"; }
ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
file_of() { command ls "$TMP"/out/*."$1.${2:-cpu}.pb.gz" 2>/dev/null; }
ns_of() { "$PPROFCHECK" sum "$(file_of "$1")" | awk '$2 == "cpu" { print $1 }'; }

PIDS=() BEFORE=()
for ((i = 0; i < BUSY; i++)); do
	hosted $i busy $((1 + i % 4)) 1
	PIDS[i]=$LAST
	kill -STOP "$LAST"
done
start "${HOSTED[${#HOSTED[@]} - 1]}" flood || { fail all_proof "the one that floods does not start"; finish; }
FLOOD=$PID
kill -STOP $FLOOD
HEAPS=() PORTS=()
for ((k = 0; k < ${#RECORDS[@]}; k++)); do
	launch $((i++)) "${RECORDS[k]}" -rounds 1
	HEAPS[k]=$LAST PORTS[k]=$PORT
done
for ((; i < PROCS - 1; i++)); do hosted $i idle; done
# ask WHEN: each for its own records
ask() {
	for ((k = 0; k < ${#HEAPS[@]}; k++)); do
		http_get "${PORTS[k]}" /debug/pprof/heap "$TMP/$1.$k" || { echo "${RECORDS[k]} does not answer"; return 1; }
	done
}
judge ask one
for ((i = 0; i < BUSY; i++)); do BEFORE[i]=$(ticks_of "${PIDS[i]}"); done
flood_before=$(ticks_of $FLOOD)

"$GOPROF" --all --match "cmd=$TMP/bin/" --cpu --heap -F 10000 --host-budget=0,0 -d 3600s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
PROF=$!
STARTED+=($PROF)
for ((i = 0; i < 1200; i++)); do
	[ "$(count 'profiling [0-9]* process' "$TMP/err")" = 0 ] && kill -0 $PROF || break
	sleep 0.05
done
# A parent in a namespace, unshare, is no Go program.
grep -q "profiling $PROCS processes" "$TMP/err" || wrong "$(grep profiling "$TMP/err")"
kill -CONT "${PIDS[@]}" $FLOOD
ran() {
	local k
	for ((k = 0; k < BUSY; k++)); do [ $(($(ticks_of "${PIDS[k]}") - BEFORE[k])) -ge "$RUN" ] || return 1; done
}
until ran; do
	kill -0 $PROF || { fail all_proof "it ended: $(tail -n 1 "$TMP/err")"; finish; }
	sleep 0.5
done
kill -STOP "${PIDS[@]}" $FLOOD
sleep 0.2
kill -INT $PROF
wait $PROF
rc=$?
[ $rc = 3 ] || wrong "exit $rc, and the one that floods loses: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
judge ask two
outcome "all_proof/$PROCS processes"

for ((k = 0; k < ${#HEAPS[@]}; k++)); do judge judge_read "$TMP/one.$k" "$(file_of "${HEAPS[k]}" heap)" "$TMP/two.$k"; done
outcome all_proof/heap

# As judge_unhurt; of 10,000 samples one may break off.
unhurt() {
	awk '/^hits:/ { may = $2 / 10000 + 1 }
		/^loss: [0-9]+ stacks that end before their root/ && $2 <= may { next }
		{ print }' "$TMP/comments" >"$TMP/rest"
	judge_unhurt "$TMP/rest" 0.02
}
: >"$TMP/totals"
for ((i = 0; i < BUSY; i++)); do
	p=${PIDS[i]}
	echo "$p $(($(ticks_of "$p") - BEFORE[i])) $(ns_of "$p")" >>"$TMP/totals"
	judge "$PPROFCHECK" check "$(file_of "$p")"
	judge judge_split "$(file_of "$p")" first "$(awk -v a=$((1 + i % 4)) 'BEGIN { print a / (a + 1) }')"
	"$PPROFCHECK" comments "$(file_of "$p")" >"$TMP/comments"
	judge unhurt
done
outcome all_proof/shares
echo "$FLOOD $(($(ticks_of $FLOOD) - flood_before)) $(ns_of $FLOOD)" >>"$TMP/totals"
judge judge_totals "$TMP/totals"
outcome all_proof/totals
flooded() {
	"$PPROFCHECK" comments "$(file_of $FLOOD)" >"$TMP/comments"
	grep -qE '^loss: [0-9]+ samples of more distinct stacks' "$TMP/comments" || { echo "the one that floods lost nothing: $(grep ^hits "$TMP/comments")"; return 1; }
	grep -E '^goprof-bpf: pid [0-9]+ \(hosted.*: [0-9]+ samples of more distinct' "$TMP/err" >"$TMP/told"
	[ "$(wc -l <"$TMP/told")" = 1 ] && grep -q "pid $FLOOD " "$TMP/told" || { echo "others are told of: $(head -n 3 "$TMP/told")"; return 1; }
}
judge flooded
outcome all_proof/flood
finish
