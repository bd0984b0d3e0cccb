# shellcheck shell=bash
# Of vmtest/suite.sh: the target stays as it was, whatever becomes of us.

part_soak() {
	local said
	ordinary
	code "$(subject $NEWEST checksum)"
	start "$(subject $NEWEST checksum)" -rest 20ms # attaching waits for the kernel most of its time
	said=$("${AS[@]}" "$TMP/cycles" "$PID" 4 2>&1) || wrong "$said"
	echo "# $said"
	judge harmless
	outcome "soak/attached and detached"
	stop
}
# breakpoints: under each, the first byte of an instruction is another one, and nothing behind it is. None is in place
# of a jump of two bytes over eight: a kernel in development after 7.0 takes that for its own and overwrites the eight.
# On arm64 it is a word, brk #5, and none is in place of ldxr, stxr and their like.
breakpoints() {
	dd if="/proc/$PID/mem" bs=1M iflag=skip_bytes,count_bytes skip=$((ADDR)) count=$((SIZE)) status=none 2>/dev/null |
		cmp -l - "$TMP/text" >"$TMP/changed" || [ $? = 1 ]
	[ -s "$TMP/changed" ] || echo "no probe is in place"
	[ "$(uname -m)" = x86_64 ] || { words; return; }
	while read -r at now was; do
		[ "$now" = 314 ] || echo "at $at is $now, and was $was (octal)"
		[ "$was" != 353 ] || [ "$(od -An -tu1 -j "$at" -N 1 "$TMP/text" | tr -d ' ')" != 8 ] || echo "at $at a jump over eight bytes is probed"
	done <"$TMP/changed"
}
words() {
	local brk=(240 0 40 324) word
	awk '{ print int(($1 - 1) / 4) * 4 }' "$TMP/changed" | uniq >"$TMP/at"
	while read -r at now was; do
		[ "$now" = "${brk[(at - 1) % 4]}" ] || echo "at $at is $now, and was $was (octal)"
	done <"$TMP/changed"
	while read -r at; do
		word=$((0x$(od -An -tx4 -j "$at" -N 4 "$TMP/text" | tr -d ' ')))
		[ $((word & 0x3f800000)) != $((0x08000000)) ] || echo "at $at an exclusive access is probed"
	done <"$TMP/at"
}
killed() {
	local n
	for n in 1 ${SHORT:-2}; do
		: >"$TMP/err"
		"${AS[@]}" "$TMP/goprof" -p "$PID" --cpu --heap --source=probe --budget=0 -d 60s -o "$TMP/any" >"$TMP/paths" 2>"$TMP/err" </dev/null &
		PROF=$!
		STARTED+=("$PROF")
		within 60 grep -q 'profiling pid' "$TMP/err" || echo "it does not profile: $(last_said)"
		breakpoints
		kill -KILL $PROF
		wait $PROF 2>/dev/null || :
		harmless
	done
}
# At any moment from its beginning until a little after it has begun to profile.
attaching() {
	local n begun=0
	for n in 1 2 3; do
		: >"$TMP/err"
		"${AS[@]}" "$TMP/goprof" -p "$PID" --cpu --heap --source=probe --budget=0 -d 60s -o "$TMP/any" >"$TMP/paths" 2>"$TMP/err" </dev/null &
		PROF=$!
		STARTED+=("$PROF")
		sleep "$((RANDOM % 2)).$((RANDOM % 900 + 100))"
		kill -KILL $PROF
		wait $PROF 2>/dev/null || :
		begun=$((begun + $(count 'profiling pid' "$TMP/err")))
		harmless
	done
	echo "# of $n that were killed at some moment $begun had begun to profile" >&2
}
part_kill() {
	[ -n "${SHORT:-}" ] || ordinary # that is found out by doctor, which is dear here
	code "$(subject $NEWEST checksum)"
	if [ -n "${SHORT:-}" ]; then start_idler; else start "$(subject $NEWEST checksum)" -rest 20ms; fi
	steps killed
	outcome "kill/the target is as it was"
	if [ -z "${SHORT:-}" ]; then
		steps attaching
		outcome "kill/while it attaches, too"
	fi
	stop
}

# What was killed in the middle of putting probes in is counted by doctor, and freed by heal. Few kills leave something,
# and of a kernel without cgroup.kill (5.14) and with one CPU next to none.
heal_leftovers() {
	local said left
	said=$("$O/tests/leak" -leave "$PID" 40 2>&1) || :
	echo "# $said" >&2
	left=${said##*, } left=${left%% *}
	if [ "$left" = 0 ]; then heals '*no breakpoints*'; else leftovers "$left"; fi
	harmless
}
# leftovers N
leftovers() {
	local n
	n=$({ "$GOPROF" doctor 2>&1 || :; } | sed -n '/breakpoints in Go programs/s/.*programs *\([0-9]*\) in.*/\1/p')
	[ "${n:-0}" -ge "$1" ] || echo "$1 are left, and doctor says $n"
	heals "$PID *: $1 breakpoints freed"
	heals '*no breakpoints*'
}
# Leftovers without a kill: the bytes that the kernel writes for our probes are written once more, and nobody's probe is
# there. The program stands still meanwhile: one that runs into such a breakpoint ends.
planted() {
	local n
	profile -p "$PID" --heap --source=probe --budget=0 -d 60s
	breakpoints
	ended >"$TMP/quiet"
	harmless
	kill -STOP "$PID"
	"$O/tests/leak" -plant "$PID" "$ADDR" <"$TMP/changed"
	n=$(wc -l <"$TMP/changed")
	[ "$(uname -m)" = x86_64 ] || n=$(wc -l <"$TMP/at")
	echo "# $n breakpoints planted" >&2
	leftovers "$n"
	[ "$(changed)" = 0 ] || echo "$(changed) bytes of its code are not the file's"
	kill -CONT "$PID"
	harmless
}
# A profile goes on when its attacher is killed.
goes_on() {
	local n attacher
	profile -p "$PID" --heap --source=probe --heap-rate=16k --budget=0 -d 60s
	for n in 1 2; do
		sleep "0.$((RANDOM % 900 + 100))"
		for attacher in $(pgrep -P "$PROF" uprobe-attacher || :); do
			[ ! -e "/proc/$attacher/exe" ] || kill -KILL "$attacher" # or it is dead
		done
	done
	sleep 2 # the dead one's probes go first
	within 20 mended
	breakpoints
	ended -allow heap:ATTACHER_KILLED=any -allow heap:UNWATCHED=any
	grep -q 'heap: [12] times somebody killed the process that keeps the probes' "$TMP/err" || echo "not said: $(last_said)"
	"$PPROFCHECK" cum -type alloc_space "$FILE" | has 'main\.fill' || echo "no work in the profile"
	harmless
}
mended() { [ "$(changed)" != 0 ]; }
# heals GLOB: that is what it says
heals() {
	local said rc
	said=$("$GOPROF" heal -p "$PID" 2>&1) && rc=0 || rc=$?
	# shellcheck disable=SC2053
	[ $rc = 0 ] && [[ $said == $1 ]] || echo "not '$1': status $rc: $said"
}
# An attacher of probes that is killed is followed by one that frees what it left.
attachers() {
	local said
	said=$("$O/tests/leak" -attacher "$PID" 3 2>&1) || :
	[[ $said == "3 killed, 0 left something: 0 breakpoints, 0 at the end" ]] || echo "$said"
	harmless
}
# second_cpu 1 | 0: comes, goes, where the machine has one. Nothing is timed with two of them (run.sh).
second_cpu() { [ ! -e "$SECOND_CPU" ] || echo "$1" >"$SECOND_CPU" || wrong "the second CPU does not come or go"; }
part_heal() {
	second_cpu 1
	code "$(subject $NEWEST checksum)"
	start_idler
	steps attachers
	outcome "heal/the attacher killed"
	if [ -z "${SHORT:-}" ]; then
		steps planted
		outcome "heal/what is left is counted and freed"
		steps goes_on
		outcome "heal/a profile whose attacher is killed goes on"
		steps heal_leftovers
		outcome "heal/what a kill leaves is counted and freed"
	fi
	stop
	second_cpu 0
}
