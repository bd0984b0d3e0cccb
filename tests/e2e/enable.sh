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
rate() { dd if="/proc/$PID/mem" bs=8 skip="$AT" count=1 status=none 2>/dev/null | od -An -td8 | tr -d ' '; }

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
said() { grep -q "$1" "$TMP/said"; }

# guardians: the pids of this target's.
guardians() {
	local g
	for g in $(pgrep -x goprof-guardian); do
		ls -l "/proc/$g/fd" 2>/dev/null | grep -q "/proc/$PID/mem$" && echo "$g"
	done
}

no_guardians() { [ -z "$(guardians)" ]; }

# enable [ARG...]: a collector in the background; PROF is its pid, and it is under way. ELSEWHERE
# is what to start it with.
ELSEWHERE=()
enable() {
	: >"$TMP/said"
	"${ELSEWHERE[@]}" "$GOPROF" -p "$PID" --heap --source=enable -o "$TMP/out" "$@" >"$TMP/path" 2>"$TMP/said" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 10 said 'profiling pid' || echo "not under way: $(cat "$TMP/said")" >&2
}
ended() { wait "$PROF"; RC=$?; FILE=$(cat "$TMP/path"); }
comments() { "$PPROFCHECK" comments "$FILE"; }
value() { "$PPROFCHECK" sum "$FILE" | awk -v t="$1" '$2 == t { print $1 }'; }
last_said() { tail -n 3 "$TMP/said" | tr '\n' ' '; }

# verdict NAME WHY: passes when WHY is empty.
verdict() { [ -z "$2" ] && pass "$1" || fail "$1" "$2"; }

# ---- the numbers ----

# numbers VERSION NAME_OF_BUILD [BUILD FLAG...] [-- ARG...]
numbers() {
	local v=$1 name="go$1, $2" bin fd why= mixed flags=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do flags+=("$1"); shift; done
	[ $# = 0 ] || shift
	bin=$(subject "$v" alloctruth "${flags[@]}") || { fail "$name" "does not build"; return; }
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
	within 150 grep -q '^done' "$TMP/truth" || why="the program did not finish; "
	kill -INT "$PROF"
	ended
	echo end >&"$fd"
	exec {fd}>&-
	[ $RC = 0 ] && [ -s "$FILE" ] || { fail "$name" "exit $RC: $(last_said)"; return; }
	comments | grep -E '^(enabled|first|in.use)'
	comments | grep -q "^enabled: runtime.MemProfileRate was 0 and was set to $RATE for .* it is 0 again" ||
		why+="no comment that it was enabled; "
	mixed=$(comments | sed -n 's/.* known (counted as one object each), \([0-9]*\) in it among.*/\1/p')
	[ -z "$why" ] || wrong "$why"
	judge judge_allocs "$TMP/truth" "$FILE" $RATE "${mixed:-64}"
	judge valid "$FILE"
	outcome "$name"
}

for v in ${VERSIONS:-1.19.13 1.24.13 1.27.4}; do
	numbers "$v" "known allocations"
done
numbers 1.27.4 "stripped PIE, eight goroutines and GC" -buildmode=pie '-ldflags=-s -w' -- -goroutines 8 -gc

# ---- one collector, one idle program ----

# Nothing else allocates there, so the very first object is the one that is sampled whatever its
# size. It must count as one object, and not as half a megabyte of its kind.
first_sample() {
	local why= known all
	start "$(subject "$1" ratewatch)" || { fail "go$1, first sample" "did not start"; return; }
	enable -d 60s
	sleep 0.5
	kill -USR1 "$PID"
	sleep 0.3
	kill -INT "$PROF"
	ended
	[ $RC = 0 ] || { fail "go$1, first sample" "exit $RC: $(last_said)"; return; }
	known=$(comments | sed -n 's/.* window, \([0-9]*\) in it and known.*/\1/p')
	all=$(value alloc_objects)
	echo "known $known, objects $all"
	# From Go 1.20 to 1.23 the first P has a countdown from before main, and no first sample.
	[ "${known:-0}" -ge 1 ] || comments | grep -q 'went on with the countdown of an earlier' ||
		why="no first sample was known: $(comments | grep first); "
	[ "${all:-0}" = "$known" ] || why+="$all objects"
	verdict "go$1, the first sample of a processor counts once" "$why"
	kill -TERM "$PID"
}
for v in ${VERSIONS:-1.19.13 1.27.4}; do
	first_sample "$v"
done

# What lives as of the last collection, and what does not. This is done twice in the same program:
# the second time, objects of the first window live at the same lines.
in_use() {
	local why='' i kept dropped
	start "$(subject "$1" ratewatch)" -keep || { fail "go$1, in use" "did not start"; return; }
	enable --heap-rate=$RATE -d 60s
	kill -USR1 "$PID"
	within 10 grep -q collected "$OUT"
	sleep 0.3
	kill -INT "$PROF"
	ended
	[ $RC = 0 ] || why="exit $RC: $(last_said); "
	"$PPROFCHECK" cum -type inuse_objects "$FILE" >"$TMP/inuse" || why+="$(comments | grep in-use); "
	kept=$(awk '$2 == "main.kept" { print $1 }' "$TMP/inuse")
	dropped=$(awk '$2 == "main.dropped" { print $1 }' "$TMP/inuse")
	echo "kept ${kept:-0}, dropped ${dropped:-0} of 20000"
	# p = 1 - exp(-1024/65536); the standard error is sqrt(20000 (1-p) / p) = 1123.
	[ "${kept:-0}" -gt 15500 ] && [ "${kept:-0}" -lt 24500 ] || why+="${kept:-none} kept; "
	[ "${dropped:-0}" -le 130 ] || why+="$dropped dropped and still there" # the last one may be seen
	enable --heap-rate=$RATE -d 300ms
	ended
	if "$PPROFCHECK" sum "$FILE" | has inuse_objects; then
		"$PPROFCHECK" cum -type inuse_objects "$FILE" | has main.kept && why+="a later window has what was allocated before it"
	else
		comments | has in-use || why+="a later window has no in-use columns, and does not say so"
	fi
	verdict "go$1, in use: what lives and what does not" "$why"
	kill -TERM "$PID"
}
for v in ${VERSIONS:-1.19.13 1.27.4}; do
	in_use "$v"
done

BIN=$(subject 1.27.4 ratewatch) || { fail enable "ratewatch does not build"; finish; }
AT=$(rate_at "$BIN")
start "$BIN" -busy || { fail enable "ratewatch does not start"; finish; }
rate_is 0 || { fail enable "its rate is $(rate) before anything was done"; finish; }

enable -d 500ms -v
rate_is 524288 && on=yes || on="the rate is $(rate) in the window; "
ended
why=${on#yes}
[ $RC = 0 ] || why+="exit $RC: $(last_said); "
rate_is 0 || why+="the rate is $(rate); "
[ -z "$(guardians)" ] || why+="a guardian is left; "
verdict "at its time: restored before it exits" "$why"

for sig in INT TERM HUP; do
	enable -d 60s
	# As a terminal does it: to the whole group, and the guardian is not in it.
	[ "$(ps -o sid= -p "$(guardians)")" != "$(ps -o sid= -p "$PROF")" ] && why= || why="the guardian is in our session; "
	kill -$sig "$(guardians)"
	kill -$sig "$PROF"
	ended
	[ $RC = 0 ] && rate_is 0 || why+="exit $RC, rate $(rate): $(last_said)"
	verdict "SIG$sig to collector and guardian: written and restored" "$why"
done

# A target that does not run at all is written and read all the same.
kill -STOP "$PID"
enable -d 300ms
rate_is 524288 && why= || why="the rate is $(rate); "
ended
[ $RC = 0 ] && rate_is 0 || why+="exit $RC, rate $(rate): $(last_said)"
kill -CONT "$PID"
verdict "a frozen target" "$why"

# ---- killed ----

seen=0 why=
for ((round = 1; round <= KILLS; round++)); do
	"$GOPROF" -p "$PID" --heap --source=enable -d 60s -o "$TMP/out" >/dev/null 2>"$TMP/said" </dev/null &
	PROF=$!
	sleep "0.$(printf '%03d' $((RANDOM % 120)))"
	rate_is 0 || seen=$((seen + 1))
	kill -KILL $PROF
	wait $PROF 2>/dev/null
	within 5 rate_is 0 || { why="round $round: the rate is $(rate)"; break; }
	within 5 no_guardians || { why="round $round: a guardian is left"; break; }
done
echo "the rate was on in $seen of $KILLS rounds"
[ -n "$why" ] || [ $seen -gt 0 ] && [ $seen -lt "$KILLS" ] || why="on in $seen rounds: this shows nothing"
# Once more: what is 0 must stay 0.
sleep 0.3
rate_is 0 || why+="; later it is $(rate)"
verdict "SIGKILL at $KILLS random moments: restored" "$why"

enable -d 1s
sleep 0.3
kill -KILL "$(guardians)"
ended
[ $RC = 0 ] && rate_is 0 && why= || why="exit $RC, rate $(rate): $(last_said)"
verdict "SIGKILL of the guardian: the collector restores" "$why"

# ---- together ----

# many N SECONDS: N collectors that start and end at random times, a third of them killed, some
# guardians too. While one lives that was not killed, the rate is on.
many() {
	local n=$1 i pids=() why='' rc wrote=0 lost=0
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
		kill -KILL "${pids[i]}" 2>/dev/null
		wait "${pids[i]}" 2>/dev/null
	done
	if [ "${2:-}" = guardians ]; then
		guardians | shuf -n $((n / 4)) | while read -r g; do kill -KILL "$g" 2>/dev/null; done
	fi
	for ((i = 0; i < n; i++)); do
		wait "${pids[i]}" 2>/dev/null
		rc=$?
		[ $((i % 3)) = 0 ] && continue
		if [ $rc = 0 ]; then
			wrote=$((wrote + 1))
		elif [ "${2:-}" = guardians ] && [ $rc = 3 ]; then
			lost=$((lost + 1))
		else
			why+="collector $i: exit $rc: $(tail -n 2 "$TMP/many/$i.said" | tr '\n' ' '); "
		fi
	done
	echo "$wrote of $((n - (n + 2) / 3)) that were left alone wrote a profile without loss, $lost with; $(grep -l 'claimed by a lock on the target' "$TMP"/many/*.said | wc -l) shared"
	within 20 no_guardians || why+="guardians are left; "
	within 5 rate_is 0 || why+="the rate is $(rate) after all are gone"
	verdict "$n collectors at once, a third killed${2:+, and some guardians}" "$why"
}
many 2
many 20
many 20 guardians

# The second of two leaves first, and the first one's rate stays. It is in a mount and a network
# namespace of its own, with another /proc.
enable -d 60s --heap-rate=200k
FIRST=$PROF
# shellcheck disable=SC2016
ELSEWHERE=(unshare --mount --net sh -c 'mount -t proc proc /proc && exec "$@"' sh)
enable -d 60s --heap-rate=64k
ELSEWHERE=()
rate_is 204800 && why= || why="the rate is $(rate) with two; "
kill -INT "$PROF"
ended
[ $RC = 0 ] || why+="the second: exit $RC: $(last_said); "
comments | grep -q 'rate: one sample in 204800 bytes' || why+="the second does not say the rate in force; "
comments | grep -q '^enabled: .* was on, claimed by a lock on the target, at 204800; after .* left on while a lock' || why+="$(comments | grep enabled); "
rate_is 204800 || why+="the rate is $(rate) with the first left; "
{ kill -KILL "$FIRST"; wait "$FIRST"; } 2>/dev/null
within 5 rate_is 0 || why+="the rate is $(rate) after both"
verdict "a second collector shares the rate, and does not restore it" "$why"

# ---- the program's own doing ----

enable -d 60s
sleep 0.5
kill -USR2 "$PID"
sleep 1.3
kill -INT "$PROF"
ended
why=
[ $RC = 3 ] || why="exit $RC; "
rate_is 100000 || why+="the rate is $(rate); "
comments | grep -q 'the program has set it to 100000 itself, which was left alone' || why+="$(comments | grep enabled); "
said 'sampling was changed before the window ended' || why+="$(last_said)"
verdict "a program that sets the rate itself wins" "$why"

enable -d 300ms
ended
why=
[ $RC = 0 ] || why="exit $RC; "
rate_is 100000 || why+="the rate is $(rate); "
said 'source read: the target samples its heap itself, every 100000 bytes' || why+=$(last_said)
verdict "a program that samples already is read, and left as it is" "$why"
kill -TERM "$PID"

start "$BIN" -busy
enable -d 60s
GUARDIAN=$(guardians)
sleep 0.5 # for some readings
kill -HUP "$PID"
ended
why=
[ $RC = 3 ] || why="exit $RC: $(last_said); "
[ -s "$FILE" ] && [ "$(value alloc_objects)" -gt 0 ] || why+="no partial profile; "
within 2 test ! -e "/proc/$GUARDIAN" || why+="the guardian is still there; "
within 5 rate_is 0 || why+="the new program's rate is $(rate)"
verdict "exec in the window: the new program is not written to" "$why"

enable -d 60s
sleep 0.7
GUARDIAN=$(guardians)
{ kill -KILL "$PID"; wait "$PID"; } 2>/dev/null
ended
why=
[ $RC = 3 ] && [ -s "$FILE" ] && [ "$(value alloc_objects)" -gt 0 ] || why="exit $RC: $(last_said); "
within 2 test ! -e "/proc/$GUARDIAN" || why+="the guardian is still there"
verdict "the target goes: what was read until then is written" "$why"

# ---- beside one that has switched it on ----

start "$BIN" -busy
enable -d 60s
why=
"$GOPROF" -p "$PID" --heap --source=read -d 100ms -o "$TMP/beside" >"$TMP/path" 2>"$TMP/beside.said"
[ $? = 1 ] && grep -q 'another goprof-bpf' "$TMP/beside.said" || why+="read: $(tail -n 1 "$TMP/beside.said"); "
"$GOPROF" -p "$PID" --heap -d 100ms -o "$TMP/beside" >"$TMP/path" 2>"$TMP/beside.said"
grep -q 'source probe: a lock on the target says' "$TMP/beside.said" || why+="auto: $(head -n 2 "$TMP/beside.said" | tr '\n' ' '); "
"$GOPROF" ps --json 2>/dev/null | python3 -c '
import json, sys
p = [p for p in json.load(sys.stdin)["processes"] if p["pid"] == int(sys.argv[1])][0]["sources"]
sys.exit(p["heap_read"]["works"] or not p["heap_enable"]["works"])' "$PID" || why+="ps says it can be read; "
kill -INT "$PROF"
ended
verdict "switched on by another: not taken for the program's own records" "$why"

# Sets the rate as if the program did it: on before, off within the window of --source=read.
set_rate() { printf "$1" | dd of="/proc/$PID/mem" bs=8 seek="$AT" conv=notrunc status=none; }
set_rate '\0\0\010\0\0\0\0\0'
: >"$TMP/said"
"$GOPROF" -p "$PID" --heap -d 1500ms -o "$TMP/beside" >"$TMP/path" 2>"$TMP/said" &
PROF=$!
within 10 said 'profiling pid'
set_rate '\0\0\0\0\0\0\0\0'
ended
[ $RC = 3 ] && said 'changed before the window ended' && comments | grep -q 'went from 524288 to 0' &&
	why= || why="exit $RC: $(last_said)"
verdict "read, and the rate goes off meanwhile: as of the start, and said" "$why"

# ---- a collector that is stopped ----

start "$BIN" -busy
enable -d 1s
sleep 0.3
kill -STOP "$PROF"
within 15 rate_is 0 && why= || why="the rate is $(rate) 15 s later; "
kill -CONT "$PROF"
ended
[ $RC = 3 ] && comments | grep -q 'nobody had asked for its end in time' || why+="exit $RC: $(last_said)"
verdict "a stopped collector: the guardian restores after the window" "$why"

# ---- somebody's locks ----

# stranger FORM: nobody, with read locks on the target's pidfd, one over all places of claims, or in each
# one like a claim of the rate; LOCKER ends it.
stranger() {
	: >"$TMP/stranger"
	python3 -c '
import fcntl, os, pwd, struct, sys, time
OFD_SETLK = 37
os.setgroups([])
os.setresgid(*[pwd.getpwnam("nobody").pw_gid] * 3)
os.setresuid(*[pwd.getpwnam("nobody").pw_uid] * 3)
fd = os.pidfd_open(int(sys.argv[1]))
places = {"all": [(1, 0)], "claims": [(slot, 524288) for slot in range(1, 64)]}[sys.argv[2]]
for slot, length in places:
    fcntl.fcntl(fd, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 1 << 62 | slot << 31, length, 0))
print("locked", flush=True)
time.sleep(60)' "$PID" "$1" >"$TMP/stranger" 2>&1 &
	LOCKER=$!
	STARTED+=("$LOCKER")
	within 10 grep -q . "$TMP/stranger"
	grep -q locked "$TMP/stranger"
}

if id nobody >/dev/null 2>&1; then
	for how in INT KILL; do
		enable -d 60s
		stranger all && rate_is 524288 && why= || why="rate $(rate), $(cat "$TMP/stranger"); "
		{ kill -$how "$PROF"; wait "$PROF"; } 2>/dev/null
		within 5 rate_is 0 || why+="the rate is $(rate): $(last_said); "
		{ kill -KILL "$LOCKER"; wait "$LOCKER"; } 2>/dev/null
		within 5 no_guardians || why+="a guardian is left; "
		rate_is 0 || why+="the rate is $(rate) after the lock is gone"
		verdict "SIG$how while an unprivileged user locks the target's pidfd: restored" "$why"
	done
	# The lock outlives the collector, and the rate is off all the same. It also keeps no other from its work.
	enable -d 60s
	stranger claims && rate_is 524288 && why= || why="rate $(rate), $(cat "$TMP/stranger"); "
	kill -INT "$PROF"
	ended
	[ $RC = 0 ] && said 'is 0 again' || why+="exit $RC: $(last_said); "
	said 'no process that may write there holds it' || why+="not told: $(last_said); "
	rate_is 0 || why+="the rate is $(rate); "
	within 5 no_guardians || why+="a guardian is left; "
	enable -d 60s
	sleep 0.3
	rate_is 524288 && said 'was 0, is 524288' || why+="the next: rate $(rate), $(last_said); "
	{ kill -KILL "$PROF"; wait "$PROF"; } 2>/dev/null
	within 5 rate_is 0 || why+="the next was killed: the rate is $(rate); "
	sleep 2
	rate_is 0 || why+="2 s later it is $(rate); "
	{ kill -KILL "$LOCKER"; wait "$LOCKER"; } 2>/dev/null
	verdict "an unprivileged user's locks that look like claims: restored while they are held" "$why"
else
	skip "an unprivileged user's locks" "no user nobody"
fi

# ---- what is refused ----

# as_nobody CAPABILITIES: with those only, on root's process.
as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps="-all$1" --ambient-caps="-all$1" \
		"$TMP/goprof-bpf" -p "$PID" --heap --source=enable -d 300ms -o "$TMP/nobody" \
		>"$TMP/path" 2>"$TMP/said" </dev/null
	RC=$?
}
if id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	mkdir -p "$TMP/nobody" && chmod 777 "$TMP" "$TMP/nobody"
	cp "$GOPROF" "$TMP/goprof-bpf"
	as_nobody ""
	[ $RC = 1 ] && said CAP_SYS_PTRACE && rate_is 0 && why= || why="exit $RC, rate $(rate): $(last_said)"
	verdict "another user's process: refused, with the capability's name" "$why"
	as_nobody ,+sys_ptrace
	[ $RC = 1 ] && said 'missing: CAP_DAC_OVERRIDE' && rate_is 0 && why= || why="exit $RC, rate $(rate): $(last_said)"
	verdict "another user's process, without the right to its file: refused likewise" "$why"
	as_nobody ,+sys_ptrace,+dac_override
	[ $RC = 0 ] && said 'is 0 again' && rate_is 0 && why= || why="exit $RC, rate $(rate): $(last_said)"
	verdict "another user's process, with the two capabilities" "$why"
else
	skip "another user's process" "no user nobody, or no setpriv"
fi
finish
