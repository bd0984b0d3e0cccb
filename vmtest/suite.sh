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
		[ -n "${SHORT:-}" ] || echo "subject $v heapself $S"
	done
	[ -n "${SHORT:-}" ] || for v in $OLD $NEWEST; do
		for name in goroutines churn command; do echo "subject $v $name $S"; done
		echo "subject $v ratewatch"
	done
	[ -n "${SHORT:-}" ] || echo "subject $NEWEST waitself $S"
	[ -z "${SHORT:-}" ] || echo "subject $NEWEST command $S"
	[ -z "${SHORT:-}" ] || echo "subject $NEWEST ratewatch"
	for name in checksum hosted; do echo "subject $NEWEST $name"; done
	echo "subject $OLD hosted $S"
}
[ "${1:-}" != programs ] || { programs; exit; }

. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/harmless.sh
. tests/support/waits.sh
. vmtest/harm.sh
. vmtest/many.sh
. vmtest/closed.sh
[ -z "${SHORT:-}" ] || PARTS=${PARTS:-load cpu probe waits enable command kill heal all}
PARTS=${PARTS:-load doctor cpu probe waits read records goroutine enable command budget caps soak kill heal all spaces hard}
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
# refusals RC: what the verifier said last of each program that it refused; and private stacks
refusals() {
	local said
	said=$(awk '/ has a private stack$/ || /^(cpu|exec_watch|heap|sched|wait)( of many)?: / { print; last = ""; next }
		/^processed [0-9]+ insns/ && last != "" { print last; last = "" }
		!/^(verification time|stack depth) / { last = $0 }' "$TMP/verifier" | head -n 6 | tr '\n' ';')
	echo "${said:-it ended with $1}"
}
part_load() {
	local name insns states said
	"$O/tests/verifier" >"$TMP/verifier" 2>&1 && pass load/all || fail load/all "$(refusals $?)"
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

# The 3:1 as in the others, and of two seconds all CPU time is there.
whole() {
	cpu_begin -F 500
	sleep 2
	cpu_end
	[ "$CPU_RC" = 0 ] || only_small_losses "$TMP/err" "$CPU" || { echo "exit $CPU_RC: $(last_said)"; return 1; }
	three_to_one "$CPU" && whole_cpu "$CPU" "$INNER" "$OUTER" "$STOLEN" "$SWITCHES"
}
part_cpu() {
	local v LEAF_TIMES="1s 3s 9s"
	for v in $VERSIONS; do
		start_quiet "$(subject_s $v leaf31)"
		if [ $v = $NEWEST ]; then judge whole; else judge leaf_callers; fi
		stop
		outcome "cpu/$v"
	done
}

# known V ARG...: a program of known allocations, all of them probed
known() {
	allocates "$1" $RATE probe "${@:2}"
	"$PPROFCHECK" comments "$FILE" | sed -nE '/^(hits|loss)/s/^/# /p' >&2
	judge_allocs "$TMP/truth" "$FILE" $RATE 0 0.07 # one object of 512 KiB is 1 % of all
}
# allocates V RATE SOURCE ARG...: a program of known allocations ($TMP/truth), of which FILE is a profile
allocates() {
	local fd
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$(subject_s "$1" alloctruth)" -part 20 "${@:4}" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	within 30 grep -q ready "$TMP/truth"
	profile -p "$PID" --heap --source="$3" --heap-rate="$2" --budget=0 -d 300s
	echo go >&"$fd"
	within 200 grep -q '^done' "$TMP/truth" || echo "the program did not finish"
	ended -allow heap:STACKS_CUT=any -allow heap:OBJECTS_UNCONFIRMED=any
	echo end >&"$fd"
	exec {fd}>&-
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
	for v in $VERSIONS; do
		start "$(subject_s $v heapself)" -rounds 1
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
	local v
	for v in $OLD $NEWEST; do
		start "$(subject_s $v goroutines)"
		steps goroutines
		stop
		outcome "goroutine/$v"
	done
}

# records KIND: what the runtime records of waits, between its own answers before and after
records() {
	http_get "$PORT" "/debug/pprof/$1" "$TMP/one.pb.gz"
	"$GOPROF" -p "$PID" "--$1" --source=read -d 10ms -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" || echo "exit $?: $(last_said)"
	http_get "$PORT" "/debug/pprof/$1" "$TMP/two.pb.gz"
	judge_records "$TMP/one.pb.gz" "$(cat "$TMP/paths")" "$TMP/two.pb.gz"
}
part_records() {
	local v
	start "$(subject_s $NEWEST waitself)" -block 1 -mutex 1
	for v in block mutex; do steps records $v; done
	stop
	outcome "read/block and mutex, $NEWEST"
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
# The numbers, of which each of a few processors' first samples counts for itself (tests/e2e/enable.sh).
enabled() {
	allocates "$1" 65536 enable
	judge_allocs "$TMP/truth" "$FILE" 65536 64
}
part_enable() {
	local v bin how
	for v in $([ -n "${SHORT:-}" ] || echo $OLD) $NEWEST; do
		bin=$(subject $v ratewatch)
		AT=$((0x$(nm "$bin" | sed -n 's/ . runtime\.MemProfileRate$//p') / 8))
		start "$bin" -busy
		for how in INT KILL; do
			steps enables $how
			outcome "enable/$v: restored after SIG$how"
		done
		stop
		[ -z "${SHORT:-}" ] || continue
		steps enabled $v
		stop
		outcome "enable/$v: what was allocated"
		SOURCE=enable one "enable/$v: block and mutex" $v blocks
	done
}

# ---- a command, a budget, an ordinary user -----------------------------------------------------------

commanded() {
	local rc bin
	bin=$(subject_s "$1" command)
	rm -rf "$TMP/cmd"
	"$GOPROF" --cpu --heap --source=probe --budget=0 --heap-rate 1k -o "$TMP/cmd" -- "$bin" -burn 1s -status 4 >"$TMP/got" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	[ $rc = 4 ] || echo "exit $rc: $(last_said)"
	# All that main.inInit allocated before main. CPU time is that of the whole process, its probes' as well.
	"$PPROFCHECK" cum -type alloc_objects "$TMP"/cmd/*.heap.pb.gz | awk '$2 == "main.inInit" { n = $1 }
		END { if (n < 9000 || n > 11000) print n + 0 " objects of 10000" }'
	"$PPROFCHECK" sum "$TMP"/cmd/*.cpu.pb.gz | awk -v want="$(sed -n 's/^cpu //p' "$TMP/got")" '$2 == "cpu" { n = $1 }
		END { if (!want || n < 0.8 * want || n > 1.3 * want) print n + 0 " ns of " want + 0 " that the kernel charged" }'
	"$PPROFCHECK" cum -type cpu "$TMP"/cmd/*.cpu.pb.gz | awk '$2 == "main.burn" { n = $1 / 1e9 }
		END { if (n < 0.5 || n > 1.1) print n + 0 " s in main.burn, of less than 1" }'
}
part_command() {
	local v
	for v in $([ -n "${SHORT:-}" ] || echo $OLD) $NEWEST; do
		steps commanded $v
		outcome command/$v
	done
}

# Putting probes in and out is dear here, so there are few windows. They need not meet every pace, which is told.
# The estimates of windows lie as near to the truth as the error that the profile states (tests/e2e/budget.sh).
windows() {
	local rc
	start "$(subject_s "$1" churn)" heavy "$TMP/log"
	sleep 0.2
	"$GOPROF" -p "$PID" --heap --source=probe -d 4s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	FILE=$(cat "$TMP/paths")
	sleep 0.5
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -allow heap:ALLOCS_UNSEEN=any -allow heap:ALLOCS_UNMET=any "$TMP/err" "$FILE" || echo "exit $rc: $(last_said)"
	"$PPROFCHECK" comments "$FILE" | sed -nE 's/^(budget|hits|window|error: all):/# &/p' >&2
	"$PPROFCHECK" check "$FILE"
	as_logged
	kill "$PID"
}
# FILE, beside the log of the program of what it allocated in the time that was observed
as_logged() {
	local rc
	"$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 -absent "$TMP/log" "$FILE" >"$TMP/verdict" && rc=0 || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
}
# Where probes cannot be taken out at once there are no windows: the budget ends the observation, which is told, and
# what there is of the time before is right.
ends_observation() {
	local rc
	start "$(subject_s "$1" churn)" heavy "$TMP/log"
	sleep 0.2
	"$GOPROF" -p "$PID" --heap --source=probe -d 2s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	FILE=$(cat "$TMP/paths")
	grep -q 'this kernel cannot probe in short windows' "$TMP/err" || echo "not said: $(last_said)"
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -allow heap:BUDGET_CUT=any -allow heap:ALLOCS_UNSEEN=any "$TMP/err" "$FILE" || echo "exit $rc: $(last_said)"
	[ $rc = 3 ] || echo "exit $rc: it is no loss"
	"$PPROFCHECK" check "$FILE"
	as_logged
	kill "$PID"
}
part_budget() {
	local v
	for v in $OLD $NEWEST; do
		if [ "$(able uprobe_multi)" = yes ]; then steps windows $v; else steps ends_observation $v; fi
		outcome budget/$v
	done
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
	echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled
	if [ -z "$CAPS" ]; then
		CAPS=bpf,perfmon,sys_ptrace
		allowed memlock info yes || CAPS+=,sys_resource
		allowed heap_probe yes || CAPS+=,sys_admin
		allowed heap_probe yes || echo "# with $CAPS doctor says of probes: $(found heap_probe "$TMP/doctor.user")"
	fi
	user $CAPS
}
# allowed ID STATUS...: does doctor say so to this user? It is asked once for the same capabilities.
CAPS='' ASKED=''
allowed() {
	user $CAPS
	[ "$ASKED" = "$CAPS" ] || "${AS[@]}" "$TMP/goprof" doctor --json >"$TMP/doctor.user" 2>"$TMP/err" || :
	ASKED=$CAPS
	[[ " ${*:2} " == *" $(able "$1" "$TMP/doctor.user") "* ]]
}

# with CAPS ARG...: a profile of one second as that user
with() {
	user "$1"
	"${AS[@]}" "$TMP/goprof" -d 1s -o "$TMP/any" "${@:2}" >"$TMP/paths" 2>"$TMP/err"
}
capable() {
	local rc file
	with $CAPS -p "$PID" --cpu --heap --source=probe --budget=0 --heap-rate=16k && rc=0 || rc=$?
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
