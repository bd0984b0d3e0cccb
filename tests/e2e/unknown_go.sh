#!/bin/bash
# A Go newer than any known: builds of goprof-bpf whose table ends one or two minors early, on
# stripped programs of the Go after it. Each kind of profile is right by the same judges as
# ever, with a warning and exit status 3, or it is refused in one sentence with no file. A
# version that is only patched into the file, with DWARF, is warned of and nothing else.
#
#	UNKNOWN='26:1.27.4 25:1.26.11' tests/e2e/unknown_go.sh	which end, which Go
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

: "${UNKNOWN:=26:1.27.4 25:1.27.4 25:1.26.11}"
RATE=16384
REFUSED=0 GIVEN=0

# run NEWEST PID KINDS...: RC, $OUTFILE, $TMP/said
run() {
	local newest=$1 pid=$2
	shift 2
	"$O/newest/$newest/goprof-bpf" -p "$pid" "$@" -o "$TMP" >"$TMP/path" 2>"$TMP/said" </dev/null
	RC=$?
	OUTFILE=$(cat "$TMP/path")
}

# settle NAME VERDICT_COMMAND...: given and right, or refused and said why.
settle() {
	local name=$1
	shift
	if [ "$(grep -c 'warning: .* is no Go release known here' "$TMP/said")" != 1 ]; then
		fail "$name" "no warning: $(head -n 2 "$TMP/said")"
		return
	fi
	if [ $RC = 1 ]; then
		[ ! -s "$TMP/path" ] && [ "$(grep -vc 'warning:\|heap: source\|profiling pid' "$TMP/said")" = 1 ] ||
			{ fail "$name" "refused, but not in one sentence: $(cat "$TMP/said")"; return; }
		grep -E 'its structs are not sure|not known of|is not known|slot sizes' "$TMP/said" ||
			{ fail "$name" "failed for another reason: $(tail -n 1 "$TMP/said")"; return; }
		REFUSED=$((REFUSED + 1))
		pass "$name: refused"
		return
	fi
	[ $RC = 3 ] && grep -q 'the Go version is not known here' "$TMP/said" && [ -s "$OUTFILE" ] ||
		{ fail "$name" "exit status $RC: $(tail -n 2 "$TMP/said")"; return; }
	judge "$@"
	found_wrong && head -n 20 "$TMP/diff" 2>/dev/null || GIVEN=$((GIVEN + 1))
	outcome "$name: right"
}

end() { kill -KILL "$PID"; wait "$PID" 2>/dev/null; }

read_heap() {
	local newest=$1 v=$2 bin
	bin=$(subject "$v" heapself '-ldflags=-s -w') && start "$bin" ||
		{ fail "read, $v" "the subject does not run"; return; }
	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz"
	run "$newest" "$PID" --heap --source=read -d 300ms
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz"
	settle "known to 1.$newest, go$v: read" judge_read "$TMP/one.pb.gz" "$OUTFILE" "$TMP/two.pb.gz"
	end
}

read_cpu() {
	local newest=$1 v=$2 bin d
	bin=$(subject "$v" leaf31 '-ldflags=-s -w') && start_quiet "$bin" ||
		{ fail "cpu, $v" "the subject does not run"; return; }
	# A busy machine gives it little time: longer, until there is enough to judge by.
	for d in 4s 12s 30s; do
		run "$newest" "$PID" --cpu -F 1000 -d $d
		[ $RC = 3 ] && three_to_one "$OUTFILE" | grep -q '^only' || break
	done
	settle "known to 1.$newest, go$v: cpu" three_to_one "$OUTFILE"
	end
}

# Everything it allocates is seen: it waits for a line before it begins.
probe_heap() {
	local newest=$1 v=$2 bin fd prof i
	bin=$(subject "$v" alloctruth '-ldflags=-s -w') || { fail "probe, $v" "does not build"; return; }
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$bin" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/said"
	"$O/newest/$newest/goprof-bpf" -p "$PID" --heap --source=probe --heap-rate=$RATE --budget=0 -d 120s \
		-o "$TMP" >"$TMP/path" 2>"$TMP/said" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 200; i++)); do
		grep -q 'profiling pid' "$TMP/said" && break
		kill -0 $prof 2>/dev/null || break
		sleep 0.1
	done
	echo go >&"$fd"
	for ((i = 0; i < 900; i++)); do grep -q '^done' "$TMP/truth" && break; sleep 0.1; done
	kill -INT $prof 2>/dev/null
	wait $prof
	RC=$?
	echo end >&"$fd"
	exec {fd}>&-
	OUTFILE=$(cat "$TMP/path")
	settle "known to 1.$newest, go$v: probe" judge_probe "$TMP/truth" "$OUTFILE" $RATE
}

for pair in $UNKNOWN; do
	newest=${pair%%:*} v=${pair#*:}
	[ -x "$O/newest/$newest/goprof-bpf" ] || { fail "known to 1.$newest" "no $O/newest/$newest/goprof-bpf: make it"; continue; }
	read_heap "$newest" "$v"
	read_cpu "$newest" "$v"
	probe_heap "$newest" "$v"
done
echo "$GIVEN right, $REFUSED refused"
# A program that refuses everything would pass the other checks, and be of no use.
[ $GIVEN -gt 0 ] && pass "some are given" || fail "some are given" "all were refused"
finish
