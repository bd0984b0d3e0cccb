#!/bin/bash
# --all on a host that is not kind: how many descriptors it takes, processes that cannot be looked at, that call exec or end then, and a file system
# that falls silent at any moment. Only the process that runs from it may be lost.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

PROCS=40 BINARIES=4
OURS=42431 # a user nobody has
bin=$(subject 1.27.4 hosted -ldflags='-s -w') || { fail all_host "the subject does not build"; finish; }
chmod 755 "$TMP" && mkdir "$TMP/bin" && mkdir -m 777 "$TMP/any" && cp "$GOPROF" "$TMP/goprof" && chmod 755 "$TMP/goprof"
for ((i = 0; i < BINARIES; i++)); do cp "$bin" "$TMP/bin/service$i"; done
for ((i = 0; i < PROCS; i++)); do
	"$TMP/bin/service$((i % BINARIES))" idle >/dev/null 2>&1 </dev/null &
	STARTED+=($!)
done
cp "$bin" "$TMP/bin/worker"
start "$TMP/bin/worker" busy 3 1 || { fail all_host "the worker does not start"; finish; }
WORKER=$PID

# begin ARG...: a run, until it observes or ends.
begin() {
	local i
	rm -rf "$TMP/out"
	: >"$TMP/err"
	"$GOPROF" --all "$@" -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 1200; i++)); do
		[ "$(count 'profiling [0-9]* process' "$TMP/err")" = 0 ] && kill -0 "$PROF" 2>/dev/null || break
		sleep 0.05
	done
}
ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
# until_ran PID: it has used 0.1 s of CPU time more.
until_ran() {
	local until i
	until=$(($(ticks_of "$1") + 10))
	for ((i = 0; i < 1200; i++)); do
		[ "$(ticks_of "$1")" -lt $until ] || return 0
		sleep 0.05
	done
	echo "pid $1 gets no CPU time"
}
# What the run says of processes that it has not.
told_losses() { grep '^goprof-bpf: ' "$TMP/err" | grep -vE 'profiling [0-9]|stopped after' | cut -c13-300 | tr '\n' ';'; }
gone() { kill -KILL "$1"; wait "$1" 2>/dev/null || :; } # a server
file_of() { command ls "$TMP"/out/*."$1".cpu.pb.gz 2>/dev/null; }

# ---- descriptors
begin --match "cmd=$TMP/bin/" -d 300s
judge until_ran "$WORKER"
open=$(command ls "/proc/$PROF/fd" | wc -l)
grep -q "profiling $((PROCS + 1)) processes" "$TMP/err" || wrong "$(grep profiling "$TMP/err")"
kill -INT "$PROF"
wait "$PROF" || wrong "exit $?: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
[ "$open" -le $((2 * PROCS + 40)) ] && [ "$open" -gt "$PROCS" ] || wrong "$open descriptors for $PROCS processes"
judge "$PPROFCHECK" check "$(file_of "$WORKER")"
outcome all_host/descriptors

# ---- its nice value: before others while it observes, where it may and nobody chose one
# Its own nice value, and its session's. Busy programs are in the session of this script, and must not come before the kernel's threads.
session_nice() { sed 's/.* nice //' "/proc/$1/autogroup" 2>/dev/null || echo none; }
# nice_of ARG...: while one that began with ARG... observes; it ends by the signal SIGNAL
nice_of() {
	local all=(--all --match "cmd=$TMP/bin/worker" -d 300s -o "$TMP/out") ours
	: >"$TMP/err" # what the last run said is not this one's
	"$@" "${all[@]}" >"$TMP/paths" 2>"$TMP/err" &
	PROF=$!
	STARTED+=("$PROF")
	until grep -q 'profiling [0-9]* process' "$TMP/err" || ! kill -0 $PROF 2>/dev/null; do sleep 0.05; done
	ours=$(pgrep -P $PROF -x goprof-bpf || echo $PROF)
	echo "$(ps -o ni= -p "$ours" | tr -d ' ') $(session_nice "$ours")"
	kill -$SIGNAL "$ours"
	wait $PROF
}
# In a session of its own, whose nice value is told when it has ended.
cat >"$TMP/alone" <<'END'
#!/bin/sh
"$@"
sleep 0.3
sed 's/.* nice //' /proc/self/autogroup >"${0%/*}/session"
END
chmod 755 "$TMP/alone"
priorities() {
	local got want prompt session SIGNAL=INT
	session=$(session_nice self)
	prompt=$(nice -n -10 nice 2>/dev/null)
	got="$(nice_of "$GOPROF") $(nice_of nice -n 3 "$GOPROF") $(nice_of setsid "$TMP/alone" "$GOPROF") $(cat "$TMP/session")"
	SIGNAL=KILL
	got="$got $(nice_of setsid "$TMP/alone" "$GOPROF") $(cat "$TMP/session")"
	if [ "$session" = none ]; then want="none none"; else want="-11 0"; fi
	want="$prompt $session $(nice -n 3 nice) $session $prompt $want $prompt $want"
	[ "$got" = "$want" ] || echo "$got, not $want"
}
steps priorities
# Killed together: the process group, of which what gives the nice value back is none; and that, too.
cat >"$TMP/killed" <<'END'
#!/bin/bash
all() { "$GOPROF" --all --match "cmd=$TMP/bin/worker" -d "$1" -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err"; }
nice_is() { sed 's/.* nice //' /proc/self/autogroup; }
# with HOW: once it observes
with() {
	: >"$TMP/err"
	set -m
	all 300s &
	set +m
	sleep 1 # whoever is busy in this session, as this script is when it asks often, keeps its nice value as it is
	until grep -q 'profiling [0-9]* process' "$TMP/err"; do sleep 0.3; done
	"$@" $!
	wait $!
	sleep 0.3
	nice_is
}
group() { kill -KILL -$1; }
both() {
	local ours
	ours=$(pgrep -P $1 -x goprof-bpf || echo $1)
	kill -KILL $(pgrep -P "$ours") "$ours"
}
with group
with both
"$GOPROF" heal -p $WORKER >/dev/null 2>&1
nice_is
with both
all 100ms
nice_is
END
chmod 755 "$TMP/killed"
killed() {
	local got
	[ -r /proc/self/autogroup ] || return 0
	got=$(TMP=$TMP GOPROF=$GOPROF WORKER=$WORKER setsid -w "$TMP/killed" 2>/dev/null | tr '\n' ' ')
	[ "$got" = "0 -11 0 -11 0 " ] || echo "after kills, heal and another run: $got"
}
steps killed
outcome all_host/priority

# ---- processes that cannot be looked at
start setpriv --reuid $OURS --regid $OURS --clear-groups --inh-caps=-all "$TMP/bin/service0" busy 1 1 || { fail all_host "one of $OURS does not start"; finish; }
THEIRS=$PID
caps=-all,+bpf,+perfmon
# as_user ARG...: a run of that user, who may look only at what is its own.
as_user() {
	local user
	rm -rf "$TMP/any/out"
	: >"$TMP/err" # what the last run said is not this one's
	setpriv --reuid $OURS --regid $OURS --clear-groups --bounding-set=$caps --inh-caps=$caps --ambient-caps=$caps \
		"$TMP/goprof" --all -o "$TMP/any/out" "$@" >"$TMP/paths" 2>"$TMP/err" &
	user=$!
	STARTED+=("$user")
	until [ "$(count 'profiling [0-9]* process' "$TMP/err")" != 0 ] || [ ! -e "/proc/$user" ]; do sleep 0.05; done
	judge until_ran "$THEIRS"
	kill -INT "$user"
	wait "$user"
}
as_user --match user=$OURS
rc=$?
[ $rc = 0 ] || wrong "exit $rc though all of that user could be looked at: $(told_losses)"
[ "$(wc -l <"$TMP/paths")" = 1 ] || wrong "$(wc -l <"$TMP/paths") files"
[ "$(count 'could not be looked at' "$TMP/err")" = 0 ] || wrong "others are told of: $(grep 'not be looked' "$TMP/err")"
as_user --match "cmd=worker busy"
rc=$?
[ $rc = 3 ] || wrong "exit $rc though the one that is meant could not be looked at"
grep -qE '^goprof-bpf: 1 process could not be looked at: pid [0-9]+ \(.*\): .*; --exclude leaves out' "$TMP/err" || wrong "it is not told: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
grep -q 'meant, of .*; of 1 process that could not be looked at nobody knows$' "$TMP/err" || wrong "it counts as one that is meant: $(grep 'meant, of' "$TMP/err")"
grep -qE "^ *$WORKER +root +\? +worker +no: " "$TMP/err" || wrong "it is not in the table"
outcome all_host/closed

# ---- programs that call exec while they are looked at, as what starts a container does: the second one is taken in, too
pass_by() {
	local i pid missing=0
	local -a pids=()
	begin --match "cmd=$TMP/bin/" --host-budget=0,0 -F 499 -d 300s
	for ((i = 0; i < 30; i++)); do
		cp "$bin" "$TMP/bin/first$i" # a file that is new takes longer to look at
		"$TMP/bin/first$i" passes "$((2 + i / 2))" "$TMP/bin/service1" brief 2000 0 >/dev/null 2>&1 &
		pids+=("$!")
		STARTED+=("$!")
		sleep 0.3
	done
	wait "${pids[@]}"
	kill -INT "$PROF"
	wait "$PROF" || echo "exit $?: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	for pid in "${pids[@]}"; do
		command ls "$TMP"/out/service1."$pid".*cpu.pb.gz >/dev/null 2>&1 || missing=$((missing + 1))
	done
	[ $missing = 0 ] || echo "$missing of ${#pids[@]} programs that began with an exec are missing: $(told_losses)"
}
steps pass_by
outcome all_host/exec_while_looked_at

# Nobody can tell what a program was that had ended before.
brief_ones() {
	local i told
	begin --match "cmd=$TMP/bin/" -d 300s
	for ((i = 0; i < 200; i++)); do "$TMP/bin/service0" brief 1 0 >/dev/null 2>&1; done
	sleep 1
	kill -INT "$PROF"
	wait "$PROF"
	told=$(sed -nE 's/^goprof-bpf: ([0-9]+) programs? that started meanwhile ended, or the window did, before anybody could look.*/\1/p' "$TMP/err")
	told=$((${told:-0} + $(sed -nE 's/^goprof-bpf: ([0-9]+) process(es)? ended meanwhile: .*/\1/p' "$TMP/err" | grep . || echo 0)))
	[ $told -ge 200 ] || echo "$told of at least 200 programs are told of"
}
steps brief_ones
outcome all_host/brief

# /proc has nothing of a process whose first thread has ended; that it is there is told, and by which name.
headless() {
	local rc=0 pid
	mkdir "$TMP/headless"
	cp "$bin" "$TMP/headless/worker"
	"$TMP/headless/worker" headless >/dev/null & pid=$!
	STARTED+=("$pid")
	until [ "$(cut -d' ' -f3 "/proc/$pid/stat")" = Z ]; do sleep 0.01; done
	"$GOPROF" --all --match "exe=$TMP/headless/*" --cpu -d 0.2s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ] || echo "exit $rc"
	has "1 process could not be looked at: pid $pid (worker): its first thread has ended" "$TMP/err" || told_losses
	rc=0
	"$GOPROF" --all --match "exe=$TMP/bin/*" --cpu -d 0.2s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || rc=$?
	! has "pid $pid" "$TMP/err" || echo "it is told of though it is not meant"
	kill -KILL "$pid"
}
steps headless
outcome all_host/headless

# ---- a file system that falls silent
if [ ! -e /dev/fuse ]; then
	skip all_host/silent "there is no FUSE here"
	finish
fi

# ended SECONDS PID: is it, by then? Whoever waits for the server longer is set free by its end.
ended() {
	local i
	for ((i = 0; i < $1 * 20; i++)); do
		[[ $(cut -d' ' -f3 "/proc/$2/stat" 2>/dev/null) =~ ^[^Z]$ ]] || return 0
		sleep 0.05
	done
	kill -KILL "$SERVER"
	return 1
}

# serve N: a program whose file system answers N more requests of others. SERVER, and SILENT is the program.
serve() {
	mkdir -p "$TMP/mnt.$1"
	start "$O/tests/deaf" -f "$bin" -n "$1" "$TMP/mnt.$1" busy 1 1 || { echo "no program on a file system of our own: $(tail -n 1 "$OUT")"; return 1; }
	SERVER=$PID SILENT=$(pgrep -P "$PID")
}

# Some containers have the device and may not mount.
serve 99999 >"$TMP/why" || if grep -qE 'not permitted|denied' "$TMP/why"; then
	skip all_host/silent "$(cat "$TMP/why")"
	finish
fi
gone "$SERVER"

told_of() { grep -q "pid $SILENT: its files or its memory do not answer" "$TMP/err"; }

# silent_after N: at whatever request it falls silent, the run ends, and the worker has its profile.
silent_after() {
	local rc
	serve "$1" || return
	begin --match "cmd=$TMP/bin/worker" --match name=f -d 300s
	until_ran "$WORKER"
	[ "$1" -lt 1000 ] || until_ran "$SILENT"
	kill -INT "$PROF"
	ended 15 "$PROF" || { echo "after $1 requests: it does not end"; return; }
	wait "$PROF" && rc=0 || rc=$?
	"$PPROFCHECK" check "$(file_of "$WORKER")" || echo "after $1 requests: the worker has no profile"
	if [ -s "$(file_of "$SILENT")" ]; then
		[ $rc = 0 ] || echo "after $1 requests: exit $rc: $(tail -n 2 "$TMP/err")"
		"$PPROFCHECK" check "$(file_of "$SILENT")"
	else
		[ $rc = 3 ] || echo "after $1 requests: exit $rc"
		told_of || echo "after $1 requests: nobody tells of it"
		LOST=$((LOST + 1))
	fi
	gone "$SERVER"
}
LOST=0
for n in 0 ${WIDE:+1 2 3 5 8 13} 20 100000; do steps silent_after $n; done
[ -s "$(file_of "$SILENT")" ] || wrong "it has no profile where the file system answers"
[ $LOST != 0 ] || wrong "it was never silent"
outcome all_host/silent

# In the window it costs the others nothing: the engine goes on while a child waits.
silent_in_window() {
	local rc
	begin --match "cmd=$TMP/bin/worker" --match name=f -d 300s
	serve 0 || return
	for ((i = 0; i < 160; i++)); do
		told_of && break
		sleep 0.05
	done
	until_ran "$WORKER"
	[ $i -lt 160 ] || echo "nobody tells of it"
	kill -INT "$PROF"
	ended 5 "$PROF" || { echo "it does not end"; return; }
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 3 ] || echo "exit $rc"
	gone "$SERVER"
	"$PPROFCHECK" comments "$(file_of "$WORKER")" >"$TMP/comments"
	judge_unhurt "$TMP/comments"
}
steps silent_in_window
outcome all_host/silent_in_window

# One that waits within exec has its memory, and much of /proc, locked against whoever looks at it: ps hangs, too. Its server ends by itself.
stuck_in_exec() {
	local rc
	mkdir -p "$TMP/mnt.exec"
	start "$O/tests/deaf" -c "$TMP/mnt.exec" "$(subject 1.27.4 deaf)" "$TMP/mnt.exec/f" exec 4000 || { echo "it does not start"; return; }
	SERVER=$PID SILENT=$PORT
	begin --match "cmd=$TMP/bin/worker" --match "cmd=mnt.exec/f exec" --cpu --heap --goroutine -d 8s
	ended 20 "$PROF" || { echo "it does not end"; return; }
	wait "$PROF" && rc=0 || rc=$?
	gone "$SERVER"
	[ $rc = 3 ] || echo "exit $rc"
	grep -q "pid $SILENT.*do not answer" "$TMP/err" || echo "nobody tells of it: $(tail -n 3 "$TMP/err")"
	"$PPROFCHECK" check "$(file_of "$WORKER")" || echo "the worker has no profile"
}
steps stuck_in_exec
outcome all_host/stuck_in_exec
finish
