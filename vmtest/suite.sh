#!/bin/bash
# What runs on a kernel under test, from the top of a tree in which all is built (vmtest/run.sh).
#
#	suite.sh programs	one line each: the command of tests/support/lib.sh that builds what the tests need
#	suite.sh		the tests, an outcome a line, as scripts of tests/e2e print them
#
# The judges and their bounds are those of tests/e2e. The counts are smaller, because a probe costs some
# hundred times as much under emulation. PARTS="load cpu" runs these parts alone; SHORT=1: what finds most in
# a fifth of the time, on the newest Go. KERNEL: whose budgets of vmtest/verifier.txt hold.
set -u
OLD=1.18.10 MIDDLE=1.22.12 NEWEST=1.27.4
VERSIONS="$OLD $MIDDLE $NEWEST"
[ -z "${SHORT:-}" ] || VERSIONS=$NEWEST
S="-ldflags='-s -w'"

programs() {
	local v name
	for v in $VERSIONS; do
		for name in leaf31 alloctruth waits; do echo "subject $v $name $S"; done
	done
	[ -n "${SHORT:-}" ] || for v in $OLD $NEWEST; do echo "subject $v heapself $S"; done
	[ -n "${SHORT:-}" ] || for name in goroutines churn; do echo "subject $NEWEST $name $S"; done
	echo "subject $NEWEST command $S"
	for name in ratewatch checksum hosted; do echo "subject $NEWEST $name"; done
	echo "subject $OLD hosted $S"
}
[ "${1:-}" != programs ] || { programs; exit; }

. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/harmless.sh
. tests/support/waits.sh
[ -z "${SHORT:-}" ] || PARTS=${PARTS:-load cpu probe waits enable command kill heal all}
PARTS=${PARTS:-load doctor cpu probe waits read goroutine enable command budget caps soak kill heal all spaces hard}
RATE=1024
OURS=42430 # a user of our own
SECOND_CPU=/sys/devices/system/cpu/cpu1/online
AS=() # who profiles, where it is not root
DOCTOR=$TMP/doctor.json
"$GOPROF" doctor --json >"$DOCTOR" 2>"$TMP/err"
# able ID [FILE]: what doctor says: yes, no, unknown
able() { awk -F'"' -v id="$1" '$2 == "id" { this = $4 } $2 == "status" && this == id { print $4; exit }' "${2:-$DOCTOR}"; }

# found ID FILE: what it found there
found() { awk -F'"' -v id="$1" '$2 == "id" { this = $4 } $2 == "found" && this == id { print $4; exit }' "$2"; }

subject_s() { subject "$1" "$2" '-ldflags=-s -w'; }
stop() { kill -KILL "$PID" 2>/dev/null; wait "$PID" 2>/dev/null; }
last_said() { tail -n 3 "$TMP/err" | tr '\n' ' '; }

# Where nothing depends on a program that keeps all processors busy: an emulated machine's idle time costs none.
start_idler() { start "$(subject $NEWEST checksum)" -rest 100ms; }

# within SECONDS COMMAND...: it becomes true
within() {
	local until=$((SECONDS + $1))
	until "${@:2}"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.1
	done
}

# profile ARG...: in the background; PROF is its pid, and its window has begun
profile() {
	: >"$TMP/err"
	"$GOPROF" -o "$TMP/out" "$@" >"$TMP/paths" 2>"$TMP/err" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 60 grep -q 'profiling pid' "$TMP/err" || echo "it does not profile: $(last_said)"
}
# ended [FLAG...]: it is to end now, and what it lost is little; FLAGs of pprofcheck losses. FILE is the first profile.
ended() {
	local rc
	kill -INT "$PROF" 2>/dev/null || :
	wait "$PROF" && rc=0 || rc=$?
	FILE=$(head -n 1 "$TMP/paths")
	[ -s "$FILE" ] || { echo "exit $rc: $(last_said)"; return 1; }
	# shellcheck disable=SC2046
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc "$@" "$TMP/err" $(cat "$TMP/paths") || echo "exit $rc: $(last_said)"
	"$PPROFCHECK" check "$FILE"
}

# ---- the verifier: every program loads, and costs at most what vmtest/verifier.txt grants ----------

# What each program may cost on this kernel; on one that the file has not, as much as on any other but 5.10,
# where the programs are other ones. PROGRAM/many that has no line for this kernel yet: an eighth more than PROGRAM.
granted() {
	awk -v kernel="${KERNEL:-}" '/^(#|$)/ { next }
		$1 == kernel { known = 1; insns[$2] = $3; states[$2] = $4; print $2, $3, $4 }
		$1 !~ /^5\.10/ { if ($3 > i[$2]) i[$2] = $3; if ($4 > s[$2]) s[$2] = $4 }
		END {
			for (p in i) {
				one = p
				if (!known) print p, i[p], s[p]
				else if (!(p in insns) && sub("/many$", "", one) && one in insns) print p, int(insns[one] * 9 / 8), int(states[one] * 9 / 8)
			}
		}' vmtest/verifier.txt
}
part_load() {
	local name insns states said
	"$O/tests/verifier" >"$TMP/verifier" 2>&1 && pass load/all || fail load/all "$(grep private "$TMP/verifier" | tr '\n' ' ')"
	sed 's/^/# /' "$TMP/verifier"
	while read -r name insns states; do
		said=$(awk -v p="$name" -v i="$insns" -v s="$states" '$1 == p && NF == 5 { found = 1
			if ($2 > i || $3 > s) print $2 " instructions, " $3 " states; at most " i ", " s }
			END { if (!found) print "not loaded" }' "$TMP/verifier")
		[ -z "$said" ] && pass "load/$name" || fail "load/$name" "$said"
	done < <(granted)
	said=$(awk 'FNR == NR { has[$1] = 1; next } NF == 5 && !($1 in has) { print $1 }' <(granted) "$TMP/verifier" | tr '\n' ' ')
	[ -z "$said" ] && pass load/budgets || fail load/budgets "none for $said"
}

# ---- doctor: what it says is what happens ----------------------------------------------------------

declare -A KINDS=([cpu]=--cpu [heap_probe]="--heap --source=probe" [block_probe]="--block --source=probe" [wait]=--wait
	[goroutine]=--goroutine)
# agree FILE ID...: a profile of each of these kinds works where doctor says so, and there alone
agree() {
	local id said rc
	for id in "${@:2}"; do
		said=$(able "$id" "$1")
		# shellcheck disable=SC2086
		"${AS[@]}" "$TMP/goprof" -p "$PID" -d 300ms -o "$TMP/any" ${KINDS[$id]} >"$TMP/paths" 2>"$TMP/err" && rc=0 || rc=$?
		case $said:$rc in
		yes:0 | yes:3 | no:1 | unknown:1) ;;
		*) echo "$id: doctor says '$said', and ${KINDS[$id]} ended with $rc: $(last_said)" ;;
		esac
	done
}
# Probes one by one are perf events of the helper that holds them; otherwise it holds none.
probes_agree() {
	local events
	profile -p "$PID" --heap --source=probe --budget=0 -d 60s
	events=$({ ls -l /proc/[0-9]*/fd 2>/dev/null || :; } | awk '/perf_event/ { n++ } END { print n + 0 }')
	ended >"$TMP/quiet"
	case $(able uprobe_multi):$events in
	yes:0 | no:[1-9]*) ;;
	*) echo "doctor says '$(able uprobe_multi)' of many probes in one link, and there are $events perf events" ;;
	esac
}
part_doctor() {
	awk -F'"' '$2 == "id" { id = $4 } $2 == "status" { print "# doctor: " id " " $4 }' "$DOCTOR"
	start_idler
	steps agree "$DOCTOR" "${!KINDS[@]}"
	[ "$(able heap_probe)" != yes ] || steps probes_agree
	outcome doctor/agrees
	stop
}

# ---- each kind, on an old, a middle and the newest Go ------------------------------------------------

part_cpu() {
	local v
	for v in $VERSIONS; do
		start_quiet "$(subject_s $v leaf31)"
		judge leaf_callers
		stop
		outcome "cpu/$v"
	done
}

# known V ARG...: a program of known allocations, all of them probed
known() {
	local fd
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$(subject_s "$1" alloctruth)" -part 20 "${@:2}" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	within 30 grep -q ready "$TMP/truth"
	profile -p "$PID" --heap --source=probe --heap-rate=$RATE --budget=0 -d 300s
	echo go >&"$fd"
	within 200 grep -q '^done' "$TMP/truth" || echo "the program did not finish"
	ended -allow heap:STACKS_CUT=any -allow heap:OBJECTS_UNCONFIRMED=any
	echo end >&"$fd"
	exec {fd}>&-
	"$PPROFCHECK" comments "$FILE" | sed -nE '/^(hits|loss)/s/^/# /p' >&2
	judge_allocs "$TMP/truth" "$FILE" $RATE 0 0.07 # one object of 512 KiB is 1 % of all
}
part_probe() {
	if [ -z "${SHORT:-}" ]; then
		steps known $OLD
		outcome "probe/$OLD"
		steps known $MIDDLE -goroutines 8
		outcome "probe/$MIDDLE, eight goroutines"
	fi
	steps known $NEWEST -goroutines 4 -deep -gc
	outcome "probe/$NEWEST, growing stacks and GC"
}

part_waits() {
	local v
	for v in $VERSIONS; do
		SOURCE=probe one "block/$v" "$v" blocks
		SOURCE='' one "wait/$v" "$v" waits
	done
}
# From the moment at which the program says that a goroutine waits until it does, some milliseconds pass
# here where 100 begin at once. Waits are therefore long; while all wait, an emulated machine's time costs none.
ROUNDS=4 WAIT_MS=400
# one NAME V FUNCTION: with a program of its own that waits as it is told
one() {
	if begin "$2" waits '-ldflags=-s -w'; then
		steps "$3"
		steps end
	else
		wrong "no program"
	fi
	outcome "$1"
}
blocks() {
	watch --block --mutex --block-rate 1 --mutex-fraction 1
	ask run all,mutex100 $ROUNDS $WAIT_MS
	unwatch
	judged block "$BLOCK"
	judged mutex "$MUTEX"
}
waits() {
	watch --wait --budget=0 --wait-rate 1
	ask run all,mutex100 $ROUNDS $WAIT_MS
	unwatch
	judged wait "$WAIT"
}

# ---- what is read ------------------------------------------------------------------------------------

# The program's own profile before and after ours.
reading() {
	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz"
	"$GOPROF" -p "$PID" --heap --source=read -d 1s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || echo "exit $?: $(last_said)"
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz"
}
part_read() {
	local v
	for v in $OLD $NEWEST; do
		start "$(subject_s $v heapself)"
		steps reading
		judge judge_read "$TMP/one.pb.gz" "$(cat "$TMP/paths")" "$TMP/two.pb.gz"
		stop
		outcome "read/$v"
	done
}

goroutines() {
	local rc
	"$GOPROF" -p "$PID" --goroutine -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || echo "exit $?: $(last_said)"
	http_get "$PORT" /debug/pprof/goroutine "$TMP/own.pb.gz"
	# The handler's own goroutines aside.
	"$PPROFCHECK" equal -addresses -without 'net/http\.\(\*(conn|connReader|Server)\)' "$TMP/own.pb.gz" "$(cat "$TMP/paths")" >"$TMP/diff" && rc=0 || rc=$?
	[ $rc = 0 ] || sed -n 1,5p "$TMP/diff"
	awk '/in both:/ && $NF >= 40 { ok = 1 } END { if (!ok) { print "too few samples"; exit 1 } }' "$TMP/diff"
}
part_goroutine() {
	start "$(subject_s $NEWEST goroutines)"
	steps goroutines
	stop
	outcome "goroutine/$NEWEST"
}

# ---- what is written -----------------------------------------------------------------------------------

rate() { { dd if="/proc/$PID/mem" bs=8 skip="$AT" count=1 status=none 2>/dev/null || :; } | od -An -td8 | tr -d ' '; }
rate_is() { [ "$(rate)" = "$1" ]; }
# KILL: the guardian restores it.
enables() {
	profile -p "$PID" --heap --source=enable -d 300s
	rate_is 524288 || echo "in the window the rate is $(rate)"
	if [ "$1" = KILL ]; then
		kill -KILL "$PROF"
		wait "$PROF" 2>/dev/null || :
	else
		ended -allow heap:ANY=any >"$TMP/quiet" # other than that nothing is asked of so short a profile
	fi
	within 20 rate_is 0 || echo "after it the rate is $(rate)"
}
part_enable() {
	local bin how
	bin=$(subject $NEWEST ratewatch)
	AT=$((0x$(nm "$bin" | sed -n 's/ . runtime\.MemProfileRate$//p') / 8))
	start "$bin" -busy
	for how in INT KILL; do
		steps enables $how
		outcome "enable/restored after SIG$how"
	done
	stop
}

# ---- a command, a budget, an ordinary user -----------------------------------------------------------

commanded() {
	local rc bin
	bin=$(subject_s $NEWEST command)
	rm -rf "$TMP/cmd"
	"$GOPROF" --cpu --heap --source=probe --budget=0 --heap-rate 1k -o "$TMP/cmd" -- "$bin" -burn 2s -status 4 >"$TMP/got" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	[ $rc = 4 ] || echo "exit $rc: $(last_said)"
	# All that main.inInit allocated before main. CPU time is that of the whole process, its probes' as well.
	"$PPROFCHECK" cum -type alloc_objects "$TMP"/cmd/*.heap.pb.gz | awk '$2 == "main.inInit" { n = $1 }
		END { if (n < 9000 || n > 11000) print n + 0 " objects of 10000" }'
	"$PPROFCHECK" sum "$TMP"/cmd/*.cpu.pb.gz | awk -v want="$(sed -n 's/^cpu //p' "$TMP/got")" '$2 == "cpu" { n = $1 }
		END { if (!want || n < 0.8 * want || n > 1.3 * want) print n + 0 " ns of " want + 0 " that the kernel charged" }'
	"$PPROFCHECK" cum -type cpu "$TMP"/cmd/*.cpu.pb.gz | awk '$2 == "main.burn" { n = $1 / 1e9 }
		END { if (n < 1 || n > 2.2) print n + 0 " s in main.burn, of less than 2" }'
}
part_command() {
	steps commanded
	outcome command
}

# Putting probes in and out is dear here, so there are some 20 windows. They need not meet every pace, which is told.
# The estimates of windows lie as near to the truth as the error that the profile states (tests/e2e/budget.sh).
windows() {
	local rc
	start "$(subject_s $NEWEST churn)" heavy "$TMP/log"
	sleep 0.2
	"$GOPROF" -p "$PID" --heap --source=probe -d 15s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	FILE=$(cat "$TMP/paths")
	sleep 0.5
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -allow heap:ALLOCS_UNSEEN=any -allow heap:ALLOCS_UNMET=any "$TMP/err" "$FILE" || echo "exit $rc: $(last_said)"
	"$PPROFCHECK" comments "$FILE" | sed -nE 's/^(budget|hits|window|error: all):/# &/p' >&2
	"$PPROFCHECK" check "$FILE"
	"$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 -absent "$TMP/log" "$FILE" >"$TMP/verdict" && rc=0 || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
	kill "$PID"
}
# Where probes cannot be taken out at once there are no windows: the budget ends the observation, which is told.
ends_observation() {
	local rc
	start "$(subject_s $NEWEST churn)" heavy "$TMP/log"
	sleep 0.2
	"$GOPROF" -p "$PID" --heap --source=probe -d 5s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	FILE=$(cat "$TMP/paths")
	grep -q 'this kernel cannot probe in short windows' "$TMP/err" || echo "not said: $(last_said)"
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -allow heap:BUDGET_CUT=any -allow heap:ALLOCS_UNSEEN=any "$TMP/err" "$FILE" || echo "exit $rc: $(last_said)"
	[ $rc = 3 ] || echo "exit $rc: it is no loss"
	"$PPROFCHECK" check "$FILE"
	kill "$PID"
}
part_budget() {
	if [ "$(able uprobe_multi)" = yes ]; then steps windows; else steps ends_observation; fi
	outcome budget
}

# user CAPS: AS is a user of our own with these capabilities
user() {
	local caps=-all,+${1//,/,+}
	AS=(setpriv --reuid $OURS --regid $OURS --clear-groups --bounding-set="$caps" --inh-caps="$caps" --ambient-caps="$caps")
}
# AS is a user who may probe; CAPS says by what. Some kernels bound BPF's tables, and some want CAP_SYS_ADMIN for
# probes that are set one by one; doctor knows it. Debian's want that for all perf events where the setting is above
# 2, as it is at first.
ordinary() {
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	CAPS=bpf,perfmon,sys_ptrace
	allowed memlock info yes || CAPS+=,sys_resource
	allowed heap_probe yes || CAPS+=,sys_admin
	user $CAPS
}
# allowed ID STATUS...: does doctor say so to this user?
allowed() {
	user $CAPS
	"${AS[@]}" "$TMP/goprof" doctor --json >"$TMP/doctor.user" 2>"$TMP/err" || :
	[[ " ${*:2} " == *" $(able "$1" "$TMP/doctor.user") "* ]]
}

# with CAPS ARG...: a profile of one second as that user
with() {
	user "$1"
	"${AS[@]}" "$TMP/goprof" -d 1s -o "$TMP/any" "${@:2}" >"$TMP/paths" 2>"$TMP/err"
}
capable() {
	local rc file
	with $CAPS -p "$PID" --cpu --heap --source=probe && rc=0 || rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || echo "exit $rc: $(last_said)"
	while read -r file; do
		"$PPROFCHECK" cum "$file" | has 'main\.' || echo "$file: nothing of the program in it: $(last_said)"
	done <"$TMP/paths"
	[ "$(wc -l <"$TMP/paths")" = 2 ] || echo "$(wc -l <"$TMP/paths") files"
}
# incapable CAPS WHY ARG...
incapable() {
	local rc
	with "$1" -p "$PID" "${@:3}" && rc=0 || rc=$?
	[ $rc = 1 ] && grep -q "$2" "$TMP/err" || echo "exit $rc: $(last_said)"
}
part_caps() {
	ordinary
	start_idler
	steps capable
	outcome "caps/$CAPS"
	case $CAPS in
	*,sys_admin)
		steps incapable ${CAPS%,*} 'refused a uprobe: run as root, or with CAP_SYS_ADMIN' --heap --source=probe
		outcome "caps/without sys_admin it is named"
		;;
	esac
	case $CAPS in
	*,sys_resource*)
		steps incapable bpf,perfmon,sys_ptrace 'bounds BPF.s tables.*: run as root, or with CAP_SYS_RESOURCE' --cpu
		outcome "caps/without sys_resource it is named"
		;;
	esac
	steps incapable perfmon,sys_ptrace 'missing: CAP_BPF' --cpu
	outcome "caps/without bpf it is named"
	stop
}

# ---- the target stays as it was ------------------------------------------------------------------------

part_soak() {
	local said
	ordinary
	code "$(subject $NEWEST checksum)"
	start "$(subject $NEWEST checksum)"
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
part_kill() {
	[ -n "${SHORT:-}" ] || ordinary # that is found out by doctor, which is dear here
	code "$(subject $NEWEST checksum)"
	if [ -n "${SHORT:-}" ]; then start_idler; else start "$(subject $NEWEST checksum)"; fi
	steps killed
	outcome "kill/the target is as it was"
	stop
}

# What was killed in the middle of putting probes in is counted by doctor, and freed by heal.
# A kernel that has no cgroup.kill (5.14) and one CPU hardly ever finds the helper inside of the kernel when it kills it.
heal_leftovers() {
	local said left
	said=$("$O/tests/leak" -leave "$PID" 2>&1) || :
	echo "# $said" >&2
	left=${said##*, } left=${left%% *}
	if [ "$left" = 0 ] && [ "$(nproc)" = 1 ] && [ "$(able perf_link)" = no ]; then skip "$1" "$said"; return; fi
	steps leftovers
	outcome "$1"
}
leftovers() {
	local n
	[ "${left:-0}" -gt 0 ] 2>/dev/null || { echo "nothing was left: $said"; return; }
	n=$({ "$GOPROF" doctor 2>&1 || :; } | sed -n '/breakpoints in Go programs/s/.*programs *\([0-9]*\) in.*/\1/p')
	[ "${n:-0}" -ge "$left" ] || echo "$left are left, and doctor says $n"
	heals "$PID *: $left breakpoints freed"
	heals '*no breakpoints*'
	harmless
}
# heals GLOB: that is what it says
heals() {
	local said rc
	said=$("$GOPROF" heal -p "$PID" 2>&1) && rc=0 || rc=$?
	# shellcheck disable=SC2053
	[ $rc = 0 ] && [[ $said == $1 ]] || echo "not '$1': status $rc: $said"
}
# A keeper of probes that is killed is followed by one that frees what it left.
keepers() {
	local said
	said=$("$O/tests/leak" -keeper "$PID" 5 2>&1) || :
	[[ $said == "5 killed, 0 left something: 0 breakpoints, 0 at the end" ]] || echo "$said"
	harmless
}
# second_cpu 1 | 0: comes, goes, where the machine has one. Nothing is timed with two of them (run.sh).
second_cpu() { [ ! -e "$SECOND_CPU" ] || echo "$1" >"$SECOND_CPU" || wrong "the second CPU does not come or go"; }
part_heal() {
	second_cpu 1
	code "$(subject $NEWEST checksum)"
	start_idler
	steps keepers
	outcome "heal/the keeper killed"
	[ -n "${SHORT:-}" ] || heal_leftovers "heal/what is left is counted and freed" # one by one, most kills leave nothing
	stop
	second_cpu 0
}

# ---- many processes, and namespaces -----------------------------------------------------------------------

ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
ran() {
	local p
	for p in "${!BEFORE[@]}"; do [ $(($(ticks_of "$p") - BEFORE[$p])) -ge 60 ] || return 1; done
}
# Each profile has the CPU time that /proc counted.
many() {
	local p rc file
	declare -A BEFORE=()
	for p; do BEFORE[$p]=$(ticks_of "$p"); done
	: >"$TMP/err" && : >"$TMP/totals"
	rm -rf "$TMP/all"
	"$GOPROF" --all --match "cmd=*/hosted-*" --cpu -F 250 -d 300s -o "$TMP/all" >"$TMP/paths" 2>"$TMP/err" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 60 grep -q 'profiling [0-9]* process' "$TMP/err" || echo "it does not profile: $(last_said)"
	kill -CONT "$@"
	within 60 ran || echo "they get no CPU time"
	kill -STOP "$@"
	sleep 0.1
	kill -INT "$PROF"
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 0 ] || echo "exit $rc: $(last_said)"
	for p; do
		file=$(command ls "$TMP"/all/*."$p".cpu.pb.gz)
		"$PPROFCHECK" check "$file"
		echo "$p $(($(ticks_of "$p") - BEFORE[$p])) $("$PPROFCHECK" sum "$file" | awk '$2 == "cpu" { print $1 }')" >>"$TMP/totals"
	done
	sed 's/^/# all: /' "$TMP/totals" >&2
	judge_totals "$TMP/totals"
}
part_all() {
	local one idle
	start "$(subject_s $OLD hosted)" busy 1 1
	one=$PID
	kill -STOP "$one"
	start "$(subject $NEWEST hosted)" idle
	idle=$PID
	start "$(subject $NEWEST hosted)" busy 3 1
	kill -STOP "$PID"
	steps many "$one" "$PID"
	outcome all/cpu
	for PID in "$one" "$idle" "$PID"; do stop; done
}

# watched FILES COMMAND...: a profile of so many files, in each of which the program is
watched() {
	local rc file
	"${@:2}" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || echo "exit $rc: $(last_said)"
	while read -r file; do
		"$PPROFCHECK" check "$file"
		"$PPROFCHECK" cum "$file" | has 'main\.' || echo "$file: nothing of the program in it"
	done <"$TMP/paths"
	[ "$(wc -l <"$TMP/paths")" = "$1" ] || echo "$(wc -l <"$TMP/paths") files"
}
TWO="--cpu --heap --source=probe -d 1s -o $TMP/any"
part_spaces() {
	local child
	start setpriv --reuid $OURS --regid $OURS --clear-groups unshare --user --map-root-user --mount --pid --fork --kill-child "$(subject $NEWEST checksum)" -rest 100ms
	while child=$(pgrep -P "$PID" | head -n 1) && [ -n "$child" ]; do PID=$child; done
	# shellcheck disable=SC2086
	steps watched 2 "$GOPROF" -p "$PID" $TWO
	stop
	outcome "spaces/it is in a user, mount and pid namespace"
	steps watched 2 unshare --pid --fork --kill-child --mount-proc bash -c '"$1" -rest 100ms >/dev/null 2>&1 & sleep 0.5; "$0" -p $! "${@:2}"; rc=$?; kill -KILL $!; exit $rc' \
		"$GOPROF" "$(subject $NEWEST checksum)" $TWO
	outcome "spaces/we are in a pid namespace"
}

# ---- what an administrator has closed: the last part, because some of it stays closed ----------------------

# closed YES NO: of these kinds doctor says so, here and now, and so it is
closed() {
	local id now=$TMP/doctor.now
	"${AS[@]}" "$TMP/goprof" doctor --json >"$now" 2>"$TMP/err" || :
	for id in cpu heap_probe; do echo "# here doctor says of $id: $(able "$id" "$now") $(found "$id" "$now")" >&2; done
	for id in $1; do [ "$(able "$id" "$now")" = yes ] || echo "$id: doctor says '$(able "$id" "$now")'"; done
	for id in $2; do [ "$(able "$id" "$now")" = no ] || echo "$id: doctor says '$(able "$id" "$now")'"; done
	# shellcheck disable=SC2086
	agree "$now" ${3:-$1 $2}
}
# The group has memory for all that a profile needs.
small() {
	local group=/sys/fs/cgroup/small
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	echo 64M >$group/memory.max
	# shellcheck disable=SC2086,SC2016
	watched 2 bash -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' $group "$GOPROF" -p "$PID" $TWO
	awk '$1 == "oom_kill" && $2 { print $2 " processes were killed" }' $group/memory.events
	echo "# 64 MB: at most $(cat $group/memory.peak 2>/dev/null || echo unknown) bytes" >&2
}
# AppArmor: a program confined without a word of ptrace, as containers are, is profiled by one that is not; one of
# ours that may not call bpf(2), or not look at others, is told so by doctor, too.
CONFINED=(bash -c 'echo "exec $0" >/proc/self/attr/exec && exec "$@"') # PROFILE COMMAND...
policy() {
	cat <<-END
	profile gp-target { file, network, signal, unix, capability, }
	profile gp-nobpf { file, network, signal, unix, ptrace, mount, capability sys_ptrace, capability dac_read_search, capability perfmon, capability syslog, }
	profile gp-noptrace { file, network, signal, unix, mount, capability, }
	END
}
# armored PROFILE YES NO
armored() {
	[ -z "$1" ] || AS=("${CONFINED[@]}" "$1")
	[ -z "$1" ] || [ "$("${AS[@]}" cat /proc/self/attr/current)" = "$1 (enforce)" ] || echo "it is not confined"
	closed "${@:2}"
	AS=()
}
apparmor() {
	local idler=$PID
	policy | apparmor_parser -Ka || { wrong "the policy was not taken"; return; }
	start "${CONFINED[@]}" gp-target "$(subject $NEWEST checksum)" -rest 100ms
	has '^gp-target ' "/proc/$PID/attr/current" || wrong "the target is not confined"
	steps armored "" "cpu heap_probe" ""
	stop
	PID=$idler
	outcome "hard/a target that AppArmor confines"
	steps armored gp-nobpf "" "cpu heap_probe"
	outcome "hard/AppArmor without the capability bpf"
	steps armored gp-noptrace "" "" "cpu heap_probe goroutine"
	outcome "hard/AppArmor without ptrace"
}

# locked LEVEL YES NO
locked() {
	echo "$1" >/sys/kernel/security/lockdown
	has "\[$1\]" /sys/kernel/security/lockdown || echo "it is not set"
	closed "$2" "$3"
}
part_hard() {
	start_idler
	steps small
	outcome "hard/memory of 64 MB"
	ordinary
	echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled
	steps closed "cpu heap_probe" ""
	outcome "hard/unprivileged_bpf_disabled 1, perf_event_paranoid 2"
	# What Debian's kernels forbid above 2 is theirs; where probes are no perf events, they do not matter.
	echo 3 >/proc/sys/kernel/perf_event_paranoid
	steps closed "" "" cpu
	outcome "hard/perf_event_paranoid 3"
	echo 4 >/proc/sys/kernel/perf_event_paranoid
	if [ "$(able uprobe_multi)" = yes ]; then steps closed heap_probe ""; else steps closed "" "" heap_probe; fi
	outcome "hard/perf_event_paranoid 4"
	AS=()
	mount -t tmpfs none /sys/kernel/btf
	steps closed goroutine "cpu heap_probe block_probe wait"
	outcome "hard/no BTF"
	umount /sys/kernel/btf
	if [ -e /sys/module/apparmor/parameters/enabled ]; then apparmor; else pass "hard/no AppArmor in this kernel"; fi
	# Kprobes that are switched off; a kernel without any cannot be had as a package.
	echo 0 >/sys/kernel/debug/kprobes/enabled || wrong "kprobes cannot be switched off"
	steps closed "cpu heap_probe" ""
	outcome "hard/no kprobes"
	umount -l /sys/kernel/debug 2>/dev/null
	umount -l /sys/kernel/tracing 2>/dev/null
	[ ! -e /sys/kernel/tracing/uprobe_events ] || wrong "tracefs is still there"
	steps locked integrity "cpu heap_probe" ""
	outcome "hard/no tracefs, lockdown=integrity"
	if [ "$(able perf_link)" = yes ]; then steps locked confidentiality "cpu heap_probe block_probe wait goroutine" ""
	else steps locked confidentiality goroutine "cpu heap_probe block_probe wait"; fi
	outcome "hard/lockdown=confidentiality"
	stop
}

# ---- ---------------------------------------------------------------------------------------------------

chmod 755 "$TMP" && mkdir -m 777 "$TMP/any" "$TMP/out" && cp "$GOPROF" "$TMP/goprof" && cp "$O/tests/cycles" "$TMP/cycles" &&
	chmod 755 "$TMP/goprof" "$TMP/cycles"
busy() { awk '$1 == "cpu" { print int(($2 + $3 + $4 + $7 + $8) / 100) }' /proc/stat; }
for p in $PARTS; do
	began=$SECONDS ran=$(busy)
	"part_$p"
	echo "# $p: $((SECONDS - began)) s, CPUs busy for $(($(busy) - ran)) s"
done
finish
