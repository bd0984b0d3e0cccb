#!/bin/bash
# Killed in the middle of putting probes in, a process leaves breakpoints behind. A keeper of probes
# that is killed is followed by one that frees them, and the profile goes on; `heal`, and the next
# profile, free what is left when all were killed at once; probes at work, and the target, feel
# nothing of it. KILLS of each kind; `make stress` does 200.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

KILLS=${KILLS:-20}
RATE=16384
BIN=$(subject 1.27.4 checksum) || { fail heal "the subject cannot be built"; finish; }

# Whatever failed, no program is left with breakpoints.
TARGETS=()
heal_all() {
	local p
	for p in "${TARGETS[@]}"; do "$GOPROF" heal -p "$p" >/dev/null 2>&1; done
	cleanup
}
trap heal_all EXIT

good() { sed -n 's/^good //p' "$OUT" | tail -n 1; }

# Why the target's sums do not go on, or nothing.
harmed() {
	local before i now
	kill -USR1 "$PID" || { echo "it is gone"; return; }
	sleep 0.1
	before=$(good)
	for ((i = 0; i < 200; i++)); do
		kill -USR1 "$PID" 2>/dev/null || { echo "it is gone"; return; }
		sleep 0.05
		now=$(good)
		grep -q '^wrong' "$OUT" && break
		[ "${now:-0}" -gt "${before:-0}" ] && return
	done
	echo "its sums: $(tail -n 1 "$OUT")"
}

# judged NAME WHY: ok when there is no reason and the target is well.
judged() {
	local why=$2
	[ -n "$why" ] || why=$(harmed)
	[ -z "$why" ] && pass "heal/$1" || fail "heal/$1" "$why"
}

start "$BIN" || { fail heal "the subject does not start"; finish; }
TARGETS+=("$PID")

# ---- killed ----

said=$("$O/tests/leak" -keeper "$PID" "$KILLS" 2>&1)
rc=$?
echo "$said"
judged "the keeper killed $KILLS times" "$([ $rc = 0 ] && [[ $said == "$KILLS killed, 0 left something: 0 breakpoints, 0 at the end" ]] || echo "$said")"

said=$("$O/tests/leak" "$PID" "$KILLS" 2>&1)
rc=$?
echo "$said"
why=$([ $rc = 0 ] && [[ $said == *", 0 at the end" ]] || echo "$said")
# About one in ten leaves something, so 200 that leave nothing show nothing.
[ "$KILLS" -lt 200 ] || [[ $said != *" 0 left something"* ]] || why="nothing was ever left: this shows nothing"
judged "all killed at once $KILLS times" "$why"

# ---- what is left is seen and freed ----

# Sets LEFT.
leave() {
	said=$("$O/tests/leak" -leave "$PID" 2>&1)
	LEFT=${said##*, } LEFT=${LEFT%% *}
	[ "${LEFT:-0}" -gt 0 ] 2>/dev/null || { fail heal/left "nothing was left: $said"; finish; }
}

leave
"$GOPROF" doctor 2>&1 | grep 'breakpoints in Go programs' >"$TMP/doctor"
n=$(sed 's/.*programs *\([0-9]*\) in.*/\1/' "$TMP/doctor")
judged "doctor counts them" "$([ "$n" -ge "$LEFT" ] || echo "$LEFT are left: $(cat "$TMP/doctor")")"
said=$("$GOPROF" heal -p "$PID" 2>&1)
rc=$?
judged "heal frees them" "$([ $rc = 0 ] && [[ $said == "$PID "*": $LEFT breakpoints freed" ]] || echo "$LEFT are left; status $rc: $said")"
said=$("$GOPROF" heal -p "$PID" 2>&1)
rc=$?
judged "and then there are none" "$([ $rc = 0 ] && [[ $said == *"no breakpoints"* ]] || echo "status $rc: $said")"

# Whatever kind it is of, and wherever they are.
for kind in "--heap --source=probe" "--block --source=probe" "--mutex --source=probe" --wait; do
	leave
	# shellcheck disable=SC2086
	"$GOPROF" -p "$PID" $kind -d 100ms -o "$TMP" >/dev/null 2>"$TMP/said"
	# One that this profile probes itself by then is freed at its end.
	why=$(grep -q "pid $PID: [0-9]* breakpoints freed" "$TMP/said" || echo "$LEFT were left: $(cat "$TMP/said")")
	said=$("$GOPROF" heal -p "$PID" 2>&1)
	[[ $said == *"no breakpoints"* ]] || why="$LEFT were left, and then: $said"
	judged "the next profile frees them: $kind" "$why"
done

# ---- a profile goes on ----

: >"$TMP/said"
# In windows, at each of which the keeper puts probes in and takes them out.
"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=16k --budget=2% -d 60s -o "$TMP" >"$TMP/paths" 2>"$TMP/said" &
PROFILER=$!
STARTED+=("$PROFILER")
for ((i = 0; i < 500; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.02; done
why= killed=0 spared= collector=
RANDOM=5
for ((i = 0; killed < KILLS && i < KILLS * 50; i++)); do
	sleep "0.0$((RANDOM % 90 + 10))"
	for keeper in $(pgrep -P "$PROFILER" uprobe-keeper); do
		[ -e "/proc/$keeper/exe" ] || continue # it is dead
		spared=$(cat "/proc/$keeper/oom_score_adj") collector=$(cat "/proc/$PROFILER/oom_score_adj")
		kill -KILL "$keeper" 2>/dev/null && killed=$((killed + 1))
	done
done
sleep 0.5
kill -INT "$PROFILER"
wait "$PROFILER"
rc=$?
n=$(sed -n 's/.* \([0-9]*\) times somebody killed the process that keeps the probes.*/\1/p' "$TMP/said")
[ "$killed" -ge "$KILLS" ] || why="$killed keepers were found, of $KILLS"
[ $rc = 3 ] && [ "$(wc -l <"$TMP/paths")" = 1 ] || why="status $rc: $(tail -n 2 "$TMP/said")"
# One that is killed while it dies is counted once.
[ "${n:-0}" -gt $((KILLS / 2)) ] && [ "${n:-0}" -le "$killed" ] || why="it says ${n:-none} times of $killed"
"$PPROFCHECK" check "$(cat "$TMP/paths")" >"$TMP/check" 2>&1 || why="the profile: $(head -n 1 "$TMP/check")"
"$PPROFCHECK" cum -type alloc_space "$(cat "$TMP/paths")" | grep -q 'main\.fill' || why="no work in the profile"
said=$("$GOPROF" heal -p "$PID" 2>&1)
[[ $said == *"no breakpoints"* ]] || why="left at its end: $said"
judged "a profile in windows goes on when its keeper is killed" "$why"
if sh -c 'echo -1000 >/proc/self/oom_score_adj' 2>/dev/null; then
	[ "$spared" = -1000 ] && pass "heal/the kernel's killer spares the keeper" ||
		fail "heal/the kernel's killer spares the keeper" "its score is $spared"
else
	[ "$spared $collector" = "$(cat /proc/self/oom_score_adj) $(($(cat /proc/self/oom_score_adj) + 100))" ] &&
		pass "heal/the kernel's killer takes us before the keeper" ||
		fail "heal/the kernel's killer takes us before the keeper" "their scores are $collector and $spared"
fi
kill "$PID"

# ---- probes at work ----

bin=$(subject 1.27.4 alloctruth -ldflags='-s -w') || { fail "heal/probes at work" "does not build"; finish; }
mkfifo "$TMP/in"
exec {fd}<>"$TMP/in"
OUT=$TMP/truth
: >"$OUT"
"$bin" -goroutines 2 <&"$fd" >"$OUT" 2>&1 &
PID=$!
STARTED+=("$PID")
TARGETS+=("$PID")
for ((i = 0; i < 100; i++)); do grep -q ready "$OUT" && break; sleep 0.1; done
: >"$TMP/said"
"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=$RATE --budget=0 -d 3600s -o "$TMP/live" >"$TMP/paths" 2>"$TMP/said" &
PROFILER=$!
STARTED+=("$PROFILER")
for ((i = 0; i < 500; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.02; done
echo go >&"$fd"
why= healed=0
for ((i = 0; i < 3000; i++)); do
	grep -q '^done' "$OUT" && break
	[ $healed = 10 ] && { sleep 0.1; continue; }
	said=$("$GOPROF" heal -p "$PID" 2>&1) || why="heal: status $?: $said"
	[[ $said == *" 0 breakpoints freed, "*" in use by probes at work"* ]] || why="heal: $said"
	healed=$((healed + 1))
done
kill -INT "$PROFILER"
wait "$PROFILER"
[ $healed -gt 0 ] || why="nothing was healed meanwhile: this shows nothing"
[ -n "$why" ] || why=$(judge_probe "$OUT" "$(cat "$TMP/paths")" $RATE)
[ -z "$why" ] && pass "heal/probes at work miss nothing ($healed times)" || fail "heal/probes at work" "$why"
said=$("$GOPROF" heal -p "$PID" 2>&1)
[[ $said == *"no breakpoints"* ]] && pass "heal/they are gone with their owner" || fail "heal/they are gone with their owner" "$said"
finish
