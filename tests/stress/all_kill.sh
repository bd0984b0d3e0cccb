#!/bin/bash
# Killing --all at random moments with 50 targets: the collector, the child that opens processes for it, its parent while it is at work,
# or both, KILLS times.
# Every third time it has been told to end some moments before.
# Every other time heaps and waits are probed as well, all the time or, every other of those, in the windows that the budget pays for; then the
# process that holds probes is one of these children.
# Afterwards the kernel holds nothing of ours, no process of ours is left, and the targets run on, without a breakpoint after the
# next run. A collector survives its child.
. tests/support/lib.sh
need_root && need_bpf && need_go

KILLS=${KILLS:-100} TARGETS=50
OURS=42432 # a user of our own, so that what is ours in the kernel can be told from others'
CAPS=-all,+bpf,+perfmon,+sys_ptrace
AS=(setpriv --reuid $OURS --regid $OURS --clear-groups --bounding-set=$CAPS --inh-caps=$CAPS --ambient-caps=$CAPS)
bin=$(subject 1.27.4 hosted) || { fail all_kill "the subject does not build"; finish; }
chmod 755 "$TMP" && mkdir -m 777 "$TMP/any" && cp "$GOPROF" "$TMP/goprof" && cp "$O/tests/cycles" "$TMP/cycles" &&
	chmod 755 "$TMP/goprof" "$TMP/cycles"

PIDS=()
for ((i = 0; i < TARGETS; i++)); do
	if [ $((i % 25)) = 0 ]; then set -- busy 1 1; elif [ $((i % 25)) = 1 ]; then set -- allocates 50; else set -- idle; fi
	"$bin" "$@" >/dev/null 2>&1 </dev/null &
	STARTED+=($!) PIDS+=($!)
done
sleep 1

held() { "${AS[@]}" "$TMP/cycles" -left $OURS; }
ours() { pgrep -u $OURS | wc -l; }
ticks() { for p in "${PIDS[@]}"; do sed 's/.*) //' "/proc/$p/stat"; done | awk '{ n += $12 + $13 } END { print n }'; }

# The kernel frees what nobody holds any more a little later.
nothing_left() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(held)" = "0 programs, 0 links" ] && [ "$(ours)" = 0 ] && return 0
		sleep 0.05
	done
	return 1
}

PROBED=(--cpu --heap --source=probe --wait)
run() { exec "${AS[@]}" "$TMP/goprof" --all --match "cmd=$bin" -o "$TMP/any/out" "$@" >"$TMP/any/paths" 2>"$TMP/any/err"; }
# Children whose parent has died wait for nobody but the test.
reaped() { wait "$1" 2>/dev/null || :; }

# ends PID MS: told to end, it takes out what is in, and writes 50 profiles of a kind; that is MS milliseconds' work
ends() {
	kill -INT "$1"
	sleep "0.$(printf %03d $((RANDOM % $2)))"
	! kill -0 "$1" 2>/dev/null || ENDING=$((ENDING + 1))
}

# orphaned PID CHILD...: the collector lives on without its children.
orphaned() {
	local pid=$1
	CHILDREN=$((CHILDREN + $# - 1))
	[ $# = 1 ] || sleep 0.3
	kill -KILL "$pid" 2>/dev/null || [ -n "${CLOSING:-}" ] || echo "the collector died with its child: $(tail -n 1 "$TMP/any/err")"
}

# die WHO OPTION...: the collector, its child, its child's parent or both are killed up to 0.8 s after its begin (WHEN=1: up to 1.8 s, when
# there are windows). In the window programs start, so that there is a child.
die() {
	local pid i p new=() children=()
	run -d 300s "${@:2}" &
	pid=$!
	sleep "$((${WHEN:-0} * (RANDOM % 2))).$((RANDOM % 8))$((RANDOM % 10))"
	for ((i = 0; i < 3; i++)); do "$bin" idle >/dev/null 2>&1 & new+=($!); done
	sleep "0.0$((RANDOM % 10))"
	[ -z "${CLOSING:-}" ] || ends "$pid" "$CLOSING"
	for ((i = 0; i < 20; i++)); do
		[ "$1" != collector ] && [ ${#children[@]} = 0 ] || break
		mapfile -t children < <(pgrep -P "$pid" || :)
	done
	for p in "${children[@]}"; do [ "$1" = parent ] || kill -KILL "$p" 2>/dev/null || :; done
	if [ "$1" = child ]; then orphaned "$pid" "${children[@]}"; else kill -KILL "$pid" 2>/dev/null || [ -n "${CLOSING:-}" ]; fi
	reaped "$pid"
	nothing_left || echo "after the death of the $1: $(held), $(ours) processes"
	for p in "${new[@]}"; do kill -KILL "$p"; reaped "$p"; done
}
CHILDREN=0 ENDING=0

nothing_left || { fail all_kill "before anything was done: $(held)"; finish; }
before=$(ticks)
WHO=(child collector parent both)
for ((k = 0; k < KILLS; k++)); do
	CLOSING=
	[ $((k % 3)) != 2 ] || CLOSING=$((k / 4 % 2 ? 180 : 8))
	case $((k / 4 % 4)) in
	0 | 2) steps die "${WHO[k % 4]}" ;;
	1) steps die "${WHO[k % 4]}" "${PROBED[@]}" --host-budget=0,0 ;;
	3) WHEN=1 steps die "${WHO[k % 4]}" "${PROBED[@]}" ;;
	esac
done
[ $CHILDREN != 0 ] || wrong "no child was ever there to be killed"
[ $ENDING -ge $((KILLS / 12)) ] || wrong "only $ENDING of $((KILLS / 3)) were killed while they ended"
echo "# $CHILDREN children, $ENDING of $KILLS while it ended" >&2
outcome "all_kill/$KILLS deaths leave nothing"
unharmed() {
	local p
	[ "$(ticks)" -gt "$before" ] || { echo "the targets do not run on"; return 1; }
	for p in "${PIDS[@]}"; do kill -0 "$p" || { echo "$p has died"; return 1; }; done
}
judge unharmed
outcome all_kill/targets
next_run() {
	local rc
	(run -d 2s)
	rc=$?
	[ $rc = 0 ] && [ -s "$TMP/any/paths" ] || { echo "exit $rc: $(tail -n 1 "$TMP/any/err")"; return 1; }
}
judge next_run
probed_run() {
	local p rc
	(run -d 2s "${PROBED[@]}")
	rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || { echo "exit $rc: $(tail -n 1 "$TMP/any/err")"; return 1; }
	for p in $(grep -h heap "$TMP/any/paths"); do "$PPROFCHECK" comments "$p"; done >"$TMP/comments"
	grep -qE '^budget: .* [1-9][0-9]* windows' "$TMP/comments" || { echo "there are no windows"; return 1; }
	for p in "${PIDS[@]}"; do
		"$GOPROF" heal -p "$p" 2>&1 | has 'no breakpoints in the code' || { echo "$p has breakpoints"; return 1; }
	done
}
judge probed_run
outcome all_kill/next
finish
