#!/bin/bash
# Killed in the middle of putting probes in, a process leaves breakpoints behind. An attacher of probes
# that is killed is followed by one that frees them, and the profile goes on; `heal`, and the next
# profile, free what is left when all were killed at once; probes at work, and the target, feel
# nothing of it. KILLS of each kind; `make stress` does 200.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

KILLS=${KILLS:-20}
RATE=16384
# A file of its own: kills leave probes at its sites.
BIN=$TMP/checksum
cp "$(subject 1.27.4 checksum)" "$BIN" || { fail heal "the subject cannot be built"; finish; }

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
	kill -USR1 "$PID" 2>/dev/null || { echo "it is gone"; return; }
	sleep 0.1
	before=$(good)
	for ((i = 0; i < 200; i++)); do
		kill -USR1 "$PID" 2>/dev/null || { echo "it is gone"; return; }
		sleep 0.05
		now=$(good)
		! grep -q '^wrong' "$OUT" || break
		[ "${now:-0}" -le "${before:-0}" ] || return 0
	done
	echo "its sums: $(tail -n 1 "$OUT")"
}

# check NAME FUNCTION [ARG...]: one outcome, for which the target must be well, too.
check() {
	steps "${@:2}"
	steps harmed
	outcome "heal/$1"
}

# heal SENTENCE: says that, and it is a glob.
heal() {
	local said rc
	said=$("$GOPROF" heal -p "$PID" 2>&1) && rc=0 || rc=$?
	# shellcheck disable=SC2053
	[ $rc = 0 ] && [[ $said == $1 ]] || echo "not '$1': status $rc: $said"
}

# leaks [FLAG...]: kills, KILLS times; SAID is what came of it.
leaks() {
	local rc
	SAID=$("$O/tests/leak" "$@" "$PID" "$KILLS" 2>&1) && rc=0 || rc=$?
	echo "$SAID" >&2
	[ $rc = 0 ] || echo "status $rc: $SAID"
}

start "$BIN" || { fail heal "the subject does not start"; finish; }
TARGETS+=("$PID")

# ---- killed ----

attacher_killed() {
	leaks -attacher
	[[ $SAID == "$KILLS killed, 0 left something: 0 breakpoints, 0 at the end" ]] || echo "$SAID"
}
check "the attacher killed $KILLS times" attacher_killed

all_killed() {
	leaks
	[[ $SAID == *", 0 at the end" ]] || echo "$SAID"
	# About one in ten leaves something, so 200 that leave nothing show nothing.
	[ "$KILLS" -lt 200 ] || [[ $SAID != *" 0 left something"* ]] || echo "nothing was ever left: this shows nothing"
}
check "all killed at once $KILLS times" all_killed

# ---- what is left is seen and freed ----

# Sets LEFT.
leave() {
	local said
	said=$("$O/tests/leak" -leave "$PID" 2>&1) || :
	LEFT=${said##*, } LEFT=${LEFT%% *}
	[ "${LEFT:-0}" -gt 0 ] 2>/dev/null || { echo "nothing was left: $said"; LEFT=0; }
}

# It stays for the next one.
counted() {
	local n
	leave
	{ "$GOPROF" doctor 2>&1 || [ $? = 3 ]; } | sed -n '/breakpoints in Go programs/p' >"$TMP/doctor"
	n=$(sed 's/.*programs *\([0-9]*\) in.*/\1/' "$TMP/doctor")
	[ "${n:-0}" -ge "$LEFT" ] || echo "$LEFT are left: $(cat "$TMP/doctor")"
}
check "doctor counts them" counted
check "heal frees them" heal "$PID *: $LEFT breakpoints freed"
check "and then there are none" heal "*no breakpoints*"

# Whatever kind it is of, and wherever they are.
freed_by() {
	leave
	"$GOPROF" -p "$PID" "$@" -d 100ms -o "$TMP" >/dev/null 2>"$TMP/said" || [ $? = 3 ]
	# One that this profile probes itself by then is freed at its end.
	grep -q "pid $PID: [0-9]* breakpoints freed" "$TMP/said" || echo "$LEFT were left: $(cat "$TMP/said")"
	heal "*no breakpoints*"
}
for kind in "--heap --source=probe" "--block --source=probe" "--mutex --source=probe" --wait; do
	# shellcheck disable=SC2086
	check "the next profile frees them: $kind" freed_by $kind
done

# Of many it goes on while they are probed. What is said of how many there were is in the profile.
freed_by_many() {
	local rc file
	leave
	"$GOPROF" --all --match "exe=$BIN" "$@" -d 2s -o "$TMP/many" >"$TMP/paths" 2>"$TMP/said" && rc=0 || rc=$?
	file=$(tail -n 1 "$TMP/paths")
	"$PPROFCHECK" comments "$file" | has "^leftovers: there were $LEFT breakpoints in its code, .*: those that nobody uses were taken out" ||
		echo "$LEFT were left, and status $rc: $("$PPROFCHECK" comments "$file" | grep ^leftovers) $(cat "$TMP/said")"
	heal "*no breakpoints*"
}
for kind in "--heap --source=probe" --wait; do
	# shellcheck disable=SC2086
	check "the next profile of many frees them: $kind" freed_by_many $kind
done

# ---- a profile goes on ----

# In windows, at each of which the attacher puts probes in and takes them out. Attachers are our executable
# once more, also when its file has been removed meanwhile.
spared= collector=
goes_on() {
	local i n rc profiler attacher killed=0
	: >"$TMP/said"
	cp "$GOPROF" "$TMP/removed"
	"$TMP/removed" -p "$PID" --heap --source=probe --heap-rate=16k --budget=2% -v -d 60s -o "$TMP" >"$TMP/paths" 2>"$TMP/said" &
	profiler=$!
	STARTED+=("$profiler")
	for ((i = 0; i < 500; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.02; done
	rm "$TMP/removed"
	RANDOM=5
	for ((i = 0; killed < KILLS && i < KILLS * 50; i++)); do
		sleep "0.0$((RANDOM % 90 + 10))"
		for attacher in $(pgrep -P "$profiler" uprobe-attacher || :); do
			[ -e "/proc/$attacher/exe" ] || continue # it is dead
			spared=$(cat "/proc/$attacher/oom_score_adj" 2>/dev/null || echo "$spared")
			collector=$(cat "/proc/$profiler/oom_score_adj")
			! kill -KILL "$attacher" 2>/dev/null || killed=$((killed + 1))
		done
	done
	sleep 0.5
	kill -INT "$profiler"
	wait "$profiler" && rc=0 || rc=$?
	n=$(sed -n 's/.* \([0-9]*\) times somebody killed the process that keeps the probes.*/\1/p' "$TMP/said")
	[ "$killed" -ge "$KILLS" ] || echo "$killed attachers were found, of $KILLS"
	[ $rc = 3 ] && [ "$(wc -l <"$TMP/paths")" = 1 ] || echo "status $rc: $(tail -n 2 "$TMP/said")"
	# One that is killed while it dies is counted once.
	[ "${n:-0}" -gt $((KILLS / 2)) ] && [ "${n:-0}" -le "$killed" ] || echo "it says ${n:-none} times of $killed"
	"$PPROFCHECK" check "$(cat "$TMP/paths")" 2>&1
	"$PPROFCHECK" cum -type alloc_space "$(cat "$TMP/paths")" | has 'main\.fill' || echo "no work in the profile"
	[ "$spared" = -1000 ] || grep -q 'the OOM killer does not spare the process that keeps the probes' "$TMP/said" ||
		echo "not said that its attacher is not spared"
	heal "*no breakpoints*"
}
check "a profile in windows goes on when its attacher is killed" goes_on
if sh -c 'echo -1000 >/proc/self/oom_score_adj' 2>/dev/null; then
	[ "$spared" = -1000 ] && pass "heal/the kernel's killer spares the attacher" ||
		fail "heal/the kernel's killer spares the attacher" "its score is $spared"
else
	[ "$spared $collector" = "$(cat /proc/self/oom_score_adj) $(($(cat /proc/self/oom_score_adj) + 100))" ] &&
		pass "heal/the kernel's killer takes us before the attacher" ||
		fail "heal/the kernel's killer takes us before the attacher" "their scores are $collector and $spared"
fi

# Others look for leftovers beside windows: those that close meanwhile were not left by anybody.
nobodys() {
	local i said profiler
	: >"$TMP/said"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=16k --budget=2% -v -d 60s -o "$TMP" >"$TMP/paths" 2>"$TMP/said" &
	profiler=$!
	STARTED+=("$profiler")
	for ((i = 0; i < 500; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.02; done
	sleep 1
	for ((i = 0; i < 25; i++)); do
		said=$("$GOPROF" heal -p "$PID" 2>&1) || echo "heal: status $?"
		[[ $said == *"no breakpoints"* || $said == *" 0 breakpoints freed, "* ]] || echo "$said"
		[[ $said != *" in use "* ]] || met=$((met + 1))
	done
	for ((i = 0; i < 4; i++)); do
		"$GOPROF" -p "$PID" --block -d 10ms -o "$TMP" >/dev/null 2>"$TMP/second" || [ $? = 3 ] || echo "$(cat "$TMP/second")"
		sed -n '/breakpoints freed/p' "$TMP/second"
	done
	kill -INT "$profiler"
	wait "$profiler" || [ $? = 3 ]
}
met=0
check "windows are nobody's leftovers" nobodys
[ "$met" -gt 0 ] && pass "heal/windows are met" || fail "heal/windows are met" "none was open in 25 looks: this shows nothing"
kill "$PID"

# ---- probes at work ----

# One that allocates as much as it says, watched from outside while others look for leftovers.
at_work() {
	local bin fd i said profiler healed=0
	bin=$(subject 1.27.4 alloctruth -ldflags='-s -w')
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
	profiler=$!
	STARTED+=("$profiler")
	for ((i = 0; i < 500; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.02; done
	echo go >&"$fd"
	for ((i = 0; i < 3000; i++)); do
		grep -q '^done' "$OUT" && break
		[ $healed != 10 ] || { sleep 0.1; continue; }
		heal "* 0 breakpoints freed, * in use by probes at work*"
		healed=$((healed + 1))
	done
	kill -INT "$profiler"
	wait "$profiler" || [ $? = 3 ]
	[ $healed -gt 0 ] || echo "nothing was healed meanwhile: this shows nothing"
	echo "healed $healed times" >&2
	judge_probe "$OUT" "$(cat "$TMP/paths")" $RATE
}
steps at_work
outcome "heal/probes at work miss nothing"
steps heal "*no breakpoints*"
outcome "heal/they are gone with their owner"
finish
