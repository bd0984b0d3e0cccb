#!/bin/bash
# --labels and --goid on probed heap samples, against a program that knows how much each of its
# goroutines allocated: every goroutine and label set is there with its count, within what
# chance allows (tests/README.md), and no other; without the options there are none. Go 1.16 and 1.22 (labels
# in a map), 1.24 and 1.27 (in a slice).
. tests/support/lib.sh
need_root && need_bpf && need_go

RATE=4096

# run V goid|nogoid labels|nolabels
run() {
	local v=$1 name=heap_labels/$1-$2-$3 bin fd rc i out options=
	[ "$2" != goid ] || options+=" --goid"
	[ "$3" != labels ] || options+=" --labels"
	bin=$(subject "$v" heaplabels) || { fail "$name" "does not build"; return; }
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$bin" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/err"
	# shellcheck disable=SC2086
	"$GOPROF" -p $PID --heap --source=probe --heap-rate=$RATE --budget=0 $options -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	local prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 600; i++)); do grep -q 'profiling pid' "$TMP/err" && break; sleep 0.1; done
	echo go >&"$fd"
	for ((i = 0; i < 900; i++)); do grep -q '^done' "$TMP/truth" && break; sleep 0.1; done
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	out=$(cat "$TMP/path")
	if ! grep -q '^done' "$TMP/truth"; then
		fail "$name" "the program did not finish"
	elif [ $rc != 0 ] || [ ! -s "$out" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	else
		# shellcheck disable=SC2086
		judge "$PPROFCHECK" labelled -rate $RATE ${options//--/-} "$TMP/truth" "$out"
		judge "$PPROFCHECK" check "$out"
		"$PPROFCHECK" comments "$out" >"$TMP/comments"
		[ "$3" != labels ] || grep -q '^labels: of the goroutine' "$TMP/comments" || wrong "no comment on labels"
		outcome "$name"
	fi
}

for v in 1.16.15 1.22.12 1.24.13 1.27.4; do
	run $v goid labels
done
run 1.27.4 nogoid labels
run 1.27.4 goid nolabels
run 1.27.4 nogoid nolabels

# What is read has no labels, and that is said.
bin=$(subject 1.27.4 heapself) && start "$bin" || fail heap_labels/read "the subject does not start"
"$GOPROF" -p "$PID" --heap --source=read --labels -d 100ms -o "$TMP" >"$TMP/path" 2>"$TMP/err"
rc=$?
if [ $rc = 0 ] && grep -q 'no goroutine labels' "$TMP/err" && "$PPROFCHECK" comments "$(cat "$TMP/path")" | grep -q '^labels: .* have none'; then
	pass heap_labels/read
else
	fail heap_labels/read "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
fi
finish
