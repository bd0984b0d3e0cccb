#!/bin/bash
# A command under the profiler: what it reads, writes, is sent and ends with is as without us, and
# its profile begins at its first instruction, in every kind of build. WIDE=1: more Go versions.
. tests/support/lib.sh
need_root && need_bpf && need_go

DIR=$TMP/profiles # where the profiles go
SAID=$TMP/err
run() { "$GOPROF" -o "$DIR" "$@" 2>"$SAID"; }
files() { cat "$DIR"/*."$1".pb.gz 2>/dev/null | wc -c; }
one() { ls "$DIR"/*."$1".pb.gz 2>/dev/null | head -n 1; }
fresh() { rm -rf "$DIR"; }
# check NAME WHY: WHY is empty when all is well.
check() { [ -z "$2" ] && pass "command/$1" || fail "command/$1" "$2; $(tail -n 3 "$SAID" | tr '\n' ' ')"; }

BIN=$(subject 1.27.4 command -ldflags='-s -w') || { fail command "the subject does not build"; finish; }

# ---- streams ----

head -c 3000000 /dev/urandom >"$TMP/bytes"
run --cpu -- cat <"$TMP/bytes" >"$TMP/got"
rc=$?
check bytes "$([ $rc = 0 ] && cmp "$TMP/bytes" "$TMP/got" 2>&1 || echo "status $rc")"

run --cpu -- sh -c 'printf out; printf err >&2; exit 3' >"$TMP/got"
rc=$?
check streams "$([ $rc = 3 ] && [ "$(cat "$TMP/got")" = out ] && grep -q ^err "$SAID" ||
	echo "status $rc, stdout '$(cat "$TMP/got")'")"

fresh
run --cpu -- "$BIN" -burn 100ms >"$TMP/got"
check stdout_is_its_own "$(grep -v '^cpu [0-9]*$' "$TMP/got")$([ "$(wc -l <"$TMP/got")" = 1 ] || echo "not one line")$(
	grep -q "$DIR/.*cpu.pb.gz" "$SAID" || echo "the path is not on stderr")"

# ---- how it ends ----

ends() {
	local want=$1 rc
	shift
	run --cpu -- "$@" >/dev/null </dev/null
	rc=$?
	[ $rc = "$want" ] || echo "status $rc, not $want, of $*; "
}
printf 'no program' >"$TMP/text" && chmod 755 "$TMP/text"
mkdir -p "$TMP/plain" && cp "$TMP/text" "$TMP/plain/text" && chmod 644 "$TMP/plain/text"
check status "$(ends 0 true; ends 1 false; ends 3 "$BIN" -status 3; ends 137 sh -c 'kill -9 $$'
	ends 143 sh -c 'kill -TERM $$'; ends 127 "$TMP/none"; ends 127 no-such-command-anywhere
	ends 126 "$TMP/plain/text"; ends 126 "$TMP"; ends 127 sh -c 'exit 127')"
"$GOPROF" --cpu -o "$TMP/text" -- touch "$TMP/was_started" 2>/dev/null
rc=$?
check "a directory that cannot be: not started" "$([ $rc = 1 ] && [ ! -e "$TMP/was_started" ] || echo "status $rc")"

# ---- what it inherits ----

# All that a process is given, as it finds it.
cat >"$TMP/inherits" <<'EOF'
#!/bin/sh
grep -E '^(Sig(Blk|Ign)|Cap|Seccomp|NoNewPrivs|Cpus_allowed|Uid|Gid|Groups|Umask)' /proc/self/status
for f in /proc/$$/fd/*; do echo "${f##*/}"; done
ulimit -a; nice; pwd; env | grep -v ^_=; ps -o pgid=,sid=,tty= -p $$ | tr -d '\n'; printf '%s|' "$@"
EOF
chmod 755 "$TMP/inherits"
inherit() ( # in a subshell with unusual settings
	trap '' USR1 PIPE CHLD
	cd /usr && umask 027 && ulimit -n 500 && ulimit -c 0
	VAR='a b' exec nice -n 5 "$@" "$TMP/inherits" 'a  b' '' '*' 5>/dev/null 6<&0 </dev/null 2>/dev/null
)
inherit >"$TMP/want"
inherit "$GOPROF" --cpu -o "$DIR" -- >"$TMP/got"
rc=$?
check inherits "$([ $rc = 0 ] || echo "status $rc: ")$([ "$(wc -l <"$TMP/want")" -gt 30 ] || echo "nothing to compare")$(
	diff "$TMP/want" "$TMP/got" | head -n 5 | tr '\n' ' ')"
"$GOPROF" --cpu --follow -o "$DIR" -- sh -c 'for f in /proc/$$/fd/*; do echo "${f##*/}"; done' \
	>"$TMP/got" 2>"$SAID" </dev/null
sh -c 'for f in /proc/$$/fd/*; do echo "${f##*/}"; done' >"$TMP/want" 2>"$SAID.2" </dev/null
check descriptors "$(diff "$TMP/want" "$TMP/got" | tr '\n' ' ')"

# ---- signals ----

# await FILE PATTERN [COUNT]
await() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ "$(command grep -c "$2" "$1" 2>/dev/null)" -ge "${3:-1}" ] 2>/dev/null && return 0
		sleep 0.05
	done
	return 1
}
signals() {
	local prof s rc
	fresh
	: >"$TMP/got"
	(run --cpu -- "$BIN" -wait || exit $?) >"$TMP/got" &
	prof=$!
	await "$TMP/got" ^ready || echo "not ready"
	for s in HUP:hangup INT:interrupt QUIT:quit USR1:"user defined signal 1" USR2:"user defined signal 2" \
		ALRM:"alarm clock" CONT:continued; do
		kill -"${s%%:*}" "$(pgrep -P $prof -x goprof-bpf || echo $prof)"
		await "$TMP/got" "^got ${s#*:}" || echo "${s%%:*} was not passed on"
	done
	kill -TERM "$(pgrep -P $prof -x goprof-bpf || echo $prof)"
	wait $prof && rc=0 || rc=$?
	[ $rc = 5 ] || echo "status $rc, not 5"
	[ "$(files cpu)" -gt 0 ] || echo "no profile"
}
steps signals
outcome command/signals

# ---- what is no Go program, and what becomes one ----

run --cpu -- sleep 0.1
rc=$?
check not_go "$([ $rc = 0 ] && grep -q 'not a Go program.*nothing was profiled' "$SAID" || echo "status $rc")"

for w in "env A=1" "nice -n 1" "sh -c" "setsid"; do
	fresh
	# shellcheck disable=SC2086
	case $w in
	sh*) run --cpu -- sh -c "true; trap '' USR1; kill -USR1 \$\$; exec $BIN -burn 200ms -status 4" >"$TMP/got" ;;
	*) run --cpu -- $w "$BIN" -burn 200ms -status 4 >"$TMP/got" ;;
	esac
	rc=$?
	check "through ${w%% *}" "$([ $rc = 4 ] && grep -q '^cpu ' "$TMP/got" && [ "$(files cpu)" -gt 0 ] || echo "status $rc, $(files cpu) bytes")"
done

# ---- from the first instruction, in every build ----

# All that main.inInit allocates, before main, seen by probes at every allocation.
first() {
	local v=$1 kind=$2 bin n c
	shift 2
	bin=$(CGO=${CGO:-0} subject "$v" command "$@") || { fail "command/first/$v-$kind" "does not build"; return; }
	fresh
	run --cpu --heap --heap-rate 1 --source=probe -F 1000 -- "$bin" -burn 200ms >"$TMP/got"
	c=$("$PPROFCHECK" comments "$(one heap)" 2>&1)
	n=$("$PPROFCHECK" cum -type alloc_objects "$(one heap)" | awk '/main\.inInit/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/) print $i }')
	# A GC assist may allocate a few sudogs below it.
	check "first/$v-$kind" "$([ "${n:-0}" -ge 10000 ] && [ "$n" -le 10020 ] || echo "${n:-no} objects of main.inInit, not 10000; ")$(
		"$PPROFCHECK" check "$(one heap)" "$(one cpu)" | head -n 1)$(
		"$PPROFCHECK" comments "$(one cpu)" | awk '/^charged:/ { ok = $2 > 0.15 } END { if (!ok) print "no CPU time; " }')$(
		grep -q 'from its first instruction, until it ended' <<<"$c" || echo "no word of its start; ")$(
		grep -q '^budget: 5% .* after a first second .* all of the time observed' <<<"$c" || echo "not observed whole: $(grep ^budget: <<<"$c")")"
}
for v in 1.27.4 ${WIDE:+1.25.14 1.24.13 1.22.12 1.20.14 1.19.13 1.18.10 1.17.13}; do
	first $v stripped -ldflags='-s -w'
	first $v pie -buildmode=pie -ldflags='-s -w'
	CGO=1 first $v cgo -ldflags='-linkmode=external'
	CGO=1 first $v cgo-pie -buildmode=pie -ldflags='-linkmode=external -s -w'
done
first 1.18.10 pie -buildmode=pie -ldflags='-s -w'
first 1.16.15 stripped -ldflags='-s -w'

# ---- which source ----

fresh
run --heap --budget=0 -- "$BIN"
check "source: linked not to sample" "$(grep -q 'source probe: the command is linked not to' "$SAID" || echo "not probed")"
for v in 1.27.4 1.18.10; do
	bin=$(subject $v command -tags sampled -ldflags='-s -w') || { fail "command/source $v" "does not build"; continue; }
	fresh
	run --heap --budget=0 -- "$bin" -gc -burn 300ms >"$TMP/got"
	n=$("$PPROFCHECK" cum -type inuse_space "$(one heap)" | awk '/main\.inInit/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/) print $i }')
	# 10 MB sampled each 512 KiB: twenty samples or so; none would be chance in a billion.
	check "source $v: samples its own heap" "$(grep -q 'source read' "$SAID" || echo "not read; ")$(
		[ "${n:-0}" -gt 1000000 ] && [ "$n" -lt 40000000 ] || echo "${n:-no} bytes of main.inInit; ")$(
		"$PPROFCHECK" comments "$(one heap)" | grep -q 'state: as of .* after its start' || echo "no word of the time")"
done

# ---- Go in a library ----

# A C program that loads one: nobody knows when, so it is looked for.
if host=$(libhost) && lib=$(library 1.27.4 leaf31 cshared -ldflags='-s -w'); then
	fresh
	: >"$SAID"
	"$GOPROF" --cpu -d 3s -o "$DIR" -- "$host" "$lib" 2>"$SAID" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 150; i++)); do grep -q '\.cpu\.pb\.gz$' "$SAID" && break; sleep 0.1; done
	check "a Go library in a C program" "$("$PPROFCHECK" stacks -type samples "$(one cpu)" | grep -q 'main\.leaf' || echo "no main.leaf: $(tail -n 2 "$SAID")")"
	kill "$PROF"
	wait "$PROF" 2>/dev/null
else
	fail "command/a Go library in a C program" "does not build"
fi

# ---- CPU time ----

# What a busy machine served late is counted and said: with it, the samples are all. But that is
# little, or the clocks are at fault: of three tries one has 95 % of them.
for try in 1 2 3; do
	fresh
	run --cpu -- "$BIN" -burn 3s >"$TMP/got"
	want=$(sed -n 's/^cpu //p' "$TMP/got")
	missed=$(sed -n 's/^goprof-bpf: cpu: \([0-9]*\) clock ticks.*/\1/p' "$SAID")
	[ "${missed:-0}" -gt 15 ] || break
	attempt $try "command/CPU time" "$missed of 300 ticks missed"
done
verdict=$("$PPROFCHECK" comments "$(one cpu)" | awk -v want="$want" -v missed="${missed:-0}" '
	/^hits:/ { got = $4 * 1e9 + missed * 1e7 } /^charged:/ { charged = $2 * 1e9 }
	END {
		if (missed > 15) printf "%d of 300 ticks missed, ", missed
		if (charged < 0.98 * want || charged > 1.02 * want) printf "charged %.3f s, ", charged / 1e9
		if (got < 0.98 * want || got > 1.02 * want) printf "%.3f s sampled, ", got / 1e9
	}')
echo "3 s of work: ${missed:-no} ticks of 300 were served late"
check cpu "${verdict:+${verdict}of $want ns by getrusage}"

fresh
run --cpu -- "$BIN" -burn 20ms >"$TMP/got"
check "20 ms of work" "$([ -s "$(one cpu)" ] && [ "$("$PPROFCHECK" comments "$(one cpu)" | grep -c '^charged: 0.0')" = 1 ] || echo "no profile")"

fresh
run --cpu -d 300ms -- "$BIN" -burn 1500ms -status 6 >"$TMP/got"
rc=$?
check "-d ends before the command" "$([ $rc = 6 ] && grep -q '^cpu ' "$TMP/got" || echo "status $rc; ")$(
	"$PPROFCHECK" comments "$(one cpu)" | awk '/^window:/ { if ($2 < 0.25 || $2 > 1) print "window " $2 }')$(
	"$PPROFCHECK" comments "$(one cpu)" | grep -q 'it ran on' || echo "no word of it")"

# ---- SIGKILL ----

state() { command sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 1; }
# killed ROUND: while the command is held, or some time later; it runs on
held=0 later=0
killed() {
	local prof child='' until=$((SECONDS + 20)) s
	: >"$TMP/got"
	"$GOPROF" --cpu --heap --source=probe -o "$DIR" -- "$BIN" -wait >"$TMP/got" 2>"$SAID" &
	prof=$!
	while [ $SECONDS -lt $until ]; do
		read -r child 2>/dev/null <"/proc/$prof/task/$prof/children" || :
		[ -n "$child" ] || continue
		case $(state "$child") in t) break ;; esac
		# Let go already, which it says at once.
		! grep -q ^ready "$TMP/got" || break
	done
	[ -n "$child" ] || { echo "no child was seen"; return; }
	STARTED+=("$child")
	[ "$1" -lt 8 ] || await "$TMP/got" ^ready || echo "round $1: it was not let go"
	s=$(state "$child")
	kill -KILL $prof
	wait $prof 2>/dev/null || [ $? = 137 ]
	[ "$s" = t ] && held=$((held + 1)) || later=$((later + 1))
	await "$TMP/got" ^ready || { echo "round $1: killed in state $s, it does not run on ($(state "$child"))"; return; }
	kill -USR1 "$child"
	await "$TMP/got" 'got user defined signal 1' || echo "round $1: it does not answer"
	kill -KILL "$child"
}
for ((round = 0; round < 14; round++)); do
	steps killed $round
	! found_wrong || break
done
echo "killed $held times while the command was held, $later times later"
[ $held -ge 4 ] && [ $later -ge 4 ] || wrong "killed $held times while held, $later times later"
outcome "command/SIGKILL, and the command runs on"

# ---- children ----

fresh
run --cpu --follow -- "$BIN" -burn 1500ms -children 5 >"$TMP/got"
rc=$?
check follow "$([ $rc = 0 ] || echo "status $rc; ")$(n=$(ls "$DIR" | wc -l); [ "$n" = 6 ] || echo "$n files, not 6; ")$(
	for f in "$DIR"/*; do
		"$PPROFCHECK" cum -type cpu "$f" | grep -q main.burn || echo "${f##*/}: no main.burn; "
		# It uses a CPU at most: what is missing of its 1.5 s was before the watching began.
		"$PPROFCHECK" comments "$f" | awk -v f="${f##*/}" '/^charged:/ { got = $2 } /^followed: from/ { late = $3 / 1000 }
			END { if (got <= 0 || got < 1.2 - late) print f ": " got " s of its 1.5 s, watched from " late " s on; " }'
	done)$([ "$(for f in "$DIR"/*; do "$PPROFCHECK" comments "$f"; done | grep -c 'followed: from .* ms after its exec')" = 5 ] ||
		echo "not five that were followed")"

fresh
run --cpu --follow -- sh -c "$BIN -burn 1500ms; sh -c '$BIN -burn 1500ms; true'; true" >"$TMP/got"
check "follow through shells" "$(n=$(ls "$DIR" | wc -l); [ "$n" = 2 ] || echo "$n files, not 2")"

fresh
start "$BIN" -wait
run --cpu --follow -p "$PID" -d 300ms >"$TMP/paths"
check "follow without children" "$(n=$(ls "$DIR" | wc -l); [ "$n" = 1 ] && [ "$(wc -l <"$TMP/paths")" = 1 ] || echo "$n files, not 1")"

# Two programs after each other, of a file that nobody here has seen: most of what they did is seen, of the second, too.
fresh
cp "$BIN" "$TMP/new"
run --cpu --heap --wait --source=probe --heap-rate 1 --wait-rate 1 --budget=0 -F 1000 --follow -- \
	sh -c "$TMP/new -steps 80; $TMP/new -steps 80; true" >"$TMP/got"
# most KIND TYPE: each of the two profiles has at least half of the 80 steps
most() {
	local f n seen=0
	for f in "$DIR"/*."$1".pb.gz; do
		[ -s "$f" ] || continue
		seen=$((seen + 1))
		n=$("$PPROFCHECK" cum -type "$2" "$f" | awk '/main\.step/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/) print $i }')
		echo "$1: ${n:-no} of 80 ($("$PPROFCHECK" comments "$f" | sed -n 's/^followed: \(.* exec\),.*/\1/p'))" >&2
		[ "${n:-0}" -ge "${3:-40}" ] || echo "$1: ${n:-no} $2 of main.step; "
	done
	[ $seen = 2 ] || echo "$seen profiles of $1, not two; "
}
# A step uses some 0.7 ms.
check "follow from near the start" "$(most cpu samples 24; most heap alloc_objects; most wait contentions)"

# A program that is met before its runtime has cleared the rate that it is linked not to have.
fresh
run --heap --follow -- bash -c "for ((i = 0; i < 40; i++)); do $BIN -steps 5 || :; done" >"$TMP/got"
n=$(ls "$DIR" | wc -l)
probed=$(for f in "$DIR"/*; do "$PPROFCHECK" comments "$f"; done | grep -c '^source: probe')
check "follow: records that are off are not read" "$([ "$n" -ge 20 ] || echo "$n programs of 40; ")$([ "$probed" = "$n" ] || echo "$probed of $n probed")"

# A process that starts programs while we look, each of them many times as long as it takes to see it.
fresh
bash -c "echo ready; while sleep 0.2; do $BIN -burn 1s; done" >"$TMP/got" &
shell=$!
STARTED+=("$shell")
go=$(subject 1.27.4 command -ldflags='-s -w')
start "$go" -wait -children 2 -after 3s -burn 1s
run --cpu --follow -p "$PID" -d 7s >"$TMP/paths"
check "follow of a pid" "$(n=$(ls "$DIR" | wc -l); [ "$n" = 3 ] && [ "$(wc -l <"$TMP/paths")" = 3 ] || echo "$n files, not 3")"
kill "$shell"
finish
