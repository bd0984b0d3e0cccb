#!/bin/bash
# --source=probe against programs of known counts that link no pprof: every line within four
# standard errors of the truth, all bytes within 2 %; also while goroutines change threads,
# stacks grow and the collector runs. Go 1.16 (stack ABI), 1.19, 1.22 (malloc header),
# 1.24 (split mallocgc), 1.27 (size-specialised).
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

RATE=65536

run() {
	local v=$1 name=heap_probe/$1$(printf '%s' "${2// /}") bin fd out rc verdict i
	# shellcheck disable=SC2086
	bin=$(subject "$v" alloctruth -ldflags='-s -w') || { fail "$name" "does not build"; return; }
	mkfifo "$TMP/in.$name" 2>/dev/null || { mkdir -p "$TMP/in.$(dirname "$name")"; mkfifo "$TMP/in.$name"; }
	# shellcheck disable=SC2086
	"$bin" $2 <"$TMP/in.$name" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in.$name"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/err" # what the last run said must not be taken for this one's
	"$GOPROF" -p $PID --heap --source=probe --heap-rate=$RATE --budget=0 -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	local prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 600; i++)); do grep -q 'profiling pid' "$TMP/err" && break; sleep 0.1; done
	echo go >&"$fd"
	for ((i = 0; i < 1500; i++)); do grep -q '^done' "$TMP/truth" && break; sleep 0.1; done
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	out=$(cat "$TMP/path")
	if ! grep -q '^done' "$TMP/truth"; then
		fail "$name" "the program did not finish"
		return
	fi
	# Below a deep recursion stacks are cut at the root, and it is said so.
	# A collector that never rests leaves no time to see who lives (tests/e2e/heap_live.sh).
	case $2 in *-gc*) [ $rc = 3 ] && ! grep -E '^goprof-bpf: heap: [0-9]+ ' "$TMP/err" | grep -qvE 'still live|deeper than' && rc=0 ;; esac
	case $2 in *-deep*) [ $rc = 3 ] && grep -q 'deeper than the limit' "$TMP/err" && rc=0 ;; esac
	if [ $rc != 0 ] || [ ! -s "$out" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
		return
	fi
	"$PPROFCHECK" comments "$out" | grep -E 'hits|loss'
	verdict=$(judge_probe "$TMP/truth" "$out" $RATE)$("$PPROFCHECK" check "$out" 2>&1 >/dev/null | head -n 1)
	[ "$("$PPROFCHECK" flat "$out")" = "$("$PPROFCHECK" flat -type alloc_space "$out")" ] ||
		verdict+=" what is shown first is not what was allocated"
	[ -z "$verdict" ] && pass "$name" ||
		fail "$name" "$verdict ($("$PPROFCHECK" comments "$out" | grep hits:), $(wc -l <"$TMP/stacks") stacks)"
}

for v in 1.16.15 1.19.13 1.22.12 1.24.13 1.27.4; do
	run $v ""
done
for v in 1.19.13 1.27.4; do
	run $v "-goroutines 8"
	run $v "-deep"
	run $v "-goroutines 4 -deep -gc"
done
finish
