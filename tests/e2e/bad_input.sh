#!/bin/bash
# What cannot be profiled, what ends or changes in the middle, and where nothing can be written:
# one clear sentence on stderr, the right exit status, what was collected is written, the target
# unharmed. tests/e2e/bad_binary.sh does the same for executables that lie.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

V=1.27.4
OUT_DIR=$TMP/profiles
FRAMES=$O/tests/frames
LIMIT=20 # seconds; a run that takes longer hangs
MOUNTED=
trap '[ -z "$MOUNTED" ] || umount "$MOUNTED"; cleanup' EXIT

PROBED=$(subject $V checksum) && READ=$(subject $V checksum -tags=sampled) ||
	{ fail bad_input "the subject cannot be built"; finish; }
OTHER=$(subject 1.19.13 leaf31 '-ldflags=-s -w') || { fail bad_input "no other program"; finish; }

# ---- how an outcome is judged ----

# run CMD...: sets RC, its stdout in $TMP/paths and its stderr in $TMP/said.
run() {
	rm -rf "$OUT_DIR"
	timeout -k 5 $LIMIT "$@" >"$TMP/paths" 2>"$TMP/said" </dev/null
	RC=$?
	# On a busy machine clock ticks come late; that is not what is looked at here.
	[ $RC != 3 ] || sentences "$TMP/said" | grep -qvE 'clock ticks the kernel|stacks that end before' || RC=0
}

# ends_so NAME RC SENTENCE FILES: SENTENCE is an extended regular expression and, unless it is empty, must be
# said once. FILES is how many paths must have been printed, each of a file that is there and whole; nothing
# else may lie beside them.
ends_so() {
	judge judge_run "$TMP/said" "$TMP/paths" $RC "$2" "$4" "$3"
	[ "$4" != 0 ] || [ ! -e "$OUT_DIR" ] || wrong "$OUT_DIR was left behind"
	verdict "$1"
}

# verdict NAME: an outcome; what was said is shown where it is wrong.
verdict() { outcome "$1" || head -n 8 "$TMP/said" | cat -v | sed 's/^/    | /'; }

# refused NAME RC SENTENCE CMD...: nothing is profiled, and exactly one line says why.
refused() {
	local name=$1 rc=$2 sentence=$3
	shift 3
	run "$@"
	[ "$(wc -l <"$TMP/said")" = 1 ] || wrong "said more or less than one line"
	ends_so "$name" "$rc" "$sentence" 0
}

# The subject still computes, and its sums are right.
unharmed() {
	judge judge_unharmed "$PID" "$OUT"
	outcome "$1: the target is unharmed"
}

stop_subject() { kill -KILL "$PID"; wait "$PID" 2>/dev/null; }

# child CMD...: in the background, until it is that program.
child() {
	"$@" </dev/null >/dev/null 2>&1 &
	PID=$!
	STARTED+=("$PID")
	for _ in $(seq 200); do
		[ "$(readlink "/proc/$PID/exe")" != "$(readlink -f "$(command -v "$1")")" ] || break
		sleep 0.01
	done
}

KINDS=(--cpu "--heap --source=read" "--heap --source=probe" "--cpu --heap")
kind_name() { echo "$*" | sed 's/--source=//; s/--//g; s/ /+/g'; }

# zombie: prints the pid of a process that has exited and that nobody collects. It ends only once its parent is
# sleep, which never waits for a child: a shell that still ran would collect it.
zombie() {
	: >"$TMP/zombie.pid"
	bash -c '
		while [ "$(cat /proc/$$/comm)" = bash ]; do sleep 0.01; done &
		echo $!
		exec sleep 1000' >"$TMP/zombie.pid" 2>/dev/null &
	STARTED+=($!)
	for _ in $(seq 1000); do
		! command grep -q '^State:[[:space:]]*Z' "/proc/$(cat "$TMP/zombie.pid")/status" 2>/dev/null || break
		sleep 0.01
	done
	cat "$TMP/zombie.pid"
}

# ---- nothing to profile ----

not_a_process() {
	local k n gone
	sleep 0 &
	gone=$!
	wait $gone
	child sleep 1000
	local c_program=$PID
	child bash -c 'while :; do sleep 1; done'
	local script=$PID
	zombie >"$TMP/zombie"
	start "$READ" || { fail bad_input "the subject does not start"; return; }
	local thread
	# shellcheck disable=SC2012
	thread=$(ls "/proc/$PID/task" | grep -vx "$PID" | tail -n 1)
	for k in "${KINDS[@]}"; do
		n=$(kind_name "$k")
		# shellcheck disable=SC2086
		set -- "$GOPROF" $k -d 300ms -o "$OUT_DIR"
		refused "no such pid, $n" 1 "no process with pid $gone\$" "$@" -p $gone
		refused "pid 0, $n" 2 "'0' is not a process id" "$@" -p 0
		refused "no number, $n" 2 "'12;x' is not a process id" "$@" -p '12;x'
		refused "a number too large, $n" 2 "is not a process id" "$@" -p 4294967297
		refused "a C program, $n" 1 "pid $c_program is not a Go program" "$@" -p $c_program
		refused "a shell, $n" 1 "pid $script is not a Go program" "$@" -p $script
		refused "a zombie, $n" 1 "is a zombie" "$@" -p "$(cat "$TMP/zombie")"
		refused "a thread, $n" 1 "$thread is a thread of the process $PID: give that pid" \
			"$@" -p "$thread"
		if [ -r /proc/2/stat ] && ! readlink /proc/2/exe >/dev/null; then
			refused "a kernel thread, $n" 1 "is a kernel thread" "$@" -p 2
		else
			skip "a kernel thread, $n" "pid 2 is none here"
		fi
	done
	unharmed "looked at through a thread"
	stop_subject
}

# ---- not ours to look at ----

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }

privileges() {
	local dir=$TMP/any caps=-all,+bpf,+perfmon,+sys_ptrace
	# Copies that anybody may run, wherever the tree is.
	chmod 755 "$TMP" && mkdir -m 777 "$dir" && cp "$GOPROF" "$TMP/goprof" && cp "$READ" "$TMP/own" &&
		chmod 755 "$TMP/goprof" "$TMP/own"
	OUT_DIR=$dir/out
	nobody "$TMP/goprof" --version >/dev/null 2>&1 || { skip privileges "no other user here"; return; }
	export -f nobody
	start "$READ" || { fail "not ours" "did not start"; return; }
	set -- bash -c 'nobody "$@"' - "$TMP/goprof" -d 300ms -o "$OUT_DIR" -p "$PID"
	refused "not ours, cpu" 1 "BPF is not allowed: run as root, or with CAP_BPF and CAP_PERFMON .missing: CAP_BPF and CAP_PERFMON." "$@" --cpu
	refused "not ours, heap+read" 1 "not allowed to .*: run as root or add CAP_SYS_PTRACE" "$@" --heap --source=read
	refused "not ours, heap+auto" 1 "not allowed to .*: run as root or add CAP_SYS_PTRACE" "$@" --heap
	refused "not ours, heap+probe" 1 "BPF is not allowed: run as root, or with CAP_BPF and CAP_PERFMON .missing: CAP_BPF and CAP_PERFMON." "$@" --heap --source=probe
	# The three capabilities that the message asks for are all that it takes.
	run setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=$caps --ambient-caps=$caps \
		--bounding-set=$caps "$TMP/goprof" -p "$PID" --cpu --heap --source=probe --budget=0 -d 500ms -o "$OUT_DIR"
	ends_so "with the three capabilities only" 0 "" 2
	unharmed "not ours"
	stop_subject
	start nobody "$TMP/own" || { fail "our own" "did not start"; return; }
	PID=$(pgrep -P "$PID" 2>/dev/null || echo "$PID")
	set -- bash -c 'nobody "$@"' - "$TMP/goprof" -d 300ms -o "$OUT_DIR" -p "$PID"
	run "$@" --heap --source=read
	ends_so "our own without privileges, heap+read" 0 "" 1
	refused "our own without privileges, cpu" 1 "BPF is not allowed: run as root, or with CAP_BPF and CAP_PERFMON .missing: CAP_BPF and CAP_PERFMON." "$@" --cpu
	refused "our own without privileges, heap+probe" 1 "BPF is not allowed: run as root, or with CAP_BPF and CAP_PERFMON .missing: CAP_BPF and CAP_PERFMON." "$@" --heap --source=probe
	kill -KILL "$PID"
	OUT_DIR=$TMP/profiles
}

# ---- it ends, or becomes another program ----

# meanwhile SECONDS CMD...: CMD once the window has begun for that long.
meanwhile() {
	local after=$1 i
	shift
	: >"$TMP/said"
	(
		for ((i = 0; i < 200; i++)); do
			grep -q 'profiling pid' "$TMP/said" && break
			sleep 0.02
		done
		sleep "$after"
		"$@"
	) &
}

# ends NAME SUBJECT SIGNAL SENTENCE KINDS FILES [ARG...]
ends() {
	local name=$1 bin=$2 sig=$3 sentence=$4 kinds=$5 files=$6
	shift 6
	start "$bin" "$@" || { fail "$name" "did not start"; return; }
	meanwhile 0.35 kill "-$sig" "$PID"
	# shellcheck disable=SC2086
	run "$GOPROF" -p "$PID" $kinds -d 10s -o "$OUT_DIR"
	wait $!
	ends_so "$name" 3 "pid $PID .*$sentence.*: writing what was collected" "$files"
}

endings() {
	local k n bin files
	for k in "--cpu --heap" "--heap"; do
		for bin in "$PROBED" "$READ"; do
			n="$(kind_name "$k"), $([ "$bin" = "$READ" ] && echo read || echo probe)"
			files=$(wc -w <<<"$k")
			ends "killed in the window, $n" "$bin" KILL "exited" "$k" "$files"
			ends "exits in the window, $n" "$bin" HUP "exited" "$k" "$files"
			ends "execs another program, $n" "$bin" USR2 "became another program \(exec of sleep\)" \
				"$k" "$files" -exec "$(command -v sleep)"
			alive_after "execs another program, $n"
			ends "execs itself, $n" "$bin" USR2 "became another program \(exec of" "$k" "$files"
			unharmed "execs itself, $n"
			stop_subject
		done
	done
}

alive_after() {
	judge [ "$(cat "/proc/$PID/comm")" = sleep ]
	outcome "$1: the new program is unharmed"
	stop_subject
}

# It is gone at some moment of the start; whichever it is, the answer is one of these.
races() {
	local i n=0
	for i in 0 0.005 0.01 0.015 0.02 0.03 0.04 0.06 0.08 0.1; do
		start "$PROBED" 2>/dev/null || continue
		n=$((n + 1))
		{ sleep $i; kill -KILL "$PID"; } &
		disown "$PID" 2>/dev/null
		run "$GOPROF" -p "$PID" --cpu --heap --budget=0 -d 500ms -o "$OUT_DIR"
		case $RC in
		1) grep -qE 'exited|no process|zombie|another program' "$TMP/said" || wrong "after $i s: $(cat "$TMP/said")" ;;
		3) grep -q 'exited' "$TMP/said" || wrong "after $i s: $(cat "$TMP/said")" ;;
		*) wrong "after $i s: exit status $RC" ;;
		esac
		wait "$PID" 2>/dev/null
	done
	judge [ $n -gt 5 ]
	outcome "exits while it is opened ($n moments)"
}

# as_named_by BIN OTHER NAME...: what lies in BIN at the addresses of OTHER's functions.
as_named_by() {
	local bin=$1 other=$2 anchor
	shift 2
	anchor=$("$FRAMES" find "$bin" runtime.main | sed -n 's/^[^ ]* 0x\([0-9a-f]*\)\.\..*/\1/p')
	"$FRAMES" find "$other" "$@" | while read -r _ range _; do
		echo $((${range%%..*} + 8 - 0x$anchor))
	done | "$FRAMES" dump "$bin" runtime.main | cut -f 2
}

# Nothing of the program that came after exec is in the profile. It runs its own functions where
# this one has others, and most of a tick may pass until exec is seen: at 1000 Hz some tens of
# samples, in functions that this one, once it has started, never runs.
exec_mixes_nothing() {
	local i names n=0
	names=$(as_named_by "$PROBED" "$OTHER" main.leaf main.threeTimes main.onceOnly | sort -u)
	[ -n "$names" ] || { fail "exec: nothing of the new program" "its functions are not found"; return; }
	: >"$TMP/stacks"
	for i in 0.31 0.34 0.37 0.41; do
		start "$PROBED" -exec "$OTHER" || { wrong "did not start"; continue; }
		meanwhile $i kill -USR2 "$PID"
		run "$GOPROF" -p "$PID" --cpu -F 1000 -d 10s -o "$OUT_DIR"
		"$PPROFCHECK" stacks -type samples "$(cat "$TMP/paths")" >>"$TMP/stacks"
		stop_subject
	done
	echo "leaf31's functions lie at this one's $(echo $names)"
	n=$(awk '{ print $2 }' "$TMP/stacks" | grep -cxF "$names")
	[ "$n" = 0 ] || wrong "$n of $(wc -l <"$TMP/stacks") stacks are"
	judge [ "$(wc -l <"$TMP/stacks")" -gt 100 ]
	outcome "exec: nothing of the new program is counted"
}

# ---- the file of the executable ----

executables() {
	local what
	for what in deleted replaced; do
		cp "$PROBED" "$TMP/moving" && start "$TMP/moving" || { fail "$what on disk" "did not start"; return; }
		rm "$TMP/moving"
		[ $what = deleted ] || cp /bin/sleep "$TMP/moving"
		run "$GOPROF" -p "$PID" --cpu --heap --budget=0 -d 500ms -o "$OUT_DIR"
		"$PPROFCHECK" stacks "$(head -n 1 "$TMP/paths")" | grep -q 'main\.work' || wrong "main.work is not in it"
		ends_so "$what on disk, cpu+heap+probe" 0 "" 2
		unharmed "$what on disk, probe"
		stop_subject
		cp "$READ" "$TMP/moved" && start "$TMP/moved" || { fail "$what on disk" "did not start"; return; }
		rm "$TMP/moved"
		[ $what = deleted ] || cp /bin/sleep "$TMP/moved"
		run "$GOPROF" -p "$PID" --heap --source=read -d 300ms -o "$OUT_DIR"
		ends_so "$what on disk, heap+read" 0 "" 1
		unharmed "$what on disk, read"
		stop_subject
	done
}

# ---- where the profiles go ----

outputs() {
	local comm
	start "$PROBED" || { fail outputs "did not start"; return; }
	comm=$(tr -c 'a-zA-Z0-9._+@\n-' _ <"/proc/$PID/comm")
	set -- "$GOPROF" -p "$PID" --cpu --heap --budget=0 -d 300ms
	refused "no such directory above" 1 "cannot make the directory" "$@" -o "$TMP/none/at/all"
	: >"$TMP/file"
	refused "the directory is a file" 1 "it is not a directory" "$@" -o "$TMP/file"
	refused "the directory's name is too long" 1 "." "$@" -o "$(printf 'x%.0s' $(seq 5000))"
	chmod 755 "$TMP"
	# Root may write anywhere, but not to /proc.
	refused "not writable" 1 "cannot write to /proc/self" "$@" -o /proc/self

	mkdir "$TMP/small"
	if mount -t tmpfs -o size=16k none "$TMP/small" 2>/dev/null; then
		MOUNTED=$TMP/small
		head -c 100000 /dev/zero >"$MOUNTED/fill" 2>/dev/null
		run "$@" -o "$MOUNTED"
		ends_so "a full disk" 1 "cpu: .*No space left on device" 0
		judge [ "$(ls -A "$MOUNTED")" = fill ]
		outcome "a full disk: no remains"
		mount -o remount,ro "$MOUNTED"
		refused "a read-only disk" 1 "Read-only file system" "$@" -o "$MOUNTED"
		umount "$MOUNTED" && MOUNTED=
	else
		skip "a full disk" "mounting is not allowed here"
	fi

	mkdir "$TMP/taken" "$TMP/taken/$comm.$PID.heap.pb.gz"
	echo precious >"$TMP/precious"
	ln -s "$TMP/precious" "$TMP/taken/$comm.$PID.cpu.pb.gz"
	run "$@" -o "$TMP/taken"
	ends_so "a directory in the place of one file" 1 "heap: .*Is a directory" 1
	judge [ "$(cat "$TMP/precious")" = precious ]
	judge [ ! -L "$(cat "$TMP/paths")" ]
	outcome "a planted link is replaced, not followed"

	mkdir "$TMP/going"
	meanwhile 0.05 rmdir "$TMP/going"
	run "$@" -o "$TMP/going"
	ends_so "the directory goes away" 1 "cpu: .*No such file or directory" 0

	run sh -c '"$@" >&-' - "$@" -o "$OUT_DIR"
	# The files stay, their paths are lost.
	judge judge_run "$TMP/said" "$TMP/paths" $RC 1 0
	grep -q 'cannot write to stdout' "$TMP/said" || wrong "not said: cannot write to stdout"
	[ "$(ls "$OUT_DIR" | wc -l)" = 2 ] || wrong "$(ls "$OUT_DIR" | wc -l) files are there"
	verdict "stdout is closed"
	run sh -c '"$@" >&- 2>&- <&-' - "$@" -o "$OUT_DIR"
	ls "$OUT_DIR"/*.pb.gz >"$TMP/paths"
	ends_so "all of stdin, stdout and stderr are closed" 1 "" 2
	run sh -c '"$@" 2>&-' - "$GOPROF" -p "$PID" --heap -d 300ms -o "$OUT_DIR"
	ends_so "stderr is closed" 0 "" 1
	unharmed "outputs"
	stop_subject
}

for part in ${PARTS:-not_a_process privileges endings races exec_mixes_nothing executables outputs}; do
	$part
done
finish
