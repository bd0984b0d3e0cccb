#!/bin/bash
# Reading 100,000 and more heap buckets out of a target's memory (--source=read), beside the
# target's own /debug/pprof/heap: what each takes here and in the target. The program recorded
# every allocation and stands still, so both give the same samples.
. tests/support/lib.sh
need_root && need_go

HEAPREAD=$O/tests/heapread
RUSAGE=$O/tests/rusage
ROUNDS=${ROUNDS:-3}

# CPU of the target so far, in ms (of 10 each), and the most it ever had resident, in kB.
target_ms() { sed 's/.*) //' "/proc/$PID/stat" | awk '{ print ($12 + $13) * 10 }'; }
target_kb() { awk '/^VmHWM/ { print $2 }' "/proc/$PID/status"; }

row() { printf '%-8s %-11s %8s %9s %9s %10s %10s  %s\n' "$@"; }

# one VERSION WHAT COMMAND...: its cost on both sides. NOTE is shown behind.
one() {
	local v=$1 what=$2 ms kb user sys rss wall
	shift 2
	ms=$(target_ms) kb=$(target_kb)
	"$RUSAGE" "$TMP/use" "$@" 2>"$TMP/said" || return 1
	read -r user sys rss wall <"$TMP/use"
	row "$v" "$what" "$wall" "$(awk -v u="$user" -v s="$sys" 'BEGIN { print u + s }')" "$rss" \
		$(($(target_ms) - ms)) $(($(target_kb) - kb)) "$(head -n 1 "$TMP/said")"
}

bench() {
	local v=$1 bin i
	bin=$(subject "$v" heapself) || { fail "heap_read/$v" "does not build"; return; }
	start "$bin" -rate 1 -rounds 1 || { fail "heap_read/$v" "does not start"; return; }
	for ((i = 0; i < ROUNDS; i++)); do
		one "$v" read "$HEAPREAD" -t "$PID" "$TMP/read" ||
			{ fail "heap_read/$v" "$(head -n 1 "$TMP/said")"; return; }
		one "$v" fetch bash -c '. tests/support/lib.sh; http_get "$@"' - \
			"$PORT" /debug/pprof/heap "$TMP/own" ||
			{ fail "heap_read/$v" "no answer: $(head -n 1 "$TMP/said")"; return; }
	done
	kill "$PID"
	# Answering requests leaves new buckets behind, with values of zero.
	"$PPROFCHECK" equal -addresses -ignore-zero "$TMP/own" "$TMP/read" | head -n 1
	pass "heap_read/$v"
}

echo "A heap profile by reading memory, and by asking the target"
uptime
row Go how wall/ms here/ms here/kB target/ms target/+kB "steps"
bench 1.19.13
bench 1.22.12
bench 1.27.4
finish
