#!/bin/bash
# --source=enable: the runtime is made to sample for the time of the window. The numbers are the
# truth within what sampling allows; and the rate is what it was afterwards, however the collector
# ends: at its time, by Ctrl-C, by SIGKILL at any moment, alone and among twenty; unless the
# program sets it itself.
#
#	VERSIONS	of Go, for the numbers
#	KILLS		how often one collector is killed at a random moment
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_go

RATE=65536
KILLS=${KILLS:-50}
RANDOM=${SEED:-$$}
echo "SEED=$RANDOM"

# ---- the rate, from outside: of a program with symbols, not PIE ----

rate_at() { echo $((0x$(nm "$1" | sed -n 's/ . runtime\.MemProfileRate$//p') / 8)); }
rate() { { dd if="/proc/$PID/mem" bs=8 skip="$AT" count=1 status=none 2>/dev/null || :; } | od -An -td8 | tr -d ' '; }

# within SECONDS COMMAND...: it becomes true.
within() {
	local i n=$(($1 * 50))
	shift
	for ((i = 0; i < n; i++)); do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}
rate_is() { [ "$(rate)" = "$1" ]; }
# is_on WHAT RATE: prints WHAT unless that is the rate
is_on() { rate_is "$2" || echo "$1: the rate is $(rate)"; }
said() { grep -q "$1" "$TMP/said"; }
told() { said "$1" || echo "it does not say '$1': $(last_said)"; }
last_said() { tail -n 3 "$TMP/said" | tr '\n' ' '; }

# guardians: the pids of this target's.
guardians() {
	local g
	for g in $(pgrep -x goprof-guardian || :); do
		! { ls -l "/proc/$g/fd" 2>/dev/null || :; } | has "/proc/$PID/mem$" || echo "$g"
	done
}

no_guardians() { [ -z "$(guardians)" ]; }
gone() { within "$1" no_guardians || echo "a guardian is left"; }

# enable [ARG...]: a collector in the background; PROF is its pid, and it is under way. ELSEWHERE
# is what to start it with.
ELSEWHERE=()
enable() {
	: >"$TMP/said"
	"${ELSEWHERE[@]}" "$GOPROF" -p "$PID" --heap --source=enable -o "$TMP/out" "$@" >"$TMP/path" 2>"$TMP/said" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 10 said 'profiling pid' || echo "not under way: $(cat "$TMP/said")"
}
# ended STATUS: the collector does so, with that. FILE is what it has written.
ended() {
	local rc
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = "$1" ] || echo "exit $rc, not $1: $(last_said)"
	FILE=$(cat "$TMP/path")
}
killed() { kill -KILL "$1"; wait "$1" 2>/dev/null || [ $? = 137 ]; }
comments() { "$PPROFCHECK" comments "$FILE"; }
commented() { comments | has "$1" || echo "no comment '$1': $(comments | sed -n '/enable/p')"; }
value() { "$PPROFCHECK" sum "$FILE" | awk -v t="$1" '$2 == t { print $1 }'; }

# check NAME FUNCTION [ARG...]: one outcome
check() {
	steps "${@:2}"
	outcome "$1"
}

# ---- the numbers ----

# numbers VERSION [BUILD FLAG...] [-- ARG...]
numbers() {
	local v=$1 bin fd mixed flags=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do flags+=("$1"); shift; done
	[ $# = 0 ] || shift
	bin=$(subject "$v" alloctruth "${flags[@]}") || { echo "does not build"; return; }
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$bin" "$@" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	within 10 grep -q ready "$TMP/truth"
	enable --heap-rate=$RATE -d 120s
	echo go >&"$fd"
	within 150 grep -q '^done' "$TMP/truth" || echo "the program did not finish"
	kill -INT "$PROF"
	ended 0
	echo end >&"$fd"
	exec {fd}>&-
	[ -s "$FILE" ] || { echo "no profile"; return; }
	comments | sed -nE '/^(enabled|first|in.use)/p' >&2
	commented "^enabled: runtime.MemProfileRate was 0 and was set to $RATE for .* it is 0 again"
	mixed=$(comments | sed -n 's/.* known (counted as one object each), \([0-9]*\) in it among.*/\1/p')
	judge judge_allocs "$TMP/truth" "$FILE" $RATE "${mixed:-64}"
	judge valid "$FILE"
}

for v in ${VERSIONS:-1.19.13 1.24.13 1.27.4}; do
	check "go$v, known allocations" numbers "$v"
done
check "go1.27.4, stripped PIE, eight goroutines and GC" numbers 1.27.4 -buildmode=pie '-ldflags=-s -w' -- -goroutines 8 -gc

# ---- one collector, one idle program ----

# Nothing else allocates there, so the very first object is the one that is sampled whatever its
# size. It must count as one object, and not as half a megabyte of its kind.
first_sample() {
	local known all
	start "$(subject "$1" ratewatch)"
	enable -d 60s
	sleep 0.5
	kill -USR1 "$PID"
	sleep 0.3
	kill -INT "$PROF"
	ended 0
	known=$(comments | sed -n 's/.* window, \([0-9]*\) in it and known.*/\1/p')
	all=$(value alloc_objects)
	echo "known $known, objects $all" >&2
	# From Go 1.20 to 1.23 the first P has a countdown from before main, and no first sample.
	[ "${known:-0}" -ge 1 ] || comments | has 'went on with the countdown of an earlier' ||
		echo "no first sample was known: $(comments | sed -n /first/p)"
	[ "${all:-0}" = "$known" ] || echo "$all objects, $known known"
	kill -TERM "$PID"
}
for v in ${VERSIONS:-1.19.13 1.27.4}; do
	check "go$v, the first sample of a processor counts once" first_sample "$v"
done

# What lives as of the last collection, and what does not. This is done twice in the same program:
# the second time, objects of the first window live at the same lines.
in_use() {
	local kept dropped
	start "$(subject "$1" ratewatch)" -keep
	enable --heap-rate=$RATE -d 60s
	kill -USR1 "$PID"
	within 10 grep -q collected "$OUT"
	sleep 0.3
	kill -INT "$PROF"
	ended 0
	"$PPROFCHECK" cum -type inuse_objects "$FILE" >"$TMP/inuse" || comments | sed -n /in-use/p
	kept=$(awk '$2 == "main.kept" { print $1 }' "$TMP/inuse")
	dropped=$(awk '$2 == "main.dropped" { print $1 }' "$TMP/inuse")
	echo "kept ${kept:-0}, dropped ${dropped:-0} of 20000" >&2
	# p = 1 - exp(-1024/65536); the standard error is sqrt(20000 (1-p) / p) = 1123.
	[ "${kept:-0}" -gt 15500 ] && [ "${kept:-0}" -lt 24500 ] || echo "${kept:-none} kept"
	[ "${dropped:-0}" -le 130 ] || echo "$dropped dropped and still there" # the last one may be seen
	enable --heap-rate=$RATE -d 300ms
	ended 0
	if "$PPROFCHECK" sum "$FILE" | has inuse_objects; then
		! "$PPROFCHECK" cum -type inuse_objects "$FILE" | has main.kept || echo "a later window has what was allocated before it"
	else
		comments | has in-use || echo "a later window has no in-use columns, and does not say so"
	fi
	kill -TERM "$PID"
}
for v in ${VERSIONS:-1.19.13 1.27.4}; do
	check "go$v, in use: what lives and what does not" in_use "$v"
done

BIN=$(subject 1.27.4 ratewatch) || { fail enable "ratewatch does not build"; finish; }
AT=$(rate_at "$BIN")
start "$BIN" -busy || { fail enable "ratewatch does not start"; finish; }
rate_is 0 || { fail enable "its rate is $(rate) before anything was done"; finish; }

at_its_time() {
	enable -d 500ms -v
	is_on "in the window" 524288
	ended 0
	is_on "at once" 0
	no_guardians || echo "a guardian is left"
}
check "at its time: restored before it exits" at_its_time

# As a terminal does it: to the whole group, and the guardian is not in it.
signalled() {
	enable -d 60s
	[ "$(ps -o sid= -p "$(guardians)")" != "$(ps -o sid= -p "$PROF")" ] || echo "the guardian is in our session"
	kill -"$1" "$(guardians)"
	kill -"$1" "$PROF"
	ended 0
	is_on "afterwards" 0
}
for sig in INT TERM HUP; do
	check "SIG$sig to collector and guardian: written and restored" signalled $sig
done

# A target that does not run at all is written and read all the same.
frozen() {
	kill -STOP "$PID"
	enable -d 300ms
	is_on "in the window" 524288
	ended 0
	is_on "afterwards" 0
	kill -CONT "$PID"
}
check "a frozen target" frozen

# ---- killed ----

killed_at_random() {
	local round seen=0 most=(20 120) # ms: half of them before it is on, or soon after
	for ((round = 1; round <= KILLS; round++)); do
		"$GOPROF" -p "$PID" --heap --source=enable -d 60s -o "$TMP/out" >/dev/null 2>"$TMP/said" </dev/null &
		PROF=$!
		sleep "0.$(printf '%03d' $((RANDOM % most[round % 2])))"
		rate_is 0 || seen=$((seen + 1))
		killed $PROF
		within 5 rate_is 0 || { echo "round $round: the rate is $(rate)"; break; }
		within 5 no_guardians || { echo "round $round: a guardian is left"; break; }
	done
	echo "the rate was on in $seen of $KILLS rounds" >&2
	[ $seen -gt 0 ] && [ $seen -lt "$KILLS" ] || echo "on in $seen rounds: this shows nothing"
	# Once more: what is 0 must stay 0.
	sleep 0.3
	is_on "later" 0
}
check "SIGKILL at $KILLS random moments: restored" killed_at_random

guardian_killed() {
	enable -d 1s
	sleep 0.3
	kill -KILL "$(guardians)"
	ended 0
	is_on "afterwards" 0
}
check "SIGKILL of the guardian: the collector restores" guardian_killed

# ---- together ----

# many N [guardians]: N collectors that start and end at random times, a third of them killed, some
# guardians too. While one lives that was not killed, the rate is on.
many() {
	local n=$1 g i pids=() rc wrote=0 lost=0
	rm -rf "$TMP/many"
	mkdir -p "$TMP/many"
	for ((i = 0; i < n; i++)); do
		"$GOPROF" -p "$PID" --heap --source=enable -d "$((400 + RANDOM % 2000))ms" \
			-o "$TMP/many/$i" >"$TMP/many/$i.path" 2>"$TMP/many/$i.said" </dev/null &
		pids+=($!)
		STARTED+=($!)
	done
	for ((i = 0; i < n; i += 3)); do
		sleep "0.$((RANDOM % 3))"
		# It may have ended.
		kill -KILL "${pids[i]}" 2>/dev/null || :
		wait "${pids[i]}" 2>/dev/null || :
	done
	if [ "${2:-}" = guardians ]; then
		for g in $(guardians | shuf -n $((n / 4))); do kill -KILL "$g" 2>/dev/null || :; done
	fi
	for ((i = 0; i < n; i++)); do
		[ $((i % 3)) != 0 ] || continue
		wait "${pids[i]}" 2>/dev/null && rc=0 || rc=$?
		if [ $rc = 0 ]; then
			wrote=$((wrote + 1))
		elif [ "${2:-}" = guardians ] && [ $rc = 3 ]; then
			lost=$((lost + 1))
		else
			echo "collector $i: exit $rc: $(tail -n 2 "$TMP/many/$i.said" | tr '\n' ' ')"
		fi
	done
	echo "$wrote of $((n - (n + 2) / 3)) that were left alone wrote a profile without loss, $lost with; $(cat "$TMP"/many/*.said | count 'claimed by a lock on the target' -) shared" >&2
	gone 20
	within 5 rate_is 0 || is_on "all are gone" 0
}
check "2 collectors at once, a third killed" many 2
check "20 collectors at once, a third killed" many 20
check "20 collectors at once, a third killed, and some guardians" many 20 guardians

# The second of two leaves first, and the first one's rate stays. It is in a mount and a network
# namespace of its own, with another /proc.
second_leaves_first() {
	local first
	enable -d 60s --heap-rate=200k
	first=$PROF
	# shellcheck disable=SC2016
	ELSEWHERE=(unshare --mount --net sh -c 'mount -t proc proc /proc && exec "$@"' sh)
	enable -d 60s --heap-rate=64k
	ELSEWHERE=()
	is_on "with two" 204800
	kill -INT "$PROF"
	ended 0
	commented 'rate: one sample in 204800 bytes'
	commented '^enabled: .* was on, claimed by a lock on the target, at 204800; after .* left on while a lock'
	is_on "with the first left" 204800
	killed "$first"
	within 5 rate_is 0 || is_on "after both" 0
}
check "a second collector shares the rate, and does not restore it" second_leaves_first

# ---- the program's own doing ----

sets_it_itself() {
	enable -d 60s
	sleep 0.5
	kill -USR2 "$PID"
	sleep 1.3
	kill -INT "$PROF"
	ended 3
	is_on "afterwards" 100000
	commented 'the program has set it to 100000 itself, which was left alone'
	told 'sampling was changed before the window ended'
}
check "a program that sets the rate itself wins" sets_it_itself

samples_already() {
	enable -d 300ms
	ended 0
	is_on "afterwards" 100000
	told 'source read: the target samples its heap itself, every 100000 bytes'
}
check "a program that samples already is read, and left as it is" samples_already
kill -TERM "$PID"

# ends_early GUARDIAN: what was read until then is written, and the guardian has nothing to do any more.
ends_early() {
	ended 3
	[ -s "$FILE" ] && [ "$(value alloc_objects)" -gt 0 ] || echo "no partial profile"
	within 2 test ! -e "/proc/$1" || echo "the guardian is still there"
}

exec_in_the_window() {
	local guardian
	start "$BIN" -busy
	enable -d 60s
	guardian=$(guardians)
	sleep 0.5 # for some readings
	kill -HUP "$PID"
	ends_early "$guardian"
	within 5 rate_is 0 || is_on "the new program" 0
}
check "exec in the window: the new program is not written to" exec_in_the_window

target_goes() {
	local guardian
	enable -d 60s
	sleep 0.7
	guardian=$(guardians)
	killed "$PID"
	ends_early "$guardian"
}
check "the target goes: what was read until then is written" target_goes

# ---- beside one that has switched it on ----

start "$BIN" -busy || { fail enable "ratewatch does not start"; finish; }

# beside STATUS [ARG...]: another profile meanwhile
beside() {
	local rc
	"$GOPROF" -p "$PID" --heap "${@:2}" -d 100ms -o "$TMP/beside" >"$TMP/path" 2>"$TMP/beside.said" && rc=0 || rc=$?
	[[ $rc =~ ^($1)$ ]] || echo "beside it, ${*:2}: exit $rc: $(head -n 2 "$TMP/beside.said" | tr '\n' ' ')"
}

on_by_another() {
	enable -d 60s
	beside 1 --source=read
	grep -q 'another goprof-bpf' "$TMP/beside.said" || echo "read: $(tail -n 1 "$TMP/beside.said")"
	beside '0|3'
	grep -q 'source probe: a lock on the target says' "$TMP/beside.said" || echo "auto: $(head -n 2 "$TMP/beside.said" | tr '\n' ' ')"
	{ "$GOPROF" ps --json 2>/dev/null || [ $? = 3 ]; } | python3 -c '
import json, sys
p = [p for p in json.load(sys.stdin)["processes"] if p["pid"] == int(sys.argv[1])][0]["sources"]
sys.exit(p["heap_read"]["works"] or not p["heap_enable"]["works"])' "$PID" || echo "ps says it can be read"
	kill -INT "$PROF"
	ended 0
}
check "switched on by another: not taken for the program's own records" on_by_another

# Sets the rate as if the program did it: on before, off within the window of --source=read.
set_rate() { printf "$1" | dd of="/proc/$PID/mem" bs=8 seek="$AT" conv=notrunc status=none; }
off_meanwhile() {
	set_rate '\0\0\010\0\0\0\0\0'
	: >"$TMP/said"
	"$GOPROF" -p "$PID" --heap -d 1500ms -o "$TMP/beside" >"$TMP/path" 2>"$TMP/said" &
	PROF=$!
	within 10 said 'profiling pid'
	set_rate '\0\0\0\0\0\0\0\0'
	ended 3
	told 'changed before the window ended'
	commented 'went from 524288 to 0'
}
check "read, and the rate goes off meanwhile: as of the start, and said" off_meanwhile

# ---- a collector that is stopped ----

stopped() {
	start "$BIN" -busy
	enable -d 1s
	sleep 0.3
	kill -STOP "$PROF"
	within 15 rate_is 0 || is_on "15 s later" 0
	kill -CONT "$PROF"
	ended 3
	commented 'nobody had asked for its end in time'
}
check "a stopped collector: the guardian restores after the window" stopped

# ---- somebody's locks ----

# stranger FORM: nobody, with read locks on the target's pidfd, one over all places of claims, or in each
# one like a claim of the rate; LOCKER ends it.
stranger() {
	: >"$TMP/stranger"
	python3 -c '
import fcntl, os, pwd, socket, struct, sys, time
OFD_SETLK = 37
os.setgroups([])
os.setresgid(*[pwd.getpwnam("nobody").pw_gid] * 3)
os.setresuid(*[pwd.getpwnam("nobody").pw_uid] * 3)
fd = os.pidfd_open(int(sys.argv[1]))
places = {"all": [(1, 0)], "claims": [(slot, 524288) for slot in range(1, 64)]}[sys.argv[2].removesuffix(" in flight")]
for slot, length in places:
    fcntl.fcntl(fd, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 1 << 62 | slot << 31, length, 0))
if sys.argv[2].endswith(" in flight"):
    pair = socket.socketpair()
    socket.send_fds(pair[0], [b"x"], [fd])
    os.close(fd)
print("locked", flush=True)
time.sleep(60)' "$PID" "$1" >"$TMP/stranger" 2>&1 &
	LOCKER=$!
	STARTED+=("$LOCKER")
	within 10 grep -q . "$TMP/stranger"
	grep -q locked "$TMP/stranger"
}

# The lock hides what is below it.
all_places() {
	enable -d 60s
	stranger all || cat "$TMP/stranger"
	is_on "with the lock" 524288
	kill -"$1" "$PROF"
	wait "$PROF" 2>/dev/null || [ $? = 137 ]
	within 5 rate_is 0 || is_on "$(last_said)" 0
	killed "$LOCKER"
	gone 5
	is_on "after the lock is gone" 0
}

# The locks outlive the collector, and the rate is off all the same. They also keep no other from its work.
like_claims() {
	enable -d 60s
	stranger "$1" || cat "$TMP/stranger"
	is_on "with the locks" 524288
	kill -INT "$PROF"
	ended 0
	told 'is 0 again'
	told 'no process that may write there holds it'
	is_on "at once" 0
	gone 5
	enable -d 60s
	sleep 0.3
	is_on "the next" 524288
	told 'was 0, is 524288'
	killed "$PROF"
	within 5 rate_is 0 || is_on "the next was killed" 0
	sleep 2
	is_on "2 s later" 0
	killed "$LOCKER"
}

if id nobody >/dev/null 2>&1; then
	for how in INT KILL; do
		check "SIG$how while an unprivileged user locks the target's pidfd: restored" all_places $how
	done
	check "an unprivileged user's locks that look like claims: restored while they are held" like_claims claims
	# No process has the descriptor: it waits in a socket.
	check "such locks that no process holds: restored all the same" like_claims "claims in flight"
else
	skip "an unprivileged user's locks" "no user nobody"
fi

# ---- what is refused ----

# as_nobody STATUS SENTENCE CAPABILITIES: with those only, on root's process.
as_nobody() {
	local rc
	setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps="-all$3" --ambient-caps="-all$3" \
		"$TMP/goprof-bpf" -p "$PID" --heap --source=enable -d 300ms -o "$TMP/nobody" \
		>"$TMP/path" 2>"$TMP/said" </dev/null && rc=0 || rc=$?
	[ $rc = "$1" ] || echo "exit $rc, not $1: $(last_said)"
	told "$2"
	is_on "afterwards" 0
}
if id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	mkdir -p "$TMP/nobody" && chmod 777 "$TMP" "$TMP/nobody"
	cp "$GOPROF" "$TMP/goprof-bpf"
	check "another user's process: refused, with the capability's name" as_nobody 1 CAP_SYS_PTRACE ""
	check "another user's process, without the right to its file: refused likewise" \
		as_nobody 1 'missing: CAP_DAC_OVERRIDE' ,+sys_ptrace
	check "another user's process, with the two capabilities" as_nobody 0 'is 0 again' ,+sys_ptrace,+dac_override
else
	skip "another user's process" "no user nobody, or no setpriv"
fi
finish
