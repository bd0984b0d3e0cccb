#!/bin/bash
# PROCS processes of every Go version that is profiled, stripped and not, of three users, some in PID and mount namespaces:
# each one's CPU total is what /proc counted, within 2 %, and its shares are its own within sampling error; the heap of each that
# records it is what it says itself. One of them floods: it loses, and the others do not. All busy ones are stopped but for their
# time in the window.
#
# PROBE=1: heaps and waits are probed beside it, and another one floods: it starts 100,000 goroutines a second, each of which waits
# in a stack of its own. Then the heap of one process of every version, stripped and not, is what
# that allocated meanwhile, within 4 standard errors (testdata/programs/alloctruth).
#
# DEFAULTS=1: all kinds, at the rates and budgets that users have who ask for nothing. At 100 Hz nobody floods.
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

PROCS=${PROCS:-200} BUSY=${BUSY:-48}
RUN=${RUN:-$((${DEFAULTS:-0} ? 400 : 150))}	# ticks of CPU time for each busy one
LIMITS=(-F 10000 --host-budget=0,0)
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
KINDS=(--cpu --heap)
[ -z "${PROBE:-}" ] || KINDS+=(--source=probe --heap-rate=1024 --wait)
[ -z "${DEFAULTS:-}" ] || LIMITS=() KINDS+=(--block --mutex --wait)
if [ -n "${PROBE:-}" ]; then built alloctruth; else built heapself; fi
RECORDS=("${BUILT[@]}")

# launch I PROGRAM ARG...: the I-th process, with a user, and every fifth in namespaces of its own. It is under way when this returns.
# Its pid is in LAST, and in PORT what it said behind "ready". HOW: start; or begin_program, where it waits for a word.
HOW=start
launch() {
	local i=$1 user
	shift
	user=${USERS[i % 3]}
	set -- setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
	[ $((i % 5)) != 0 ] || set -- unshare --pid --mount --mount-proc --fork --kill-child "$@"
	$HOW "$@" || { fail all_proof "process $i does not start"; finish; }
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
FLOOD=$PID GOFLOOD=
kill -STOP $FLOOD
if [ -n "${PROBE:-}" ]; then
	start "${HOSTED[${#HOSTED[@]} - 2]}" goflood 100000 || { fail all_proof "the one that floods with goroutines does not start"; finish; }
	GOFLOOD=$PID
	kill -STOP $GOFLOOD
	PROCS=$((PROCS + 1))
fi
HEAPS=() PORTS=() FDS=() TRUTHS=()
for ((k = 0; k < ${#RECORDS[@]}; k++)); do
	if [ -n "${PROBE:-}" ]; then HOW=begin_program launch $((i++)) "${RECORDS[k]}" -part 5; else launch $((i++)) "${RECORDS[k]}" -rounds 1; fi
	HEAPS[k]=$LAST PORTS[k]=$PORT FDS[k]=${FD:-} TRUTHS[k]=${SAID:-}
done
for ((; i < PROCS - 1 - (GOFLOOD > 0); i++)); do hosted $i idle; done
# ask WHEN: each for its own records
ask() {
	for ((k = 0; k < ${#HEAPS[@]}; k++)); do
		http_get "${PORTS[k]}" /debug/pprof/heap "$TMP/$1.$k" || { echo "${RECORDS[k]} does not answer"; return 1; }
	done
}
[ -n "${PROBE:-}" ] || judge ask one
# tell WORD: all of them
tell() { for ((k = 0; k < ${#HEAPS[@]}; k++)); do echo "$1" >&"${FDS[k]}"; done; }
have_allocated() {
	local k
	[ -n "${PROBE:-}" ] || return 0
	for ((k = 0; k < ${#HEAPS[@]}; k++)); do grep -q '^done' "${TRUTHS[k]}" || return 1; done
}
for ((i = 0; i < BUSY; i++)); do BEFORE[i]=$(ticks_of "${PIDS[i]}"); done
flood_before=$(ticks_of $FLOOD)

"$GOPROF" --all --match "cmd=$TMP/bin/" "${KINDS[@]}" "${LIMITS[@]}" -d 3600s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
PROF=$!
STARTED+=($PROF)
for ((i = 0; i < 1200; i++)); do
	[ "$(count 'profiling [0-9]* process' "$TMP/err")" = 0 ] && kill -0 $PROF || break
	sleep 0.05
done
# A parent in a namespace, unshare, is no Go program.
grep -q "profiling $PROCS processes" "$TMP/err" || wrong "$(grep profiling "$TMP/err")"
kill -CONT "${PIDS[@]}" $FLOOD $GOFLOOD
[ -z "${PROBE:-}" ] || tell go
ran() {
	local k
	for ((k = 0; k < BUSY; k++)); do [ $(($(ticks_of "${PIDS[k]}") - BEFORE[k])) -ge "$RUN" ] || return 1; done
}
until ran && have_allocated; do
	kill -0 $PROF || { fail all_proof "it ended: $(tail -n 1 "$TMP/err")"; finish; }
	sleep 0.5
done
kill -STOP "${PIDS[@]}" $FLOOD $GOFLOOD
sleep 0.2
kill -INT $PROF
wait $PROF
rc=$?
[ $rc = 3 ] || [ "$rc${DEFAULTS:-}" = 01 ] || wrong "exit $rc, and the one that floods loses: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
if [ -n "${PROBE:-}" ]; then judge have_allocated; else judge ask two; fi
outcome "all_proof/$PROCS processes"

for ((k = 0; k < ${#HEAPS[@]}; k++)); do
	file=$(file_of "${HEAPS[k]}" heap)
	if [ -n "${PROBE:-}" ]; then judge judge_probe "${TRUTHS[k]}" "$file" 1024; else judge judge_read "$TMP/one.$k" "$file" "$TMP/two.$k"; fi
done
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
	[ -n "${DEFAULTS:-}" ] || judge unhurt
done
outcome all_proof/shares
echo "$FLOOD $(($(ticks_of $FLOOD) - flood_before)) $(ns_of $FLOOD)" >>"$TMP/totals"
judge judge_totals "$TMP/totals"
outcome all_proof/totals
[ -z "${DEFAULTS:-}" ] || finish
flooded() {
	"$PPROFCHECK" comments "$(file_of $FLOOD)" >"$TMP/comments"
	grep -qE '^loss: [0-9]+ samples of more distinct stacks' "$TMP/comments" || { echo "the one that floods lost nothing: $(grep ^hits "$TMP/comments")"; return 1; }
	grep -E '^goprof-bpf: pid [0-9]+ \(hosted.*: [0-9]+ samples of more distinct' "$TMP/err" | grep -v "pid ${GOFLOOD:-none} " >"$TMP/told"
	[ "$(wc -l <"$TMP/told")" = 1 ] && grep -q "pid $FLOOD " "$TMP/told" || { echo "others are told of: $(head -n 3 "$TMP/told")"; return 1; }
}
judge flooded
# What is lost of its waits is its own loss.
goflooded() {
	local lost='wait: [0-9]+ .*(stacks|waits)'
	sed -n "s/^goprof-bpf: pid $GOFLOOD /# it lost: /p" "$TMP/err" >&2
	grep -qE "^goprof-bpf: pid $GOFLOOD \(hosted.*\): $lost" "$TMP/err" || { echo "the one that floods with goroutines lost no waits"; return 1; }
	grep -E "^goprof-bpf: pid [0-9]+ \(.*\): $lost" "$TMP/err" | grep -v "pid $GOFLOOD " >"$TMP/told" || return 0
	echo "others lose waits: $(head -n 3 "$TMP/told")"
	return 1
}
[ -z "$GOFLOOD" ] || judge goflooded
outcome all_proof/flood
finish
