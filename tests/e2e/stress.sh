#!/bin/bash
# Whatever is done to it, the target stays as it was: its sums are right, every byte of its code is
# the file's again, and the kernel holds nothing of ours. Done to it, at its full allocation load:
# CYCLES attachings and detachings in one process (which must not grow) and some by command line,
# KILLS deaths by SIGKILL at random moments, the signals that end a run in an orderly way, and
# COLLECTORS at once, each of which must be right. `make stress` does many.
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/harmless.sh
need_root && need_bpf && need_go

CYCLES=${CYCLES:-60} KILLS=${KILLS:-20} COLLECTORS=${COLLECTORS:-5}
RATE=16384
# A user of our own, so that what is ours in the kernel can be told from others'.
OURS=42430
BIN=$(subject 1.27.4 checksum) || { fail stress "the subject cannot be built"; finish; }
chmod 755 "$TMP" && mkdir -m 777 "$TMP/any" && cp "$GOPROF" "$TMP/goprof" && cp "$O/tests/cycles" "$TMP/cycles" &&
	chmod 755 "$TMP/goprof" "$TMP/cycles"

CAPS=-all,+bpf,+perfmon,+sys_ptrace
AS=(setpriv --reuid $OURS --regid $OURS --clear-groups --bounding-set=$CAPS --inh-caps=$CAPS --ambient-caps=$CAPS)
PROF=("${AS[@]}" "$TMP/goprof")

code "$BIN"
start "$BIN" || { fail stress "the subject does not start"; finish; }
judge harmless
found_wrong && { outcome "stress, before anything was done"; finish; }
unjudged

# ---- attach and detach ----

name="$CYCLES times attached and detached"
said=$("${AS[@]}" "$TMP/cycles" "$PID" "$CYCLES" 2>&1)
rc=$?
echo "$said"
[ $rc = 0 ] && pass "$name: nothing grows" || fail "$name: nothing grows" "$said"
judge harmless
outcome "$name: the target is as it was"

name="$((CYCLES / 12)) times by command line: the target is as it was"
for ((round = 1; round <= CYCLES / 12; round++)); do
	"${PROF[@]}" -p "$PID" --cpu --heap --source=probe -d 50ms -o "$TMP/any" >"$TMP/paths" 2>"$TMP/said"
	rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || { wrong "round $round: exit status $rc: $(tail -n 1 "$TMP/said")"; break; }
done
judge harmless
outcome "$name"

# ---- killed ----

# profile ARG...: in the background, sets PROFILER.
profile() {
	"${PROF[@]}" -p "$PID" "$@" </dev/null &
	PROFILER=$!
	STARTED+=("$PROFILER")
}

# How long a run takes until all is in place, at the load there is now.
began=$(date +%s%N)
: >"$TMP/said"
profile --cpu --heap --source=probe -d 60s -o "$TMP/any" >"$TMP/paths" 2>"$TMP/said"
for ((i = 0; i < 2000; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.01; done
start_ms=$((($(date +%s%N) - began) / 1000000))
kill -KILL $PROFILER
wait $PROFILER 2>/dev/null
restored || fail "killed in its window" "$(changed) bytes of its code are not the file's, $(left) are left"

# At the worst of moments: while probes are being put in or taken out. What the code was is looked at
# when it begins: so only once it is whole.
name="killed $((KILLS / 2)) times around attaching and detaching: the target is as it was"
said=$("$O/tests/cycles" -kill "$PID" $((KILLS / 2)) 2>&1)
rc=$?
echo "$said"
[ $rc = 0 ] || wrong "$said"
judge harmless
outcome "$name"

seen=0
RANDOM=7
for ((round = 1; round <= KILLS; round++)); do
	profile --cpu --heap --source=probe --heap-rate 4k -F 1000 -d 60s -o "$TMP/any" >"$TMP/paths" 2>"$TMP/said"
	# From before it has done anything to well inside the window.
	ms=$((RANDOM % (start_ms * 2)))
	sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
	[ "$(changed)" = 0 ] || seen=$((seen + 1))
	kill -KILL $PROFILER
	wait $PROFILER 2>/dev/null
	judge harmless
	found_wrong && { wrong "round $round, after $ms ms"; break; }
done
name="killed $KILLS times: the target is as it was"
echo "probes were in place in $seen of $KILLS rounds, each within $((start_ms * 2)) ms"
[ $seen != 0 ] || wrong "no probe was ever in place: this shows nothing"
outcome "$name"

# The same by the signals that end it in an orderly way.
for sig in TERM INT HUP; do
	profile --cpu --heap --source=probe --budget=0 -d 60s -o "$TMP/any/$sig" >"$TMP/paths" 2>"$TMP/said"
	for ((i = 0; i < 200; i++)); do
		grep -q 'profiling pid' "$TMP/said" && break
		sleep 0.02
	done
	sleep 0.3
	kill -$sig $PROFILER
	wait $PROFILER
	rc=$?
	[ $rc = 3 ] && only_small_losses "$TMP/said" "$(cat "$TMP/paths")" && rc=0
	judge harmless
	[ $rc = 0 ] && [ "$(wc -l <"$TMP/paths")" = 2 ] || wrong "exit status $rc, $(wc -l <"$TMP/paths") files"
	outcome "SIG$sig: written, and the target is as it was"
done

# ---- many at once ----

# many DURATION: COLLECTORS profilers of PID, each with its own $TMP/any/N; sets PROFILERS.
many() {
	local n i
	PROFILERS=()
	for ((n = 1; n <= COLLECTORS; n++)); do
		: >"$TMP/said.$n"
		profile --cpu --heap --source=probe --heap-rate=$RATE --budget=0 -d "$1" -o "$TMP/any/$n" >"$TMP/paths.$n" 2>"$TMP/said.$n"
		PROFILERS+=("$PROFILER")
	done
	for ((i = 0; i < 1200; i++)); do
		[ "$(cat "$TMP"/said.* | grep -c 'profiling pid')" = "$COLLECTORS" ] && return
		sleep 0.1
	done
}

# each JUDGE: asks JUDGE CPU HEAP of the two profiles of each profiler. Not in a subshell, which could
# not wait for them.
each() {
	local n rc p
	for ((n = 1; n <= COLLECTORS; n++)); do
		wait "${PROFILERS[n - 1]}"
		rc=$?
		[ $rc = 3 ] && only_small_losses "$TMP/said.$n" "$(cat "$TMP/paths.$n")" && rc=0
		if [ $rc != 0 ] || [ "$(wc -l <"$TMP/paths.$n")" != 2 ]; then
			wrong "of $n: exit status $rc: $(tail -n 2 "$TMP/said.$n" | tr '\n' ' ')"
			return
		fi
		for p in $(cat "$TMP/paths.$n"); do judge valid "$p"; done
		judge "$1" "$(grep '\.cpu\.' "$TMP/paths.$n")" "$(grep '\.heap\.' "$TMP/paths.$n")"
	done
}

has_work() {
	"$PPROFCHECK" cum -type cpu "$1" | grep -q 'main\.work' || { echo "no work in the CPU profile"; return 1; }
	"$PPROFCHECK" cum -type alloc_space "$2" | grep -q 'main\.fill' || { echo "no work in the heap profile"; return 1; }
}

name="$COLLECTORS at once"
many 3s
[ "$(changed)" != 0 ] || fail "$name" "no probe is in place"
each has_work
outcome "$name: all have their profiles"
judge harmless
outcome "$name: the target is as it was"
kill "$PID"

known() { judge_probe "$OUT" "$2" $RATE; }

name="$COLLECTORS at once: each has the known counts"
bin=$(subject 1.27.4 alloctruth -ldflags='-s -w') || { fail "$name" "does not build"; finish; }
mkfifo "$TMP/in"
exec {fd}<>"$TMP/in"
OUT=$TMP/truth
: >"$OUT"
"$bin" -goroutines 4 <&"$fd" >"$OUT" 2>&1 &
PID=$!
STARTED+=("$PID")
for ((i = 0; i < 100; i++)); do grep -q ready "$OUT" && break; sleep 0.1; done
many 3600s
echo go >&"$fd"
for ((i = 0; i < 12000; i++)); do grep -q '^done' "$OUT" && break; sleep 0.1; done
kill -INT "${PROFILERS[@]}"
each known
code "$bin"
restored || wrong "$(changed) bytes of its code are not the file's, $(left) are left"
outcome "$name"
finish
