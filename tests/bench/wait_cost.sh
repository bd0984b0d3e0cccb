#!/bin/bash
# What one park and its wake cost more than alone: under --block --mutex by probe, at the default
# rates and at rate 1, under --wait, under Go's own profiles at rate 1, and under a bpftrace script
# that times the same two functions. A program with two goroutines that wake each other says how long one
# pair takes, every 20 ms; in each of ROUNDS it is left alone, watched in one way, left alone,
# watched in the next, and so on. A cost is the median of a second's lines less those of the
# quiet second before; what is printed is the median of all rounds. And what of its speed, by its CPU
# time, it keeps in 5 s of --wait under the default budget, attaching included.
#
# Wanted: ours at most 0.35 of bpftrace's, and at rate 1 at most twice Go's own.
. tests/support/lib.sh
need_root && need_bpf && need_go
command -v bpftrace >/dev/null || skip_all "needs bpftrace: 'make deps' installs it"

ROUNDS=${ROUNDS:-5}
VERSIONS=${VERSIONS:-1.19.13 1.22.12 1.27.4}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "" }'; }

# ns per pair over the next second; the first line is skipped, because it began before.
slice() {
	local from
	from=$(wc -l <"$OUT")
	sleep 1
	tail -n +$((from + 2)) "$OUT" | awk 'NF == 3 { print $2 }' | median
}

pairs() { awk 'NF == 3 { n = $3 } END { print n + 0 }' "$OUT"; }

# wait_for FILE PATTERN: 10 s
wait_for() {
	local i
	for ((i = 0; i < 200; i++)); do grep -q "$2" "$1" && return; sleep 0.05; done
	echo "nothing like '$2' in $(head -c 300 "$1")" >&2
	return 1
}

# Each of these prints ns per pair while the program is watched in that way.

own() {
	local ns from
	from=$(wc -l <"$OUT")
	kill -USR1 "$PID"
	for ((i = 0; i < 100; i++)); do tail -n +$((from + 1)) "$OUT" | grep -q '^rate 1' && break; sleep 0.05; done
	ns=$(slice)
	kill -USR2 "$PID"
	sleep 0.1
	echo "$ns"
}

# ours NAME OPTION...: at rate 1 (one), at least as many waits must be seen as there were.
ours() {
	local name=$1 prof ns path before after seen
	shift
	: >"$TMP/err"
	"$GOPROF" -p "$PID" "$@" -d 60s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	wait_for "$TMP/err" ': profiling' || return 1
	sleep 0.1
	before=$(pairs)
	ns=$(slice)
	after=$(pairs)
	kill -INT $prof
	wait $prof || { head -n 3 "$TMP/err" >&2; return 1; }
	path=$(grep -v '\.mutex\.' "$TMP/path")
	seen=$("$PPROFCHECK" cum -type contentions "$path" | awk '/ main\.(rounds|pong)$/ { n += $1 } END { print n + 0 }')
	[ "$name" != one ] || [ "$seen" -ge $((after - before)) ] ||
		{ echo "$seen waits seen of $((after - before)) and more" >&2; return 1; }
	[ "$seen" -gt 0 ] || { echo "no wait was sampled" >&2; return 1; }
	echo "$ns"
}

# The script that a person would write: g is in r14, and ready's first argument in ax.
SCRIPT='
uprobe:BIN:runtime.gopark { @parked[reg("r14")] = nsecs; }
uprobe:BIN:runtime.ready /@parked[reg("ax")]/ {
	@waited = hist(nsecs - @parked[reg("ax")]);
	delete(@parked[reg("ax")]);
}'

theirs() {
	local trace ns
	: >"$TMP/trace"
	bpftrace -p "$PID" -e "${SCRIPT//BIN/$1}" >"$TMP/trace" 2>&1 &
	trace=$!
	STARTED+=("$trace")
	wait_for "$TMP/trace" Attaching || return 1
	sleep 0.7 # it says so before it has
	ns=$(slice)
	kill -INT $trace
	wait $trace
	grep -q '^@waited:' "$TMP/trace" || { head -n 3 "$TMP/trace" >&2; return 1; }
	echo "$ns"
}

# The cost: ns more than in a quiet second before. Appended to $TMP/NAME.
cost() {
	local name=$1 base got
	shift
	base=$(slice)
	got=$("$@") || return 1
	echo "$base" >>"$TMP/alone"
	awk -v a="$got" -v b="$base" 'BEGIN { printf "%.1f\n", a - b }' >>"$TMP/$name"
}

# Mean ns per pair over the next 5 s.
mean() {
	local from
	from=$(wc -l <"$OUT")
	sleep 5
	tail -n +$((from + 2)) "$OUT" | awk 'NF == 3 { if (last) { ns += $2 * ($3 - last); n += $3 - last } last = $3 }
		END { if (n) print ns / n }'
}

kept() {
	local base got prof
	base=$(mean)
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --wait -d 60s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	got=$(mean)
	kill -INT $prof
	wait $prof || { head -n 3 "$TMP/err" >&2; return 1; }
	grep -q 'short windows' "$TMP/err" || { echo "no windows" >&2; return 1; }
	awk -v a="$base" -v b="$got" 'BEGIN { printf "%.3f\n", a / b }' >>"$TMP/kept"
}

bench() {
	local v=$1 bin i probed="--block --mutex --source=probe --budget 0"
	bin=$(subject "$v" pingpong) || { fail "wait_cost/$v" "does not build"; return; }
	start "$bin" || { fail "wait_cost/$v" "does not start"; return; }
	rm -f "$TMP"/{alone,own,default,one,wait,theirs,kept}
	for ((i = 0; i < ROUNDS; i++)); do
		cost default ours default $probed || { fail "wait_cost/$v" "goprof-bpf at its default rates"; break; }
		cost own own || { fail "wait_cost/$v" "its own profiles"; break; }
		cost one ours one $probed --block-rate 1 --mutex-fraction 1 || { fail "wait_cost/$v" "goprof-bpf at rate 1"; break; }
		cost wait ours wait --wait --wait-rate 100us --budget 0 || { fail "wait_cost/$v" "goprof-bpf --wait"; break; }
		kept || { fail "wait_cost/$v" "goprof-bpf --wait under its budget"; break; }
		cost theirs theirs "$bin" || { fail "wait_cost/$v" "bpftrace"; break; }
	done
	kill "$PID"
	[ $i = "$ROUNDS" ] || return
	awk -v v="$v" -v a="$(median <"$TMP/alone")" -v d="$(median <"$TMP/default")" -v o="$(median <"$TMP/one")" \
		-v w="$(median <"$TMP/wait")" -v g="$(median <"$TMP/own")" -v t="$(median <"$TMP/theirs")" \
		'BEGIN { printf "%-8s %6.0f %9.0f %7.0f %7.0f %9.0f %10.0f %11.3f %8.3f %7.2f\n",
			 v, a, d, o, w, g, t, d / t, o / t, o / g }'
	echo "         under --wait by default it keeps $(median <"$TMP/kept") of its speed (wanted: 0.9)"
	pass "wait_cost/$v"
}

echo "One park and its wake, nanoseconds more than alone (wanted: /bpftrace at most 0.35, /Go at most 2)"
uptime
row='%-8s %6s %9s %7s %7s %9s %10s %11s %8s %7s\n'
# shellcheck disable=SC2059
{
	printf "$row" '' '' 'ours at' 'ours at' 'ours,' "Go's own" '' 'defaults' 'rate 1' 'rate 1'
	printf "$row" Go alone defaults 'rate 1' --wait 'rate 1' bpftrace /bpftrace /bpftr. '/Go'
}
for v in $VERSIONS; do bench "$v"; done
finish
