#!/bin/bash
# PROCS processes of every Go version that is profiled, stripped and not, of three users, some in PID and mount namespaces:
# each one's CPU total is what /proc counted, within 2 %, and its shares are its own within sampling error. One of them floods: it
# loses, and the others do not. All busy ones are stopped but for their time in the window.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

PROCS=${PROCS:-200} BUSY=${BUSY:-48}
RUN=${RUN:-150}	# ticks of CPU time for each busy one
USERS=(0 42433 42434)
chmod 755 "$TMP" && mkdir -m 755 "$TMP/bin"

BINS=()
for v in $ALL_MINORS; do
	for flags in '' '-ldflags=-s -w'; do
		bin=$(subject "$v" hosted ${flags:+"$flags"}) || { fail all_proof "hosted does not build with Go $v"; finish; }
		to=$TMP/bin/hosted-$v${flags:+-stripped}
		cp "$bin" "$to" && chmod 755 "$to"
		BINS+=("$to")
	done
done

# launch I ARG...: the I-th process, with a user, and every fifth in namespaces of its own. Its pid is in LAST.
launch() {
	local i=$1 bin user
	shift
	bin=${BINS[i % ${#BINS[@]}]} user=${USERS[i % 3]}
	set -- setpriv --reuid "$user" --regid "$user" --clear-groups "$bin" "$@"
	[ $((i % 5)) != 0 ] || set -- unshare --pid --mount --mount-proc --fork --kill-child "$@"
	"$@" >/dev/null 2>&1 </dev/null &
	STARTED+=($!) LAST=$!
}

# inner PID: what it became, or the program in the namespace that it made.
inner() {
	local i pid
	for ((i = 0; i < 400; i++)); do
		pid=$1
		[ "$(cat "/proc/$1/comm")" != unshare ] || pid=$(pgrep -P "$1")
		case $(readlink "/proc/${pid:-0}/exe") in "$TMP"/bin/*) echo "$pid"; return ;; esac
		sleep 0.05
	done
	return 1
}
ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
file_of() { command ls "$TMP"/out/*."$1".cpu.pb.gz 2>/dev/null; }
ns_of() { "$PPROFCHECK" sum "$(file_of "$1")" | awk '$2 == "cpu" { print $1 }'; }

PIDS=() BEFORE=()
for ((i = 0; i < BUSY; i++)); do
	launch $i busy $((1 + i % 4)) 1
	PIDS[i]=$(inner "$LAST") || { fail all_proof "process $i does not start"; finish; }
	kill -STOP "${PIDS[i]}"
done
"${BINS[${#BINS[@]} - 1]}" flood >/dev/null 2>&1 </dev/null &
STARTED+=($!) FLOOD=$!
kill -STOP $FLOOD
for ((; i < PROCS - 1; i++)); do launch $i idle; done
sleep 3
for ((i = 0; i < BUSY; i++)); do BEFORE[i]=$(ticks_of "${PIDS[i]}"); done
flood_before=$(ticks_of $FLOOD)

"$GOPROF" --all --match "cmd=$TMP/bin/" --cpu -F 999 -d 3600s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
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
outcome "all_proof/$PROCS processes"

: >"$TMP/totals"
for ((i = 0; i < BUSY; i++)); do
	p=${PIDS[i]}
	echo "$p $(($(ticks_of "$p") - BEFORE[i])) $(ns_of "$p")" >>"$TMP/totals"
	judge "$PPROFCHECK" check "$(file_of "$p")"
	judge judge_split "$(file_of "$p")" first "$(awk -v a=$((1 + i % 4)) 'BEGIN { print a / (a + 1) }')"
	"$PPROFCHECK" comments "$(file_of "$p")" >"$TMP/comments"
	judge judge_unhurt "$TMP/comments" 0.02
done
outcome all_proof/shares
echo "$FLOOD $(($(ticks_of $FLOOD) - flood_before)) $(ns_of $FLOOD)" >>"$TMP/totals"
judge judge_totals "$TMP/totals"
outcome all_proof/totals
"$PPROFCHECK" comments "$(file_of $FLOOD)" >"$TMP/comments"
grep -qE '^loss: [0-9]+ samples of more distinct stacks' "$TMP/comments" || wrong "the one that floods lost nothing"
[ "$(grep -cE '^goprof-bpf: pid [0-9]+ \(hosted.*: [0-9]+ samples of more distinct' "$TMP/err")" = 1 ] || wrong "others lost stacks, too"
outcome all_proof/flood
finish
