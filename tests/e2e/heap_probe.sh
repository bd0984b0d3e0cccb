#!/bin/bash
# --source=probe against programs of known counts that link no pprof: every line within what
# chance allows (tests/README.md), all bytes within 2 %; also while goroutines change threads,
# stacks grow and the collector runs. Go 1.16 (stack ABI), 1.19, 1.22 (malloc header),
# 1.24 (split mallocgc), 1.27 (size-specialised).
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

RATE=16384

# What is shown first is what was allocated.
shown_first() {
	"$PPROFCHECK" flat "$1" >"$TMP/first" && "$PPROFCHECK" flat -type alloc_space "$1" >"$TMP/space" &&
		[ -s "$TMP/first" ] && cmp "$TMP/first" "$TMP/space"
}

run() {
	local v=$1 name=heap_probe/$1$(printf '%s' "${2// /}") bin fd out rc i may
	# shellcheck disable=SC2086
	bin=$(subject "$v" alloctruth -ldflags='-s -w') || { fail "$name" "does not build"; return; }
	mkfifo "$TMP/in.$name" 2>/dev/null || { mkdir -p "$TMP/in.$(dirname "$name")"; mkfifo "$TMP/in.$name"; }
	: >"$TMP/truth"
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
	may=()
	case $2 in *-deep*) may+=(-allow heap:STACKS_CUT=any) ;; esac
	case $2 in *-gc*) may+=(-allow heap:OBJECTS_UNCONFIRMED=any) ;; esac
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$out" 0 "${may[@]}" && rc=0
	if [ $rc != 0 ] || [ ! -s "$out" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
		return
	fi
	"$PPROFCHECK" comments "$out" | grep -E 'hits|loss'
	judge judge_probe "$TMP/truth" "$out" $RATE
	judge valid "$out"
	judge shown_first "$out"
	outcome "$name"
}

# Each Go in one way, the newest in two. With WIDE=1 all ways in an old Go and in the newest.
if [ -n "${WIDE:-}" ]; then
	for v in $ALL_MINORS; do run $v ""; done
	for v in 1.19.13 1.27.4; do
		run $v "-goroutines 8"
		run $v "-deep"
		run $v "-goroutines 4 -deep -gc"
	done
else
	run 1.16.15 ""
	run 1.19.13 "-goroutines 4 -deep -gc"
	run 1.22.12 "-goroutines 8"
	run 1.24.13 "-deep"
	run 1.27.4 ""
	run 1.27.4 "-goroutines 4 -deep -gc"
fi
finish
